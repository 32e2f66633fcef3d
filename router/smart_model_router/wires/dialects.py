"""The tables of dialects: which module reads what."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, StreamEvent
from smart_model_router.wires import chat, embeddings, messages, responses
from smart_model_router.wires.sse import fields
from smart_model_router.wires.values import decode_object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from smart_model_router.domain.request import Dialect
    from smart_model_router.wires.answer import Answer

EVENT_READERS: Mapping[Dialect, Callable[[bytes, dict[str, Any], bytes], StreamEvent]] = MappingProxyType(
    {"chat": chat.read_event, "messages": messages.read_event, "responses": responses.read_event}
)
"""Streaming dialects: (event type, decoded data, raw frame) -> StreamEvent."""

STREAMING = frozenset(EVENT_READERS)
"""The dialects that have streams."""

ANSWER_READERS: Mapping[Dialect, Callable[[Mapping[str, Any]], Answer]] = MappingProxyType(
    {
        "chat": chat.read_answer,
        "messages": messages.read_answer,
        "responses": responses.read_answer,
        "embeddings": embeddings.read_answer,
    }
)

TEXT_READERS: Mapping[Dialect, Callable[[Mapping[str, Any]], str]] = MappingProxyType(
    {"chat": chat.text_of, "messages": messages.text_of, "responses": responses.text_of}
)

PROSE_READERS: Mapping[Dialect, Callable[[Mapping[str, Any]], bool]] = MappingProxyType(
    {"chat": chat.is_prose, "messages": messages.is_prose, "responses": responses.is_prose}
)
"""Whether an event holds nothing but text for people: a replaced byte in it changes no argument and no identifier."""

PROSE_ANSWERS: Mapping[Dialect, Callable[[Mapping[str, Any]], bool]] = MappingProxyType(
    {"chat": chat.is_prose_answer, "messages": messages.is_prose_answer, "responses": responses.is_prose_answer}
)
"""The same of whole answers."""

NOT_UTF8 = Failure(FailureClass.MALFORMED, "bytes that are not UTF-8 were replaced")

TERMINATORS: Mapping[Dialect, bytes] = MappingProxyType({"chat": b"[DONE]"})
"""Data that ends a stream and is not JSON."""


def read_event(dialect: Dialect, frame: bytes) -> StreamEvent:
    """What one frame, as SseParser cut it, means in a streaming dialect. Never raises on what was sent."""
    event, data = fields(frame)
    if data is None or event == b"ping":
        return StreamEvent(EventKind.PING, frame)
    if data == TERMINATORS.get(dialect):
        return StreamEvent(EventKind.END, frame)
    decoded = decode_object(data)
    if decoded is None:
        return _mended(dialect, event, data, frame) or StreamEvent(EventKind.MALFORMED, frame)
    return EVENT_READERS[dialect](event, decoded, frame)


def _mended(dialect: Dialect, event: bytes, data: bytes, frame: bytes) -> StreamEvent | None:
    """The event with the bytes of its prose replaced that are not UTF-8; None when that does not make it readable."""
    text = data.decode(errors="replace").encode()
    decoded = decode_object(text) if text != data else None
    if decoded is None or not PROSE_READERS[dialect](decoded):
        return None
    return EVENT_READERS[dialect](event, decoded, frame.decode(errors="replace").encode())._replace(failure=NOT_UTF8)


def text_of(dialect: Dialect, data: Mapping[str, Any]) -> str:
    """The visible text an event's `data` adds to the answer ("" for tool calls, reasoning and all else)."""
    return TEXT_READERS[dialect](data)


def text_of_answer(body: Mapping[str, Any]) -> str:
    """The visible text of a whole Chat Completions answer, read as if it were its only chunk."""
    choice = body["choices"][0] if body.get("choices") else {}
    return text_of("chat", {"choices": [{"delta": choice.get("message")}]})


def mended_answer(dialect: Dialect, body: bytes) -> tuple[dict[str, Any], bytes] | None:
    """A whole answer and its bytes, with those of its prose replaced that are not UTF-8; None where that is no help."""
    text = body.decode(errors="replace").encode()
    decoded = decode_object(text) if text != body else None
    is_prose = PROSE_ANSWERS.get(dialect)
    return (decoded, text) if decoded is not None and is_prose is not None and is_prose(decoded) else None


def read_answer(dialect: Dialect, body: Mapping[str, Any]) -> Answer:
    """What a whole answer amounts to. Never raises on what was sent."""
    return ANSWER_READERS[dialect](body)
