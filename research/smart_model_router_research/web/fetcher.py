"""Fetching a page: from a public address that was resolved once and checked, and within limits.

An address is connected to as it was checked: a name that leads elsewhere a moment later changes nothing. Redirects are
followed here and not by the HTTP client, so that each of them is a new address with all checks.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from smart_model_router.domain.ports import Clock
from smart_model_router_research.deep.public_addresses import refusal_of_address
from smart_model_router_research.deep.readers import CONTENT_TYPES, content_type_of
from smart_model_router_research.web.fetch_rules import (
    FetchedPage,
    FetchLimits,
    FetchRefusal,
    FetchRefused,
    FetchTarget,
    Judge,
    target_of,
)
from smart_model_router_research.web.host_turns import HostTurns
from smart_model_router_research.web.robots import MOST_BYTES, PRODUCT, RobotsFile, RobotsRules
from smart_model_router_research.web.unpacking import ACCEPTED, NotPacked, TooMuch, Unpacker

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Gives the addresses of a host, as text."""
Dial = Callable[[str, int], tuple[str, int]]
"""Gives the address and port to connect to for those that were checked: the same, but for tests."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MOST_ADDRESSES = 4
_ROBOTS = "/robots.txt"
_USER_AGENT = f"{PRODUCT} (research; +https://github.com/smart-model-router/smart-model-router)"


async def system_addresses(host: str, port: int) -> list[str]:
    """Return the addresses of a host by the system's resolver. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def straight(address: str, port: int) -> tuple[str, int]:
    """Return an address and a port as they are."""
    return address, port


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    content: bytes


class SafeFetcher:
    """Fetches pages. `resolve`, `dial` and `tls` are seams: by default the system's resolver and its authorities.

    Each request has a session of its own: no cookie is kept, no referrer sent, and no proxy and no credentials are
    read from the environment.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        limits: FetchLimits | None = None,
        resolve: Resolve = system_addresses,
        dial: Dial = straight,
        tls: ssl.SSLContext | bool = True,
    ) -> None:
        self.limits = limits or FetchLimits()
        self._clock = clock
        self._resolve = resolve
        self._dial = dial
        self._tls = tls
        self._turns = HostTurns(clock)
        self._robots = RobotsRules(clock, self._robots_of)

    async def fetch(self, url: str, judge: Judge = lambda _: "") -> FetchedPage:
        """Return the page at an address, behind its redirects. Raises FetchRefused.

        `judge` is asked for each address, that of a redirect included.
        """
        target, left = target_of(url), self.limits.seconds
        for _ in range(self.limits.redirects + 1):
            if refusal := judge(str(target.url)):
                raise FetchRefused(str(target.url), FetchRefusal.POLICY, refusal)
            verdict = await self._robots.verdict(target)
            if verdict.refusal:
                kind = FetchRefusal.ROBOTS if verdict.has_answered else FetchRefusal.CONNECTION
                raise FetchRefused(str(target.url), kind, verdict.refusal)
            async with self._turns.turn(target.host, max(self.limits.host_seconds, verdict.delay)):
                began = self._clock.now()
                answer = await self._asked(target, left)
                left -= self._clock.now() - began
            following = _redirect(target, answer)
            if following is None:
                return FetchedPage(url=str(target.url), content=answer.content, headers=answer.headers)
            target = following
        raise FetchRefused(url, FetchRefusal.REDIRECTS, f"more than {self.limits.redirects} redirects")

    async def _robots_of(self, target: FetchTarget) -> RobotsFile:
        """Return the robots.txt of a host, behind redirects. Raises FetchRefused for what is no fault of the file."""
        following = target_of(str(target.url.with_path(_ROBOTS).with_query(None)))
        for _ in range(self.limits.redirects + 1):
            try:
                async with self._turns.turn(following.host, self.limits.host_seconds):
                    answer = await self._asked(following, self.limits.seconds, is_robots=True)
            except FetchRefused as error:
                if error.refusal in (FetchRefusal.TIME, FetchRefusal.CONNECTION):
                    return RobotsFile(None)
                raise
            moved = _redirect(following, answer)
            if moved is None:
                return RobotsFile(answer.status, answer.content.decode("utf-8", "replace"))
            following = moved
        return RobotsFile(404)  # RFC 9309, 2.3.1.2: it counts as one that is not there

    async def _asked(self, target: FetchTarget, seconds: float, *, is_robots: bool = False) -> _Answer:
        url = str(target.url)
        try:
            async with asyncio.timeout(max(0.001, seconds)):
                return await self._answer(target, await self._addresses(target), is_robots=is_robots)
        except TimeoutError:
            raise FetchRefused(url, FetchRefusal.TIME, f"more than {self.limits.seconds:g} s") from None
        except aiohttp.ClientSSLError:
            raise FetchRefused(url, FetchRefusal.CONNECTION, "its certificate is not valid") from None
        except (aiohttp.ClientError, OSError) as error:
            raise FetchRefused(url, FetchRefusal.CONNECTION, type(error).__name__) from None
        except TooMuch as error:
            raise FetchRefused(url, FetchRefusal.UNPACKED, str(error)) from None
        except NotPacked as error:
            raise FetchRefused(url, FetchRefusal.ENCODING, str(error)) from None

    async def _addresses(self, target: FetchTarget) -> list[str]:
        """Return the addresses of a host, all of which are public. Raises FetchRefused, OSError."""
        try:
            found = await self._resolve(target.host, target.port)
        except UnicodeError:
            raise FetchRefused(str(target.url), FetchRefusal.MALFORMED, "its host is no name") from None
        for address in found:
            if refusal := refusal_of_address(address):
                told = f"{target.host} is {address}: {refusal}"
                raise FetchRefused(str(target.url), FetchRefusal.ADDRESS, told)
        if not found:
            raise FetchRefused(str(target.url), FetchRefusal.CONNECTION, f"{target.host} has no address")
        return list(found)[:_MOST_ADDRESSES]

    async def _answer(self, target: FetchTarget, addresses: Sequence[str], *, is_robots: bool) -> _Answer:
        endpoints = [self._dial(address, target.port) for address in addresses]
        connector = aiohttp.TCPConnector(
            resolver=_Resolved(endpoints),
            socket_factory=_only(endpoints, str(target.url)),
            use_dns_cache=False,
            force_close=True,
            ssl=self._tls,
        )
        headers = {"User-Agent": _USER_AGENT, "Accept-Encoding": ACCEPTED, "Accept": _ACCEPT}
        async with (
            aiohttp.ClientSession(
                connector=connector,
                auto_decompress=False,
                trust_env=False,
                timeout=aiohttp.ClientTimeout(total=None),
                headers=headers,
            ) as session,
            session.get(target.url, allow_redirects=False) as response,
        ):
            told = {name.lower(): value for name, value in response.headers.items()}
            if is_robots:
                content = await self._start_of(response) if response.status < 300 else b""
            elif response.status in _REDIRECTS and "location" in told:
                content = b""
            else:
                content = await self._content(target, response)
            return _Answer(response.status, told, content)

    async def _content(self, target: FetchTarget, response: aiohttp.ClientResponse) -> bytes:
        url, limits = str(target.url), self.limits
        if response.status != 200:
            raise FetchRefused(url, FetchRefusal.STATUS, f"it answers {response.status}")
        kind = content_type_of(response.headers.get("Content-Type", "text/html"))
        if kind not in CONTENT_TYPES:
            raise FetchRefused(url, FetchRefusal.TYPE, f"content of type {kind[:60]!r} is not read")
        unpacker = Unpacker(response.headers.get("Content-Encoding", ""), limits.most_unpacked)
        size, found = 0, bytearray()
        if (response.content_length or 0) > limits.most_bytes:
            raise FetchRefused(url, FetchRefusal.SIZE, f"it has {response.content_length} bytes")
        async for piece in response.content.iter_any():
            size += len(piece)
            if size > limits.most_bytes:
                raise FetchRefused(url, FetchRefusal.SIZE, f"it has more than {limits.most_bytes} bytes")
            found += unpacker.feed(piece)
        unpacker.finish()
        return bytes(found)

    async def _start_of(self, response: aiohttp.ClientResponse) -> bytes:
        unpacker = Unpacker(response.headers.get("Content-Encoding", ""), self.limits.most_unpacked)
        found = bytearray()
        async for piece in response.content.iter_any():
            found += unpacker.feed(piece)
            if len(found) >= MOST_BYTES:
                break
        return bytes(found[:MOST_BYTES])


_ACCEPT = ", ".join(CONTENT_TYPES)


def _redirect(target: FetchTarget, answer: _Answer) -> FetchTarget | None:
    """Return the target that an answer leads to, None where it leads nowhere. Raises FetchRefused."""
    location = answer.headers.get("location")
    if answer.status not in _REDIRECTS or location is None:
        return None
    try:
        joined = str(target.url.join(URL(location)))
    except ValueError:
        raise FetchRefused(location, FetchRefusal.MALFORMED, "a redirect to what is no address") from None
    return target_of(joined)


class _Resolved(AbstractResolver):
    """A resolver that has the endpoints which were checked, whatever it is asked for."""

    def __init__(self, endpoints: Sequence[tuple[str, int]]) -> None:
        self._endpoints = endpoints

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        del port, family
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=number,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address, number in self._endpoints
        ]

    async def close(self) -> None:
        """Nothing is held."""


def _only(endpoints: Sequence[tuple[str, int]], url: str) -> Callable[[Any], socket.socket]:
    """Return a factory of sockets for these endpoints alone: what the client connects to was checked, or is refused."""
    allowed = frozenset(endpoints)

    def make(info: tuple[Any, ...]) -> socket.socket:
        family, kind, proto, _, place = info
        if (place[0], place[1]) not in allowed:
            raise FetchRefused(url, FetchRefusal.ADDRESS, f"{place[0]} was not checked")
        return socket.socket(family, kind, proto)

    return make
