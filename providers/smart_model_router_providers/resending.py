"""An httpx2 transport that sends a request once more when the kept connection it went out on had ended meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    _Traced = Callable[[str, dict[str, Any]], Awaitable[None]]


class ResendingTransport(httpx2.AsyncBaseTransport):
    """Wrap the transport of an SDK client: `AsyncOpenAI(http_client=DefaultAsyncHttpxClient(transport=...))`.

    The SDKs' own retries are off below the router, so a kept connection that the server closes just as a request goes
    out would be a failure of the provider. Such a request is sent once more, on a new connection. A request whose body
    is a generator is not: it cannot be read twice. httpx2 does not tell a head that arrived in part from none. Needs a
    transport that reports httpcore's trace events, as `httpx2.AsyncHTTPTransport` does, and HTTP/1.1; others are used
    as they are.
    """

    def __init__(self, transport: httpx2.AsyncBaseTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request. Raises what the transport raises."""
        trace = request.extensions.get("trace")
        first = _Trace(trace)
        request.extensions["trace"] = first
        try:
            return await self._transport.handle_async_request(request)
        except (httpx2.NetworkError, httpx2.RemoteProtocolError) as error:
            if not first.kept:
                raise
            try:
                return await self._on_a_new_connection(request, trace)
            except httpx2.StreamConsumed:
                raise error from None

    async def _on_a_new_connection(self, request: httpx2.Request, trace: _Traced | None) -> httpx2.Response:
        while True:  # each turn closes one of the kept connections, of which there are finitely many
            request.extensions["trace"] = _Trace(trace, refuses_kept=True)
            try:
                return await self._transport.handle_async_request(request)
            except _KeptConnectionError:
                continue

    async def aclose(self) -> None:
        """Close the transport."""
        await self._transport.aclose()


class _KeptConnectionError(Exception):
    """Ends an attempt before anything is sent; the pool drops the connection."""


class _Trace:
    """Listens to httpcore: a request that is written without a connect before it goes out on a kept connection."""

    def __init__(self, further: _Traced | None, *, refuses_kept: bool = False) -> None:
        self._further = further
        self._refuses_kept = refuses_kept
        self._connected = False
        self.kept = False

    async def __call__(self, event: str, info: dict[str, Any]) -> None:
        if self._further is not None:
            await self._further(event, info)
        if event.endswith((".connect_tcp.started", ".connect_unix_socket.started")):
            self._connected = True
        elif event == "http11.send_request_headers.started" and not self._connected:
            self.kept = True
            if self._refuses_kept:
                raise _KeptConnectionError
