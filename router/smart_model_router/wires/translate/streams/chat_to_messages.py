"""Chat Completions chunks as Messages events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.translate import reasoning
from smart_model_router.wires.translate.answers.chat_to_messages import (
    frame,
    stop_reason,
    text_block,
    thinking,
    tool_use_block,
)
from smart_model_router.wires.translate.streams.blocks import Added, Block, Change, ChatBlocks, Opened
from smart_model_router.wires.translate.words import messages_usage_of_chat, tool_use_id

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
        self._terms = context.terms
        self._blocks = ChatBlocks()
        self._started = False

    def feed(self, data: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The events that a chunk becomes."""
        changes = self._blocks.feed(data)
        return [*self._head(), *(event for change in changes for event in self._events(change))]

    def end(self) -> list[dict[str, Any]]:
        """The events that close a complete stream."""
        stop = stop_reason(self._blocks.finish, called=self._blocks.called)
        return [
            *self._head(),
            *(event for change in self._blocks.end() for event in self._events(change)),
            {
                "type": "message_delta",
                "delta": {"stop_reason": stop, "stop_sequence": None},
                "usage": messages_usage_of_chat(self._blocks.usage),
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
        if isinstance(change, Opened):
            return [{"type": "content_block_start", "index": block.index, "content_block": _opening(block)}]
        if isinstance(change, Added):
            kind, key = _DELTAS[block.kind]
            return [_delta(block, {"type": kind, key: change.piece})]
        stop = {"type": "content_block_stop", "index": block.index}
        if block.kind != "reasoning":
            return [stop]
        return [_delta(block, {"type": "signature_delta", "signature": self._signature(block)}), stop]

    def _signature(self, block: Block) -> str:
        blocks = thinking(block.text, block.details, self._terms)
        if len(blocks) == 1 and blocks[0]["type"] == "thinking":
            return str(blocks[0]["signature"])
        return reasoning.seal(self._terms.family, block.details)


def _opening(block: Block) -> dict[str, Any]:
    if block.kind == "tool":
        return tool_use_block(tool_use_id(block.call_id), block.name, {})
    if block.kind == "reasoning":
        return {"type": "thinking", "thinking": "", "signature": ""}
    return text_block("")


def _delta(block: Block, delta: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": block.index, "delta": delta}
