"""The address that the gateway listens on."""

from __future__ import annotations

import socket

from smart_model_router.config import GatewayConfig
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.gateway.client_keys import is_loopback


def bind(config: GatewayConfig, *, host: str | None, port: int | None) -> tuple[socket.socket, str]:
    """Return the listening socket and its base URL. `host` and `port` replace those of the configuration.

    Raises ConfigurationError for an address that other machines can reach while no key is required, OSError for an
    address that is taken.
    """
    host = config.host if host is None else host
    if not config.keys and not is_loopback(host):
        expected = "an address of this machine alone (127.0.0.1, ::1) is needed while gateway.keys is empty"
        raise ConfigurationError("gateway.host", host, expected)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host.strip("[]"), config.port if port is None else port), family=family)
    shown = f"[{host.strip('[]')}]" if ":" in host else host
    return listener, f"http://{shown}:{listener.getsockname()[1]}"
