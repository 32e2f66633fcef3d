"""Messages: its stream events and its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.domain.outcome import EventKind, StreamEvent, Usage
from smart_model_router.wires.outcomes import UNFINISHED_REASONS, Answer, failure_of
from smart_model_router.wires.values import count, is_list, is_object, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

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
