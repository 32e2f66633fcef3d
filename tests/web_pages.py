"""A small web for tests: hosts with public addresses, served by this machine, and a clock whose waits take no time."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from smart_model_router.domain.ports import TimerHandle
from smart_model_router_research.web.fetch_rules import FetchLimits
from smart_model_router_research.web.fetcher import SafeFetcher

PUBLIC = "93.184.216.34"
Raw = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class SteppingClock:
    """A clock that stands still, but for its own waits, which take no time."""

    instant: float = 1_000.0
    waits: list[float] = field(default_factory=list)

    def now(self) -> float:
        """The instant."""
        return self.instant

    async def sleep(self, seconds: float) -> None:
        """Advance by so many seconds."""
        self.waits.append(seconds)
        self.instant += seconds
        await asyncio.sleep(0)

    def call_at(self, when: float, callback: Callable[[], object]) -> TimerHandle:
        """Raise: nothing that is tested with this clock sets a timer."""
        raise AssertionError(f"a timer was set for {when}: {callback}")


@dataclass(frozen=True)
class Reply:
    """An answer: its body, status and headers, or `raw`, which writes what it likes."""

    body: bytes | str = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: Raw | None = None

    @classmethod
    def page(cls, body: str, **headers: str) -> Reply:
        """Return a page of HTML."""
        return cls(body, headers={"Content-Type": "text/html; charset=utf-8", **headers})

    @classmethod
    def moved(cls, location: str, status: int = 302) -> Reply:
        """Return a redirect."""
        return cls(status=status, headers={"Location": location})


@dataclass(frozen=True)
class Request:
    """A request that the server got."""

    method: str
    host: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def url(self) -> str:
        """The host and the path; `engine` is this machine under its own address, as back-ends are configured."""
        return f"{'engine' if self.host.startswith('127.0.0.1:') else self.host}{self.path}"


@dataclass
class SmallWeb:
    """A web: `pages` by host and path ("example.org/a"), `names` by host; other hosts have one public address.

    What is not there is a 404, also robots.txt. `requests` are those that came, in their order.
    """

    pages: dict[str, Reply | Callable[[Request], Reply]] = field(default_factory=dict)
    names: dict[str, Sequence[str] | Callable[[], Sequence[str]]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    resolved: list[str] = field(default_factory=list)
    dialled: list[tuple[str, int]] = field(default_factory=list)
    server_names: list[str | None] = field(default_factory=list)
    port: int = 0
    tls_port: int = 0

    @property
    def engine(self) -> str:
        """The address of this machine, for back-ends."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def urls(self) -> list[str]:
        """The addresses that were asked for, without robots.txt."""
        return [each.url for each in self.requests if each.path != "/robots.txt"]

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host."""
        del port
        self.resolved.append(host)
        found = self.names.get(host, (PUBLIC,))
        return found() if callable(found) else found

    def dial(self, address: str, port: int) -> tuple[str, int]:
        """Return this machine's server in the place of an address that was checked."""
        self.dialled.append((address, port))
        return "127.0.0.1", self.tls_port if port == 443 else self.port

    def fetcher(self, clock: SteppingClock | None = None, tls: Any = True, **limits: Any) -> SafeFetcher:
        """Return a fetcher of this web."""
        return SafeFetcher(
            clock or SteppingClock(), limits=FetchLimits(**limits), resolve=self.resolve, dial=self.dial, tls=tls
        )

    @asynccontextmanager
    async def serving(self, tls: ssl.SSLContext | None = None) -> AsyncGenerator[SmallWeb]:
        """Serve until the end of the block; with `tls` on a second port, too."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        servers = [server]
        if tls is not None:
            tls.sni_callback = lambda _, name, __: self.server_names.append(name)
            servers.append(await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls))
            self.tls_port = servers[1].sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            for each in servers:
                each.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await _read(reader)
            self.requests.append(request)
            known = self.pages.get(request.url, self.pages.get(request.url.partition("?")[0], Reply(status=404)))
            reply = known(request) if callable(known) else known
            if reply.raw is not None:
                await reply.raw(writer)
            else:
                body = reply.body.encode() if isinstance(reply.body, str) else reply.body
                told = {"Content-Length": str(len(body)), "Connection": "close", **reply.headers}
                head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
                writer.write(f"HTTP/1.1 {reply.status} X\r\n{head}\r\n".encode() + body)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, headers.get("host", ""), path, headers, body)


async def hang(writer: asyncio.StreamWriter) -> None:
    """Send nothing for as long as the other side waits."""
    await writer.wait_closed() if writer.is_closing() else await asyncio.Event().wait()
