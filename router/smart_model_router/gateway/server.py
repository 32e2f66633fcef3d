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
from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from smart_model_router.config import GatewayConfig
from smart_model_router.gateway.app import Gateway
from smart_model_router.gateway.collecting import reload, settle
from smart_model_router.gateway.responding import PIECE, WHOLE

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
        self._extensions: Any = {WHOLE: self._send_whole, PIECE: self._send_piece}
        self._idle_until = math.inf
        self._idle_alarm: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """The first head begins now."""
        super().connection_made(transport)
        self._be_patient()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is expected any more. uvicorn tells the newest request; those before it have to know, too."""
        self._relax()
        self._extensions.clear()  # it holds us
        if self._idle_alarm is not None:
            self._idle_alarm.cancel()
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
            elif self._alarm is None:
                self._be_patient()

    def on_message_begin(self) -> None:
        """Another head begins."""
        super().on_message_begin()
        if not self._in_head:
            self._in_head, self._seen = True, 0

    def on_headers_complete(self) -> None:
        """It is there."""
        self._relax()
        before: RequestResponseCycle | None = self.cycle
        super().on_headers_complete()
        self.scope["extensions"] = self._extensions
        if self._earlier or (before is not None and not before.response_complete):
            self._earlier = [cycle for cycle in (*self._earlier, before) if cycle and not cycle.response_complete]

    def on_response_complete(self) -> None:
        """One timer for the idle times of a connection: uvicorn makes and cancels one for every request."""
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        self._idle_until = self.loop.time() + self.timeout_keep_alive
        if self._idle_alarm is None:
            self._idle_alarm = self.loop.call_at(self._idle_until, self._look_idle)

    def _unset_keepalive_if_required(self) -> None:
        self._idle_until = math.inf

    def _look_idle(self) -> None:
        self._idle_alarm = None
        if self.loop.time() >= self._idle_until:
            self.timeout_keep_alive_handler()
        elif self._idle_until < math.inf:
            self._idle_alarm = self.loop.call_at(self._idle_until, self._look_idle)

    def _send_whole(self, scope: Scope, status: int, head: bytes, body: bytes) -> bool:
        """What uvicorn does of two messages, in one go. It looks at each header twice; ours are looked at already."""
        cycle = self.cycle
        if cycle.scope is not scope or cycle.response_started or cycle.disconnected or not cycle.keep_alive:
            return False
        if self.flow.write_paused or scope["method"] == "HEAD":
            return False
        ours = [b"%b: %b\r\n" % field for field in cycle.default_headers]  # the date
        told = b"".join((STATUS_LINE[status], *ours, head, b"\r\n", body))
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        self.transport.write(told)
        cycle.message_event.set()
        cycle.on_response()
        return True

    def _send_piece(self, scope: Scope, body: bytes) -> bool:
        """What uvicorn does of a part of a body whose length nobody knows."""
        cycle = self.cycle
        if cycle.scope is not scope or self.flow.write_paused or cycle.disconnected or cycle.response_complete:
            return False
        if not (body and cycle.chunked_encoding and cycle.response_started):
            return False
        self.transport.write(b"%x\r\n%b\r\n" % (len(body), body))
        return True

    def _be_patient(self) -> None:
        """Begin to count, once a head has not come in one piece."""
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
