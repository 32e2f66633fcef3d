"""The runs of research of a gateway: each configuration's on a thread of their own, and those that others left."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from smart_model_router.domain.errors import SmartRouterError
from smart_model_router.gateway.client_keys import ApiClient
from smart_model_router.gateway.endpoint import RouterGenerations
from smart_model_router.gateway.research.charged_router import ChargedRouter
from smart_model_router.gateway.research.loop_thread import LoopThread
from smart_model_router.gateway.router_generation import RouterGeneration
from smart_model_router_providers.local.model_file import data_directory
from smart_model_router_research.assembly import configured_backends, run_store
from smart_model_router_research.pipeline.deep_research import OWNER
from smart_model_router_research.pipeline.opened_corpora import corpus_names
from smart_model_router_research.pipeline.research_host import ResearchHost
from smart_model_router_research.pipeline.run_inputs import RunInputs, absolute_paths
from smart_model_router_research.pipeline.told_runs import standing_of_run

FORGET_SECONDS = 3_600.0
"""The pause between two looks for runs that ended too long ago."""
SHOWN_RUNS = 10
LOOK_SECONDS = 2.0
"""The pause between two looks for runs that no process holds."""
T = TypeVar("T")
log = logging.getLogger("smart_model_router.gateway")


class HostedResearch:
    """The runs of one generation. A run that goes on is inside of it, as a request is."""

    def __init__(self, generation: RouterGeneration) -> None:
        config = generation.config
        self.generation = generation
        self.corpora: Mapping[str, Sequence[str]] = corpus_names(config.research.corpora)
        """The paths of the configured corpora, by their names."""
        folder = data_directory() / "research"
        self.host = ResearchHost(
            run_store(config.workflows, data_directory(), keep_days=config.research.keep_days + 1),
            folder / "runs",
            folder,
            engine=config.workflows.engine,
            lease=config.workflows.lease,
            heartbeat=config.workflows.heartbeat,
            router_of=self._router_of,
            backends=configured_backends(config.research, os.environ),
        )
        self._home = asyncio.get_running_loop()
        self._thread = LoopThread("smart-model-router research")
        self._holding: set[asyncio.Task[None]] = set()

    @property
    def is_idle(self) -> bool:
        """True while no run goes on here, and no request, such as one that follows a run, is inside."""
        return self.generation.in_flight == 0

    def names_of(self, paths: Sequence[str]) -> list[str]:
        """Return the names of corpora by their paths; what the configuration does not have any more has no name."""
        known = {path: name for name, named in self.corpora.items() for path in absolute_paths(named)}
        return list(dict.fromkeys(known[path] for path in paths if path in known))

    async def call(self, made: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of the host where its loop is."""
        return await self._thread.call(made)

    async def begin(self, inputs: RunInputs, api_client: ApiClient) -> str:
        """Begin a run of a key; returns its id. Raises TooManyRuns, CorpusError and what the store raises."""
        return await asyncio.shield(asyncio.create_task(self._begun(inputs, api_client)))

    async def adopt(self) -> None:
        """Go on with the runs of present keys that no process holds. Raises StoreUnavailable."""
        for run_id in await self.call(self.host.adopt(self.generation.ring.owners)):
            self._hold(run_id)

    async def forget(self) -> None:
        """Delete the runs that ended too long ago. Raises StoreUnavailable."""
        days = self.generation.config.research.keep_days
        for run_id in await self.call(self.host.forget(days)):
            log.info("run %s of research was deleted with its report: it ended %d days ago", run_id, days)

    async def aclose(self) -> None:
        """Break off what goes on here; another worker, or the next start, goes on with it."""
        await self.call(self.host.aclose())
        if self._holding:
            await asyncio.wait(self._holding)
        await self._thread.stop()

    async def _begun(self, inputs: RunInputs, api_client: ApiClient) -> str:
        """Begin a run, whether or not its client waits for it."""
        most = self.generation.config.research.runs_per_key
        run_id = await self.call(self.host.begin(inputs, api_client.owner, most=most))
        self._hold(run_id)
        return run_id

    def _router_of(self, owner: str) -> ChargedRouter:
        return ChargedRouter(self.generation, self.generation.ring.owners[owner], self._home)

    def _hold(self, run_id: str) -> None:
        self.generation.enter()
        task = asyncio.create_task(self._held(run_id))
        self._holding.add(task)
        task.add_done_callback(self._holding.discard)

    async def _held(self, run_id: str) -> None:
        try:
            await self.call(self.host.wait(run_id))
        finally:
            if self.generation.leave():
                await self.generation.close()


class GatewayResearch:
    """The runs of all generations of a gateway. `stopping` is set when streams that would go on are to end."""

    def __init__(self, generations: RouterGenerations) -> None:
        self._generations = generations
        self._hosted: dict[RouterGeneration, HostedResearch] = {}
        self._looking: asyncio.Task[None] | None = None
        self._stopped: asyncio.Task[None] | None = None
        self.stopping = asyncio.Event()

    def of(self, generation: RouterGeneration) -> HostedResearch:
        """Return the runs of a generation."""
        if generation not in self._hosted:
            self._hosted[generation] = HostedResearch(generation)
        return self._hosted[generation]

    async def card(self) -> Mapping[str, Any]:
        """Return what the dashboard shows of all keys: how many runs go on, and those that changed last."""
        hosted = self.of(self._generations.generation)
        try:
            running = await hosted.call(hosted.host.count_open())
            found = await hosted.call(hosted.host.runs(SHOWN_RUNS))
        except SmartRouterError as error:
            return {"running": None, "runs": [], "problem": error.message}
        owners = hosted.generation.ring.owners
        keys = [owners.get(str(run.origin.get(OWNER))) for run in found]
        runs = [
            {**standing_of_run(run), "key": None if key is None or OWNER not in run.origin else key.name}
            for run, key in zip(found, keys, strict=True)
        ]
        return {"running": running, "runs": runs, "problem": ""}

    def start(self) -> None:
        """Look for runs that no process holds, now and again and again; safe to call twice."""
        if self._looking is None:
            self._looking = asyncio.create_task(self._look(), name="smart-model-router research")

    async def stop(self) -> None:
        """Break off all runs, so that they can be gone on with; each call waits for that."""
        self.stopping.set()
        if self._stopped is None:
            self._stopped = asyncio.create_task(self._stop())
        await asyncio.shield(self._stopped)

    async def _stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            with suppress(asyncio.CancelledError):
                await self._looking
        hosted, self._hosted = self._hosted, {}
        await asyncio.gather(*(each.aclose() for each in hosted.values()))

    async def _look(self) -> None:
        told, forget_at, now = "", 0.0, asyncio.get_running_loop().time
        while True:
            present = self._generations.generation
            try:
                if present.config.research.gateway:
                    await self.of(present).adopt()
                    if now() >= forget_at:
                        forget_at = now() + FORGET_SECONDS
                        await self.of(present).forget()
                told = ""
            except SmartRouterError as error:
                if error.message != told:
                    log.warning("runs of research cannot be looked for: %s", error.message)
                told = error.message
            for generation in [each for each in self._hosted if each is not present]:
                if self._hosted[generation].is_idle:
                    await self._hosted.pop(generation).aclose()
            await asyncio.sleep(LOOK_SECONDS)
