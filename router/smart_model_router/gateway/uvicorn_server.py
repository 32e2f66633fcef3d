"""uvicorn with our manners: quiet, drained on SIGTERM, reloaded on SIGHUP. What it speaks is in uvicorn_protocol.py."""

from __future__ import annotations

import asyncio
import logging
import math
import signal
import socket
from collections.abc import Callable

import uvicorn

from smart_model_router.gateway.asgi_app import Gateway
from smart_model_router.gateway.gc_tuning import settle
from smart_model_router.gateway.reload import Reloading
from smart_model_router.gateway.stoppable_server import Server
from smart_model_router.gateway.uvicorn_protocol import protocol_for

_IDLE_SECONDS = 75
"""Longer than the pools of the SDKs keep a connection: who closes first must not be us, in the middle of a send."""


_LAST_SECONDS = 5
"""How long what was ended after the drain may take to say so; then its task is cancelled."""


def serve(gateway: Gateway, listener: socket.socket, on_ready: Callable[[], None]) -> None:
    """Serve on `listener` until SIGINT or SIGTERM."""
    tree = gateway.house.config
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
