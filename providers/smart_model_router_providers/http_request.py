"""One request as it is sent: its head as bytes, checked and written out once, and a large body in pieces."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import TYPE_CHECKING

from smart_model_router.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    import httpx2

CLOSED = "the provider is closed"
"""The message of the RuntimeError that a call raises when the connections of its provider are closed."""
SLICE_BYTES = 256 * 1024
"""A larger body goes out in pieces of this size: written at once it would hold up the event loop."""

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_NOT_OURS = frozenset({"content-length", "transfer-encoding"})


class ProviderEndpoint:
    """The URL and the headers of a call. Header names are lower-case.

    Raises ConfigurationError for headers that cannot be sent, never showing one.
    """

    __slots__ = ("head", "head_for_proxy", "headers", "method", "url")

    def __init__(self, url: httpx2.URL, headers: Mapping[str, str], method: str = "POST") -> None:
        check_headers(headers)
        self.url = url
        self.method = method
        self.headers = headers
        """Those that were given: not `host`, nor the credentials of the URL."""
        host = url.netloc.decode("ascii")
        fields = {"host": host, **_credentials_of(url), **headers}
        written = "".join([f"{name}: {value}\r\n" for name, value in fields.items()]).encode("latin-1")
        verb, path = method.encode(), url.raw_path
        self.head = b"%b %b HTTP/1.1\r\n%b" % (verb, path, written)
        """The first lines of a call as bytes: all but its `content-length` and the empty line."""
        self.head_for_proxy = b"%b %b://%b%b HTTP/1.1\r\n%b" % (verb, url.scheme.encode(), url.netloc, path, written)
        """The same for a proxy that is told the whole URL."""


def check_headers(headers: Mapping[str, str]) -> None:
    """Raise ConfigurationError for headers that cannot be sent, never showing one. Names are lower-case."""
    for name, value in headers.items():
        # What ends a line would begin another header; the length of a body is not its owner's to say.
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value) or name in _NOT_OURS:
            raise ConfigurationError("headers", sorted(headers), "names and values as HTTP has them, but for lengths")
        try:
            value.encode("latin-1")
        except UnicodeEncodeError:
            raise ConfigurationError("headers", sorted(headers), "names and values of Latin characters") from None


class Slices:
    """A large body in pieces: written at once it would hold up the event loop. It can be sent more than once."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._at = 0

    def __aiter__(self) -> AsyncIterator[bytes]:  # no generator: nothing would close one that is left halfway
        return Slices(self._payload)

    async def __anext__(self) -> bytes:
        piece = self._payload[self._at : self._at + SLICE_BYTES]
        if not piece:
            raise StopAsyncIteration
        self._at += SLICE_BYTES
        return piece


def _credentials_of(url: httpx2.URL) -> dict[str, str]:
    """The header for a name and a password in the URL."""
    if not url.userinfo:
        return {}
    return {"authorization": "Basic " + b64encode(f"{url.username}:{url.password}".encode()).decode()}
