"""A dashboard without a gateway: over the statistics of other processes, for this machine alone."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Route

from smart_model_router.gateway.client_keys import check_host
from smart_model_router.gateway.dashboard.dashboard_routes import DashboardPages, SnapshotFeed
from smart_model_router.gateway.uvicorn_server import Server
from smart_model_router.http_api import ProblemError
from smart_model_router.http_api.api_errors import ErrorKind
from smart_model_router.observability.store_snapshot import StoreSnapshot
from smart_model_router_stats.open_db import StoreUnavailableError
from smart_model_router_stats.reading import StoreReader

OUT_OF_REACH = ErrorKind(503, "server_error", "store_unavailable", "overloaded_error")


def run(reader: StoreReader, listener: socket.socket, *, on_ready: Callable[[str], None]) -> None:
    """Show the store until SIGINT or SIGTERM; `on_ready` gets the address. Raises StoreUnavailableError."""
    painter = StoreSnapshot(reader)
    painter.picture(_wall())  # what cannot be read is said now, and not to a browser

    async def draw() -> Mapping[str, Any]:
        return await asyncio.to_thread(painter.picture, _wall())

    async def trace(request_id: str) -> Mapping[str, Any] | None:
        try:
            return await asyncio.to_thread(painter.trace, request_id)
        except StoreUnavailableError as error:
            raise ProblemError(OUT_OF_REACH, error.reason) from None

    def guard(headers: Mapping[str, str]) -> bool:
        check_host(headers.get("host"))
        return False

    async def home(request: Request) -> RedirectResponse:
        del request
        return RedirectResponse("/dashboard")

    feed = SnapshotFeed(draw)
    board = DashboardPages(feed, guard=guard, trace=trace, about={"source": f"{reader.label}: every process"})
    app = Starlette(routes=[Route("/", home), *board.routes()])
    host, port = listener.getsockname()
    address = f"http://{host}:{port}/dashboard"
    options = uvicorn.Config(app, ws="none", lifespan="off", log_config=None, access_log=False, server_header=False)
    Server(options, on_ready=lambda: on_ready(address), on_stop=feed.close).run([listener])


def _wall() -> float:
    return time.time()  # noqa: TID251 - the store's own stamps are of the wall clock
