"""uvicorn with our manners: impatient with slow heads, quiet, drained on SIGTERM, reloaded on SIGHUP."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import signal
import socket
from collections.abc import Callable, Generator
from typing import Any, ClassVar

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from smart_model_router.config import GatewayConfig
from smart_model_router.gateway.app import Gateway
from smart_model_router.gateway.collecting import reload, settle

_IDLE_SECONDS = 75
"""Longer than the pools of the SDKs keep a connection: who closes first must not be us, in the middle of a send."""
_STOPS = (signal.SIGINT, signal.SIGTERM)


def serve(gateway: Gateway, listener: socket.socket, on_ready: Callable[[], None]) -> None:
    """Serve on `listener` until SIGINT or SIGTERM."""
    config = gateway.house.config.gateway
    options = uvicorn.Config(
        gateway,
        http=_patient(config),
        loop="auto",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=math.ceil(config.drain),
    )
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    _Server(options, gateway, on_ready).run([listener])


def _is_news(record: logging.LogRecord) -> bool:
    """Not what uvicorn says of a stream that we cut on purpose, nor the trace of one that outlasted the drain."""
    if record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError):
        return False
    return not record.getMessage().startswith("ASGI callable returned without completing response")


class _Server(uvicorn.Server):
    """uvicorn's server, but a signal it was stopped by is not raised again: to be stopped is no failure."""

    def __init__(self, config: uvicorn.Config, gateway: Gateway, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._gateway = gateway
        self._on_ready = on_ready
        self._reloading: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        if hasattr(signal, "SIGHUP"):
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._reload)
        settle()
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain: what has an end is waited for."""
        self._gateway.stopping()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """SIGINT and SIGTERM drain; a second SIGINT does not wait."""
        before = {number: signal.signal(number, self.handle_exit) for number in _STOPS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _reload(self) -> None:
        if self._reloading is None or self._reloading.done():
            self._reloading = asyncio.get_running_loop().create_task(reload(self._gateway))


class _PatientProtocol(HttpToolsProtocol):
    """HTTP/1.1 that gives a head so many seconds and bytes, and not more."""

    head_timeout: ClassVar[float]
    head_bytes: ClassVar[int]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._alarm: asyncio.TimerHandle | None = None
        self._in_head = True
        self._seen = 0
        self._earlier: list[RequestResponseCycle] = []

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """The first head begins now."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is expected any more. uvicorn tells the newest request; those before it have to know, too."""
        self._relax()
        super().connection_lost(exc)
        for cycle in self._earlier:
            cycle.disconnected = True
            cycle.message_event.set()

    def data_received(self, data: bytes) -> None:
        """More of a head must not go on for ever."""
        super().data_received(data)
        if self._in_head:
            self._seen += len(data)
            if self._seen > self.head_bytes:
                self._refuse(b"431 Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        """Another head begins."""
        super().on_message_begin()
        if not self._in_head:
            self._expect_head()

    def on_headers_complete(self) -> None:
        """It is there."""
        self._relax()
        before: RequestResponseCycle | None = self.cycle
        super().on_headers_complete()
        self._earlier = [cycle for cycle in (*self._earlier, before) if cycle and not cycle.response_complete]

    def _expect_head(self) -> None:
        self._in_head, self._seen = True, 0
        self._alarm = self.loop.call_later(self.head_timeout, self._refuse, b"408 Request Timeout")

    def _relax(self) -> None:
        self._in_head = False
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _refuse(self, status: bytes) -> None:
        self._relax()
        if not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            self.transport.close()


def _patient(config: GatewayConfig) -> type[_PatientProtocol]:
    """The protocol with the limits of a configuration: uvicorn makes it without arguments of ours."""
    limits = {"head_timeout": config.head_timeout, "head_bytes": config.head_bytes}
    return type("PatientProtocol", (_PatientProtocol,), limits)
