"""Figures over HTTP: `/metrics` for Prometheus, the same whichever worker is asked, and `/api/stats`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs

from smart_model_router.config import RouterConfig
from smart_model_router.gateway.endpoint import GatewayRequest, RouterGenerations
from smart_model_router.http_api import HttpReply, ProblemError
from smart_model_router.http_api.api_errors import BAD_REQUEST, NOT_FOUND
from smart_model_router.http_api.http import json_reply
from smart_model_router.observability.exposition import CONTENT_TYPE, rendered
from smart_model_router.observability.multiprocess import SharedMetrics
from smart_model_router.observability.registry import Sample
from smart_model_router_stats.open_db import StoreUnavailableError
from smart_model_router_stats.reading import StoreView, read_store

log = logging.getLogger("smart_model_router.gateway")
SHARE_SECONDS = 1.0


class GatewayMetrics:
    """The figures of a gateway. With a store, metrics are those of every gateway process that has the same one."""

    def __init__(self, houses: RouterGenerations, config: RouterConfig) -> None:
        self._houses = houses
        path = config.store.path
        self._shared = None if path is None else SharedMetrics(metrics_file(Path(path)))
        self._turn = asyncio.Lock()
        self._sharing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Share from now on, once a second: who is not asked is counted, too."""
        if self._shared is not None:
            self._sharing = asyncio.get_running_loop().create_task(self._share(), name="smart-model-router metrics")

    async def stop(self) -> None:
        """Share for the last time."""
        if self._sharing is None:
            return
        self._sharing.cancel()
        with suppress(asyncio.CancelledError):
            await self._sharing
        await self._samples()

    async def metrics(self, arrival: GatewayRequest) -> None:
        """The page that Prometheus reads, of what a key may see."""
        visible = arrival.house.visible(arrival.headers)
        page = rendered(visible.samples(await self._samples()))
        await arrival.reply(HttpReply(200, {"content-type": CONTENT_TYPE}, page))

    async def stats(self, arrival: GatewayRequest) -> None:
        """What `router.stats()` says; with `?scope=store` the same of every process that writes to the store.

        Of what a key may see.
        """
        visible = arrival.house.visible(arrival.headers)
        query = parse_qs(arrival.scope["query_string"].decode("latin-1"))
        scope = query.get("scope", ["process"])[-1]
        if scope == "process":
            await arrival.reply(json_reply(visible.figures(arrival.house.router.stats().to_dict())))
            return
        if scope != "store":
            raise ProblemError(BAD_REQUEST, f"scope: {scope[:40]!r} is none of process, store")
        path = arrival.house.config.store.path
        if path is None:
            raise ProblemError(NOT_FOUND, "there is no store: store.path names none")
        try:
            view = await asyncio.to_thread(_read, path)
        except StoreUnavailableError as error:
            raise ProblemError(NOT_FOUND, f"the store cannot be read: {error.reason}") from None
        await arrival.reply(json_reply(visible.figures(view.to_dict())))

    async def _share(self) -> None:
        while True:
            try:
                await self._samples()
            except Exception:  # the second after this one may be a better one
                log.exception("metrics could not be shared")
            await asyncio.sleep(SHARE_SECONDS)

    async def _samples(self) -> Sequence[Sample]:
        if self._shared is None:
            return self._houses.house.router.monitor.samples()
        async with self._turn:
            own = self._houses.house.router.monitor.samples()
            return await asyncio.to_thread(self._shared.exchange, own)


def _read(store: str) -> StoreView:
    return read_store(Path(store).expanduser())


def metrics_file(store: Path) -> Path:
    """Where the processes that share a store share their metrics: beside it."""
    store = store.expanduser()
    return store.with_name(f"{store.stem}.metrics.db")
