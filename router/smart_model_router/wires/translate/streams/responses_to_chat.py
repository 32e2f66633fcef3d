"""Responses events as Chat Completions chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smart_model_router.wires.responses import ENDS, place_of
from smart_model_router.wires.translate.answers.responses_to_chat import (
    chat_logprob,
    custom_call,
    detail_of,
    dropped_item,
    finish_reason,
)
from smart_model_router.wires.translate.citations import from_responses, search_of_responses
from smart_model_router.wires.translate.hosted import SEARCHES
from smart_model_router.wires.translate.streams.chunks import Chunks
from smart_model_router.wires.translate.words import chat_usage_of_responses, named_id
from smart_model_router.wires.values import items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.wires.translate.terms import Context

_FIELDS = {
    "response.refusal.delta": "refusal",
    "response.reasoning_text.delta": "reasoning_content",
    "response.reasoning_summary_text.delta": "reasoning_content",
}
_KNOWN_ITEMS = ("message", "reasoning", "function_call", "custom_tool_call")


@dataclass(slots=True)
class _Call:
    number: int
    grown: bool = False


class ResponsesToChat:
    """One stream. Tool calls are told apart by their place in the output."""

    def __init__(self, context: Context) -> None:
        self._known = (*_KNOWN_ITEMS, *(("web_search_call",) if context.terms.between else ()))
        self._losses = context.losses
        self._said = 0
        self._part = 0
        self._chunks = Chunks(context.terms)
        self._calls: dict[int | str, _Call] = {}
        self._usage: Mapping[str, Any] = {}
        self._thoughts = 0
        self._details = 0

    def feed(self, data: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The chunks that an event becomes."""
        kind = text(data.get("type"))
        place, piece = place_of(data), text(data.get("delta"))
        if kind == "response.output_text.delta":
            return self._say(piece, [chat_logprob(mapping(one)) for one in items(data.get("logprobs"))])
        if kind in _FIELDS:
            return self._chunks.delta(**{_FIELDS[kind]: piece}) if piece else []
        if kind == "response.created":
            response = mapping(data.get("response"))
            self._chunks.id = named_id("chatcmpl-", response.get("id"))
            self._chunks.model = text(response.get("model"))
            return self._chunks.head()
        if kind == "response.output_item.added":
            return self._open(mapping(data.get("item")), place)
        if kind == "response.function_call_arguments.delta":
            return self._arguments(place, piece)
        if kind == "response.output_item.done":
            return self._done(mapping(data.get("item")), place)
        if kind == "response.reasoning_summary_part.added":
            self._thoughts += 1
            return self._chunks.delta(reasoning_content="\n\n") if self._thoughts > 1 else []
        if kind in ENDS:
            return self._finish(mapping(data.get("response")))
        if kind == "response.content_part.added":
            self._part = self._said
        elif kind == "response.output_text.annotation.added":
            found = from_responses(mapping(data.get("annotation")), self._part, self._losses)
            return self._chunks.delta(annotations=found) if found else []
        return []

    def end(self) -> list[dict[str, Any]]:
        """The chunk that closes a complete stream."""
        return [*self._chunks.head(), self._chunks.usage(chat_usage_of_responses(self._usage))]

    def _say(self, piece: str, logprobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if not piece:
            return []
        self._said += len(piece)
        return self._chunks.likely(piece, logprobs) if logprobs else self._chunks.delta(content=piece)

    def _open(self, item: Mapping[str, Any], place: int | str) -> list[dict[str, Any]]:
        kind = item.get("type")
        if kind == "function_call" and place not in self._calls:
            number, chunks = self._chunks.call(text(item.get("call_id")), text(item.get("name")))
            self._calls[place] = _Call(number)
            return chunks
        if kind not in self._known:
            dropped_item(kind, self._losses)
        return []

    def _arguments(self, place: int | str, piece: str) -> list[dict[str, Any]]:
        call = self._calls.get(place)
        if call is None or not piece:
            return []
        call.grown = True
        return self._chunks.arguments(call.number, piece)

    def _done(self, item: Mapping[str, Any], place: int | str) -> list[dict[str, Any]]:
        kind = item.get("type")
        if kind == "reasoning":
            detail = detail_of(item, self._details)
            self._details += detail is not None
            return [] if detail is None else self._chunks.delta(reasoning_details=[detail])
        if kind == "custom_tool_call":
            return self._chunks.custom_call(custom_call(item))
        if kind == "web_search_call" and kind in self._known:
            return self._chunks.delta(**{SEARCHES: [search_of_responses(item)]})
        call = self._calls.get(place)
        if kind != "function_call" or call is None or call.grown:
            return []
        return self._arguments(place, "{}")  # what no delta carried is none (wires/snapshots)

    def _finish(self, response: Mapping[str, Any]) -> list[dict[str, Any]]:
        self._usage = mapping(response.get("usage"))
        return self._chunks.finish(finish_reason(response, called=self._chunks.called))
