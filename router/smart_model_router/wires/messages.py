"""Messages: its stream events, the end of a stream, snapshots among its events, and its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from smart_model_router.domain.outcome import EventKind, StreamEvent, Usage
from smart_model_router.wires.outcomes import UNFINISHED_REASONS, Answer, contradiction, failure_of
from smart_model_router.wires.values import (
    ESCAPED,
    count,
    dumps,
    is_list,
    is_object,
    is_same_json,
    items,
    mapping,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CONTENT: Final = EventKind.CONTENT
# Event types that mean the same whatever they hold, and add no text. Those not named here or in `read_event` are
# passed on as META: new ones may appear at any time (Anthropic's versioning policy).
_KINDS = {"content_block_stop": EventKind.META, "message_stop": EventKind.END, "ping": EventKind.PING}
_DELTA_TEXT = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
_BLOCK_TEXT = {"text": "text", "thinking": "thinking"}


def read_event(event: bytes, data: dict[str, Any], raw: bytes) -> StreamEvent:
    """One event. message_start and message_delta each carry a part of the usage: StreamReader joins them."""
    name = data.get("type")
    if name == "content_block_delta":
        delta = data.get("delta")
        if isinstance(delta, dict) and delta.get("type") == "text_delta" and isinstance(said := delta.get("text"), str):
            return StreamEvent(EventKind.CONTENT if said else EventKind.META, raw, data, text=said)
        return StreamEvent(_delta_kind(delta), raw, data, text="")
    if name == "error" or event == b"error":
        return StreamEvent(EventKind.ERROR, raw, data, failure=failure_of(data.get("error") or data))
    if not isinstance(name, str):
        return StreamEvent(EventKind.MALFORMED, raw, data)
    if name == "content_block_start":
        block = data.get("content_block")
        if not isinstance(block, dict):
            return StreamEvent(EventKind.META, raw, data, text="")
        kind = EventKind.CONTENT if _has_content(block) else EventKind.META
        return StreamEvent(kind, raw, data, text=None if block.get("text") else "")
    if name == "message_start":
        head = data.get("message")
        if not isinstance(head, dict):
            return StreamEvent(EventKind.META, raw, data, text="")
        kind = EventKind.CONTENT if head.get("content") else EventKind.META
        return StreamEvent(kind, raw, data, usage=read_usage(head.get("usage")), text="")
    if name == "message_delta":
        usage, finish = read_usage(data.get("usage")), text(mapping(data.get("delta")).get("stop_reason")) or None
        return StreamEvent(EventKind.META if finish is None else EventKind.FINISH, raw, data, finish, usage, None, "")
    known = _KINDS.get(name)
    return StreamEvent(EventKind.META, raw, data) if known is None else StreamEvent(known, raw, data, text="")


def written(data: dict[str, Any]) -> StreamEvent:
    """The event with these data."""
    return read_event(b"", data, f"event: {data['type']}\ndata: {dumps(data)}\n\n".encode(errors=ESCAPED))


def is_prose(data: Mapping[str, Any]) -> bool:
    """Return whether an event adds to a text or a thought."""
    return mapping(data.get("delta")).get("type") in ("text_delta", "thinking_delta")


def is_prose_answer(body: Mapping[str, Any]) -> bool:
    """Return whether a whole answer is texts and thoughts alone."""
    return all(mapping(block).get("type") in _BLOCK_TEXT for block in items(body.get("content")))


def text_of(data: Mapping[str, Any]) -> str:
    """The visible text that an event adds."""
    delta = mapping(data.get("delta")) or mapping(data.get("content_block"))
    return text(delta.get("text")) if delta.get("type") in ("text_delta", "text") else ""


def read_answer(body: Mapping[str, Any]) -> Answer:
    """A whole answer."""
    if body.get("error") or body.get("type") == "error":
        return Answer(error=body.get("error") or body)
    content = body.get("content")
    if not is_list(content):
        return Answer(malformed="no list of content blocks")
    finish = text(body.get("stop_reason")) or None
    has_content = any(_has_content(mapping(block)) for block in content)
    return Answer(read_usage(body.get("usage")), finish, empty=not has_content and finish not in UNFINISHED_REASONS)


def read_usage(value: object) -> Usage | None:
    """Token counts as Messages writes them: input, cache writes and cache reads together are the prompt."""
    usage = mapping(value)
    read = count(usage.get("cache_read_input_tokens")) or 0
    prompt = count(usage.get("input_tokens"))
    completion = count(usage.get("output_tokens"))
    if prompt is None and completion is None:
        return None
    written = count(usage.get("cache_creation_input_tokens")) or 0
    return Usage((prompt or 0) + read + written, completion or 0, read)


def _delta_kind(delta: object) -> EventKind:
    if not is_object(delta):
        return EventKind.MALFORMED
    name = delta.get("type")
    if name == "citations_delta":
        return EventKind.CONTENT
    key = _DELTA_TEXT.get(text(name))
    said = None if key is None else delta.get(key)
    if said is not None and not isinstance(said, str):
        return EventKind.MALFORMED
    return EventKind.CONTENT if said else EventKind.META


def _has_content(block: Mapping[str, Any]) -> bool:
    """Return whether a block holds something: text when it is not empty, every other block by being there."""
    name = block.get("type")
    if not isinstance(name, str):
        return False
    key = _BLOCK_TEXT.get(name)
    return True if key is None else bool(block.get(key))


class MessagesFinishing:
    """A stream is finished when there is a stop reason, and no block is open."""

    __slots__ = ("_open", "_stopped", "finished")

    def __init__(self, choices: int) -> None:
        del choices  # there is one
        self._open: set[int] = set()
        self._stopped = False
        self.finished = False

    def take(self, event: StreamEvent) -> bool:
        """See FinishCheck."""
        data, finished = event.data, self.finished
        if event.text and not finished:  # a part of a block
            return True
        if data is not None:
            kind, at = data.get("type"), count(data.get("index")) or 0
            if kind == "content_block_start":
                if finished:
                    return False
                self._open.add(at)
            elif kind == "content_block_stop":
                self._open.discard(at)
            elif at not in self._open and mapping(data.get("delta")).get("type") == "input_json_delta":
                return event.kind is not _CONTENT  # arguments of no call
        if event.finish is not None:
            self._stopped = True
        self.finished = self._stopped and not self._open
        return not (finished and event.kind is _CONTENT)

    def missing(self) -> str:
        """See FinishCheck."""
        if not self._stopped:
            return "a stop reason"
        return f"the end of block {min(self._open)}" if self._open else ""


# Messages: a call's start may hold its whole input, which its deltas then repeat.
#
# A text or thought that its block's start holds is a part of it, to which the deltas add: that is no snapshot.


class MessagesSnapshots:
    """One stream."""

    __slots__ = ("_given",)

    def __init__(self) -> None:
        self._given: dict[int, tuple[Mapping[str, Any], list[str]]] = {}
        """By the index of an open call: the input that its start holds, and the pieces of its deltas."""

    def read(self, events: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
        """The events; MALFORMED instead of the end of a call whose start holds another input than its deltas."""
        return [event if event.text or not event.data else self._read(event) for event in events]

    def _read(self, event: StreamEvent) -> StreamEvent:
        data = mapping(event.data)
        kind, at = data.get("type"), count(data.get("index")) or 0
        if kind == "content_block_start":
            given = mapping(data.get("content_block")).get("input")
            if given and is_object(given):
                self._given[at] = given, []
        elif at in self._given and kind == "content_block_delta":
            self._given[at][1].append(text(mapping(data.get("delta")).get("partial_json")))
        elif at in self._given and kind == "content_block_stop":
            given, pieces = self._given.pop(at)
            told = "".join(pieces)
            if told and not is_same_json(told, given):
                return contradiction(event, "the input in a call's start")
        return event
