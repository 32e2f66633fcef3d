"""Where the gateway listens, and which server serves it there."""

from __future__ import annotations

import importlib
import socket
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal

from smart_model_router.config import GatewayConfig
from smart_model_router.errors import ConfigurationError
from smart_model_router.gateway.app import Gateway
from smart_model_router.gateway.keys import is_loopback

ServerName = Literal["uvicorn", "granian"]
Serve = Callable[[Gateway, socket.socket, Callable[[], None]], None]

SERVERS: Mapping[ServerName, tuple[str, str]] = MappingProxyType(
    {
        "uvicorn": ("smart_model_router.gateway.server", "gateway"),
        "granian": ("smart_model_router.gateway.granian_server", "gateway,granian"),
    }
)
"""Server -> the module whose `serve` runs it, and the extras that it needs."""


def run(
    gateway: Gateway,
    *,
    host: str | None,
    port: int | None,
    on_ready: Callable[[str], None],
    server: ServerName = "uvicorn",
) -> None:
    """Serve until SIGINT or SIGTERM; `on_ready` gets the base URL once it listens.

    `host` and `port` replace those of the configuration. Raises ConfigurationError for an address that others can
    reach when no key is asked for, and for a server that is not installed, OSError for an address that is taken.
    """
    serve = find(server)
    listener, base_url = bind(gateway.house.config.gateway, host=host, port=port)
    serve(gateway, listener, lambda: on_ready(base_url))


def find(server: ServerName) -> Serve:
    """What runs a server: it serves a gateway on a listening socket. Raises ConfigurationError when it is missing."""
    module, extras = SERVERS[server]
    try:
        serve: Serve = importlib.import_module(module).serve
    except ModuleNotFoundError as missing:
        expected = f"it is an extra: pip install 'smart-model-router[{extras}]'"
        raise ConfigurationError("--server", missing.name, expected) from None
    return serve


def bind(config: GatewayConfig, *, host: str | None, port: int | None) -> tuple[socket.socket, str]:
    """The listening socket and its base URL. Raises ConfigurationError and OSError, as `run` does."""
    host = config.host if host is None else host
    if not config.keys and not is_loopback(host):
        expected = "an address of this machine alone (127.0.0.1, ::1) is needed while gateway.keys is empty"
        raise ConfigurationError("gateway.host", host, expected)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host.strip("[]"), config.port if port is None else port), family=family)
    shown = f"[{host.strip('[]')}]" if ":" in host else host
    return listener, f"http://{shown}:{listener.getsockname()[1]}"
