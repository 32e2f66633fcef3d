"""The errors of an address that a command cannot listen on."""

from __future__ import annotations

import errno
import socket
from collections.abc import Generator
from contextlib import contextmanager
from types import MappingProxyType

from smart_model_router.domain.errors import ConfigurationError

_WHY = MappingProxyType(
    {
        errno.EADDRINUSE: "another program listens there: name another --port, or 0 for a free one",
        errno.EADDRNOTAVAIL: "an address of this machine is needed for --host",
        errno.EACCES: "this port is not yours: name one of at least 1024, or 0 for a free one",
    }
)


@contextmanager
def listening(host: str, port: int) -> Generator[None]:
    """Turn the error of an address that cannot be listened on into a ConfigurationError that says what to do."""
    try:
        yield
    except socket.gaierror as error:
        raise ConfigurationError("--host", host, f"an address of this machine is needed ({error.strerror})") from None
    except OSError as error:
        why = _WHY.get(error.errno or 0)
        if why is None:
            raise
        raise ConfigurationError("--port", f"{host}:{port}", why) from None
