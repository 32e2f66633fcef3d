"""Kahn's algorithm over asyncio tasks: a step starts when the last step that it needs has settled."""

from __future__ import annotations

import asyncio
import math
import os
import platform
from collections import deque
from collections.abc import Mapping
from dataclasses import fields
from graphlib import TopologicalSorter
from itertools import count
from typing import Any

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.ports import Clock
from smart_model_router.flow.clock import EARLY
from smart_model_router_research.engine.joining import CANCELLED, consider
from smart_model_router_research.engine.journal import RunJournal
from smart_model_router_research.engine.memory_store import MemoryRunStore
from smart_model_router_research.engine.protocol import (
    Capability,
    CheckpointRef,
    ExecutionContext,
    ExecutionResult,
    RunEventKind,
    RunStatus,
    required_capabilities,
)
from smart_model_router_research.engine.results import execution_result
from smart_model_router_research.engine.states import FREE, RunState, SkipReason, StepResult, StepState, moved
from smart_model_router_research.engine.steps import StepRunner, step_input
from smart_model_router_research.engine.store_port import (
    HEARTBEAT_SECONDS,
    NewRun,
    RunBusy,
    RunLease,
    RunStore,
    StaleLease,
    StoredRun,
)
from smart_model_router_research.workflow.definition import Costs, Step, WorkflowDefinition
from smart_model_router_research.workflow.evaluation import ExpressionTypeError

_owners = count(1)
_OPEN = (RunState.RUNNING, RunState.PAUSED)


class KahnEngine:
    """The engine that needs no extra: acyclic workflows, without subgraphs and approvals.

    `observer_failures` counts the observers that raised.
    """

    name = "kahn"
    capabilities = frozenset({Capability.CHECKPOINT, Capability.CONDITIONAL, Capability.CANCEL, Capability.WAVEFRONT})

    def __init__(self, store: RunStore | None = None) -> None:
        self._store: RunStore = MemoryRunStore() if store is None else store
        self._running: dict[str, _Run] = {}
        self.observer_failures = 0

    async def execute(self, workflow: WorkflowDefinition, context: ExecutionContext) -> ExecutionResult:
        """Run a workflow to its end; a run that is known goes on where it was, with the inputs that it began with.

        Raises ConfigurationError when the workflow needs a capability that this engine has not, WorkflowError for
        inputs that are wrong, WorkflowChanged, RunBusy, StaleLease and StoreUnavailable.
        """
        if lacking := required_capabilities(workflow) - self.capabilities:
            raise ConfigurationError("engine", self.name, f"one that has {', '.join(sorted(lacking))} is needed")
        store = self._store if context.store is None else context.store
        left = context.deadline - context.clock.now()
        new = NewRun(
            run_id=context.run_id,
            workflow=workflow.name,
            workflow_hash=workflow.hash,
            step_hashes=workflow.step_hashes,
            inputs=workflow.with_defaults(context.inputs),
            engine=self.name,
            origin=context.origin,
            seconds=None if left == math.inf else max(0.0, left),
        )
        await store.create(new)
        lease = await store.lease(context.run_id, f"{platform.node()}:{os.getpid()}:{next(_owners)}")
        run = None
        try:
            run = _Run(workflow, context, store, lease, await store.load(context.run_id))
            if run.ended is not None:
                return run.ended
            self._running[context.run_id] = run
            return await run.held()
        finally:
            await store.release(lease)
            if run is not None:
                run.over.set()
                self.observer_failures += run.journal.observer_failures
                if self._running.get(context.run_id) is run:
                    del self._running[context.run_id]

    async def checkpoint(self, run_id: str) -> CheckpointRef:
        """Return the latest durable point of a run: each step that settled is one. Raises RunNotFound."""
        return await self._store_of(run_id).checkpoint(run_id)

    async def get_status(self, run_id: str) -> RunStatus:
        """Return the state of a run. Raises RunNotFound."""
        run = await self._store_of(run_id).load(run_id)
        return RunStatus(
            run_id=run_id,
            state=run.state,
            steps={name: step.result for name, step in run.steps.items()},
            seq=run.seq,
            workflow_hash=run.workflow_hash,
            owner=run.owner,
        )

    async def cancel(self, run_id: str) -> RunStatus:
        """Cancel a run for good. One that runs in this process has ended then; one of another process was asked to.

        A run that no process holds is cancelled at once; one that has ended stays as it is. Raises RunNotFound.
        """
        store = self._store_of(run_id)
        if (await store.load(run_id)).state in _OPEN:
            await store.ask_cancel(run_id)
            if (run := self._running.get(run_id)) is not None:
                run.cancel()
                await run.over.wait()
            else:
                await self._cancel_unheld(store, run_id)
        return await self.get_status(run_id)

    def _store_of(self, run_id: str) -> RunStore:
        run = self._running.get(run_id)
        return self._store if run is None else run.store

    async def _cancel_unheld(self, store: RunStore, run_id: str) -> None:
        try:
            lease = await store.lease(run_id, f"{platform.node()}:{os.getpid()}:{next(_owners)}")
        except RunBusy:
            return
        try:
            run = await store.load(run_id)
            for name in run.step_hashes:
                if name not in run.steps or run.steps[name].number is None:
                    await store.settle(lease, name, CANCELLED)
            await store.end(lease, RunState.CANCELLED, {}, "the run was cancelled")
        finally:
            await store.release(lease)


KahnDAGEngine = KahnEngine
"""The founding name."""


class _Run:
    """One run while this process holds it. `ended` is its result when it had ended before; `over` is set at the end."""

    def __init__(
        self, workflow: WorkflowDefinition, context: ExecutionContext, store: RunStore, lease: RunLease, was: StoredRun
    ) -> None:
        self.store = store
        self.over = asyncio.Event()
        self._workflow = workflow
        self._context = context
        self._clock: Clock = context.clock
        self._lease = lease
        self._known = was.seq > 1
        self._inputs: Mapping[str, Any] = was.inputs
        self._results = {name: step.result for name, step in was.steps.items() if step.number is not None}
        self.journal = RunJournal(
            store, lease, seq=was.seq if self._known else 0, spent=was.spent, observers=context.observers
        )
        self.ended = None if was.state in _OPEN else self._result()
        self._runner = StepRunner(
            journal=self.journal, clock=context.clock, dice=context.dice, services=context.services
        )
        left = was.seconds_left if self._known else None
        self._deadline = min(context.deadline, math.inf if left is None else self._clock.now() + left)
        self._tasks: dict[asyncio.Task[StepResult], Step] = {}
        self._waiting: deque[Step] = deque()
        self._settled: asyncio.Queue[asyncio.Task[StepResult] | None] = asyncio.Queue()
        self._cancelled = lease.cancel_asked

    def cancel(self) -> None:
        """Cancel the run for good."""
        self._cancelled = True
        self._settled.put_nowait(None)

    async def held(self) -> ExecutionResult:
        """Run to the end while the lease is renewed. Raises StaleLease, StoreUnavailable; no task is left behind."""
        beat = asyncio.create_task(self._heartbeat())
        beat.add_done_callback(lambda _: self._settled.put_nowait(None))
        try:
            await self._to_the_end(beat)
        finally:
            beat.cancel()
            await self._stopped()
            await asyncio.wait((beat,))
        result = self._result()
        await self.journal.end(result.status, result.outputs, result.reason)
        return result

    def _result(self) -> ExecutionResult:
        return execution_result(
            self._workflow,
            self._context.run_id,
            self._results,
            self._inputs,
            self.journal.spent,
            KahnEngine.name,
        )

    async def _heartbeat(self) -> None:
        while True:
            await self._clock.sleep(HEARTBEAT_SECONDS)
            try:
                lease = await self.store.lease(self._lease.run_id, self._lease.owner)
            except RunBusy:
                raise StaleLease(self._lease.run_id, self._lease.fence) from None
            if lease.fence != self._lease.fence:
                raise StaleLease(self._lease.run_id, self._lease.fence)
            if lease.cancel_asked and not self._cancelled:
                self.cancel()

    async def _to_the_end(self, beat: asyncio.Task[None]) -> None:
        await self.journal.tell()
        if self._known:
            await self.journal.record(RunEventKind.RUN_RESUMED)
        sorter = TopologicalSorter({step.name: step.needs for step in self._workflow.steps})
        sorter.prepare()
        while sorter.is_active() and not self._cancelled:
            if ready := sorter.get_ready():
                for name in ready:
                    await self._decide(sorter, name)
                continue
            await self._start(sorter)
            if self._tasks and (task := await self._settled.get()) is not None:
                step = self._tasks.pop(task)
                self._move(step.name, task.result())
                sorter.done(step.name)
            if beat.done():
                beat.result()
        if self._cancelled:
            await self._stopped()
            for step in self._workflow.steps:
                if not self._results.get(step.name, StepResult()).state.settled:
                    self._move(step.name, CANCELLED)
                    await self.journal.settle(step.name, CANCELLED)

    async def _decide(self, sorter: TopologicalSorter[str], name: str) -> None:
        """Decide a step whose needs have settled: it waits for room, or has settled by that."""
        if name in self._results:  # settled before this process took the run
            sorter.done(name)
            return
        decided = consider(self._workflow, name, self._results, self._inputs)
        assert decided is not None  # noqa: S101 - all that it needs has settled
        self._move(name, decided)
        if decided.state is StepState.READY:
            self._waiting.append(self._workflow.by_name[name])
            return
        await self.journal.settle(name, decided)
        sorter.done(name)

    async def _start(self, sorter: TopologicalSorter[str]) -> None:
        """Start the steps that there is room for, in the order in which they became ready."""
        while self._waiting and len(self._tasks) < self._context.max_concurrency:
            step = self._waiting.popleft()
            limit = self._limit(step)
            reason = None
            if self._clock.now() + EARLY >= limit:
                reason = SkipReason.TIMEOUT
            elif self._context.budget is not None and not self._context.budget.fits(self._committed(), step):
                reason = SkipReason.BUDGET
            if reason is not None:
                skipped = StepResult(state=StepState.SKIPPED, skip_reason=reason)
                self._move(step.name, skipped)
                await self.journal.settle(step.name, skipped)
                sorter.done(step.name)
                continue
            self._move(step.name, StepResult(state=StepState.RUNNING))
            task = asyncio.create_task(self._one(step, limit))
            self._tasks[task] = step
            task.add_done_callback(self._settled.put_nowait)

    async def _one(self, step: Step, limit: float) -> StepResult:
        assert step.run is not None  # noqa: S101 - other kinds are refused
        try:
            given = step_input(step, step.name, self._context.run_id, self._workflow.hash, self._inputs, self._results)
        except ExpressionTypeError as error:
            failed = StepResult(state=StepState.FAILED, error=f"inputs: {error.message}")
            await self.journal.settle(step.name, failed)
            return failed
        return await self._runner.run(step, step.run, given, limit)

    def _limit(self, step: Step) -> float:
        """Return the instant by which a step has to end: some time is kept for steps that always run."""
        budget = self._context.budget
        return self._deadline - (0.0 if step.always or budget is None else budget.reserve.seconds)

    def _committed(self) -> Costs:
        """Return what was spent, and what the steps under way will probably add to it."""
        total = self.journal.spent
        for step in self._tasks.values():
            charged = self.journal.charged.get(step.name, FREE)
            rest = {name: max(0.0, step.estimate.get(name, 0.0) - getattr(charged, name)) for name in _COSTS}
            total += Costs(**rest)
        return total

    def _move(self, name: str, result: StepResult) -> None:
        moved(self._results.get(name, StepResult()).state, result.state)
        self._results[name] = result

    async def _stopped(self) -> None:
        """Cancel the steps under way, and return when they have ended."""
        tasks, self._tasks = self._tasks, {}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for task, step in tasks.items():
            if not task.cancelled() and task.exception() is None:
                self._move(step.name, task.result())


_COSTS = tuple(each.name for each in fields(Costs))
