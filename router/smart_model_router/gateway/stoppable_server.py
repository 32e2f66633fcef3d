"""uvicorn's server as we run it: it says when it listens, and to be stopped is no failure."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Awaitable, Callable, Generator

import uvicorn

_STOPS = (signal.SIGINT, signal.SIGTERM)


class Server(uvicorn.Server):
    """Calls `on_ready` when it listens, `on_stop` when it is to end, and `on_end` when it drained for `drain` seconds.

    Unlike uvicorn's it raises no signal again.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        on_ready: Callable[[], None],
        on_stop: Callable[[], None] = lambda: None,
        on_end: Callable[[], Awaitable[None]] | None = None,
        drain: float = 0.0,
    ) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._on_stop = on_stop
        self._on_end = on_end
        self._drain = drain

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain: what has an end is waited for, for a while."""
        self._on_stop()
        ending = asyncio.create_task(self._end())
        try:
            await super().shutdown(sockets)
        finally:
            ending.cancel()

    async def _end(self) -> None:
        if self._on_end is not None:
            await asyncio.sleep(self._drain)
            await self._on_end()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """SIGINT and SIGTERM drain; a second SIGINT does not wait."""
        before = {number: signal.signal(number, self.handle_exit) for number in _STOPS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
