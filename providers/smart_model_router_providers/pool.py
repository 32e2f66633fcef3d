"""One aiohttp connector per (provider, event loop), made on first use, closed quietly whatever the loop's fate."""

from __future__ import annotations

import asyncio
import weakref
from functools import cache
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2

from smart_model_router_providers.posting import SLICE_BYTES, Endpoint, Line
from smart_model_router_providers.reply import HttpxReply, Reply
from smart_model_router_providers.resending import ResendingTransport

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable


_CLOSED = "the provider is closed"


class ConnectionPool:
    """The connections to one base URL.

    A provider may serve several event loops (threads, one `asyncio.run` after another), but a connection belongs
    to the loop it was made on. A `transport` given by the owner is used for all of them, and in place of aiohttp. A
    pool that nobody closed closes its connections when it is collected, or at exit, without a warning.
    """

    def __init__(self, base_url: httpx2.URL, transport: httpx2.AsyncBaseTransport | None) -> None:
        self._base_url = base_url
        self._given = None if transport is None else ResendingTransport(transport)
        self._lines: dict[asyncio.AbstractEventLoop, Line] = {}
        self._closed = False
        weakref.finalize(self, _abandon_all, self._lines)

    def post(self, endpoint: Endpoint, payload: bytes, connect_timeout: float) -> Awaitable[Reply]:
        """Send a body; return once the head of the reply is there.

        `connect_timeout` bounds all of getting a connection: DNS, connect and TLS. Every other timeout is the router's.
        Raises what the library raises, and RuntimeError once the pool is closed.
        """
        if self._given is not None:
            if self._closed:
                raise RuntimeError(_CLOSED)
            return _posted(self._given, endpoint, payload, connect_timeout)
        line = self._lines.get(asyncio.get_running_loop()) or self._open()
        return line.post(endpoint, payload, connect_timeout)

    async def aclose(self) -> None:
        """Close every connection; safe to call twice."""
        self._closed = True
        if self._given is not None:
            await self._given.aclose()
        line = self._lines.pop(asyncio.get_running_loop(), None)
        _abandon_all(self._lines)
        if line is not None:
            await line.connections.aclose()

    def _open(self) -> Line:
        if self._closed:
            raise RuntimeError(_CLOSED)
        for dead in [other for other in self._lines if other.is_closed()]:
            self._lines.pop(dead).connections.abandon()
        # No limit: how many calls may be in flight is the bulkhead's decision alone.
        connector = aiohttp.TCPConnector(limit=0, ssl=_tls())
        line = self._lines[asyncio.get_running_loop()] = Line(self._base_url, _proxy(self._base_url), connector)
        return line


async def _posted(
    transport: httpx2.AsyncBaseTransport, endpoint: Endpoint, payload: bytes, connect_timeout: float
) -> Reply:
    """The same over a transport that the owner gave."""
    headers = {name.encode("ascii"): value.encode("latin-1") for name, value in endpoint.headers.items()}
    content: bytes | _Slices = payload
    if len(payload) > SLICE_BYTES:
        headers[b"content-length"] = b"%d" % len(payload)
        content = _Slices(payload)
    request = httpx2.Request(
        endpoint.method,
        endpoint.url,
        headers=headers,
        content=content,
        extensions={"timeout": {"connect": connect_timeout, "pool": connect_timeout}},
    )
    return HttpxReply(await transport.handle_async_request(request))


class _Slices:
    """A large body in pieces: written at once it would hold up the event loop. It can be sent more than once."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._payload), SLICE_BYTES):
            yield self._payload[start : start + SLICE_BYTES]


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
