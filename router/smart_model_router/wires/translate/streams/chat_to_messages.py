"""Chat Completions chunks as Messages events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.translate import reasoning
from smart_model_router.wires.translate.answers.chat_to_messages import (
    counted_searches,
    frame,
    stop_reason,
    text_block,
    thinking,
    tool_use_block,
)
from smart_model_router.wires.translate.citations import LATE, search_blocks, to_messages
from smart_model_router.wires.translate.streams.blocks import Added, Change, ChatBlocks, Cited, OpenedBlock, StreamBlock
from smart_model_router.wires.translate.words import dumps, messages_usage_of_chat, tool_use_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.wires.translate.terms import Context

_DELTAS = {
    "text": ("text_delta", "text"),
    "refusal": ("text_delta", "text"),
    "reasoning": ("thinking_delta", "thinking"),
    "tool": ("input_json_delta", "partial_json"),
}


class ChatToMessages:
    """One stream. Token counts come at its end: the head of a Messages stream says 0."""

    def __init__(self, context: Context) -> None:
        self._losses = context.losses
        self._terms = context.terms
        self._searches = 0
        self._blocks = ChatBlocks()
        self._started = False

    def feed(self, data: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The events that a chunk becomes."""
        changes = self._blocks.feed(data)
        return [*self._head(), *(event for change in changes for event in self._events(change))]

    def end(self) -> list[dict[str, Any]]:
        """The events that close a complete stream."""
        stop = stop_reason(self._blocks.finish, called=self._blocks.called)
        last = [*self._head(), *(event for change in self._blocks.end() for event in self._events(change))]
        if self._blocks.lost_citations:
            self._losses.drop("citations", LATE)
        return [
            *last,
            {
                "type": "message_delta",
                "delta": {"stop_reason": stop, "stop_sequence": None},
                "usage": {**messages_usage_of_chat(self._blocks.usage), **counted_searches(self._searches)},
            },
            {"type": "message_stop"},
        ]

    def _head(self) -> list[dict[str, Any]]:
        if self._started:
            return []
        self._started = True
        return [{"type": "message_start", "message": frame(self._blocks.id, self._blocks.model, None)}]

    def _events(self, change: Change) -> list[dict[str, Any]]:
        block = change.block
        if block.kind == "search":
            return self._search(block) if isinstance(change, OpenedBlock) else []
        place = block.index + self._searches
        if isinstance(change, OpenedBlock):
            return [_start(place, _opening(block))]
        if isinstance(change, Added):
            kind, key = _DELTAS[block.kind]
            return [_delta(place, {"type": kind, key: change.piece})]
        if isinstance(change, Cited):
            found = to_messages(change.citation, block.text, block.before)
            return [_delta(place, {"type": "citations_delta", "citation": citation}) for citation in found]
        if block.kind != "reasoning":
            return [_stop(place)]
        return [_delta(place, {"type": "signature_delta", "signature": self._signature(block)}), _stop(place)]

    def _search(self, block: StreamBlock) -> list[dict[str, Any]]:
        """A search is two blocks: that it was made, and what it found."""
        place = block.index + self._searches
        self._searches += 1
        made, found = search_blocks(block.search)
        given = {"type": "input_json_delta", "partial_json": dumps(made["input"])}
        head = [_start(place, {**made, "input": {}}), _delta(place, given), _stop(place)]
        return [*head, _start(place + 1, found), _stop(place + 1)]

    def _signature(self, block: StreamBlock) -> str:
        blocks = thinking(block.text, block.details, self._terms)
        if len(blocks) == 1 and blocks[0]["type"] == "thinking":
            return str(blocks[0]["signature"])
        return reasoning.seal(self._terms.family, block.details)


def _opening(block: StreamBlock) -> dict[str, Any]:
    if block.kind == "tool":
        return tool_use_block(tool_use_id(block.call_id), block.name, {})
    if block.kind == "reasoning":
        return {"type": "thinking", "thinking": "", "signature": ""}
    return text_block("")


def _start(place: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": place, "content_block": block}


def _delta(place: int, delta: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": place, "delta": delta}


def _stop(place: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": place}
