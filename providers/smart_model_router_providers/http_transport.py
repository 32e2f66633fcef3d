"""HTTP over aiohttp's connections: one request, the connections of one event loop, and the pool of one base URL.

A session makes of every call a request, a payload, a task that writes it and a response, and looks for cookies,
redirects and traces: 230,000 instructions, two thirds of a call. Here the head of a request is written out once and
sent together with the body. Connecting (DNS, TLS, proxies, keep-alive) and reading HTTP stay aiohttp's.
"""

from __future__ import annotations

import asyncio
import weakref
from contextlib import suppress
from functools import cache, lru_cache, partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies, proxy_bypass
from weakref import WeakSet

import aiohttp
import httpx2
from aiohttp.hdrs import PROXY_AUTHORIZATION
from aiohttp.http_writer import StreamWriter
from yarl import URL

from smart_model_router_providers.http_request import CLOSED, SLICE_BYTES, Slices
from smart_model_router_providers.response import reply_of

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable

    from aiohttp.client_proto import ResponseHandler
    from aiohttp.client_reqrep import ConnectionKey
    from aiohttp.connector import Connection

    from smart_model_router_providers.http_request import ProviderEndpoint
    from smart_model_router_providers.response import Reply

_PROVIDER_CLOSED = "the provider was closed"


class Connections:
    """The connections in use: a call adds the one it takes to `in_use`, and ends with one of the methods.

    aiohttp warns of connections that were not given back, and does not notify a reader of one that it closes; so those
    in use are known here. Made on the loop they belong to.
    """

    def __init__(self, connector: aiohttp.BaseConnector) -> None:
        self._connector = connector
        self.in_use: set[Connection] = set()
        self._used: WeakSet[ResponseHandler] = WeakSet()
        self._loop = asyncio.get_running_loop()

    def was_used(self, protocol: ResponseHandler | None) -> bool:
        """True when it was kept since an earlier call: the other side may have closed it in the meantime."""
        return protocol in self._used

    def give_back(self, connection: Connection) -> None:
        """It has brought a whole answer: the next call may have it."""
        self.in_use.discard(connection)
        protocol = connection.protocol
        if protocol is not None and protocol not in self._used:
            self._used.add(protocol)
        connection.release()

    def break_off(self, connection: Connection, why: str) -> None:
        """End it in the middle of a call, at once: its reader gets an error, and unsent data is dropped."""
        self.in_use.discard(connection)
        self._cut(connection.protocol, why)
        connection.close()

    def leave(self, connection: Connection) -> None:
        """The same for one that is collected in the middle of a call, wherever the collector runs."""
        if connection not in self.in_use:
            return
        if self._loop.is_running():
            self._loop.call_soon_threadsafe(self.break_off, connection, "it was not read any more")
        else:
            self.break_off(connection, "it was not read any more")

    async def aclose(self) -> None:
        """Close all of them; on their own loop."""
        taken = self._cut_all()
        closing = self._connector.close()
        for connection in taken:
            connection.close()  # nothing is left to do of it but to say so
        await closing

    def abandon(self) -> None:
        """The same from anywhere. Where the loop does not run, nothing is waited for, nor left for it to do."""
        if self._loop.is_running():
            asyncio.run_coroutine_threadsafe(self.aclose(), self._loop)
            return
        taken = self._cut_all()
        for pooled in self._connector._conns.values():
            for protocol, _ in pooled:
                self._cut(protocol, _PROVIDER_CLOSED)
        self._connector._close()
        for connection in taken:
            connection.close()

    def _cut_all(self) -> list[Connection]:
        taken = [*self.in_use]
        self.in_use.clear()
        for connection in taken:
            self._cut(connection.protocol, _PROVIDER_CLOSED)
        return taken

    def _cut(self, protocol: ResponseHandler | None, why: str) -> None:
        if protocol is None or protocol.transport is None:
            return
        if self._loop.is_closed():  # no reader is left to notify
            _close_socket(protocol.transport)
            protocol.transport = None  # aiohttp would close it, which needs the loop
            return
        payload = protocol._payload
        if payload is not None and not payload.is_eof() and payload.exception() is None:
            # A call that waits for the head of an answer sees the lost connection; one that reads its body would not.
            payload.set_exception(aiohttp.ClientConnectionError(why))
        if self._loop.is_running() or not _close_socket(protocol.transport, self._loop):
            # `close` would wait until the peer has read what is not sent yet, and it may never.
            protocol.transport.abort()
        else:
            protocol.connection_lost(None)


def _close_socket(transport: Any, stopped: asyncio.AbstractEventLoop | None = None) -> bool:
    """Close the socket below a transport whose loop is closed, or `stopped` for now; whether it could be found.

    A transport's own `close` needs the loop to run: without this the provider would hold each connection until the
    collector finds it, and complains. Reaches into asyncio's transports; those of other loops (uvloop) are closed with
    their loop.
    """
    plain = getattr(getattr(transport, "_ssl_protocol", None), "_transport", transport)  # which a TLS one stands on
    sock = getattr(plain, "_sock", None)
    if sock is None:
        return False
    transport._closed = plain._closing = True
    if stopped is not None:
        with suppress(NotImplementedError):  # Windows: its loop has neither
            stopped.remove_reader(sock)
            stopped.remove_writer(sock)
    sock.close()
    plain._sock = None
    return True


_SWITCHING = 101
_CHUNKED = b"transfer-encoding: chunked\r\n\r\n"


class _Origin(aiohttp.ClientRequest):
    """The address as a connector wants it. It is never sent."""

    _key: ConnectionKey | None = None

    @property
    def connection_key(self) -> ConnectionKey:
        """Worked out once."""
        if self._key is None:
            self._key = super().connection_key
        return self._key


class FirstByte(asyncio.Protocol):
    """Takes the place of a connection's protocol until the first byte of a reply arrives, and remembers that it did.

    The exceptions of aiohttp do not tell: a reset hides the part of a head that came before it.
    """

    def __init__(self, protocol: ResponseHandler) -> None:
        self._protocol = protocol
        self.arrived = False
        self._put(self)

    def _put(self, protocol: asyncio.BaseProtocol) -> None:
        if self._protocol.transport is not None:
            self._protocol.transport.set_protocol(protocol)

    def data_received(self, data: bytes) -> None:
        """Step aside for the protocol."""
        self.arrived = True
        self._put(self._protocol)
        self._protocol.data_received(data)

    def eof_received(self) -> None:
        """As the protocol does."""
        self._protocol.eof_received()

    def connection_lost(self, exc: BaseException | None) -> None:
        """As the protocol does."""
        self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        """As the protocol does."""
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """As the protocol does."""
        self._protocol.resume_writing()


class Line:
    """The connections of one event loop to one origin, by way of a proxy if need be."""

    def __init__(self, origin: httpx2.URL, proxy: str | None, connector: aiohttp.BaseConnector) -> None:
        self.connections = Connections(connector)
        self._connect = connector.connect
        self._origin = _Origin(
            "POST", URL(str(origin)), proxy=None if proxy is None else URL(proxy), loop=asyncio.get_running_loop()
        )
        self._spells_out = proxy is not None and not self._origin.is_ssl()

    async def post(self, endpoint: ProviderEndpoint, payload: bytes, connect_timeout: float) -> Reply:
        """Send a body; return once the head of the reply is there. Raises what aiohttp raises.

        A kept connection that ends before the first byte of the reply was closed by the other side meanwhile: the body
        is sent once more, on a new one.
        """
        small, again = len(payload) <= SLICE_BYTES, False
        rest = b"content-length: %d\r\n\r\n%b" % (len(payload), payload if small else b"")
        while True:
            connection = await self._connection(connect_timeout, new=again)
            protocol = connection.protocol
            first_byte = FirstByte(protocol) if protocol is not None and self.connections.was_used(protocol) else None
            try:
                return await self._exchange(connection, endpoint, rest, None if small else Slices(payload))
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionError):
                if first_byte is None or first_byte.arrived:
                    raise
                again = True

    async def _connection(self, connect_timeout: float, *, new: bool) -> Connection:
        """A connection that can be used; `new`: none that was kept."""
        try:
            while True:
                connection = await self._connect(self._origin, [], _timeout(connect_timeout))
                protocol = connection.protocol
                # What came before the request is no answer to it.
                has_rest = protocol is not None and protocol.should_close
                if not has_rest and not (new and self.connections.was_used(protocol)):
                    return connection
                connection.close()
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError(f"no connection within {connect_timeout:g} s") from error

    async def send(
        self, endpoint: ProviderEndpoint, body: AsyncIterator[bytes], length: int | None, connect_timeout: float
    ) -> Reply:
        """Send a body in pieces as they come; return once the head of the reply is there. Nothing is sent twice.

        Raises what aiohttp raises, and what `body` raises.
        """
        connection = await self._connection(connect_timeout, new=False)
        framing = _CHUNKED if length is None else b"content-length: %d\r\n\r\n" % length
        return await self._exchange(connection, endpoint, framing, body)

    async def _exchange(
        self, connection: Connection, endpoint: ProviderEndpoint, rest: bytes, body: AsyncIterator[bytes] | None
    ) -> Reply:
        """Write the head of a request, `rest` of it and what follows it, and `body`; return the head of the reply."""
        connections = self.connections
        connections.in_use.add(connection)
        upload: asyncio.Task[None] | None = None
        try:
            protocol = connection.protocol
            if protocol is None or protocol.transport is None:
                raise aiohttp.ClientConnectionResetError("the connection is gone")
            protocol.set_response_params(read_until_eof=True, auto_decompress=False)
            head = self._through_proxy(endpoint) if self._spells_out else endpoint.head
            protocol.transport.write(head + rest)
            if body is not None:
                upload = asyncio.get_running_loop().create_task(_upload(protocol, body, chunked=rest is _CHUNKED))
                upload.add_done_callback(partial(_upload_ended, connections, connection))
            message, content = await protocol.read()
            while 100 <= message.code < 200 and message.code != _SWITCHING:
                message, content = await protocol.read()
        except BaseException:
            connections.break_off(connection, "the call was given up")
            if upload is not None:
                if upload.done() and not upload.cancelled() and (error := upload.exception()) is not None:
                    raise error from None
                upload.cancel()
            raise
        return reply_of(message, content, connections, connection, upload)

    def _through_proxy(self, endpoint: ProviderEndpoint) -> bytes:
        """A proxy is told the whole URL and our credentials: its credentials are in its own."""
        credentials = self._origin.headers.get(PROXY_AUTHORIZATION)
        told = b"" if credentials is None else b"proxy-authorization: %b\r\n" % credentials.encode("latin-1")
        return endpoint.head_for_proxy + told


class ConnectionPool:
    """The connections to one base URL.

    A provider may serve several event loops (threads, one `asyncio.run` after another), but a connection belongs
    to the loop it was made on. A pool that was not closed closes its connections when it is collected, or at exit,
    without a warning.
    """

    def __init__(self, base_url: httpx2.URL) -> None:
        self._base_url = base_url
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
        line = self._lines.get(asyncio.get_running_loop()) or self._open(self._lines)
        return line.post(endpoint, payload, connect_timeout)

    def send(
        self, endpoint: ProviderEndpoint, body: AsyncIterator[bytes], length: int | None, connect_timeout: float
    ) -> Awaitable[Reply]:
        """Send a body in pieces as they come, on a connection of its own; return once the head of the reply is there.

        A kept connection may have ended, and what was sent on it could not be sent again. Raises as `post` does, and
        what `body` raises.
        """
        line = self._fresh.get(asyncio.get_running_loop()) or self._open(self._fresh)
        return line.send(endpoint, body, length, connect_timeout)

    async def aclose(self) -> None:
        """Close every connection; safe to call twice."""
        self._closed = True
        here = asyncio.get_running_loop()
        ours = [line for lines in (self._lines, self._fresh) if (line := lines.pop(here, None)) is not None]
        _abandon_all(self._lines)
        _abandon_all(self._fresh)
        for line in ours:
            await line.connections.aclose()

    def _open(self, lines: dict[asyncio.AbstractEventLoop, Line]) -> Line:
        if self._closed:
            raise RuntimeError(CLOSED)
        for dead in [other for other in lines if other.is_closed()]:
            lines.pop(dead).connections.abandon()
        # No limit: how many calls may be in flight is the bulkhead's decision alone.
        connector = aiohttp.TCPConnector(limit=0, ssl=_tls(), force_close=lines is self._fresh)
        line = lines[asyncio.get_running_loop()] = Line(self._base_url, _proxy(self._base_url), connector)
        return line


async def _upload(protocol: ResponseHandler, body: AsyncIterator[bytes], *, chunked: bool = False) -> None:
    """Write a body in pieces, no faster than it is taken. It ends with its connection; the reader of that is told."""
    writer = StreamWriter(protocol, asyncio.get_running_loop())
    async for piece in body:
        transport = protocol.transport
        if transport is None or transport.is_closing():
            return
        if piece:  # an empty chunk would be the last one
            transport.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
        with suppress(ConnectionError, aiohttp.ClientError):
            await writer.drain()
    if chunked and protocol.transport is not None:
        protocol.transport.write(b"0\r\n\r\n")


def _upload_ended(connections: Connections, connection: Connection, upload: asyncio.Task[None]) -> None:
    """A body that cannot be read to its end leaves a request without one: the reader of the reply is told."""
    if not upload.cancelled() and upload.exception() is not None and connection in connections.in_use:
        connections.break_off(connection, "the body of the request ended early")


@lru_cache(maxsize=16)
def _timeout(connect: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, connect=connect, sock_connect=connect)


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
