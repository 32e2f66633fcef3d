"""The uvicorn server: quiet, drained on SIGTERM, reloaded on SIGHUP; its HTTP protocol is in uvicorn_protocol.py."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import math
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Generator

import uvicorn

from smart_model_router.config import GatewayConfig
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.gateway.asgi_app import Gateway
from smart_model_router.gateway.client_keys import is_loopback
from smart_model_router.gateway.uvicorn_protocol import protocol_for


def bind(config: GatewayConfig, *, host: str | None, port: int | None) -> tuple[socket.socket, str]:
    """Return the listening socket and its base URL. `host` and `port` replace those of the configuration.

    Raises ConfigurationError for an address that other machines can reach while no key is required, OSError for an
    address that is taken.
    """
    host = config.host if host is None else host
    if not config.keys and not is_loopback(host):
        expected = (
            "an address of this machine alone (127.0.0.1, ::1) is needed while gateway.keys is empty "
            "(smr keys new NAME makes one)"
        )
        raise ConfigurationError("gateway.host", host, expected)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host.strip("[]"), config.port if port is None else port), family=family)
    shown = f"[{host.strip('[]')}]" if ":" in host else host
    return listener, f"http://{shown}:{listener.getsockname()[1]}"


_YOUNG_OBJECTS = 10_000
"""So many new objects are looked at in one go: almost all of a request's are gone by then."""

_TURN_SECONDS = 0.001
"""So long the thread that reads large bodies keeps the loop waiting for its turn; Python's own is 5 ms."""


def settle() -> None:
    """Keep the objects of now out of the search for garbage: they stay (docs/benchmarks.md, The gateway).

    Called again after a reload, or the configuration before it would stay, too.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS)
    sys.setswitchinterval(_TURN_SECONDS)


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


class Reloading:
    """Has the gateway reloaded, once at a time. Called on the loop."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._task: asyncio.Task[None] | None = None

    def __call__(self) -> None:
        """Begin, unless it is being done."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._reload())

    async def _reload(self) -> None:
        """Read the configuration again, and settle with the new one."""
        if await self._gateway.reload():
            settle()


_IDLE_SECONDS = 75
"""Longer than the pools of the SDKs keep a connection: the server must not close first, in the middle of a send."""


_LAST_SECONDS = 5
"""The seconds for requests that were ended after the drain to answer; then their tasks are cancelled."""


def serve(gateway: Gateway, listener: socket.socket, on_ready: Callable[[], None]) -> None:
    """Serve on `listener` until SIGINT or SIGTERM."""
    tree = gateway.generation.config
    config, reader_idle = tree.gateway, tree.resilience.timeouts.reader_idle
    options = uvicorn.Config(
        gateway,
        http=protocol_for(config, reader_idle=reader_idle),
        loop="auto",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=math.ceil(config.drain) + _LAST_SECONDS,
    )
    logging.getLogger("uvicorn.error").addFilter(_is_news)

    def ready() -> None:
        if hasattr(signal, "SIGHUP"):
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, Reloading(gateway))
        settle()
        on_ready()

    server = Server(options, on_ready=ready, on_stop=gateway.stopping, on_end=gateway.end, drain=config.drain)
    server.run([listener])


def _is_news(record: logging.LogRecord) -> bool:
    """Not what uvicorn says of a stream that we cut on purpose, nor the trace of one that outlasted the drain."""
    if record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError):
        return False
    return not record.getMessage().startswith("ASGI callable returned without completing response")
