"""One HTTP reply whose body is not read yet, whoever brought it: aiohttp, httpx2, or the httpx of an older SDK."""

from __future__ import annotations

from types import AsyncGeneratorType
from typing import TYPE_CHECKING, Any, Protocol

import httpx2

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    import aiohttp


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

    async def aclose(self) -> None:
        """Give the connection back when the body was read to its end, else abort it."""
        ...


class AiohttpReply:
    """A reply of aiohttp with a body that is not compressed: its bytes go straight through."""

    __slots__ = ("_response", "headers", "more", "status")

    def __init__(self, response: aiohttp.ClientResponse, headers: dict[str, str]) -> None:
        self.status = response.status
        self.headers = headers
        self.more = response.content.readany
        self._response = response

    async def aclose(self) -> None:
        """As Reply says."""
        self._response.release()
        await self._response.wait_for_close()


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

    async def aclose(self) -> None:
        """As Reply says."""
        await self._response.aclose()
        pieces = self._pieces
        # Left to the collector, a generator that is not read to its end would become a task of its own.
        if isinstance(pieces, AsyncGeneratorType) and not pieces.ag_running:
            await pieces.aclose()


def reply_of(response: aiohttp.ClientResponse) -> Reply:
    """A reply of aiohttp. Compressed bodies are httpx2's to decode, wherever they come from: one way of failing."""
    headers = _header_map(response.raw_headers)
    if "content-encoding" not in headers:
        return AiohttpReply(response, headers)
    return HttpxReply(httpx2.Response(response.status, headers=[*response.raw_headers], stream=_Body(response)))


class _Body(httpx2.AsyncByteStream):
    """The body of an aiohttp response as httpx2 reads one."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._response.content.iter_any()

    async def aclose(self) -> None:
        self._response.release()
        await self._response.wait_for_close()


def _header_map(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in raw}


def _pieces(response: httpx2.Response, headers: Mapping[str, str]) -> AsyncIterator[bytes]:
    """The decoded body. Uncompressed ones skip httpx2's chain of decoders: a fifth of a call's CPU."""
    if response.is_stream_consumed or "content-encoding" in headers:
        return response.aiter_bytes()
    stream: Any = response.stream  # an async client's stream is an async one
    found: AsyncIterator[bytes] = stream.__aiter__()
    return found
