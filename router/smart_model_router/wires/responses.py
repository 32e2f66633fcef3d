"""Responses: its stream events, the end of a stream, and its answers; for snapshots see responses_snapshots.py."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from smart_model_router.domain.outcome import EventKind, StreamEvent, Usage
from smart_model_router.wires.outcomes import UNFINISHED_REASONS, Answer, failure_of
from smart_model_router.wires.values import ESCAPED, count, dumps, is_list, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

# Types not named here are META: new ones appear at any time.
ENDS = ("response.completed", "response.incomplete")
"""The endings that are answers; `response.failed` is none."""
_FAILURES = ("error", "response.failed")
_PROSE = ("response.output_text.", "response.refusal.", "response.reasoning_", "response.content_part.")
_TEXT_DELTAS = frozenset(
    {
        "response.output_text.delta",
        "response.refusal.delta",
        "response.reasoning_text.delta",
        "response.reasoning_summary_text.delta",
        "response.function_call_arguments.delta",
    }
)
_PART_TEXT: Mapping[str, str] = MappingProxyType({"output_text": "text", "refusal": "refusal"})


def read_event(event: bytes, data: dict[str, Any], raw: bytes) -> StreamEvent:
    """One event. The last one says why the answer ended and holds the usage of all."""
    name = data.get("type")
    if name in _FAILURES or event == b"error":
        error = mapping(data.get("response")).get("error") or data.get("error") or data
        return StreamEvent(EventKind.ERROR, raw, data, failure=failure_of(error))
    if not isinstance(name, str):
        return StreamEvent(EventKind.MALFORMED, raw, data)
    if name in ENDS:
        response = mapping(data.get("response"))
        return StreamEvent(EventKind.END, raw, data, finish_of(response), read_usage(response.get("usage")))
    if name.endswith(".delta"):
        said = data.get("delta")
        if name in _TEXT_DELTAS and said is not None and not isinstance(said, str):
            return StreamEvent(EventKind.MALFORMED, raw, data)
        return StreamEvent(EventKind.CONTENT if said else EventKind.META, raw, data)
    if name == "response.output_item.added":
        # A tool call is content by being there; a message and reasoning are when something is in them.
        empty = mapping(data.get("item")).get("type") in ("message", "reasoning")
        return StreamEvent(EventKind.META if empty else EventKind.CONTENT, raw, data)
    return StreamEvent(EventKind.META, raw, data)


def written(data: dict[str, Any]) -> StreamEvent:
    """The event with these data."""
    return read_event(b"", data, f"event: {data['type']}\ndata: {dumps(data)}\n\n".encode(errors=ESCAPED))


def place_of(data: Mapping[str, Any]) -> int | str:
    """The output item that an event is about: its place, or its id where the event does not say it (llama.cpp)."""
    place = count(data.get("output_index"))
    if place is not None:
        return place
    return text(data.get("item_id")) or text(mapping(data.get("item")).get("id"))


def is_prose(data: Mapping[str, Any]) -> bool:
    """Return whether an event holds text for people alone: the deltas of a text or thought, and what repeats them."""
    name = text(data.get("type"))
    if name.startswith(_PROSE):
        return True
    if name == "response.output_item.done":
        return _is_prose_item(data.get("item"))
    return name in ENDS and is_prose_answer(mapping(data.get("response")))


def is_prose_answer(body: Mapping[str, Any]) -> bool:
    """Return whether a whole answer is messages and thoughts alone."""
    return all(map(_is_prose_item, items(body.get("output"))))


def _is_prose_item(item: object) -> bool:
    return mapping(item).get("type") in ("message", "reasoning")


def text_of(data: Mapping[str, Any]) -> str:
    """The visible text that an event adds."""
    return text(data.get("delta")) if data.get("type") == "response.output_text.delta" else ""


def read_answer(body: Mapping[str, Any]) -> Answer:
    """A whole answer. One that is still in progress (`background`) is well-formed and not empty."""
    if body.get("error") or body.get("status") == "failed":
        return Answer(error=body.get("error") or body)
    output = body.get("output")
    if not is_list(output):
        return Answer(malformed="no list of output items")
    finish = finish_of(body)
    waiting = body.get("status") in ("queued", "in_progress")
    empty = not waiting and finish not in UNFINISHED_REASONS and not any(_has_content(mapping(one)) for one in output)
    return Answer(read_usage(body.get("usage")), finish, empty=empty)


def finish_of(response: Mapping[str, Any]) -> str | None:
    """The reason why an answer ended: `completed`, or what made it incomplete."""
    return text(mapping(response.get("incomplete_details")).get("reason")) or text(response.get("status")) or None


def read_usage(value: object) -> Usage | None:
    """Token counts as Responses writes them; None when they make no sense."""
    usage = mapping(value)
    prompt = count(usage.get("input_tokens"))
    if prompt is None:
        return None
    cached = count(mapping(usage.get("input_tokens_details")).get("cached_tokens")) or 0
    return Usage(prompt, count(usage.get("output_tokens")) or 0, min(cached, prompt))


def _has_content(item: Mapping[str, Any]) -> bool:
    """Return whether an item holds something: a message when one of its parts does, every other item by being there."""
    if item.get("type") != "message":
        return isinstance(item.get("type"), str)
    parts = map(mapping, items(item.get("content")))
    return any(part.get(_PART_TEXT.get(text(part.get("type")), "type")) for part in parts)


class ResponsesFinishing:
    """A stream is finished when its terminal event came."""

    __slots__ = ("finished",)

    def __init__(self, choices: int) -> None:
        del choices
        self.finished = False

    def take(self, event: StreamEvent) -> bool:
        """See FinishCheck."""
        self.finished = self.finished or event.finish is not None
        return True

    def missing(self) -> str:
        """See FinishCheck."""
        return "" if self.finished else "a status"
