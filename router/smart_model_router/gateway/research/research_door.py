"""The way to research: its routes, which are there, and imported, where the configuration has `research.gateway`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from smart_model_router.config import RouterConfig
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.gateway.endpoint import GatewayRequest, RouterGenerations, Walk, not_found

if TYPE_CHECKING:
    from smart_model_router.gateway.research.hosted_research import GatewayResearch
    from smart_model_router.gateway.research.research_routes import ResearchRoutes

_EXTRA = "research needs an extra: pip install 'smart-model-router[gateway,scoring]'"
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

    def move_in(self, config: RouterConfig) -> None:
        """A configuration is to be used. Raises ConfigurationError where it wants research that is not installed."""
        if not config.research.gateway or self._research is not None:
            return
        try:
            # Research is imported by those that have it, and before a request waits for that.
            from smart_model_router.gateway.research.hosted_research import GatewayResearch  # noqa: PLC0415
            from smart_model_router.gateway.research.research_routes import ResearchRoutes  # noqa: PLC0415
        except ModuleNotFoundError as missing:
            raise ConfigurationError("research.gateway", missing.name, _EXTRA) from None
        self._research = GatewayResearch(self._generations)
        self._routes = ResearchRoutes(self._research)

    def start(self) -> None:
        """Go on with the runs that were left; safe to call twice."""
        if self._research is not None:
            self._research.start()

    def stopping(self) -> None:
        """The end is near: streams that would go on are ended."""
        if self._research is not None:
            self._research.stopping.set()

    async def stop(self) -> None:
        """Break off the runs, so that the next start, or another worker, goes on with them; safe to call twice."""
        if self._research is not None:
            await self._research.stop()

    def walk(self, chosen: Callable[[ResearchRoutes], Walk]) -> Walk:
        """Return the walk of a route."""

        async def walk(incoming: GatewayRequest) -> None:
            if self._routes is None or not incoming.generation.config.research.gateway:
                raise not_found(incoming)
            await chosen(self._routes)(incoming)

        return walk
