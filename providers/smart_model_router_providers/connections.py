"""The connections of one event loop: which of them are in use, and how they end, whatever becomes of the loop."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import aiohttp

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.connector import Connection

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
            self._loop.call_soon_threadsafe(self.break_off, connection, "nobody read it any more")
        else:
            self.break_off(connection, "nobody read it any more")

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
