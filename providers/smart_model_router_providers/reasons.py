"""Why a connection failed, in words: certificate, TLS, name, refused, reset, unreachable."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_MOST_LINKS = 16

_UNREACHABLE = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL})


def _of_certificate(exc: Any) -> str | None:
    said = getattr(exc, "verify_message", "")  # aiohttp's own subclass has none
    return f"the certificate was not accepted: {said.rstrip('.')}" if said else None


def _of_tls(exc: Any) -> str | None:
    said = getattr(exc, "reason", None)
    return f"no TLS connection: {said.replace('_', ' ').lower()}" if said else None


def _of_name(exc: Any) -> str:
    return f"the host name was not resolved: {(exc.strerror or str(exc)).lower()}"


_WORDS: Mapping[type[BaseException], Callable[[Any], str | None]] = {
    ssl.SSLCertVerificationError: _of_certificate,
    ssl.SSLError: _of_tls,
    socket.gaierror: _of_name,
    ConnectionRefusedError: lambda _: "the connection was refused",
    ConnectionResetError: lambda _: "the connection was reset",
    BrokenPipeError: lambda _: "the connection was closed while the request was sent",
}


def reason_of(exc: BaseException) -> tuple[str, str]:
    """Why the connection behind an exception failed, and its address; "" for either where no cause tells.

    Libraries wrap what the system raised several times over, some in a group.
    """
    links = [*_links(exc)]
    reason = next(filter(None, map(_words, links)), "")
    return reason, next(filter(None, map(_address, links)), "") if reason else ""


def _words(exc: BaseException) -> str | None:
    for kind, words in _WORDS.items():
        if isinstance(exc, kind):
            return words(exc)
    name = type(exc).__name__
    if name == "ServerDisconnectedError" or (name == "RemoteProtocolError" and "disconnected" in str(exc)):
        return "the server closed the connection without an answer"
    number = getattr(exc, "errno", None)
    if isinstance(exc, OSError) and number in _UNREACHABLE:
        return f"the network did not reach the host: {os.strerror(number).lower()}"
    return None


def _links(exc: BaseException) -> Iterator[BaseException]:
    """The exception and everything that it came of, nearest first."""
    seen: list[BaseException] = []
    ahead = deque([exc])
    while ahead and len(seen) < _MOST_LINKS:
        link = ahead.popleft()
        if any(link is other for other in seen):
            continue
        seen.append(link)
        yield link
        ahead += [cause for cause in (link.__cause__, link.__context__) if cause is not None]
        if isinstance(link, BaseExceptionGroup):
            ahead += link.exceptions


def _address(exc: Any) -> str:
    """`host:port` of an exception that knows it: aiohttp's, and those of httpx and the SDKs by their request."""
    host, port = getattr(exc, "host", None), getattr(exc, "port", None)
    if host is None:
        try:
            url = exc.request.url
        except (AttributeError, RuntimeError):  # httpx raises the latter where there is no request
            return ""
        host, port = url.host, url.port or {"http": 80, "https": 443}.get(url.scheme)
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
