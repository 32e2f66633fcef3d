"""The dashboard over HTTP: its page, the stream of snapshots for every browser, and single requests."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from smart_model_router.gateway.request_body import Client, check_once, headers_of
from smart_model_router.gateway.response import Responder
from smart_model_router.gateway.router_generation import RouterGeneration
from smart_model_router.http_api import EVENT_STREAM, HttpReply, ProblemError, problem_of
from smart_model_router.http_api.api_errors import FORBIDDEN, NOT_FOUND, ErrorKind
from smart_model_router.http_api.http_reply import json_reply
from smart_model_router.observability.dashboard_history import DashboardHistory, ToldTransition

if TYPE_CHECKING:
    from smart_model_router.gateway.endpoint import RouterGenerations
    from smart_model_router.observability.dashboard_snapshot import DashboardSnapshot

log = logging.getLogger("smart_model_router.gateway")

MOST_LOOKERS = 100
"""Streams at once; more are asked to come back."""
PICTURE_SECONDS = 1.0
_HASTE_SECONDS = 0.2
"""After a transition the next picture follows so soon."""
_PENDING = 100

Draw = Callable[[], Awaitable[Mapping[str, Any]]]


class FullError(Exception):
    """As many look already as may."""


class SnapshotReader:
    """One stream's side: the newest picture and the transitions since. What is not read is replaced, not queued."""

    def __init__(self) -> None:
        self.there = asyncio.Event()
        self._picture: bytes | None = None
        self._moves: deque[bytes] = deque(maxlen=_PENDING)

    def show(self, picture: bytes) -> None:
        """Here is a newer picture."""
        self._picture = picture
        self.there.set()

    def tell(self, move: bytes) -> None:
        """Add an event. The oldest unread ones are dropped: the next snapshot has their effect, too."""
        self._moves.append(move)
        self.there.set()

    def take(self) -> bytes:
        """Everything there is to send, transitions first."""
        self.there.clear()
        sent = b"".join(self._moves) + (self._picture or b"")
        self._moves.clear()
        self._picture = None
        return sent


class SnapshotFeed:
    """Draws for all lookers. Belongs to one loop."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._lookers: set[SnapshotReader] = set()
        self._drawing: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self._last: bytes | None = None
        self.closed = False

    def __len__(self) -> int:
        """The number of open feeds."""
        return len(self._lookers)

    def open(self) -> SnapshotReader:
        """Add a reader. Raises FullError."""
        if len(self._lookers) >= MOST_LOOKERS or self.closed:
            raise FullError
        reader = SnapshotReader()
        self._lookers.add(reader)
        if self._drawing is None or self._drawing.done():
            self._drawing = asyncio.get_running_loop().create_task(self._run(), name="smart-model-router dashboard")
        elif self._last is not None:
            reader.show(self._last)
        return reader

    def leave(self, reader: SnapshotReader) -> None:
        """Remove a reader."""
        self._lookers.discard(reader)

    def tell(self, move: Mapping[str, Any]) -> None:
        """Something moved: everyone hears of it at once, and sees it soon."""
        if not self._lookers:
            return
        frame = framed("transition", move)
        for reader in self._lookers:
            reader.tell(frame)
        self._hurry.set()

    def close(self) -> None:
        """End every stream."""
        self.closed = True
        for reader in self._lookers:
            reader.there.set()
        self._hurry.set()

    async def _run(self) -> None:
        while self._lookers and not self.closed:
            try:
                self._last = framed("snapshot", await self._draw())
            except Exception:  # the picture after this one may be possible again
                log.exception("the dashboard could not be drawn")
            else:
                for reader in self._lookers:
                    reader.show(self._last)
            await asyncio.sleep(_HASTE_SECONDS)
            try:
                async with asyncio.timeout(PICTURE_SECONDS - _HASTE_SECONDS):
                    await self._hurry.wait()
            except TimeoutError:
                pass
            self._hurry.clear()
        self._last = None


def framed(event: str, data: Mapping[str, Any]) -> bytes:
    """One server-sent event. Escaped to ASCII: what is in a name cannot break a line."""
    return f"event: {event}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


FULL = ErrorKind(503, "server_error", "too_many_dashboards", "overloaded_error")
_PING_SECONDS = 15.0
_PATIENCE_SECONDS = 30.0
"""A browser that has taken nothing for so long is let go."""
_PING = b": ping\n\n"

SECURITY = MappingProxyType(
    {
        "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-cache",
    }
)
"""Nothing but our own files, and nothing inline: what is in a name cannot become a script."""
_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
FILES = ("page.html", "dashboard.js", "dashboard.css", "icon.svg", "uplot.js", "uplot.css")

Guard = Callable[[Mapping[str, str]], bool]
"""Takes the headers; returns whether the client may operate. Raises ProblemError for one that may not even look."""
Trace = Callable[[str], Awaitable[Mapping[str, Any] | None]]
"""The way of a request by its id, None when it is not remembered."""
ResearchCard = Callable[[], Awaitable[Mapping[str, Any] | None]]
"""The runs of research that are shown, None where there is no research."""


class DashboardPages:
    """A dashboard: its `routes` over a feed. `about` is what the page is told once, at the beginning of a stream."""

    def __init__(self, feed: SnapshotFeed, *, guard: Guard, trace: Trace, about: Mapping[str, Any]) -> None:
        self._feed = feed
        self._guard = guard
        self._trace = trace
        self._about = about
        folder = files("smart_model_router.gateway.dashboard") / "static"
        self._files = {name: (folder / name).read_bytes() for name in FILES}

    def routes(self) -> list[Route]:
        """Return the routes of the page, its feed and its files."""
        walks = {"/dashboard": self._page, "/dashboard/stream": self._stream, "/dashboard/requests/{id}": self._request}
        plain = [Route(path, _Plain(walk), methods=["GET"]) for path, walk in walks.items()]
        return [*plain, Route("/dashboard/{file}", _Plain(self._file), methods=["GET"])]

    async def _page(self, scope: Scope, receive: Receive, responder: Responder) -> None:
        del scope, receive
        await responder.reply(self._asset("page.html"))

    async def _file(self, scope: Scope, receive: Receive, responder: Responder) -> None:
        del receive
        await responder.reply(self._asset(scope["path_params"]["file"]))

    def _asset(self, name: str) -> HttpReply:
        if name not in self._files:
            raise ProblemError(NOT_FOUND, f"the dashboard has no {name[:100]}")
        return HttpReply(200, {"content-type": _TYPES[name.rpartition(".")[2]], **SECURITY}, self._files[name])

    async def _request(self, scope: Scope, receive: Receive, responder: Responder) -> None:
        del receive
        self._guard(_headers_of(scope))
        found = await self._trace(scope["path_params"]["id"])
        if found is None:
            raise ProblemError(NOT_FOUND, "this request is not, or no longer, remembered")
        await responder.reply(json_reply(found))

    async def _stream(self, scope: Scope, receive: Receive, responder: Responder) -> None:
        admin = self._guard(_headers_of(scope))
        try:
            reader = self._feed.open()
        except FullError:
            raise ProblemError(FULL, f"{len(self._feed)} dashboards are open already") from None
        client = Client(receive)
        try:
            await responder.head("chat", {**EVENT_STREAM, **SECURITY})
            await responder.frame(framed("about", {**self._about, "admin": admin}))
            await self._send_to(reader, responder)
            await responder.end()
        except TimeoutError:
            pass  # it does not read: the connection is cut, and the browser asks again when it does
        except asyncio.CancelledError:
            if not client.left:
                raise
        finally:
            client.close()
            self._feed.leave(reader)

    async def _send_to(self, reader: SnapshotReader, responder: Responder) -> None:
        while not self._feed.closed:
            try:
                async with asyncio.timeout(_PING_SECONDS):
                    await reader.there.wait()
            except TimeoutError:
                sent = _PING
            else:
                sent = reader.take()
            if sent:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    await responder.frame(sent)


def _headers_of(scope: Scope) -> dict[str, str]:
    headers = headers_of(scope)
    check_once(scope, headers)
    return headers


Walk = Callable[[Scope, Receive, Responder], Any]


class _Plain:
    """An ASGI application around a walk that no generation has to wait for."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        responder = Responder(send, "openai")
        try:
            await self._walk(scope, receive, responder)
        except ProblemError as error:
            await responder.problem(problem_of(error))


class DashboardRoutes:
    """Remembers the events of every generation, and shows the present one, `draining` or not, and its `research`."""

    def __init__(self, generations: RouterGenerations, draining: Callable[[], bool], research: ResearchCard) -> None:
        self._generations = generations
        self._draining = draining
        self._research = research
        self._recorder = DashboardHistory()
        self._recorder.listeners.append(self._moved)
        self._painter: DashboardSnapshot | None = None
        self._feed = SnapshotFeed(self._draw)

    def move_in(self, generation: RouterGeneration) -> None:
        """A generation (the first, or one after a reload) is the one to look at."""
        generation.router.monitor.watch(self._recorder)
        self._painter = generation.router.monitor.painter(self._recorder)

    def routes(self) -> list[Route]:
        """Return the routes of the dashboard."""
        about = {"source": f"process {os.getpid()}"}
        return DashboardPages(self._feed, guard=self._guard, trace=self._trace, about=about).routes()

    def close(self) -> None:
        """End every stream."""
        self._feed.close()

    async def _draw(self) -> Mapping[str, Any]:
        assert self._painter is not None  # noqa: S101 - a gateway has a generation before it listens
        picture = await self._painter.picture()
        told = {**picture, "system": {**picture["system"], "draining": self._draining()}}
        card = await self._research()
        return told if card is None else {**told, "research": card}

    def _moved(self, move: ToldTransition) -> None:
        self._feed.tell(move.to_dict())

    async def _trace(self, request_id: str) -> Mapping[str, Any] | None:
        found = self._recorder.requests.get(request_id)
        return None if found is None else found.to_dict()

    def _guard(self, headers: Mapping[str, str]) -> bool:
        api_client = self._generations.generation.ring.api_client(headers)
        if not api_client.admin:  # it shows every model, and the requests of every key
            raise ProblemError(FORBIDDEN, "a key with `admin: true` is needed")
        return True
