"""One aiohttp connector per (provider, event loop), made on first use, closed quietly; httpx2 that resends once."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable
from functools import cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2

from smart_model_router_providers.http_transport import SLICE_BYTES, Line, ProviderEndpoint, Slices
from smart_model_router_providers.response import HttpxReply, Reply

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

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


_CLOSED = "the provider is closed"


class ConnectionPool:
    """The connections to one base URL.

    A provider may serve several event loops (threads, one `asyncio.run` after another), but a connection belongs
    to the loop it was made on. A `transport` given by the owner is used for all of them, and in place of aiohttp. A
    pool that was not closed closes its connections when it is collected, or at exit, without a warning.
    """

    def __init__(self, base_url: httpx2.URL, transport: httpx2.AsyncBaseTransport | None) -> None:
        self._base_url = base_url
        self._given = None if transport is None else ResendingTransport(transport)
        self._lines: dict[asyncio.AbstractEventLoop, Line] = {}
        self._fresh: dict[asyncio.AbstractEventLoop, Line] = {}
        """Those whose connections serve one call each."""
        self._closed = False
        weakref.finalize(self, _abandon_all, self._lines)
        weakref.finalize(self, _abandon_all, self._fresh)

    def post(self, endpoint: ProviderEndpoint, payload: bytes, connect_timeout: float) -> Awaitable[Reply]:
        """Send a body; return once the head of the reply is there.

        `connect_timeout` bounds all of getting a connection: DNS, connect and TLS. Every other timeout is the router's.
        Raises what the library raises, and RuntimeError once the pool is closed.
        """
        if self._given is not None:
            if self._closed:
                raise RuntimeError(_CLOSED)
            return _posted(self._given, endpoint, payload, connect_timeout)
        line = self._lines.get(asyncio.get_running_loop()) or self._open(self._lines)
        return line.post(endpoint, payload, connect_timeout)

    def send(
        self, endpoint: ProviderEndpoint, body: AsyncIterator[bytes], length: int | None, connect_timeout: float
    ) -> Awaitable[Reply]:
        """Send a body in pieces as they come, on a connection of its own; return once the head of the reply is there.

        A kept connection may have ended, and what was sent on it could not be sent again. Raises as `post` does, and
        what `body` raises.
        """
        if self._given is not None:
            if self._closed:
                raise RuntimeError(_CLOSED)
            return _sent(self._given, endpoint, body, length, connect_timeout)
        line = self._fresh.get(asyncio.get_running_loop()) or self._open(self._fresh)
        return line.send(endpoint, body, length, connect_timeout)

    async def aclose(self) -> None:
        """Close every connection; safe to call twice."""
        self._closed = True
        if self._given is not None:
            await self._given.aclose()
        here = asyncio.get_running_loop()
        ours = [line for lines in (self._lines, self._fresh) if (line := lines.pop(here, None)) is not None]
        _abandon_all(self._lines)
        _abandon_all(self._fresh)
        for line in ours:
            await line.connections.aclose()

    def _open(self, lines: dict[asyncio.AbstractEventLoop, Line]) -> Line:
        if self._closed:
            raise RuntimeError(_CLOSED)
        for dead in [other for other in lines if other.is_closed()]:
            lines.pop(dead).connections.abandon()
        # No limit: how many calls may be in flight is the bulkhead's decision alone.
        connector = aiohttp.TCPConnector(limit=0, ssl=_tls(), force_close=lines is self._fresh)
        line = lines[asyncio.get_running_loop()] = Line(self._base_url, _proxy(self._base_url), connector)
        return line


async def _posted(
    transport: httpx2.AsyncBaseTransport, endpoint: ProviderEndpoint, payload: bytes, connect_timeout: float
) -> Reply:
    """As `post`, over a transport that the owner gave."""
    small = len(payload) <= SLICE_BYTES
    return await _sent(transport, endpoint, payload if small else Slices(payload), len(payload), connect_timeout)


async def _sent(
    transport: httpx2.AsyncBaseTransport,
    endpoint: ProviderEndpoint,
    content: bytes | AsyncIterator[bytes],
    length: int | None,
    connect_timeout: float,
) -> Reply:
    headers = {name.encode("ascii"): value.encode("latin-1") for name, value in endpoint.headers.items()}
    if length is not None and not isinstance(content, bytes):
        headers[b"content-length"] = b"%d" % length
    request = httpx2.Request(
        endpoint.method,
        endpoint.url,
        headers=headers,
        content=content,
        extensions={"timeout": {"connect": connect_timeout, "pool": connect_timeout}},
    )
    return HttpxReply(await transport.handle_async_request(request))


@cache
def _tls() -> ssl.SSLContext:
    """One TLS context for all: loading the certificates costs tens of milliseconds."""
    return httpx2.create_ssl_context()


def _proxy(url: httpx2.URL) -> str | None:
    """The proxy that the environment names for `url` (HTTPS_PROXY, NO_PROXY); never one for loopback."""
    if _is_loopback(url.host) or proxy_bypass(url.netloc.decode()):
        return None
    return getproxies().get(url.scheme) or None


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _abandon_all(lines: dict[asyncio.AbstractEventLoop, Line]) -> None:
    while lines:
        lines.popitem()[1].connections.abandon()
