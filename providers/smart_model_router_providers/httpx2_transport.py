"""A transport of httpx2's that an owner gives: requests of the router over it, and one that resends once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import httpx2

from smart_model_router_providers.http_request import CLOSED, SLICE_BYTES, Slices
from smart_model_router_providers.response import HttpxReply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from smart_model_router_providers.http_request import ProviderEndpoint
    from smart_model_router_providers.response import Reply

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


class GivenTransport:
    """The connections of a provider whose owner gave a transport: in the place of ConnectionPool, on every loop."""

    def __init__(self, transport: httpx2.AsyncBaseTransport) -> None:
        self._transport = ResendingTransport(transport)
        self._closed = False

    def post(self, endpoint: ProviderEndpoint, payload: bytes, connect_timeout: float) -> Awaitable[Reply]:
        """Send a body; return once the head of the reply is there.

        Raises what the transport raises, and RuntimeError once this is closed.
        """
        content = payload if len(payload) <= SLICE_BYTES else Slices(payload)
        return self.send(endpoint, content, len(payload), connect_timeout)

    async def send(
        self,
        endpoint: ProviderEndpoint,
        body: bytes | AsyncIterator[bytes],
        length: int | None,
        connect_timeout: float,
    ) -> Reply:
        """Send a body as it comes; return once the head of the reply is there. Raises as `post` does."""
        if self._closed:
            raise RuntimeError(CLOSED)
        headers = {name.encode("ascii"): value.encode("latin-1") for name, value in endpoint.headers.items()}
        if length is not None and not isinstance(body, bytes):
            headers[b"content-length"] = b"%d" % length
        request = httpx2.Request(
            endpoint.method,
            endpoint.url,
            headers=headers,
            content=body,
            extensions={"timeout": {"connect": connect_timeout, "pool": connect_timeout}},
        )
        return HttpxReply(await self._transport.handle_async_request(request))

    async def aclose(self) -> None:
        """Close the transport; safe to call twice."""
        self._closed = True
        await self._transport.aclose()
