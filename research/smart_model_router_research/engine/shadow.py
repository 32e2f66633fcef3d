"""The shadow of a run: its recorded answers, played through another engine once it has ended, and the differences.

The result is that of the first engine, whatever becomes of the second: no step is called again, the second run is in a
store of its own in memory, and differences are events.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from smart_model_router.domain.errors import SmartRouterError
from smart_model_router_research.engine.held_run import HeldRun
from smart_model_router_research.engine.memory_store import MemoryRunStore
from smart_model_router_research.engine.protocol import (
    Approval,
    ExecutionContext,
    ExecutionEngine,
    ExecutionResult,
    RunEventKind,
    SupportsResume,
)
from smart_model_router_research.engine.states import RunState, SkipReason, StepResult, StepState
from smart_model_router_research.engine.steps import described
from smart_model_router_research.engine.store_port import NewRun, RunStore
from smart_model_router_research.engine.stored_engine import StoredEngine
from smart_model_router_research.workflow.definition import Step, StepInput, WorkflowDefinition

SHADOW_SECONDS = 5.0
"""A replay has so long, from the end of the run."""
_ENDED = (RunState.COMPLETED, RunState.PARTIAL, RunState.FAILED)
_CUT = (SkipReason.BUDGET, SkipReason.TIMEOUT)
_log = logging.getLogger("smart_model_router.workflows")
OtherMaker = Callable[[RunStore | None], ExecutionEngine]


class ShadowEngine(StoredEngine):
    """An engine whose runs another one repeats, from the recorded answers; name and capabilities are the first's.

    A run that was cancelled, cut by its budget or time limit, or forked is not repeated: its end is not a matter of its
    answers alone. `differences` waits for the replays and returns what they found.
    """

    def __init__(self, primary: StoredEngine, other: OtherMaker, store: RunStore | None = None) -> None:
        super().__init__(store)
        self.name, self.capabilities = primary.name, primary.capabilities
        self._primary = primary
        self._other = other
        self._driven: set[str] = set()
        self._replays: dict[asyncio.Task[list[str]], str] = {}
        self._found: list[str] = []

    async def differences(self) -> Sequence[str]:
        """Return the differences that were found so far, once no replay is under way: after SHADOW_SECONDS at most."""
        while self._replays:
            await asyncio.wait(self._replays)
        return tuple(self._found)

    async def _drive(self, run: HeldRun) -> None:
        self._driven.add(run.run_id)
        await self._primary._drive(run)

    async def _run(
        self, workflow: WorkflowDefinition, context: ExecutionContext, new: NewRun, payload: Approval | None = None
    ) -> ExecutionResult:
        result = await super()._run(workflow, context, new, payload)
        if context.run_id in self._driven and result.status in _ENDED:
            self._driven.discard(context.run_id)
            task = asyncio.create_task(self._compared(workflow, context, result))
            self._replays[task] = context.run_id
            task.add_done_callback(self._compared_one)
        return result

    def _compared_one(self, task: asyncio.Task[list[str]]) -> None:
        run_id = self._replays.pop(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("run %s: its shadow cannot be kept: %s", run_id, described(error))
        elif not task.cancelled():
            self._found += task.result()

    async def _compared(
        self, workflow: WorkflowDefinition, context: ExecutionContext, result: ExecutionResult
    ) -> list[str]:
        """Repeat a run, and keep the differences as an event of it; returns them."""
        store = self._store_for(context)
        try:
            async with asyncio.timeout(SHADOW_SECONDS):
                found = await self._replayed(store, workflow, context, result)
        except TimeoutError:
            _log.warning("run %s: its shadow took more than %g s", context.run_id, SHADOW_SECONDS)
            return []
        except Exception as error:  # noqa: BLE001 - whatever the other engine does, the run has ended as it has
            found = [f"the replay failed: {described(error)}"]
        if found:
            lease = await store.lease(context.run_id, f"shadow of {context.run_id}", context.lease)
            try:
                data = {"differences": found, "engine": self.name}
                await store.record(lease, RunEventKind.SHADOW_DIFFERED, data=data)
            finally:
                await store.release(lease)
        return found

    async def _replayed(
        self, store: RunStore, workflow: WorkflowDefinition, context: ExecutionContext, result: ExecutionResult
    ) -> list[str]:
        """Return the differences between the result of a run and that of its replay."""
        run = await store.load(context.run_id)
        if run.forked_from is not None or any(step.skip_reason in _CUT for step in result.steps.values()):
            return []
        clock, rows = context.clock, {name: row.result for name, row in run.steps.items()}
        own = MemoryRunStore(now=clock.now, wall=clock.now)
        other = self._other(own)
        surroundings = ExecutionContext(
            run_id=context.run_id,
            inputs=run.inputs,
            clock=clock,
            dice=context.dice,
            max_concurrency=context.max_concurrency,
        )
        recorded = _recorded(workflow, rows)
        found = await other.execute(recorded, surroundings)
        while found.status is RunState.PAUSED and isinstance(other, SupportsResume):
            for asked in await own.approvals(context.run_id):
                row = rows.get(asked.step, StepResult())
                payload = (row.outputs or {}).get("payload")
                approved = row.state is StepState.SUCCEEDED
                await own.decide(context.run_id, Approval(approved=approved, payload=payload, step=asked.step))
            found = await other.resume(recorded, surroundings)
        return [*_differences(result, found)]


def _recorded(workflow: WorkflowDefinition, rows: Mapping[str, StepResult]) -> WorkflowDefinition:
    """Return a workflow whose steps answer as the rows of a run have it, at once."""

    async def answer(given: StepInput) -> Mapping[str, Any]:
        row = rows.get(given.step)
        if row is None or row.state not in (StepState.SUCCEEDED, StepState.FAILED):
            raise SmartRouterError("the first engine did not run this step")
        given.charge(row.costs)
        if row.outputs is None:
            raise SmartRouterError(row.error)
        return row.outputs

    def recorded(step: Step) -> Step:
        inner = None if step.workflow is None else _recorded_in(step.workflow)
        return replace(step, run=None if step.run is None else answer, attempts=1, timeout=None, workflow=inner)

    def _recorded_in(workflow: WorkflowDefinition) -> WorkflowDefinition:
        return replace(workflow, steps=[recorded(step) for step in workflow.steps])

    return _recorded_in(workflow)


def _differences(one: ExecutionResult, other: ExecutionResult) -> Sequence[str]:
    """Return the differences of two results, each in words; errors and attempts are those of the first run alone."""
    found = []
    if one.status != other.status:
        found.append(f"the run: {one.status}, and {other.status} by the other engine")
    for name in dict.fromkeys([*one.steps, *other.steps]):
        mine, its = (result.steps.get(name, StepResult()) for result in (one, other))
        if (mine.state, mine.skip_reason) != (its.state, its.skip_reason):
            found.append(f"step {name}: {_word(mine)}, and {_word(its)} by the other engine")
        elif mine.outputs != its.outputs:
            found.append(f"step {name}: its outputs differ")
    if one.outputs != other.outputs:
        found.append("the outputs of the run differ")
    return found


def _word(result: StepResult) -> str:
    return result.skip_reason or result.state
