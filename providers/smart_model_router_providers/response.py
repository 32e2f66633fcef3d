"""One HTTP reply whose body is not read yet, whoever brought it: aiohttp, httpx2, or the httpx of an older SDK."""

from __future__ import annotations

from functools import lru_cache
from types import AsyncGeneratorType
from typing import TYPE_CHECKING, Any, Protocol

import httpx2

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Iterable, Mapping

    from aiohttp import StreamReader
    from aiohttp.connector import Connection
    from aiohttp.http_parser import RawResponseMessage

    from smart_model_router_providers.connections import Connections


class Reply(Protocol):
    """What is asked of a reply. `headers` have lower-case names; of repeated ones the last counts."""

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
        """Whether it is known that there is no more; what is not known is found by asking for more."""
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
        content: StreamReader,
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
        """One that nobody closed breaks off, quietly."""
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
    content: StreamReader,
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

    def __aiter__(self) -> AsyncIterator[bytes]:  # no generator: nobody would close one that is left halfway
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
