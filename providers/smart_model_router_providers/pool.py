"""One transport per (provider, event loop), made on first use, closed quietly whatever the loop's fate."""

from __future__ import annotations

import asyncio
import weakref
from contextlib import suppress
from functools import cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
from httpx_aiohttp.httpx2 import AiohttpTransport

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

    from aiohttp.client_proto import ResponseHandler


class TransportPool:
    """The transports to one base URL.

    A provider may serve several event loops (threads, one `asyncio.run` after another), but a connection belongs
    to the loop it was made on. A transport given by the owner is used for all of them. A pool that nobody
    closed closes its connections when it is collected, or at exit, without a warning.
    """

    def __init__(self, base_url: httpx2.URL, transport: httpx2.AsyncBaseTransport | None) -> None:
        self._base_url = base_url
        self._given = transport
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}
        self._transports: dict[asyncio.AbstractEventLoop, AiohttpTransport] = {}
        self._closed = False
        weakref.finalize(self, _abandon_all, self._sessions)

    def current(self) -> httpx2.AsyncBaseTransport:
        """The transport of the running loop. Raises RuntimeError once the pool is closed."""
        if self._given is not None:
            return self._given
        loop = asyncio.get_running_loop()
        found = self._transports.get(loop)
        return found if found is not None else self._open(loop)

    async def aclose(self) -> None:
        """Close every connection; safe to call twice."""
        self._closed = True
        if self._given is not None:
            await self._given.aclose()
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        _abandon_all(self._sessions)
        self._transports.clear()
        if session is not None:
            await session.close()

    def _open(self, loop: asyncio.AbstractEventLoop) -> AiohttpTransport:
        if self._closed:
            raise RuntimeError("the provider is closed")
        for dead in [other for other in self._sessions if other.is_closed()]:
            self._transports.pop(dead, None)
            _abandon(dead, self._sessions.pop(dead))
        context = _tls()
        # No limit: how many calls may be in flight is the bulkhead's decision alone.
        connector = aiohttp.TCPConnector(limit=0, ssl=context)
        session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        transport = AiohttpTransport(verify=context, client=session, proxy=_proxy(self._base_url))
        self._sessions[loop] = session
        self._transports[loop] = transport
        return transport


@cache
def _tls() -> ssl.SSLContext:
    """One TLS context for all: loading the certificates costs tens of milliseconds."""
    return httpx2.create_ssl_context()


def _proxy(url: httpx2.URL) -> httpx2.Proxy | None:
    """The proxy that the environment names for `url` (HTTPS_PROXY, NO_PROXY); never one for loopback."""
    if _is_loopback(url.host) or proxy_bypass(url.netloc.decode()):
        return None
    found = getproxies().get(url.scheme)
    return httpx2.Proxy(found) if found else None


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _abandon_all(sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession]) -> None:
    while sessions:
        _abandon(*sessions.popitem())


def _abandon(loop: asyncio.AbstractEventLoop, session: aiohttp.ClientSession) -> None:
    """Close a session from outside its loop."""
    connector = session.connector
    session.detach()
    if connector is None:
        return
    if loop.is_running():
        asyncio.run_coroutine_threadsafe(_closing(connector), loop)
    elif loop.is_closed():
        for protocol in _protocols(connector):
            _close_socket(protocol.transport)
        # aiohttp must only be told now. Nothing is waited for then, so one step does.
        with suppress(StopIteration):
            _closing(connector).send(None)


def _protocols(connector: aiohttp.BaseConnector) -> Iterator[ResponseHandler]:
    """The connections of a connector, pooled and in use. It has no public list of them."""
    yield from connector._acquired
    for pooled in connector._conns.values():
        yield from (protocol for protocol, _ in pooled)


def _close_socket(transport: Any) -> None:
    """Close the socket below a transport whose loop is closed.

    A closed loop keeps its transports' sockets open, and their own `close` needs the loop: without this the
    provider would hold each connection until the collector finds it, and complains. Reaches into asyncio's
    transports; those of other loops (uvloop) close their sockets when they are collected.
    """
    below = getattr(getattr(transport, "_ssl_protocol", None), "_transport", None)
    layers: tuple[Any, ...] = (transport, below)  # a TLS transport stands on a plain one
    for layer in layers:
        if hasattr(layer, "_closed"):
            layer._closed = True
        sock = getattr(layer, "_sock", None)
        if sock is not None:
            sock.close()
            layer._sock = None


async def _closing(connector: aiohttp.BaseConnector) -> None:
    await connector.close()
