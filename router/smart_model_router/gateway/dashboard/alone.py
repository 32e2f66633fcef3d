"""A dashboard without a gateway: over the statistics file of other processes, for this machine alone."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Route

from smart_model_router.edge import ProblemError
from smart_model_router.edge.problems import Kind
from smart_model_router.gateway.dashboard.board import Board
from smart_model_router.gateway.dashboard.feed import Feed
from smart_model_router.gateway.looking import check_host
from smart_model_router.monitor.stored import StoredPainter
from smart_model_router_stats.opening import StoreUnavailableError

OUT_OF_REACH = Kind(503, "server_error", "store_unavailable", "overloaded_error")
_HOST = "127.0.0.1"


def run(path: Path, *, port: int, on_ready: Callable[[str], None]) -> None:
    """Show the file until SIGINT or SIGTERM; `on_ready` gets the address. Raises StoreUnavailableError, OSError."""
    painter = StoredPainter(path)
    painter.picture(_wall())  # what cannot be read is said now, and not to a browser

    async def draw() -> Mapping[str, Any]:
        return await asyncio.to_thread(painter.picture, _wall())

    async def trace(request_id: str) -> Mapping[str, Any] | None:
        try:
            return await asyncio.to_thread(painter.trace, request_id)
        except StoreUnavailableError as error:
            raise ProblemError(OUT_OF_REACH, error.reason) from None

    def guard(headers: Mapping[str, str]) -> bool:
        check_host(headers)
        return False

    async def home(request: Request) -> RedirectResponse:
        del request
        return RedirectResponse("/dashboard")

    feed = Feed(draw)
    board = Board(feed, guard=guard, trace=trace, about={"source": f"{path.name}: every process"})
    app = Starlette(routes=[Route("/", home), *board.routes()])
    listener = socket.create_server((_HOST, port))
    address = f"http://{_HOST}:{listener.getsockname()[1]}/dashboard"
    options = uvicorn.Config(app, ws="none", lifespan="off", log_config=None, access_log=False, server_header=False)
    _Server(options, feed, lambda: on_ready(address)).run([listener])


def _wall() -> float:
    return time.time()  # noqa: TID251 - the file's own stamps are of the wall clock


class _Server(uvicorn.Server):
    """uvicorn's server, but to be stopped is no failure, and its streams end with it."""

    def __init__(self, config: uvicorn.Config, feed: Feed, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._feed = feed
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what would not end by itself."""
        self._feed.close()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """SIGINT and SIGTERM end it."""
        stops = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in stops}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
