"""An httpx transport with a router behind it: for our clients, and for frameworks that build their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from types import MappingProxyType
from typing import Any

import httpx
import httpx2

from smart_model_router.clients.in_process import OpenedReply, OutOfPatience, Sent, answer
from smart_model_router.clients.reports import EXTENSION
from smart_model_router.clients.retries import join_earlier_tries
from smart_model_router.domain.errors import RouterUnavailable, StreamInterrupted
from smart_model_router.flow.portal import Portal, WouldBlock
from smart_model_router.http_api import EdgeStream, HttpReply, error_frame, problem_of
from smart_model_router.router import SmartModelRouter

_NOT_REACHED = (WouldBlock, RouterUnavailable)
"""Exceptions that the portal itself raises: every other failure is a reply."""


_LEAST_ERROR = 400


class Frames:
    """The body of a streamed response; asks the router for the next frame when it is read."""

    def __init__(self, http: Any, portal: Portal, stream: EdgeStream, request: Any, read_timeout: float | None) -> None:
        self._http = http
        self._portal = portal
        self._stream = stream
        self._request = request
        self._read_timeout = read_timeout
        self._cut: StreamInterrupted | None = None

    def __iter__(self) -> Iterator[bytes]:
        try:
            while (frames := self._portal.run(self._next)) is not None:
                yield frames
        except _NOT_REACHED as told:
            raise self._http.ReadError(str(told), request=self._request) from told

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while (frames := await (self._next() if self._portal.here else self._portal.reach(self._next))) is not None:
                yield frames
        except _NOT_REACHED as told:
            raise self._http.ReadError(str(told), request=self._request) from told

    def close(self) -> None:
        """Stop; the provider's connection is closed soon."""
        self._stream.abandon()

    async def aclose(self) -> None:
        """Stop; the provider's connection is closed when this returns."""
        await self._stream.aclose()

    async def _next(self) -> bytes | None:
        """The next frames. A stream that failed is told as over a network: by its error event, then by the cut."""
        try:
            if self._cut is not None:
                raise self._cut
            async with asyncio.timeout(self._read_timeout):
                frames = await self._stream.next_frame()
        except StreamInterrupted as cut:
            told = error_frame(problem_of(cut), self._stream.dialect) if self._cut is None else None
            if told is not None:
                self._cut = cut
                return told
            raise self._http.RemoteProtocolError(cut.message, request=self._request) from cut
        except TimeoutError:
            await self._stream.aclose()
            message = f"nothing for {self._read_timeout} s"
            raise self._http.ReadTimeout(message, request=self._request) from None
        return frames


class _HttpxFrames(Frames, httpx.SyncByteStream, httpx.AsyncByteStream):
    """The same, for httpx to recognise."""


class _Httpx2Frames(Frames, httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """The same, for httpx2 to recognise."""


_FRAMES = MappingProxyType({httpx: _HttpxFrames, httpx2: _Httpx2Frames})


class RouterTransport(httpx2.BaseTransport, httpx2.AsyncBaseTransport, httpx.BaseTransport, httpx.AsyncBaseTransport):
    """A router as a transport for `httpx2.Client` and `httpx2.AsyncClient`, and for those of httpx alike.

    Older SDKs (openai 2, anthropic 0.x) are built on httpx; a request of either gets a response of the same. The host
    of a request does not matter, its path does: `/v1/chat/completions` and the others of the gateway. `owns`: closing
    the transport closes the router.
    """

    def __init__(self, router: SmartModelRouter, *, owns: bool = False) -> None:
        self.router = router
        self._owns = owns

    def handle_request(self, request: Any) -> Any:
        """Answer an SDK's request; waits for it on this thread."""
        http, sent = _http_of(request), _sent(request, request.read())
        try:
            return self._response(http, request, sent, self.router.portal.run(lambda: answer(self.router, sent)))
        except _NOT_REACHED as told:
            raise http.ConnectError(str(told), request=request) from told
        except OutOfPatience as late:
            if late.report is not None:
                join_earlier_tries(sent, late.report, failed=True)
            raise http.ReadTimeout(str(late), request=request) from late

    async def handle_async_request(self, request: Any) -> Any:
        """Answer an SDK's request."""
        http, sent = _http_of(request), _sent(request, await request.aread())
        try:
            return self._response(
                http, request, sent, await self.router.portal.reach(lambda: answer(self.router, sent))
            )
        except _NOT_REACHED as told:
            raise http.ConnectError(str(told), request=request) from told
        except OutOfPatience as late:
            if late.report is not None:
                join_earlier_tries(sent, late.report, failed=True)
            raise http.ReadTimeout(str(late), request=request) from late

    def close(self) -> None:
        """Close the router if it is this transport's own."""
        if self._owns:
            self.router.portal.run(self.router.aclose)

    async def aclose(self) -> None:
        """Close the router if it is this transport's own."""
        if self._owns:
            await self.router.aclose()

    def _response(self, http: Any, request: Any, sent: Sent, got: HttpReply | OpenedReply) -> Any:
        extensions: dict[str, Any] = {"http_version": b"HTTP/1.1"}
        if got.report is not None:
            join_earlier_tries(sent, got.report, failed=isinstance(got, HttpReply) and got.status >= _LEAST_ERROR)
            extensions[EXTENSION] = got.report
        headers = dict(got.headers)
        if isinstance(got, HttpReply):
            return http.Response(got.status, headers=headers, content=got.body, extensions=extensions, request=request)
        body = _FRAMES[http](http, self.router.portal, got.stream, request, sent.read_timeout)
        return http.Response(200, headers=headers, stream=body, extensions=extensions, request=request)


def _http_of(request: Any) -> Any:
    """The module whose Request it is, and whose Response is waited for."""
    return httpx if isinstance(request, httpx.Request) else httpx2


def _sent(request: Any, body: bytes) -> Sent:
    timeout = request.extensions.get("timeout") or {}
    headers = {name.lower(): value for name, value in request.headers.items()}
    return Sent(
        request.method, request.url.path, headers, body, timeout.get("read"), request.url.query.decode("latin-1")
    )
