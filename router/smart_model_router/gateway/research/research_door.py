"""The way to research: its routes, which are there, and imported, where the configuration has `research.gateway`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from smart_model_router.config import RouterConfig
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.gateway.endpoint import Endpoint, GatewayRequest, RouterGenerations, Walk, not_found
from smart_model_router.http_api import ProblemError
from smart_model_router.http_api.api_errors import NOT_FOUND

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from smart_model_router.gateway.research.hosted_research import GatewayResearch
    from smart_model_router.gateway.research.mcp_endpoint import McpEndpoint
    from smart_model_router.gateway.research.research_routes import ResearchRoutes

_HERE = "smart_model_router.gateway.research"
_EXTRA = "research needs an extra: pip install 'smart-model-router[gateway,scoring]'"
_NO_MCP = "MCP needs an extra: pip install 'smart-model-router[mcp]'"
ROUTES: tuple[tuple[str, str, Callable[[ResearchRoutes], Walk]], ...] = (
    ("POST", "/research", lambda routes: routes.begin),
    ("GET", "/research", lambda routes: routes.runs),
    ("GET", "/research/{id}", lambda routes: routes.run),
    ("GET", "/research/{id}/events", lambda routes: routes.events),
    ("GET", "/research/{id}/report", lambda routes: routes.report),
    ("POST", "/research/{id}/cancel", lambda routes: routes.cancel),
    ("POST", "/research/{id}/accept", lambda routes: routes.accept),
)
"""Method, path, and the walk of each route."""


class ResearchDoor:
    """Research of a gateway. Without `research.gateway` its routes are paths that do not exist."""

    def __init__(self, generations: RouterGenerations) -> None:
        self._generations = generations
        self._research: GatewayResearch | None = None
        self._routes: ResearchRoutes | None = None
        self.mcp = McpDoor(generations)

    def prepare(self, config: RouterConfig) -> None:
        """Import what a configuration needs. Blocks. Raises ConfigurationError where it is not installed."""
        if not config.research.gateway:
            return
        try:
            import_module(f"{_HERE}.research_routes")
        except ModuleNotFoundError as missing:
            raise ConfigurationError("research.gateway", missing.name, _EXTRA) from None
        with suppress(ModuleNotFoundError):  # an extra of its own
            import_module(f"{_HERE}.mcp_endpoint")

    def move_in(self, config: RouterConfig) -> None:
        """A configuration is to be used. Raises ConfigurationError as `prepare` does."""
        self.prepare(config)
        if not config.research.gateway or self._research is not None:
            return
        from smart_model_router.gateway.research.hosted_research import GatewayResearch  # noqa: PLC0415 - see prepare
        from smart_model_router.gateway.research.research_routes import ResearchRoutes  # noqa: PLC0415 - see prepare

        self._research = GatewayResearch(self._generations)
        self._routes = ResearchRoutes(self._research)
        with suppress(ModuleNotFoundError):
            from smart_model_router.gateway.research.mcp_endpoint import McpEndpoint  # noqa: PLC0415 - see prepare

            self.mcp.endpoint = McpEndpoint(self._generations, self._research)

    def start(self) -> None:
        """Go on with the runs that were left; safe to call twice."""
        if self._research is not None:
            self._research.start()
        if self.mcp.endpoint is not None:
            self.mcp.endpoint.start()

    def stopping(self) -> None:
        """The end is near: streams that would go on are ended."""
        if self._research is not None:
            self._research.stopping.set()

    async def card(self) -> Mapping[str, Any] | None:
        """Return what the dashboard shows of research, None where there is none."""
        if self._research is None or not self._generations.generation.config.research.gateway:
            return None
        return await self._research.card()

    async def stop(self) -> None:
        """Break off the runs, so that the next start, or another worker, goes on with them; safe to call twice."""
        if self._research is not None:
            await self._research.stop()
        if self.mcp.endpoint is not None:
            await self.mcp.endpoint.stop()

    def walk(self, chosen: Callable[[ResearchRoutes], Walk]) -> Walk:
        """Return the walk of a route."""

        async def walk(incoming: GatewayRequest) -> None:
            if self._routes is None or not incoming.generation.config.research.gateway:
                raise not_found(incoming)
            await chosen(self._routes)(incoming)

        return walk


class McpDoor:
    """An ASGI application for `/mcp`. Without an `endpoint` it is a path that does not exist, or says what is missing.

    `endpoint` is that of the extra `mcp`, where it is installed and a configuration has `research.gateway`.
    """

    def __init__(self, generations: RouterGenerations) -> None:
        self.endpoint: McpEndpoint | None = None
        self._generations = generations
        self._missing = Endpoint(generations, _missing)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        is_wanted = self._generations.generation.config.research.gateway
        await (self.endpoint if self.endpoint is not None and is_wanted else self._missing)(scope, receive, send)


async def _missing(incoming: GatewayRequest) -> None:
    if incoming.generation.config.research.gateway:
        raise ProblemError(NOT_FOUND, _NO_MCP)
    raise not_found(incoming)
