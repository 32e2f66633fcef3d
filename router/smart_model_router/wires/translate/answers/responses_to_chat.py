"""A Responses answer as a Chat Completions answer, whole or event by event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smart_model_router.wires.dialects import named_id
from smart_model_router.wires.responses import ENDS, place_of
from smart_model_router.wires.translate.answers.chat_output import ChatMessage, Chunks
from smart_model_router.wires.translate.hosted import SEARCHES, from_responses, search_of_responses
from smart_model_router.wires.translate.reasoning import OPENAI, encrypted_detail
from smart_model_router.wires.translate.words import FINISH_OF_INCOMPLETE, chat_usage_of_responses
from smart_model_router.wires.values import items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.wires.translate.translation import Context, Losses


def answer(body: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """The Chat answer that says the same."""
    message = _message(items(body.get("output")), context)
    choice = {
        "index": 0,
        "message": message,
        "logprobs": _logprobs(items(body.get("output"))),
        "finish_reason": finish_reason(body, called=bool(message.get("tool_calls"))),
    }
    return {
        "id": named_id("chatcmpl-", body.get("id")),
        "object": "chat.completion",
        "created": context.terms.created,
        "model": text(body.get("model")),
        "choices": [choice],
        "usage": chat_usage_of_responses(mapping(body.get("usage"))),
    }


def finish_reason(body: Mapping[str, Any], *, called: bool) -> str:
    """Chat's word for why the answer ended."""
    why = text(mapping(body.get("incomplete_details")).get("reason"))
    if body.get("status") == "incomplete":
        return FINISH_OF_INCOMPLETE.get(why, "length")
    return "tool_calls" if called else "stop"


def thought_of(item: Mapping[str, Any]) -> str:
    """The reasoning that an item shows: its summary, else the reasoning itself."""
    parts = items(item.get("summary")) or items(item.get("content"))
    return "\n\n".join(text(mapping(part).get("text")) for part in parts)


def detail_of(item: Mapping[str, Any], index: int) -> dict[str, Any] | None:
    """The encrypted reasoning of an item as Chat carries it; None when it has none."""
    data = text(item.get("encrypted_content"))
    return encrypted_detail(data, index, OPENAI, id=text(item.get("id"))) if data else None


def chat_logprob(held: Mapping[str, Any]) -> dict[str, Any]:
    """The probability of a token as Chat has it: Responses' streams do not say its bytes."""
    tops = [{"bytes": None, **mapping(top)} for top in items(held.get("top_logprobs"))]
    return {"bytes": None, **held, "top_logprobs": tops}


def custom_call(item: Mapping[str, Any]) -> dict[str, Any]:
    """A call of a custom tool."""
    custom = {"name": text(item.get("name")), "input": text(item.get("input"))}
    return {"id": text(item.get("call_id")), "type": "custom", "custom": custom}


def _logprobs(output: list[Any]) -> dict[str, Any] | None:
    parts = [mapping(part) for item in map(mapping, output) for part in items(item.get("content"))]
    found = [chat_logprob(mapping(one)) for part in parts for one in items(part.get("logprobs"))]
    return {"content": found, "refusal": None} if found else None


def _message(output: list[Any], context: Context) -> dict[str, Any]:
    message = ChatMessage()
    for item in map(mapping, output):
        _add(message, item, context)
    return message.body("\n\n")


def _add(message: ChatMessage, item: Mapping[str, Any], context: Context) -> None:
    kind = item.get("type")
    if kind == "message":
        for part in map(mapping, items(item.get("content"))):
            for annotation in map(mapping, items(part.get("annotations"))):
                message.cited += from_responses(annotation, message.length, context.losses)
            message.said.append(text(part.get("text")))
            message.refused.append(text(part.get("refusal")))
    elif kind == "function_call":
        function = {"name": text(item.get("name")), "arguments": text(item.get("arguments")) or "{}"}
        message.calls.append({"id": text(item.get("call_id")), "type": "function", "function": function})
    elif kind == "custom_tool_call":
        message.calls.append(custom_call(item))
    elif kind == "reasoning":
        message.thoughts.append(thought_of(item))
        detail = detail_of(item, len(message.details))
        message.details += [] if detail is None else [detail]
    elif kind == "web_search_call" and context.terms.between:
        message.searches.append(search_of_responses(item))
    else:
        dropped_item(kind, context.losses)


def dropped_item(kind: object, losses: Losses) -> None:
    """An item that Chat has no word for."""
    losses.drop("output", f"an item of type {text(kind)!r} is dropped from the answer"[:200])


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
