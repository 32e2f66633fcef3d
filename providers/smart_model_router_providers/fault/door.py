"""The listening socket: shut while the script says outage, with its port kept meanwhile."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

from smart_model_router_providers.fault.http1 import Connection, Service

Outage = tuple[float, float | None]
"""From when to when (None: for ever) nobody gets in, as instants on the loop's clock."""

BACKLOG = 2048
TURNS_TO_CONNECT = 5  # of the event loop, from accept() to connection_made(): three in CPython


class Door:
    """Lets clients in, except during outages: then connections are refused and open ones are reset."""

    def __init__(self, host: str, port: int, service: Service) -> None:
        self._loop = asyncio.get_running_loop()
        self._service = service
        self._connections: set[Connection] = set()
        self._socket = _bound(host, port)
        self.port: int = self._socket.getsockname()[1]
        self._host = host
        self._outages: Sequence[Outage] = ()
        self._timers: list[asyncio.TimerHandle] = []
        self._server: asyncio.Server | None = None
        self._opening: asyncio.Task[None] | None = None
        self._open = False

    def watch(self, outages: Sequence[Outage]) -> None:
        """Keep to these outages and no others from now on; one that is due begins at once."""
        for timer in self._timers:
            timer.cancel()
        self._outages = outages
        instants = {instant for outage in outages for instant in outage if instant is not None}
        now = self._loop.time()
        self._timers = [self._loop.call_at(at, self._turn) for at in instants if at > now]
        self._turn()

    async def opened(self) -> None:
        """Wait until it is as open as it should be."""
        if self._opening is not None:
            await self._opening

    async def aclose(self) -> None:
        """Reset every connection and give the port back."""
        for timer in self._timers:
            timer.cancel()
        await self.opened()
        self._shut()
        self._socket.close()
        # asyncio does not say when a connection that it has accepted becomes one that we know of.
        for _ in range(TURNS_TO_CONNECT):
            await asyncio.sleep(0)
        for connection in list(self._connections):
            await connection.lost

    def _turn(self) -> None:
        """Open or shut, whichever is due. While it is just opening, `_accept` asks again."""
        if self._opening is not None:
            return
        now = self._loop.time()
        down = any(start <= now and (stop is None or now < stop) for start, stop in self._outages)
        if down and self._open:
            self._shut()
            # Bound but not listening: connections are refused, and nobody else is given the port.
            self._socket = _bound(self._host, self.port)
        elif not down and not self._open:
            self._socket.listen(BACKLOG)  # from this line on nobody is refused
            self._open = True
            self._opening = self._loop.create_task(self._accept())

    async def _accept(self) -> None:
        self._server = await self._loop.create_server(self._connection, sock=self._socket, backlog=BACKLOG)
        self._opening = None
        self._turn()

    def _connection(self) -> Connection:
        return Connection(self._service, self._connections, lambda: self._open, self._loop)

    def _shut(self) -> None:
        self._open = False
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in list(self._connections):
            connection.reset()


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
