"""One request over a connection of aiohttp's: its connector and its parser, and the connections of one event loop.

A session makes of every call a request, a payload, a task that writes it and a response, and looks for cookies,
redirects and traces: 230,000 instructions, two thirds of a call. Here the head of a request is written out once and
sent together with the body. Connecting (DNS, TLS, proxies, keep-alive) and reading HTTP stay aiohttp's.
"""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from contextlib import suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import aiohttp
from aiohttp.hdrs import PROXY_AUTHORIZATION
from aiohttp.http_writer import StreamWriter
from yarl import URL

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_providers.response import reply_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Mapping

    import httpx2
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.client_reqrep import ConnectionKey
    from aiohttp.connector import Connection

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

    def was_used(self, connection: Connection) -> bool:
        """True when it was kept since an earlier call: the other side may have closed it in the meantime."""
        return connection.protocol in self._used

    def give_back(self, connection: Connection) -> None:
        """It has brought a whole answer: the next call may have it."""
        self.in_use.discard(connection)
        if connection.protocol is not None:
            self._used.add(connection.protocol)
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


SLICE_BYTES = 256 * 1024
"""A larger body goes out in pieces of this size: written at once it would hold up the event loop."""

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_NOT_OURS = frozenset({"content-length", "transfer-encoding"})
_SWITCHING = 101
_CHUNKED = b"transfer-encoding: chunked\r\n\r\n"


class ProviderEndpoint:
    """The URL and the headers of a call. Header names are lower-case.

    Raises ConfigurationError for headers that cannot be sent, never showing one.
    """

    __slots__ = ("head", "head_for_proxy", "headers", "method", "url")

    def __init__(self, url: httpx2.URL, headers: Mapping[str, str], method: str = "POST") -> None:
        check_headers(headers)
        self.url = url
        self.method = method
        self.headers = headers
        """Those that were given: not `host`, nor the credentials of the URL."""
        host = url.netloc.decode("ascii")
        fields = {"host": host, **_credentials_of(url), **headers}
        written = "".join([f"{name}: {value}\r\n" for name, value in fields.items()]).encode("latin-1")
        verb, path = method.encode(), url.raw_path
        self.head = b"%b %b HTTP/1.1\r\n%b" % (verb, path, written)
        """The first lines of a call as bytes: all but its `content-length` and the empty line."""
        self.head_for_proxy = b"%b %b://%b%b HTTP/1.1\r\n%b" % (verb, url.scheme.encode(), url.netloc, path, written)
        """The same for a proxy that is told the whole URL."""


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
        connection = await self._connection(connect_timeout, new=False)
        kept = connection.protocol if self.connections.was_used(connection) else None
        first_byte = None if kept is None else FirstByte(kept)
        try:
            return await self._post_on(connection, endpoint, payload)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionError):
            if first_byte is None or first_byte.arrived:
                raise
        return await self._post_on(await self._connection(connect_timeout, new=True), endpoint, payload)

    async def _connection(self, connect_timeout: float, *, new: bool) -> Connection:
        """A connection that can be used; `new`: none that was kept."""
        try:
            connection = await self._connect(self._origin, [], _timeout(connect_timeout))
            # What came before the request is no answer to it.
            while (connection.protocol is not None and connection.protocol.should_close) or (
                new and self.connections.was_used(connection)
            ):
                connection.close()
                connection = await self._connect(self._origin, [], _timeout(connect_timeout))
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError(f"no connection within {connect_timeout:g} s") from error
        return connection

    async def send(
        self, endpoint: ProviderEndpoint, body: AsyncIterator[bytes], length: int | None, connect_timeout: float
    ) -> Reply:
        """Send a body in pieces as they come; return once the head of the reply is there. Nothing is sent twice.

        Raises what aiohttp raises, and what `body` raises.
        """
        connection = await self._connection(connect_timeout, new=False)
        framing = _CHUNKED if length is None else b"content-length: %d\r\n\r\n" % length
        return await self._exchange(connection, endpoint, framing, body)

    def _post_on(self, connection: Connection, endpoint: ProviderEndpoint, payload: bytes) -> Awaitable[Reply]:
        small = len(payload) <= SLICE_BYTES
        rest = b"content-length: %d\r\n\r\n%b" % (len(payload), payload if small else b"")
        return self._exchange(connection, endpoint, rest, None if small else Slices(payload))

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


def check_headers(headers: Mapping[str, str]) -> None:
    """Raise ConfigurationError for headers that cannot be sent, never showing one. Names are lower-case."""
    for name, value in headers.items():
        # What ends a line would begin another header; the length of a body is not its owner's to say.
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value) or name in _NOT_OURS:
            raise ConfigurationError("headers", sorted(headers), "names and values as HTTP has them, but for lengths")
        try:
            value.encode("latin-1")
        except UnicodeEncodeError:
            raise ConfigurationError("headers", sorted(headers), "names and values of Latin characters") from None


class Slices:
    """A large body in pieces: written at once it would hold up the event loop. It can be sent more than once."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._at = 0

    def __aiter__(self) -> AsyncIterator[bytes]:  # no generator: nothing would close one that is left halfway
        return Slices(self._payload)

    async def __anext__(self) -> bytes:
        piece = self._payload[self._at : self._at + SLICE_BYTES]
        if not piece:
            raise StopAsyncIteration
        self._at += SLICE_BYTES
        return piece


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


def _credentials_of(url: httpx2.URL) -> dict[str, str]:
    """The header for a name and a password in the URL."""
    if not url.userinfo:
        return {}
    return {"authorization": "Basic " + b64encode(f"{url.username}:{url.password}".encode()).decode()}


@lru_cache(maxsize=16)
def _timeout(connect: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, connect=connect, sock_connect=connect)
