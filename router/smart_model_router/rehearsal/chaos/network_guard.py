"""A fence around this process: while it stands, no connection leaves for anywhere but the servers it knows."""

from __future__ import annotations

import sys
from ipaddress import ip_address
from types import TracebackType
from typing import Any, Self


class NetworkGuard:
    """Refuses, and remembers, every connection, packet and look-up that is not for its `ports` on this machine.

    It stands within `with`, for the whole process: one at a time. Python's audit events tell it, so it sees every
    library; it does not see what C code does by itself.
    """

    def __init__(self) -> None:
        self.ports: set[int] = set()
        self.refused: list[str] = []

    def __enter__(self) -> Self:
        _stand(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _stand(None)

    def look(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Raises PermissionError for what may not leave."""
        check = _CHECKS.get(event)
        where = None if check is None else check(self, arguments)
        if where is not None:
            self.refused.append(where)
            raise PermissionError(f"the chaos drill does not let a connection out to {where}")

    def outside(self, arguments: tuple[Any, ...]) -> str | None:
        """Where a connection goes that may not; None for one that may."""
        address = arguments[1]
        if not isinstance(address, tuple):
            return None  # a Unix socket
        host, port = address[:2]
        return None if _is_here(host) and port in self.ports else f"{host}:{port}"

    def unknown(self, arguments: tuple[Any, ...]) -> str | None:
        """The name or address that may not be looked up; None for one of this machine's."""
        host = arguments[0][0] if isinstance(arguments[0], tuple) else arguments[0]
        name = host.decode(errors="replace") if isinstance(host, bytes) else host
        return None if not name or _is_here(name) else str(name)


_CHECKS = {
    "socket.connect": NetworkGuard.outside,
    "socket.sendto": NetworkGuard.outside,
    "socket.sendmsg": NetworkGuard.outside,
    "socket.getaddrinfo": NetworkGuard.unknown,
    "socket.gethostbyname": NetworkGuard.unknown,
    "socket.gethostbyaddr": NetworkGuard.unknown,
    "socket.getnameinfo": NetworkGuard.unknown,
}


def _is_here(host: object) -> bool:
    try:
        return ip_address(str(host)).is_loopback
    except ValueError:
        return host == "localhost"


_standing: list[NetworkGuard | None] = []


def _stand(fence: NetworkGuard | None) -> None:
    """An audit hook cannot be removed again: there is one, made with the first fence, for all of them."""
    if not _standing:
        _standing.append(None)
        sys.addaudithook(_hear)
    _standing[0] = fence


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _CHECKS and _standing[0] is not None:
        _standing[0].look(event, arguments)
