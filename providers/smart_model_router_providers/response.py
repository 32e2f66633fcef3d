"""HTTP replies, whichever client brought them, read as outcomes and event streams."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from types import AsyncGeneratorType
from typing import TYPE_CHECKING, Any, Final, Protocol

import httpx2

from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, StreamEvent, Success
from smart_model_router.wires import ANSWER_READERS, StreamReader, mended_answer
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
    import asyncio
    from collections.abc import AsyncIterator, Iterable, Mapping

    import aiohttp
    from aiohttp.connector import Connection
    from aiohttp.http_parser import RawResponseMessage

    from smart_model_router.domain.outcome import LimitReading, Outcome
    from smart_model_router.domain.request import Dialect
    from smart_model_router_providers.http_transport import Connections


class Reply(Protocol):
    """The interface of a reply. `headers` have lower-case names; of repeated ones the last counts."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> dict[str, str]:
        """All of them."""
        ...

    async def more(self) -> bytes:
        """The next bytes of the decoded body, as they come; b"" after the last. Raises the library's own exceptions."""
        ...

    def ended(self) -> bool:
        """Return whether it is known that there is no more; what is not known is found by asking for more."""
        ...

    async def aclose(self) -> None:
        """Give the connection back when the body was read to its end, else abort it."""
        ...


class AiohttpReply:
    """A reply of aiohttp with a body that is not compressed: its bytes go straight through.

    `upload` is still writing the request, if that is a large one; a reply that came before its end is an early no.
    """

    __slots__ = ("_connection", "_connections", "_content", "_upload", "ended", "headers", "more", "status")

    def __init__(
        self,
        message: RawResponseMessage,
        headers: dict[str, str],
        content: aiohttp.StreamReader,
        connections: Connections,
        connection: Connection,
        upload: asyncio.Task[None] | None,
    ) -> None:
        self.status = message.code
        self.headers = headers
        self.more = content.readany
        self.ended = content.at_eof
        self._connections = connections
        self._connection = connection
        self._content = content
        self._upload = upload

    async def aclose(self) -> None:
        """As Reply says."""
        if self._content.is_eof() and (self._upload is None or self._upload.done()):
            self._connections.give_back(self._connection)
            return
        self._connections.break_off(self._connection, "the reply was closed")
        if self._upload is not None:
            self._upload.cancel()

    def __del__(self) -> None:
        """Break off, quietly, a reply that was not closed."""
        self._connections.leave(self._connection)


class HttpxReply:
    """A reply of httpx2, or of the httpx of an older SDK: the parts used here are the same."""

    def __init__(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        self.headers = _header_map(response.headers.raw)
        self._response = response
        self._pieces = _pieces(response, self.headers)

    async def more(self) -> bytes:
        """As Reply says."""
        async for piece in self._pieces:
            if piece:
                return piece
        return b""

    def ended(self) -> bool:
        """As Reply says."""
        return False

    async def aclose(self) -> None:
        """As Reply says."""
        await self._response.aclose()
        pieces = self._pieces
        # Left to the collector, a generator that is not read to its end would become a task of its own.
        if isinstance(pieces, AsyncGeneratorType) and not pieces.ag_running:
            await pieces.aclose()


def reply_of(
    message: RawResponseMessage,
    content: aiohttp.StreamReader,
    connections: Connections,
    connection: Connection,
    upload: asyncio.Task[None] | None,
) -> Reply:
    """A reply of aiohttp. Compressed bodies are httpx2's to decode, wherever they come from: one way of failing."""
    headers = _header_map(message.raw_headers)
    reply = AiohttpReply(message, headers, content, connections, connection, upload)
    if "content-encoding" not in headers:
        return reply
    return HttpxReply(httpx2.Response(message.code, headers=[*message.raw_headers], stream=_Body(reply)))


class _Body(httpx2.AsyncByteStream):
    """The body of a reply of aiohttp as httpx2 reads one."""

    def __init__(self, reply: AiohttpReply) -> None:
        self._reply = reply

    def __aiter__(self) -> AsyncIterator[bytes]:  # no generator: one left halfway would stay open
        return self

    async def __anext__(self) -> bytes:
        piece = await self._reply.more()
        if not piece:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        await self._reply.aclose()


def _header_map(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {_lower(name): value.decode("latin-1") for name, value in raw}


@lru_cache(maxsize=512)
def _lower(name: bytes) -> str:
    """The name of a header: there are few of them, and each comes again with every answer."""
    return name.decode("latin-1").lower()


def _pieces(response: httpx2.Response, headers: Mapping[str, str]) -> AsyncIterator[bytes]:
    """The decoded body. Uncompressed ones skip httpx2's chain of decoders: a fifth of a call's CPU."""
    if response.is_stream_consumed or "content-encoding" in headers:
        return response.aiter_bytes()
    stream: Any = response.stream  # an async client's stream is an async one
    found: AsyncIterator[bytes] = stream.__aiter__()
    return found


MAX_BODY_BYTES = 64 * 1024 * 1024
"""A longer answer is MALFORMED, and is not read to its end."""

_ERROR: Final = EventKind.ERROR  # a global, as it is asked for each event: members are slow to find in their class
_NOT_A_STREAM = ("json", "html")


def known_failure(exc: Exception, kind: str) -> Failure:
    """The failure an exception means; raises it again when no library of ours raises such a thing: a bug."""
    if class_of_exception(exc) is None and getattr(exc, "response", None) is None:
        raise exc
    return classify_exception(exc, kind=kind)


async def read_whole(reply: Reply, dialect: Dialect, kind: str) -> Outcome:
    """Read the body to its end, give the connection back, and judge the answer."""
    body = await _read_to_end(reply, kind)
    return judge(reply.status, reply.headers, body, dialect, kind) if isinstance(body, bytes) else body


async def read_plain(reply: Reply, kind: str) -> Outcome:
    """The same of a reply that is no answer of a model: any JSON object will do. What is not there is its caller's."""
    body = await _read_to_end(reply, kind)
    if not isinstance(body, bytes):
        return body
    decoded = decode_object(body) if reply.status == 200 else None
    if decoded is not None:
        return Success(decoded, body, None, read_limits(kind, reply.headers), reply.headers)
    failure = classify_response(reply.status, reply.headers, body, kind=kind)
    return replace(failure, failure_class=FailureClass.INVALID_REQUEST) if reply.status == 404 else failure


async def _read_to_end(reply: Reply, kind: str) -> bytes | Failure:
    headers, status = reply.headers, reply.status
    parts: list[bytes] = []
    size = 0
    try:
        while chunk := await reply.more():
            parts.append(chunk)
            size += len(chunk)
            if size > MAX_BODY_BYTES:
                message = f"the answer is longer than {MAX_BODY_BYTES} bytes"
                return Failure(FailureClass.MALFORMED, message, status, headers=headers)
            if reply.ended():
                break
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
    return parts[0] if len(parts) == 1 else b"".join(parts)


def judge(status: int, headers: Mapping[str, str], body: bytes, dialect: Dialect, kind: str) -> Outcome:
    """Read a whole answer: Success only for a 200 with an answer of its dialect, and not an empty one."""
    decoded, mended = (decode_object(body) if status == 200 else None), False
    if decoded is None and status == 200 and (found := mended_answer(dialect, body)) is not None:
        decoded, body = found
        mended = True
    if decoded is None:
        return classify_response(status, headers, body, kind=kind)
    answer = ANSWER_READERS[dialect](decoded)
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


def no_stream(dialect: Dialect) -> Failure:
    """The failure of asking a dialect without streams for one."""
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
