"""The rules of fetching: the addresses that may be asked for, the limits of an answer, the reasons to refuse. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from yarl import URL

from smart_model_router.domain.errors import SmartRouterError

PORTS = frozenset({80, 443})
MOST_IN_URL = 2_048
_MOST_SHOWN = 200
MEBIBYTE = 1 << 20
_END_OF_PLACE = re.compile(r"[/?#]")
Judge = Callable[[str], str]
"""Returns why an address is not to be fetched, in words; "" where it may be."""


class FetchRefusal(StrEnum):
    """The reasons for which an address is not fetched, or what it sent is not taken."""

    PROVENANCE = "no_provenance"
    MALFORMED = "malformed"
    SCHEME = "scheme"
    CREDENTIALS = "credentials"
    PORT = "port"
    ADDRESS = "not_public"
    UNPACKED = "unpacks_to_too_much"
    OFF = "fetching_is_off"
    BUDGET = "budget"
    POLICY = "blocked"
    ROBOTS = "robots"
    REDIRECTS = "redirects"
    STATUS = "status"
    TYPE = "content_type"
    ENCODING = "encoding"
    SIZE = "too_large"
    TIME = "too_slow"
    CONNECTION = "connection"
    UNREADABLE = "unreadable"


SECURITY = frozenset(
    {
        FetchRefusal.PROVENANCE,
        FetchRefusal.MALFORMED,
        FetchRefusal.SCHEME,
        FetchRefusal.CREDENTIALS,
        FetchRefusal.PORT,
        FetchRefusal.ADDRESS,
        FetchRefusal.UNPACKED,
    }
)
"""The refusals that an honest page hardly causes: after many of them a run fetches nothing more."""


class FetchRefused(SmartRouterError):
    """An address was not fetched, or what it sent was not taken: `url` (as shown), `refusal`, and `detail` in words."""

    def __init__(self, url: str, refusal: FetchRefusal, detail: str) -> None:
        self.url = shown(url)
        super().__init__(f"{self.url}: {refusal.value.replace('_', ' ')}: {detail}")
        self.refusal = refusal
        self.detail = detail


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """The limits of fetching.

    `seconds` of the network for one address, its redirects included; `most_bytes` as they come, `most_unpacked` after
    decompression; `host_seconds` between two calls of one host, which are never at once.
    """

    seconds: float = 15.0
    most_bytes: int = 5 * MEBIBYTE
    most_unpacked: int = 20 * MEBIBYTE
    redirects: int = 5
    host_seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class FetchTarget:
    """An address that may be asked for, as far as it says by itself: its host is not resolved yet."""

    url: URL
    host: str
    port: int

    @property
    def place(self) -> str:
        """The scheme, the host and the port, as one text."""
        return f"{self.url.scheme}://{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedPage:
    """An answer: the address that gave it, behind all redirects, its bytes unpacked, its headers in lower case."""

    url: str
    content: bytes
    headers: Mapping[str, str]


def shown(url: str) -> str:
    """Return an address as messages have it: without a password, one line, 200 characters at most."""
    start, scheme, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    plain = f"{start}{scheme}{place.rpartition('@')[2]}{slash}{path}" if scheme else url
    line = "".join(character if character.isprintable() else "\ufffd" for character in plain[: _MOST_SHOWN + 1])
    return line if len(line) <= _MOST_SHOWN else f"{line[: _MOST_SHOWN - 1]}…"


def target_of(url: str) -> FetchTarget:
    """Return an address as a target, without its fragment. Raises FetchRefused.

    It is http or https on port 80 or 443, without a user or password, of 2,048 characters at most. Characters on which
    readers of addresses disagree (white space, controls, backslashes) are refused.
    """
    if len(url) > MOST_IN_URL:
        raise FetchRefused(url, FetchRefusal.MALFORMED, f"at most {MOST_IN_URL} characters are fetched")
    if "\\" in url or any(character <= " " or character == "\x7f" for character in url):
        raise FetchRefused(url, FetchRefusal.MALFORMED, "an address without white space and backslashes is needed")
    try:
        found = URL(url)
        host, port = found.host or "", found.port
    except ValueError:
        raise FetchRefused(url, FetchRefusal.MALFORMED, "it is no address") from None
    if found.scheme not in ("http", "https"):
        raise FetchRefused(url, FetchRefusal.SCHEME, "http or https is needed")
    if "@" in _END_OF_PLACE.split(url.partition("://")[2], maxsplit=1)[0]:
        raise FetchRefused(url, FetchRefusal.CREDENTIALS, "an address without a user and a password is needed")
    if not host or port is None:
        raise FetchRefused(url, FetchRefusal.MALFORMED, "it names no host")
    if port not in PORTS:
        raise FetchRefused(url, FetchRefusal.PORT, f"port 80 or 443 is needed, not {port}")
    return FetchTarget(found.with_fragment(None), host, port)


def canonical(url: str) -> str:
    """Return an address as two spellings of it have it in common; it as it is where it cannot be fetched."""
    try:
        return str(target_of(url).url)
    except FetchRefused:
        return url
