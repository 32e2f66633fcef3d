"""The gateway's own dashboard: what happened while it runs, whichever configuration it ran with."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from smart_model_router.gateway.dashboard.board import Board
from smart_model_router.gateway.dashboard.feed import Feed
from smart_model_router.gateway.router_generation import RouterGeneration
from smart_model_router.http_api import ProblemError
from smart_model_router.http_api.api_errors import FORBIDDEN
from smart_model_router.observability.dashboard_history import DashboardHistory, ToldTransition

if TYPE_CHECKING:
    from smart_model_router.gateway.endpoint import RouterGenerations
    from smart_model_router.observability.dashboard_snapshot import DashboardSnapshot


class DashboardRoutes:
    """Remembers the events of every house, and shows the present one, `draining` or not."""

    def __init__(self, houses: RouterGenerations, draining: Callable[[], bool]) -> None:
        self._houses = houses
        self._draining = draining
        self._recorder = DashboardHistory()
        self._recorder.listeners.append(self._moved)
        self._painter: DashboardSnapshot | None = None
        self._feed = Feed(self._draw)

    def move_in(self, house: RouterGeneration) -> None:
        """A house (the first, or one after a reload) is the one to look at."""
        house.router.monitor.watch(self._recorder)
        self._painter = house.router.monitor.painter(self._recorder)

    def routes(self) -> list[Route]:
        """Where the dashboard is."""
        about = {"source": f"process {os.getpid()}"}
        return Board(self._feed, guard=self._guard, trace=self._trace, about=about).routes()

    def close(self) -> None:
        """End every stream."""
        self._feed.close()

    async def _draw(self) -> Mapping[str, Any]:
        assert self._painter is not None  # noqa: S101 - a gateway has a house before it listens
        picture = await self._painter.picture()
        return {**picture, "system": {**picture["system"], "draining": self._draining()}}

    def _moved(self, move: ToldTransition) -> None:
        self._feed.tell(move.to_dict())

    async def _trace(self, request_id: str) -> Mapping[str, Any] | None:
        found = self._recorder.requests.get(request_id)
        return None if found is None else found.to_dict()

    def _guard(self, headers: Mapping[str, str]) -> bool:
        guest = self._houses.house.ring.guest(headers)
        if not guest.admin:  # it shows every model, and the requests of every key
            raise ProblemError(FORBIDDEN, "a key with `admin: true` is needed")
        return True
