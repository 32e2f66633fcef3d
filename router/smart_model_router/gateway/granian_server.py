"""granian with our manners: drained on SIGTERM, reloaded on SIGHUP. Its HTTP is Rust's; ours is all behind it."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable
from typing import Any

from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server
from starlette.types import Receive, Scope, Send

from smart_model_router.config import GatewayConfig
from smart_model_router.gateway.app import Gateway
from smart_model_router.gateway.collecting import settle
from smart_model_router.gateway.reloading import Reloading

_LEAST_BUFFER = 8192
_BACKLOG = 1024
_STOPS = (signal.SIGINT, signal.SIGTERM)


def serve(gateway: Gateway, listener: socket.socket, on_ready: Callable[[], None]) -> None:
    """Serve on `listener` until SIGINT or SIGTERM."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(gateway, listener, on_ready))


async def _serve(gateway: Gateway, listener: socket.socket, on_ready: Callable[[], None]) -> None:
    config = gateway.house.config.gateway
    inside = _Inside(gateway)
    server, loop = _Server(inside, listener, config), asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in _STOPS:
        loop.add_signal_handler(number, stopped.set)
    if hasattr(signal, "SIGHUP"):
        loop.add_signal_handler(signal.SIGHUP, Reloading(gateway))
    server.on_startup(settle)
    server.on_startup(on_ready)
    serving = loop.create_task(server.serve())
    stopping = loop.create_task(stopped.wait())
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    gateway.stopping()
    server.stop()  # type: ignore[no-untyped-call]  # granian has types for what is made, not for what is called
    await asyncio.wait({serving}, timeout=config.drain)  # what has an end is waited for
    await gateway.end()
    inside.cancel()
    await serving


class _Inside:
    """The gateway, and the requests inside it: granian has no way to end those that outlast the drain."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._requests: set[asyncio.Task[Any]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        task = asyncio.current_task() if scope["type"] == "http" else None
        if task is None:
            await self._gateway(scope, receive, send)
            return
        self._requests.add(task)
        try:
            await self._gateway(scope, receive, send)
        finally:
            self._requests.discard(task)

    def cancel(self) -> None:
        """End all of them."""
        for task in self._requests:
            task.cancel()


class _Server(Server):
    """granian in this process and on this loop, with a socket that is open already: several processes may share it."""

    def __init__(self, inside: _Inside, listener: socket.socket, config: GatewayConfig) -> None:
        limits = HTTP1Settings(
            header_read_timeout=int(config.head_timeout * 1000),
            max_buffer_size=max(_LEAST_BUFFER, config.head_bytes),
        )
        super().__init__(
            inside,
            interface=Interfaces.ASGI,
            http=HTTPModes.http1,
            http1_settings=limits,
            websockets=False,
            log_enabled=False,
        )
        self._listener = listener

    def _init_shared_socket(self) -> None:
        made: Any = SocketHolder  # its stub lacks the third argument
        self._shd = made(self._listener.detach(), False, _BACKLOG)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - comes with uvicorn's extras, where there is one
    except ModuleNotFoundError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
