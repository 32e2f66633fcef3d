"""HTTP replies -> outcomes and event streams: the half that http.py and sdk.py share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, StreamEvent, Success
from smart_model_router.wires import STREAMING, StreamReader, mended_answer, read_answer
from smart_model_router.wires.values import decode_object
from smart_model_router_providers.classify import (
    class_of_exception,
    classify_error,
    classify_exception,
    classify_response,
    find_error,
)
from smart_model_router_providers.signals import read_limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from smart_model_router.domain.outcome import LimitReading, Outcome
    from smart_model_router.domain.request import Dialect
    from smart_model_router_providers.response import Reply

MAX_BODY_BYTES = 64 * 1024 * 1024
"""A longer answer is MALFORMED, and is not read to its end."""

_ERROR: Final = EventKind.ERROR  # a global, as it is asked for each event: members are slow to find in their class
_NOT_A_STREAM = ("json", "html")


class BodyTooLargeError(Exception):
    """The body went over MAX_BODY_BYTES."""


def known_failure(exc: Exception, kind: str) -> Failure:
    """The failure an exception means; raises it again when no library of ours raises such a thing: a bug."""
    if class_of_exception(exc) is None and getattr(exc, "response", None) is None:
        raise exc
    return classify_exception(exc, kind=kind)


async def read_whole(reply: Reply, dialect: Dialect, kind: str) -> Outcome:
    """Read the body to its end, give the connection back, and judge the answer."""
    return await _read_to_end(reply, kind, lambda body: judge(reply.status, reply.headers, body, dialect, kind))


async def read_plain(reply: Reply, kind: str) -> Outcome:
    """The same of a reply that is no answer of a model: any JSON object will do. What is not there is its caller's."""

    def judged(body: bytes) -> Outcome:
        decoded = decode_object(body) if reply.status == 200 else None
        if decoded is not None:
            return Success(decoded, body, None, read_limits(kind, reply.headers), reply.headers)
        failure = classify_response(reply.status, reply.headers, body, kind=kind)
        return replace(failure, failure_class=FailureClass.INVALID_REQUEST) if reply.status == 404 else failure

    return await _read_to_end(reply, kind, judged)


async def _read_to_end(reply: Reply, kind: str, judged: Callable[[bytes], Outcome]) -> Outcome:
    headers, status = reply.headers, reply.status
    try:
        body = await _read_body(reply)
    except BodyTooLargeError:
        message = f"the answer is longer than {MAX_BODY_BYTES} bytes"
        return Failure(FailureClass.MALFORMED, message, status, headers=headers)
    except Exception as exc:  # noqa: BLE001 - known_failure raises what is not a transport's
        failure = known_failure(exc, kind)
        if status != 200:  # the status already said what happened
            return classify_response(status, headers, b"", kind=kind)
        found = failure.failure_class
        if found is FailureClass.TRANSPORT:  # the head had arrived
            found = FailureClass.TRUNCATED
        return replace(failure, failure_class=found, status=status, headers=headers)
    finally:
        await reply.aclose()
    return judged(body)


def judge(status: int, headers: Mapping[str, str], body: bytes, dialect: Dialect, kind: str) -> Outcome:
    """Read a whole answer: Success only for a 200 with an answer of its dialect, and not an empty one."""
    decoded, mended = (decode_object(body) if status == 200 else None), False
    if decoded is None and status == 200 and (found := mended_answer(dialect, body)) is not None:
        decoded, body = found
        mended = True
    if decoded is None:
        return classify_response(status, headers, body, kind=kind)
    answer = read_answer(dialect, decoded)
    if answer.error is not None:
        return classify_error(answer.error, headers, raw=body, kind=kind)
    if answer.malformed:
        failure = classify_response(status, headers, body, kind=kind)
        return replace(failure, message=f"not a {dialect} answer: {answer.malformed}")
    reading = read_limits(kind, headers)
    if answer.empty:
        message = f"an empty answer (finish reason {answer.finish})"
        return Failure(FailureClass.EMPTY, message, status, None, reading, body, headers)
    return Success(decoded, body, answer.usage, reading, headers, mended)


def refuse_stream(dialect: Dialect) -> Failure | None:
    """The failure of asking a dialect without streams for one; None for the others."""
    if dialect in STREAMING:
        return None
    return Failure(FailureClass.INVALID_REQUEST, f"{dialect} answers do not stream")


async def read_stream(reply: Reply, dialect: Dialect, kind: str) -> ReplyStream | Failure:
    """The event stream of a reply to a streaming call, or the failure it is instead."""
    content_type = reply.headers.get("content-type", "").lower()
    if reply.status == 200 and not any(word in content_type for word in _NOT_A_STREAM):
        return ReplyStream(reply, dialect, kind)
    outcome = await read_whole(reply, dialect, kind)
    if isinstance(outcome, Failure) and outcome.failure_class is not FailureClass.EMPTY:
        return outcome
    message = f"asked for a stream, got {content_type}"
    return Failure(FailureClass.MALFORMED, message, reply.status, None, outcome.reading, outcome.raw, reply.headers)


class ReplyStream:
    """An open event stream (ports.PieceStream). One consumer; `aclose` drops what is left at once."""

    def __init__(self, reply: Reply, dialect: Dialect, kind: str) -> None:
        self._reply = reply
        self.next_piece = reply.more
        self._kind = kind
        self._reader = StreamReader(dialect)
        self._ready: list[StreamEvent] = []  # newest first: taken from the end
        self._ended = False
        self._reading = read_limits(kind, reply.headers)

    @property
    def reading(self) -> LimitReading:
        """The limits in the response headers."""
        return self._reading

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        return self

    async def __anext__(self) -> StreamEvent:
        while not self._ready:
            if self._ended:
                raise StopAsyncIteration
            try:
                piece = await self.next_piece()
            except Exception as exc:  # noqa: BLE001 - `cut` raises what is not a transport's
                self._ended = True
                return self.cut(exc)
            self._ended = not piece
            self._ready = self.read(piece)[::-1]
        return self._ready.pop()

    def read(self, piece: bytes) -> list[StreamEvent]:
        """The events that a piece completes; b"" is the end of the transport."""
        events = self._reader.feed(piece) if piece else self._reader.end()
        for event in events:
            if event.kind is _ERROR:
                return [self._classified(event) for event in events]
        return events

    def cut(self, error: Exception) -> StreamEvent:
        """The event in the place of a piece for which `next_piece` raised. Raises the error again when it is a bug."""
        return self._reader.cut(known_failure(error, self._kind).message)

    async def aclose(self) -> None:
        """Give the connection back when the answer was read to its end, else abort it. Safe to call twice."""
        self._ended = True
        self._ready = []
        try:
            await self._reply.aclose()
        except Exception as exc:  # noqa: BLE001 - known_failure raises what is not a transport's
            known_failure(exc, self._kind)

    def _classified(self, event: StreamEvent) -> StreamEvent:
        """The event; of an error everything the classifier knows of those, as wires know only codes."""
        error = find_error(event.data) if event.kind is _ERROR and event.data is not None else None
        if error is None:
            return event
        return event._replace(failure=classify_error(error, self._reply.headers, raw=event.raw, kind=self._kind))


async def _read_body(reply: Reply) -> bytes:
    parts: list[bytes] = []
    size = 0
    while chunk := await reply.more():
        parts.append(chunk)
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            raise BodyTooLargeError
        if reply.ended():
            break
    return parts[0] if len(parts) == 1 else b"".join(parts)
