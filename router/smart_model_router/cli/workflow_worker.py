"""`smr workflow worker`: performs runs of the queue, and those whose process is gone, on this machine."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any

from smart_model_router.assembly import load
from smart_model_router.cli.output import ExitCode, print_json, print_line
from smart_model_router.cli.workflow_runs import asks_models, context_of, workflow_of
from smart_model_router.cli.workflow_store import opened_store, section_of
from smart_model_router.config.sections import WorkflowsConfig
from smart_model_router.domain.errors import ConfigurationError, SmartRouterError
from smart_model_router.flow.clock import SystemClock
from smart_model_router.router import SmartModelRouter
from smart_model_router_research.engine import (
    DbosEngine,
    ExecutionResult,
    RunBusy,
    RunNotFound,
    RunState,
    StoredRun,
    StoreUnavailable,
    TableRunStore,
)
from smart_model_router_research.engine.states import OPEN
from smart_model_router_research.engine.stored_engine import new_owner
from smart_model_router_research.workflow import WorkflowDefinition

if TYPE_CHECKING:
    from smart_model_router.cli.workflow_commands import WorkflowWorker

_MOST_LOOKED_AT = 1_000


def run_worker(asked: WorkflowWorker) -> int:
    """Perform runs until Ctrl-C or SIGTERM; the exit code. Raises ConfigurationError and StoreUnavailable."""
    return asyncio.run(_worked(asked))


async def _worked(asked: WorkflowWorker) -> int:
    section = section_of(asked.config)
    if section.store_url is None:
        wanted = "the URL of a PostgreSQL database is needed: a worker performs the runs of many machines"
        raise ConfigurationError("workflows.store_url", None, wanted)
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in one
    with suppress(NotImplementedError):  # not everywhere
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with AsyncExitStack() as opened:
        store = await opened.enter_async_context(opened_store(asked.config, section))
        worker = RunWorker(store, section, asked, opened)
        try:
            await worker.work()
        except asyncio.CancelledError:
            left = await worker.hand_back()
            print_line(f"worker: ended; runs that were handed back: {left}")
    return ExitCode.OK


class RunWorker:
    """The runs that go on in this process, and the look for those that go on in none."""

    def __init__(
        self,
        store: TableRunStore,
        section: WorkflowsConfig,
        asked: WorkflowWorker,
        opened: AsyncExitStack,
    ) -> None:
        self._store = store
        self._section = section
        self._asked = asked
        self._opened = opened
        self._engine = DbosEngine(store)
        self._clock = SystemClock()
        self._tasks: dict[asyncio.Task[None], str] = {}
        self._unheld: dict[str, float] = {}
        """When a run was first seen that no process holds, and that none has given back."""
        self._router: Mapping[str, Any] | None = None
        self._opening = asyncio.Lock()

    async def work(self) -> None:
        """Perform runs until cancelled. Raises ConfigurationError and StoreUnavailable when it cannot begin."""
        await self._engine.runtime.work(self.perform, self._asked.concurrency)
        print_line(f"worker: takes runs from {self._store.place}")
        while True:
            await asyncio.sleep(self._section.heartbeat)
            try:
                await self.look()
            except StoreUnavailable as error:
                print_line(f"worker: {error}")

    def perform(self, run_id: str) -> None:
        """Begin to perform a run."""
        task = asyncio.create_task(self._performed(run_id))
        self._tasks[task] = run_id
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def hand_back(self) -> int:
        """Break off what goes on here, and give it to other workers; returns how many runs that were."""
        left = dict(self._tasks)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
        for run_id in left.values():
            with suppress(SmartRouterError):  # it stays where it is, and is looked for
                if (await self._store.load(run_id)).state is RunState.RUNNING:
                    await self._engine.runtime.enqueue(run_id)
        return len(left)

    async def look(self) -> None:
        """Queue the runs whose process is gone: those it held, and those it had taken from the queue.

        Also those that it gave up, as where the server went away before the end of a run was kept.
        """
        for run, fence in await self._store.lost():
            if run.origin.get("text"):
                await self._queue(run.run_id, fence)
        running = await self._store.runs(_MOST_LOOKED_AT, state=RunState.RUNNING)
        now = self._clock.now()
        unheld = [run.run_id for run in running if not run.owner and run.run_id not in self._tasks.values()]
        taken = await self._engine.runtime.taken(unheld)
        self._unheld = {run_id: self._unheld.get(run_id, now) for run_id in taken}
        for run_id, since in self._unheld.items():
            if now - since > self._section.lease:
                await self._queue(run_id)

    async def _queue(self, run_id: str, fence: int | None = None) -> None:
        """Queue a run while its lease is ours: of several workers that look, one does."""
        try:
            lease = await self._store.lease(run_id, new_owner(), self._section.lease)
        except (RunBusy, RunNotFound):
            return
        try:
            is_first = fence is None or lease.fence == fence + 1
            is_queued = not is_first or await self._engine.runtime.enqueue(run_id)
        finally:
            await self._store.release(lease)
        if not is_queued:  # all its steps have settled: what is left is its end
            self.perform(run_id)

    async def _performed(self, run_id: str) -> None:
        state = None
        try:
            state = await self._to_its_end(run_id)
        except RunNotFound:
            state = "deleted"
        except (SmartRouterError, OSError) as error:
            print_line(f"run {run_id}: {error}")
        finally:
            self._engine.runtime.release(run_id, state)

    async def _to_its_end(self, run_id: str) -> str | None:
        """Perform a run, once the process that holds it has ended, if one does; returns the state that it ended in."""
        while (known := await self._store.load(run_id)).state in OPEN:
            try:
                result = await self._resumed(known)
            except RunBusy as busy:
                await asyncio.sleep(min(max(busy.seconds, 0.1), self._section.heartbeat))
                continue
            if self._asked.as_json:
                print_json({"run": run_id, "state": result.status, "reason": result.reason})
            else:
                print_line(f"run {run_id} {result.status}{f': {result.reason}' if result.reason else ''}")
            return None if result.status is RunState.PAUSED else result.status.value
        return known.state.value

    async def _resumed(self, known: StoredRun) -> ExecutionResult:
        origin = dict(known.origin)
        if self._asked.functions is not None:
            origin["functions"] = str(self._asked.functions)
        workflow = workflow_of(known.run_id, origin)
        context = context_of(
            known.run_id,
            known.origin,
            self._section,
            inputs=known.inputs,
            services=await self._services(workflow),
            store=self._store,
            engine_reason="it was queued for a worker",
        )
        return await self._engine.resume(workflow, context)

    async def _services(self, workflow: WorkflowDefinition) -> Mapping[str, Any]:
        """The things that steps use: the router of this worker, where a step asks a model."""
        if not asks_models(workflow):
            return {}
        async with self._opening:
            if self._router is None:
                router = SmartModelRouter.from_config(load(self._asked.config, given=frozenset()))
                self._router = {"router": await self._opened.enter_async_context(router)}
        return self._router
