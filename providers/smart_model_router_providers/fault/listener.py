"""The listening socket: shut while the script says outage, with its port kept meanwhile."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

from smart_model_router_providers.fault.http1 import Connection, Service

Outage = tuple[float, float | None]
"""The begin and the end (None: never) of refused connections, as instants on the loop's clock."""

BACKLOG = 2048
TICK = 1e-6  # seconds


class Door:
    """Lets clients in, except during outages: then connections are refused and open ones are reset.

    It accepts by itself. An asyncio.Server that is closed between accepting a client and making its transport
    leaks that client (CPython 3.11), and it cannot be opened again without a turn of the loop.
    """

    def __init__(self, host: str, port: int, service: Service) -> None:
        self._loop = asyncio.get_running_loop()
        self._service = service
        self._host = host
        self._socket = _bound(host, port)
        self.port: int = self._socket.getsockname()[1]
        self._open = False
        self._outages: Sequence[Outage] = ()
        self._timers: list[asyncio.TimerHandle] = []
        self._arriving: set[asyncio.Task[object]] = set()
        self._connections: set[Connection] = set()

    def watch(self, outages: Sequence[Outage]) -> None:
        """Keep to these outages and no others from now on; one that is due begins at once."""
        for timer in self._timers:
            timer.cancel()
        self._outages = outages
        instants = {instant for outage in outages for instant in outage if instant is not None}
        now = self._loop.time()
        self._timers = [self._loop.call_at(at, self._turn) for at in instants if at > now]
        self._turn()

    async def aclose(self) -> None:
        """Reset every connection and give the port back."""
        for timer in self._timers:
            timer.cancel()
        self._shut()
        self._socket.close()
        await asyncio.gather(*self._arriving)
        for connection in list(self._connections):
            await connection.lost

    def _turn(self) -> None:
        """Open or shut, whichever is due."""
        # A timer may ring a tick early: without this the outage it rings for would still be to come.
        now = self._loop.time() + TICK
        down = any(start <= now and (stop is None or now < stop) for start, stop in self._outages)
        if down and self._open:
            self._shut()
            # Bound but not listening: connections are refused, and no other program gets the port.
            self._socket = _bound(self._host, self.port)
        elif not down and not self._open:
            self._socket.listen(BACKLOG)
            self._loop.add_reader(self._socket, self._accept)
            self._open = True

    def _shut(self) -> None:
        if self._open:
            self._loop.remove_reader(self._socket)
            self._socket.close()
            self._open = False
        for connection in list(self._connections):
            connection.reset()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            client.setblocking(False)
            arriving = self._loop.create_task(self._loop.connect_accepted_socket(self._connection, client))
            self._arriving.add(arriving)
            arriving.add_done_callback(self._arriving.discard)

    def _connection(self) -> Connection:
        return Connection(self._service, self._connections, lambda: self._open, self._loop)


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setblocking(False)
        made.bind((host, port))
    except OSError:
        made.close()
        raise
    return made
