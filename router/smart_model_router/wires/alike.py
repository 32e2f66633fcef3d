"""Chunks of Chat that differ in their text alone, as those of one stream do: read without decoding their JSON."""

from __future__ import annotations

from typing import Any, Final

from smart_model_router.domain.outcome import EventKind, StreamEvent
from smart_model_router.wires.values import is_list, is_object

_KEY = b'"content"'
_BEFORE = _KEY + b':"'
_CONTENT: Final = EventKind.CONTENT
_MAX_TEXT_BYTES = 64 * 1024
"""More is nothing that comes in one piece: such a frame is read with all the care there is."""


class Alike:
    """One chunk with a hole where its text was. A frame that fits is read by filling the hole."""

    __slots__ = ("_behind", "_choice", "_data", "_delta", "_head", "_start", "_tail", "_visible")

    def __init__(self, head: bytes, tail: bytes, data: dict[str, Any]) -> None:
        self._head = head
        self._tail = tail
        self._start = len(head)
        self._behind = len(tail)
        self._data = data
        self._choice: dict[str, Any] = data["choices"][0]
        self._delta: dict[str, Any] = self._choice["delta"]
        self._visible = self._choice.get("index", 0) == 0

    def read(self, frame: bytes) -> StreamEvent | None:
        """The event that a frame is; None when it differs in more than its text."""
        head, tail = self._head, self._tail
        if not (frame.startswith(head) and frame.endswith(tail)):
            return None
        start, end = self._start, len(frame) - self._behind
        if not 0 < end - start <= _MAX_TEXT_BYTES:
            return None
        try:
            said = frame[start:end].decode()
        except UnicodeDecodeError:
            return None
        # Printable, without quotes and escapes: a JSON string that reads as it is written (RFC 8259, section 7).
        if '"' in said or "\\" in said or not said.isprintable():
            return None
        data, choice, delta = self._data.copy(), self._choice.copy(), self._delta.copy()
        data["choices"], choice["delta"], delta["content"] = [choice], delta, said
        # What the class itself does, without the call in between: this is done for each chunk of each stream.
        return tuple.__new__(StreamEvent, (_CONTENT, frame, data, None, None, None, said if self._visible else ""))


def alike(event: StreamEvent) -> Alike | None:
    """What the next chunks will probably be like; None when this one says more than text, or says it in other ways."""
    data, raw = event.data, event.raw
    if event.kind is not EventKind.CONTENT or event.finish is not None or event.usage is not None:
        return None
    if not is_object(data) or not is_list(data.get("choices")) or len(data["choices"]) != 1:
        return None
    choice = data["choices"][0]
    delta = choice.get("delta") if is_object(choice) else None
    if not is_object(delta) or not isinstance(delta.get("content"), str):
        return None
    inside = (*_but("choices", data), *_but("delta", choice), *delta.values())
    if any(isinstance(value, (dict, list)) for value in inside):  # two events are to have nothing in common
        return None
    head, found, rest = raw.partition(_BEFORE)
    said = delta["content"].encode(errors="replace")
    tail = rest[len(said) :]
    if raw.count(_KEY) != 1 or b"\\" in raw or not found or not rest.startswith(said) or tail[:1] != b'"':
        return None
    return Alike(head + found, tail, data)


def _but(key: str, holder: dict[str, Any]) -> list[Any]:
    return [value for name, value in holder.items() if name != key]
