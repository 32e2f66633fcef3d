"""The gateway as an ASGI application: its routes, its life, its reload, and CORS."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from ctypes import c_bool
from typing import Any
from weakref import WeakSet

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from smart_model_router.config import RouterConfig
from smart_model_router.config.lint import findings_of
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.gateway.admin_routes import ACTIONS, GatewayMetrics, HealthRoutes, acting, liveness, targets
from smart_model_router.gateway.dashboard.dashboard_routes import DashboardRoutes
from smart_model_router.gateway.endpoint import (
    DEPLOYMENT,
    DialectHandler,
    Endpoint,
    Walk,
    kept,
    local,
    missing,
    models,
    passing,
)
from smart_model_router.gateway.research.research_door import ROUTES, ResearchDoor
from smart_model_router.gateway.response import WHOLE
from smart_model_router.gateway.retrieval import RetrievalRoutes
from smart_model_router.gateway.router_generation import RouterGeneration
from smart_model_router.http_api import ProblemError, family_of, problem_of, rendered
from smart_model_router.http_api.api_errors import NOT_ALLOWED
from smart_model_router.http_api.api_request import ENDPOINTS, canonical
from smart_model_router.observability.span_export import lint_environment
from smart_model_router.router import SmartModelRouter

_METHODS = ("GET", "HEAD", "POST", "DELETE", "OPTIONS")


def with_cors(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """The application with the headers that browsers ask for; the same without origins.

    No credentials: pages show a key as any client does, and cookies are none. So every header may be sent and read.
    """
    if not origins:
        return app

    async def through_send(scope: Scope, receive: Receive, send: Send) -> None:
        """Have every reply sent where the middleware adds its headers, not past it."""
        scope["extensions"] = {name: part for name, part in scope.get("extensions", {}).items() if name != WHOLE}
        await app(scope, receive, send)

    for_pages = CORSMiddleware(
        through_send, allow_origins=origins, allow_methods=_METHODS, allow_headers="*", expose_headers="*"
    )

    async def door(scope: Scope, receive: Receive, send: Send) -> None:
        of_a_page = scope["type"] == "http" and any(name == b"origin" for name, _ in scope["headers"])
        await (for_pages if of_a_page else app)(scope, receive, send)

    return door


log = logging.getLogger("smart_model_router.gateway")
Load = Callable[[], RouterConfig]


def log_findings(config: RouterConfig) -> None:
    """Say in the log what the configuration cannot do, a line for each finding."""
    for finding in findings_of(config, lint_environment(config, os.environ)):
        level = logging.WARNING if finding.level == "warning" else logging.INFO
        log.log(level, "%s: %s", finding.key, finding.text)


class Gateway:
    """An ASGI application over a configuration. `load` is asked for it at the start and at every `reload`.

    The router is made when the application starts and closed when it stops. Raises ConfigurationError at once for a
    configuration that cannot be; `make` makes a router of one. `draining` says whether an operator wants it to be not
    ready; workers of one server share theirs.
    """

    def __init__(
        self,
        load: Load,
        make: Callable[[RouterConfig], SmartModelRouter] = SmartModelRouter.from_config,
        *,
        draining: c_bool | None = None,
    ) -> None:
        self._load = load
        self._make = make
        config = load()
        self._tells = draining is None  # for workers the process that starts them does
        self._health = health = HealthRoutes(c_bool(False) if draining is None else draining)
        self._research = ResearchDoor(self)
        self._looking = DashboardRoutes(self, lambda: health.draining, self._research.card)
        self._generations = WeakSet[RouterGeneration]()
        self.ending = False
        """True when the time to drain is over: requests under way end now."""
        self._generation = self._made(config)
        self._door = with_cors(self._found, config.gateway.cors)
        self._figures = GatewayMetrics(self, config)
        self._asked = {path: Endpoint(self, DialectHandler(asked)) for path, asked in ENDPOINTS.items()}
        self._app = Starlette(routes=self._routes(), lifespan=self._lifespan, exception_handlers={405: _not_allowed})
        self._app.router.default = Endpoint(self, missing)
        self._app.router.redirect_slashes = False

    @property
    def generation(self) -> RouterGeneration:
        """The generation that new requests enter."""
        return self._generation

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI. The endpoints of the dialects are found without a walk through the routes and their middleware.

        Other spellings of a path (http_api/api_request.py) stand for it.
        """
        await self._door(scope, receive, send)

    def _found(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        asked = None
        if scope["type"] == "http":
            if scope["path"] not in self._asked:
                scope["path"], scope[DEPLOYMENT] = canonical(scope["path"])
            asked = self._asked.get(scope["path"]) if scope["method"] == "POST" else None
        return (asked or self._app)(scope, receive, send)

    async def reload(self) -> bool:
        """Read the configuration again; requests under way end in the old one. False, and a log line, for a bad one."""
        try:
            config = self._load()
            await asyncio.to_thread(self._research.prepare, config)
            self._research.move_in(config)
            # What other processes said is read meanwhile, from a server that may take its time.
            generation = self._entered(config, await asyncio.to_thread(self._make, config))
        except ConfigurationError as error:
            log.error("the new configuration is refused, the old one stays: %s", error.message)
            return False
        generation.continue_from(self._generation)
        old, self._generation = self._generation, generation
        self._door = with_cors(self._found, config.gateway.cors)
        self._tell()
        await generation.router.listen()
        self._research.start()
        log.info("the new configuration is in use")
        await old.retire()
        return True

    def stopping(self) -> None:
        """The end is near: streams that would never end are ended."""
        self._looking.close()
        self._research.stopping()

    async def end(self) -> None:
        """The time to drain is over: nothing is recovered or retried any more.

        Requests without a head get a 503, answers that are finished end, other streams end as failed ones do.
        """
        self.ending = True
        await self._research.stop()
        await asyncio.gather(*(generation.close() for generation in self._generations), return_exceptions=True)

    def _made(self, config: RouterConfig) -> RouterGeneration:
        self._research.move_in(config)
        return self._entered(config, self._make(config))

    def _entered(self, config: RouterConfig, router: SmartModelRouter) -> RouterGeneration:
        generation = RouterGeneration(config, router)
        self._generations.add(generation)
        self._looking.move_in(generation)
        return generation

    def _tell(self) -> None:
        if self._tells:
            log_findings(self._generation.config)

    def _routes(self) -> list[Route]:
        def route(path: str, walk: Walk, *methods: str) -> Route:
            return Route(path, Endpoint(self, walk), methods=methods)

        return [
            *(Route(path, endpoint, methods=["POST"]) for path, endpoint in self._asked.items()),  # for their 405
            route("/v1/messages/count_tokens", local, "POST"),
            route("/v1/responses/{thing}", kept, "GET", "DELETE"),
            route("/v1/moderations", passing, "POST"),
            route("/v1/rerank", passing, "POST"),
            route("/v1/audio/{path:path}", passing, "POST"),
            route("/v1/images/{path:path}", passing, "POST"),
            route("/v1/models", models, "GET"),
            route("/v1/models/{name:path}", models, "GET"),
            route("/query_documents", RetrievalRoutes(), "POST"),
            *(route(path, self._research.walk(chosen), method) for method, path, chosen in ROUTES),
            Route("/mcp", self._research.mcp, methods=["POST"]),
            route("/health/liveness", liveness, "GET"),
            route("/health/readiness", self._health.readiness, "GET"),
            route("/health", self._health.health, "GET"),
            route("/metrics", self._figures.metrics, "GET"),
            route("/api/stats", self._figures.stats, "GET"),
            route("/api/drain", self._health.drain, "POST"),
            *self._looking.routes(),
            route("/api/targets", targets, "GET"),
            *(route(f"/api/targets/{action}", acting(action), "POST") for action in ACTIONS),
            route("/", liveness, "GET"),
        ]

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Any) -> AsyncGenerator[None]:
        del app
        self._tell()
        await self._figures.start()
        await self._generation.router.listen()
        self._research.start()
        try:
            yield
        finally:
            self._looking.close()
            try:
                await self._research.stop()
                await self._figures.stop()
            finally:
                await self._generation.retire()


async def _not_allowed(request: Request, error: Exception) -> Response:
    """405 in the manners of the path."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    allow = (error.headers or {}) if isinstance(error, HTTPException) else {}
    known = ", ".join(f"{name}: {value}" for name, value in allow.items())
    told = ProblemError(NOT_ALLOWED, f"{request.url.path[:200]} takes no {request.method[:20]} ({known})")
    reply = rendered(problem_of(told), family_of(request.url.path, headers))
    return Response(reply.body, reply.status, {**reply.headers, **allow})
