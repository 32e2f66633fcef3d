"""The dashboard over HTTP: the page and its files, the stream of pictures, the way of one request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from smart_model_router.gateway.dashboard.feed import Feed, FullError, Looker, framed
from smart_model_router.gateway.request_body import Client, check_once, headers_of
from smart_model_router.gateway.response import Responder
from smart_model_router.http_api import EVENT_STREAM, HttpReply, ProblemError, problem_of
from smart_model_router.http_api.api_errors import NOT_FOUND, ErrorKind
from smart_model_router.http_api.http import json_reply

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
"""Told the headers: whether who asks may operate. Raises ProblemError for who may not even look."""
Trace = Callable[[str], Awaitable[Mapping[str, Any] | None]]
"""The way of a request by its id, None when it is not remembered."""


class Board:
    """A dashboard: its `routes` over a feed. `about` is what the page is told once, at the beginning of a stream."""

    def __init__(self, feed: Feed, *, guard: Guard, trace: Trace, about: Mapping[str, Any]) -> None:
        self._feed = feed
        self._guard = guard
        self._trace = trace
        self._about = about
        folder = files("smart_model_router.gateway.dashboard") / "static"
        self._files = {name: (folder / name).read_bytes() for name in FILES}

    def routes(self) -> list[Route]:
        """Where everything is."""
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
            looker = self._feed.open()
        except FullError:
            raise ProblemError(FULL, f"{len(self._feed)} dashboards are open already") from None
        client = Client(receive)
        try:
            await responder.head("chat", {**EVENT_STREAM, **SECURITY})
            await responder.frame(framed("about", {**self._about, "admin": admin}))
            await self._send_to(looker, responder)
            await responder.end()
        except TimeoutError:
            pass  # it does not read: the connection is cut, and the browser asks again when it does
        except asyncio.CancelledError:
            if not client.left:
                raise
        finally:
            client.close()
            self._feed.leave(looker)

    async def _send_to(self, looker: Looker, responder: Responder) -> None:
        while not self._feed.closed:
            try:
                async with asyncio.timeout(_PING_SECONDS):
                    await looker.there.wait()
            except TimeoutError:
                sent = _PING
            else:
                sent = looker.take()
            if sent:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    await responder.frame(sent)


def _headers_of(scope: Scope) -> dict[str, str]:
    headers = headers_of(scope)
    check_once(scope, headers)
    return headers


Walk = Callable[[Scope, Receive, Responder], Any]


class _Plain:
    """An ASGI application around a walk that no house has to wait for."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        responder = Responder(send, "openai")
        try:
            await self._walk(scope, receive, responder)
        except ProblemError as error:
            await responder.problem(problem_of(error))
