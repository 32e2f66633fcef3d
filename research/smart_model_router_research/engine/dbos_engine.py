"""The engine for many machines: each step is a durable step of DBOS, and DBOS hands runs over to machines.

What is true of a run is what its store has, as on every engine: whether a step runs, what it read and put out, and
which process may write, by a lease. DBOS has the queue of runs that wait for a worker, brings a run to the process that
goes on with it, and keeps beside the store which steps have ended. So an error of DBOS about a step changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from contextvars import copy_context
from typing import Any

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.flow.clock import WallClock
from smart_model_router_research.engine.dbos_runtime import DbosRuntime, DurableRun, dbos_fault, runtime_at
from smart_model_router_research.engine.held_run import GraphState, HeldRun
from smart_model_router_research.engine.kahn import Schedule
from smart_model_router_research.engine.postgres_store import PostgresRunStore
from smart_model_router_research.engine.protocol import Capability, ExecutionContext
from smart_model_router_research.engine.states import StepResult
from smart_model_router_research.engine.store_port import RunNotFound, RunStore, StoreUnavailable
from smart_model_router_research.engine.stored_engine import StoredEngine
from smart_model_router_research.engine.table_store import TableRunStore
from smart_model_router_research.workflow.definition import Step, WorkflowDefinition

_log = logging.getLogger("smart_model_router.workflows")


class DbosEngine(StoredEngine):
    """The engine of the extra `dbos`: all workflows without loops, on any number of machines.

    Its runs are in a PostgresRunStore, and DBOS has its tables in the same database, in the schema `smr_dbos`. DBOS is
    imported and launched with the first run. Raises ConfigurationError for another store, and where the library is not
    installed, or in a version that was not tried. `runtime` is that of the process, unless it is given.
    """

    name = "dbos"
    capabilities = frozenset(Capability) - {Capability.CYCLES}

    def __init__(self, store: RunStore | None = None, *, runtime: DbosRuntime | None = None) -> None:
        super().__init__(store)
        if (fault := dbos_fault()) is not None:
            raise ConfigurationError("engine", self.name, fault)
        if runtime is None:
            if not isinstance(store, PostgresRunStore):
                wanted = "runs in a PostgreSQL database are needed (`workflows.store_url`)"
                raise ConfigurationError("engine", self.name, wanted)
            runtime = runtime_at(store.url, store.place)
        self.runtime = runtime

    async def enqueue(self, workflow: WorkflowDefinition, context: ExecutionContext) -> None:
        """Create a run, and leave it to the workers. Raises as `execute` does before anything runs."""
        await self._store_for(context).create(self._new(workflow, context))
        await self.runtime.enqueue(context.run_id)

    async def _drive(self, run: HeldRun) -> None:
        held = await self.runtime.hold(run.run_id)
        if held is None:  # all that is left of the run is its end
            await Schedule(run, run.work).to_the_end()
            return
        state = None
        try:
            if await Schedule(run, _DurableSteps(run, held).work).to_the_end():
                state = "settled"
        finally:
            await self.runtime.leave(held, state)
        if self.runtime.is_to_forget() and isinstance(self._store, TableRunStore):
            with suppress(StoreUnavailable):  # another process will
                await self.runtime.forget(WallClock.now() - self._store.retention_days * 86_400, self._is_known)

    async def _is_known(self, run_id: str) -> bool:
        try:
            await self._store.load(run_id)
        except RunNotFound:
            return False
        return True


class _DurableSteps:
    """The steps of a run as DBOS's, each by a number that it has whenever the run goes on."""

    def __init__(self, run: HeldRun, held: DurableRun) -> None:
        from dbos import DBOS  # noqa: PLC0415 - an extra

        self._run = run
        self._context = held.context
        self._outside = copy_context()
        """The context that steps run in: what they do is no part of DBOS's workflow."""
        names = list(_full_names(run.root.workflow))
        self._reserved: dict[str, Any] = {name: self._context.run(DBOS.reserve_step) for name in names}

    async def work(self, graph: GraphState, step: Step) -> StepResult:
        """Run a step that was admitted until it has settled; returns its result. Cancelled, it settles nothing."""
        full = graph.full_name(step)
        found: list[StepResult] = []
        failed: list[Exception] = []

        async def durable() -> str:
            task = asyncio.create_task(self._run.work(graph, step), context=self._outside.copy())
            try:
                found.append(await task)
            except Exception as error:
                failed.append(error)
                raise asyncio.CancelledError from error  # of the store, say: DBOS keeps no end of a step for it
            return found[0].state.value

        kept = self._reserved[full].run_async({"name": full}, durable)
        try:
            await asyncio.create_task(kept, context=self._context.copy())
        except asyncio.CancelledError:
            if not failed:
                raise
        except Exception as error:  # noqa: BLE001 - DBOS's own
            _log.warning("DBOS has not kept step %s of run %s: %s", full, self._run.run_id, type(error).__name__)
        if failed:
            raise failed[0]
        return found[0] if found else await self._run.work(graph, step)


def _full_names(workflow: WorkflowDefinition, prefix: str = "") -> Iterator[str]:
    """Yield the names of all steps that do work, those of subgraphs included, in the order of the definition."""
    for step in workflow.steps:
        if step.workflow is not None:
            yield from _full_names(step.workflow, f"{prefix}{step.name}.")
        elif step.kind != "approval":
            yield prefix + step.name
