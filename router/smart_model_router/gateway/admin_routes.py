"""Routes to operate the gateway: health, metrics, statistics, and the state of each target."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from ctypes import c_bool
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol
from urllib.parse import parse_qs

from smart_model_router.config import RouterConfig
from smart_model_router.domain.errors import AllTargetsFailed
from smart_model_router.gateway.endpoint import ORDER_BYTES, GatewayRequest, RouterGenerations, Walk
from smart_model_router.gateway.router_generation import RouterGeneration
from smart_model_router.http_api import HttpReply, ProblemError
from smart_model_router.http_api.api_errors import BAD_REQUEST, FORBIDDEN, NOT_FOUND
from smart_model_router.http_api.http_reply import json_reply
from smart_model_router.observability.multiprocess import SharedMetrics
from smart_model_router.observability.registry import CONTENT_TYPE, Sample, rendered
from smart_model_router.observability.store_reader import reader_of
from smart_model_router.router import SmartModelRouter
from smart_model_router.wires.values import decode_object, text
from smart_model_router_stats.open_db import StoreUnavailableError

log = logging.getLogger("smart_model_router.gateway")


async def liveness(incoming: GatewayRequest) -> None:
    """The loop turns. Never bad because providers are down."""
    await incoming.reply(json_reply({"status": "ok"}))


class HealthRoutes:
    """Health, for load balancers and people. `draining` is the operator's word: this server wants no more requests.

    Its value is in memory that all workers of the server share, and ends with the server.
    """

    def __init__(self, draining: c_bool) -> None:
        self._draining = draining

    @property
    def draining(self) -> bool:
        """Return whether the server drains."""
        return self._draining.value

    async def readiness(self, incoming: GatewayRequest) -> None:
        """Return whether each model can be served now and the server does not drain; 503 with reasons when not.

        A store that cannot be written is told, and is no reason: requests are served from memory as before. Where
        there are keys, the reasons are for requests with a key.
        """
        generation = incoming.generation
        reasons = _unserved(generation)
        ready = not reasons and not self.draining
        told: dict[str, Any] = {"status": "draining" if self.draining else "ok" if ready else "unavailable"}
        with suppress(ProblemError):  # a load balancer has no key, and needs none
            visible = generation.visible(incoming.headers) if generation.config.gateway.keys else generation.everything
            told["models"] = {name: why for name, why in reasons.items() if visible.model(name)}
            told["store"] = visible.state(generation.router.monitor.store_problem)
        await incoming.reply(json_reply(told, 200 if ready else 503))

    async def health(self, incoming: GatewayRequest) -> None:
        """All that a key may know of the fleet."""
        generation = incoming.generation
        visible, monitor = generation.visible(incoming.headers), generation.router.monitor
        told: dict[str, Any] = {
            "version": version("smart-model-router"),
            "draining": self.draining,
            "models": {name: why for name, why in _unserved(generation).items() if visible.model(name)},
            "store": visible.state(monitor.store_problem),
            "shared_state": visible.state(monitor.shared_problem),
            "kept_responses": visible.state(monitor.kept_problem),
            "targets": [asdict(status) for status in generation.router.targets() if visible.target(status.id)],
        }
        if visible.everything:
            told["system"] = asdict(generation.router.system_health())
            told["in_flight"] = generation.in_flight - 1  # but for this one
            told["sinks"] = [asdict(sink) for sink in monitor.sinks()]
            told["alone_seconds"] = monitor.alone_for
            told["members"] = [
                {"machine": row.machine, "version": row.version, "pid": row.pid, "heard_seconds": heard}
                for row, heard in monitor.members
            ]
            told["versions"] = sorted({row.version for row, _ in monitor.members})
        await incoming.reply(json_reply(told))

    async def drain(self, incoming: GatewayRequest) -> None:
        """Be ready or not, as an operator says (`{"on": true}`), in every worker; requests are served all the same."""
        api_client = incoming.generation.ring.api_client(incoming.headers)
        if not api_client.admin:
            raise ProblemError(FORBIDDEN, "a key with `admin: true` is needed")
        wanted: Any = (decode_object(await incoming.body(ORDER_BYTES)) or {}).get("on")
        if not isinstance(wanted, bool):
            raise ProblemError(BAD_REQUEST, "on: true or false is needed")
        self._draining.value = wanted
        log.warning("the server %s, as %s says", "drains" if wanted else "is ready again", api_client.name)
        await incoming.reply(json_reply({"draining": wanted}))


def _unserved(generation: RouterGeneration) -> dict[str, str]:
    """Return the models that no target could serve now, and why, without wildcards: clients choose their names."""
    reasons: dict[str, str] = {}
    for name, model in generation.config.models.items():
        if "*" in name:
            continue
        try:
            generation.router.get_model_for_tier(model.tiers[0].name, name)
        except AllTargetsFailed as error:
            reasons[name] = error.message
    return reasons


SHARE_SECONDS = 1.0


class GatewayMetrics:
    """The figures of a gateway. With a store, metrics are those of every gateway process that has the same one."""

    def __init__(self, generations: RouterGenerations, config: RouterConfig) -> None:
        self._generations = generations
        path = config.store.path
        self._shared = None if path is None else SharedMetrics(metrics_file(Path(path)))
        self._turn = asyncio.Lock()
        self._sharing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Share from now on, once a second: a worker that gets no requests counts, too."""
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

    async def metrics(self, incoming: GatewayRequest) -> None:
        """The page that Prometheus reads, of what a key may see."""
        visible = incoming.generation.visible(incoming.headers)
        page = rendered(visible.samples(await self._samples()))
        await incoming.reply(HttpReply(200, {"content-type": CONTENT_TYPE}, page))

    async def stats(self, incoming: GatewayRequest) -> None:
        """Reply with `router.stats()`; with `?scope=store` the same of every process that writes to the store.

        Of what a key may see.
        """
        visible = incoming.generation.visible(incoming.headers)
        query = parse_qs(incoming.scope["query_string"].decode("latin-1"))
        scope = query.get("scope", ["process"])[-1]
        if scope == "process":
            await incoming.reply(json_reply(visible.figures(incoming.generation.router.stats().to_dict())))
            return
        if scope != "store":
            raise ProblemError(BAD_REQUEST, f"scope: {scope[:40]!r} is none of process, store")
        reader = reader_of(incoming.generation.config.store)
        if reader is None:
            raise ProblemError(NOT_FOUND, "there is no store: store.path and store.stats_url name none")
        try:
            view = await asyncio.to_thread(reader.view)
        except StoreUnavailableError as error:
            raise ProblemError(NOT_FOUND, f"the store cannot be read: {error.reason}") from None
        await incoming.reply(json_reply(visible.figures(view.to_dict())))

    async def _share(self) -> None:
        while True:
            try:
                await self._samples()
            except Exception:  # the second after this one may be a better one
                log.exception("metrics could not be shared")
            await asyncio.sleep(SHARE_SECONDS)

    async def _samples(self) -> Sequence[Sample]:
        if self._shared is None:
            return self._generations.generation.router.monitor.samples()
        async with self._turn:
            own = self._generations.generation.router.monitor.samples()
            return await asyncio.to_thread(self._shared.exchange, own)


def metrics_file(store: Path) -> Path:
    """The directory in which processes that share a store share their metrics: beside it."""
    store = store.expanduser()
    return store.with_name(f"{store.stem}.metrics.db")


class Action(Protocol):
    """Something to do to a target."""

    def __call__(self, router: SmartModelRouter, target: str, /, *, by: str, why: str) -> None:
        """Do it. Raises InvalidRequest."""
        ...


ACTIONS: Mapping[str, Action] = MappingProxyType(
    {"enable": SmartModelRouter.close, "isolate": SmartModelRouter.isolate}
)
"""The orders of an operator to a target: `enable` forgets every rest and breaker, `isolate` sends it nothing more."""


async def targets(incoming: GatewayRequest) -> None:
    """Every target that a key may see, as it stands."""
    visible = incoming.generation.visible(incoming.headers)
    statuses = [status for status in incoming.generation.router.targets() if visible.target(status.id)]
    await incoming.reply(json_reply({"targets": [asdict(status) for status in statuses]}))


def acting(action: str) -> Walk:
    """The walk that does one of ACTIONS to what the body names: `{"name": a target or a provider}`.

    The body may say `why`, and `by`, a name beside the key's. The reply says how far the word reaches: `scope` is
    `host` or `fleet` once every process there can hear it, else `process`, and `note` says why.
    """
    act = ACTIONS[action]

    async def walk(incoming: GatewayRequest) -> None:
        generation = incoming.generation
        api_client = generation.ring.api_client(incoming.headers)
        if not api_client.admin:
            raise ProblemError(FORBIDDEN, "a key with `admin: true` is needed")
        said = decode_object(await incoming.body(ORDER_BYTES)) or {}
        chosen = _chosen(generation, text(said.get("name")))
        by, why = _line(said, "by"), _line(said, "why")
        for target in chosen:
            act(generation.router, target, by=f"{by} ({api_client.name})" if by else api_client.name, why=why)
        note = await generation.router.publish_word()
        told = [asdict(status) for status in generation.router.targets() if status.id in chosen]
        far = "host" if generation.config.store.shared_url is None else "fleet"
        await incoming.reply(json_reply({"targets": told, "scope": "process" if note else far, "note": note}))

    return walk


def _line(said: Mapping[str, Any], key: str) -> str:
    """An optional text. Raises ProblemError."""
    given = said.get(key, "")
    if not isinstance(given, str):
        raise ProblemError(BAD_REQUEST, f"{key}: a text is needed")
    return given


def _chosen(generation: RouterGeneration, name: str) -> frozenset[str]:
    """The ids that a name stands for: its own, or all of a provider's. Raises ProblemError."""
    statuses = generation.router.targets()
    chosen = frozenset(status.id for status in statuses if name in (status.id, status.provider))
    if not chosen:
        known = ", ".join(status.id for status in statuses)
        raise ProblemError(BAD_REQUEST, f"name: {name[:100]!r} is no target and no provider; there are {known}")
    return chosen
