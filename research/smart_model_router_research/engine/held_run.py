"""One run while this process holds it: its lease, what has settled, its limits and its end. Every engine drives one."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from smart_model_router.domain.ports import Clock
from smart_model_router.flow.clock import EARLY
from smart_model_router_research.engine.joining import CANCELLED, consider
from smart_model_router_research.engine.journal import RunJournal
from smart_model_router_research.engine.loops import begin_pass, ended_pass, goes_on, passes_of, row_name
from smart_model_router_research.engine.protocol import ExecutionContext, ExecutionResult, RunEventKind
from smart_model_router_research.engine.results import execution_result, subgraph_result
from smart_model_router_research.engine.states import (
    FREE,
    OPEN,
    PENDING,
    RunState,
    SkipReason,
    StepResult,
    StepState,
    moved,
)
from smart_model_router_research.engine.steps import Ending, StepRunner, step_input
from smart_model_router_research.engine.store_port import (
    RunBusy,
    RunLease,
    RunStore,
    StaleLease,
    StoredRun,
)
from smart_model_router_research.workflow.definition import (
    COSTS,
    Costs,
    Step,
    StepInput,
    WorkflowDefinition,
    WorkflowError,
)
from smart_model_router_research.workflow.evaluation import ExpressionTypeError


@dataclass(slots=True, eq=False)
class GraphState:
    """The state of one workflow in a run: the run's own, or that of a subgraph.

    `results` go by the names of its steps, whose full names begin with `prefix`. Its steps have to end by `limit`
    (monotonic). `outer` is the step that the subgraph is, and the graph that this stands in; `key` its input hash.
    `passes` are those of the steps in loops, from 1: `results` has the present one, and the one before.
    """

    workflow: WorkflowDefinition
    inputs: Mapping[str, Any]
    prefix: str = ""
    limit: float = math.inf
    outer: tuple[GraphState, Step] | None = None
    key: str = ""
    results: dict[str, StepResult] = field(default_factory=dict)
    passes: dict[str, int] = field(default_factory=dict)

    def full_name(self, step: Step) -> str:
        """Return the name of the row of a step in its present pass."""
        full = self.prefix + step.name
        return row_name(full, self.passes.get(step.name, 1)) if self.passes else full


class HeldRun:
    """One run while this process holds it. `ended` is its result when it had ended before; `over` is set at the end.

    `run_id` names it. An engine drives it: it decides the steps whose needs have settled, and begins those that are
    ready, as they are of a kind: `work`, `ask` or `enter`. `root` is the graph of the workflow itself, `results` go by
    full names. `on_beat` is awaited with each heartbeat: then decisions may be there that `ask` finds. `readers` are
    told of each write.
    """

    def __init__(
        self,
        workflow: WorkflowDefinition,
        context: ExecutionContext,
        store: RunStore,
        lease: RunLease,
        was: StoredRun,
        engine: str,
        readers: Collection[asyncio.Event],
    ) -> None:
        self.store = store
        self.run_id = lease.run_id
        self.over = asyncio.Event()
        self.on_beat: Callable[[], Awaitable[object]] = _ignored
        self.max_concurrency = context.max_concurrency
        self._engine = engine
        self._workflow = workflow
        self._context = context
        self._clock: Clock = context.clock
        self._lease = lease
        self._known = was.seq > 1
        self.results = {name: step.result for name, step in was.steps.items() if step.number is not None}
        self._begun = was.steps.keys() - self.results.keys()
        self.journal = RunJournal(
            store,
            lease,
            seq=was.seq if self._known else 0,
            spent=was.spent,
            observers=context.observers,
            readers=readers,
        )
        self._runner = StepRunner(
            journal=self.journal, clock=context.clock, dice=context.dice, services=context.services
        )
        fresh = not self._known and context.deadline < math.inf  # the instant as it was given, not as it was kept
        left = None if fresh else was.seconds_left
        deadline = min(context.deadline, math.inf if left is None else self._clock.now() + left)
        known = {name: self.results[name] for name in workflow.by_name if name in self.results}
        self._deadline, tail = deadline, deadline
        if self._known and context.budget is not None:  # its time may be over: what has to end it has its reserve
            tail = max(deadline, self._clock.now() + context.budget.reserve.seconds)
        self.root = GraphState(workflow, was.inputs, limit=tail, results=known)
        self._passes = {"": self.root.passes}
        self.ended = None if was.state in OPEN else self._result()
        if was.state is RunState.CANCELLED and self.ended is not None:  # also between two passes of a loop
            self.ended = replace(self.ended, status=was.state, reason=was.reason)
        self._under_way: dict[str, Step] = {}
        self._cancelled = asyncio.Event()
        if lease.cancel_asked:
            self.cancel()

    def cancel(self) -> None:
        """Cancel the run for good."""
        self._cancelled.set()

    async def held(self, drive: Callable[[HeldRun], Awaitable[None]]) -> ExecutionResult:
        """Drive the run to its end or its pause while the lease is renewed; no task is left behind.

        Raises StaleLease, StoreUnavailable, and whatever `drive` raises.
        """
        await self.journal.tell()
        if self._known:
            await self.journal.record(RunEventKind.RUN_RESUMED)
        if self._context.engine_reason:
            selected = {"engine": self._engine, "reason": self._context.engine_reason}
            await self.journal.record(RunEventKind.ENGINE_SELECTED, data=selected)
        if not self._cancelled.is_set():
            await self._driven(drive)
            if self._result().status is RunState.PAUSED:  # a pause has no heartbeat that hears of a cancellation
                await self._renew()
        if self._cancelled.is_set():
            await self._cancel_rest()
        result = self._result()
        await self.journal.end(result.status, result.outputs, result.reason)
        return result

    async def _driven(self, drive: Callable[[HeldRun], Awaitable[None]]) -> None:
        async def driven() -> None:
            await drive(self)

        tasks = [asyncio.create_task(each) for each in (driven(), self._heartbeat(), self._cancel_asked())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        failed = [error for task in tasks if not task.cancelled() and (error := task.exception()) is not None]
        for error in failed:
            raise error

    async def _cancel_asked(self) -> None:
        await self._cancelled.wait()

    async def _heartbeat(self) -> None:
        while True:
            await self._clock.sleep(self._context.heartbeat)
            await self._renew()
            await self.on_beat()

    async def _renew(self) -> None:
        """Renew the lease, and cancel the run when that was asked for. Raises StaleLease."""
        try:
            lease = await self.store.lease(self._lease.run_id, self._lease.owner, self._lease.seconds)
        except RunBusy:
            raise StaleLease(self._lease.run_id, self._lease.fence) from None
        if lease.fence != self._lease.fence:
            raise StaleLease(self._lease.run_id, self._lease.fence)
        if lease.cancel_asked:
            self.cancel()

    async def _cancel_rest(self) -> None:
        """Cancel what has not settled: the steps of the workflow, and those of subgraphs that began, these first."""
        for name in list(self._unsettled(self._workflow, "")):
            self.results[name] = CANCELLED
            await self.journal.settle(name, CANCELLED)

    def _unsettled(self, workflow: WorkflowDefinition, prefix: str) -> Iterator[str]:
        passes = passes_of(workflow, self.results.keys() | self._begun, prefix) | self._passes.get(prefix, {})
        for step in workflow.steps:
            full = row_name(prefix + step.name, passes.get(step.name, 1))
            result = self.results.get(full, PENDING)
            if result.state.settled:
                continue
            if step.workflow is not None and (full in self._begun or result.state is not StepState.PENDING):
                yield from self._unsettled(step.workflow, f"{full}.")
            yield full

    def _result(self) -> ExecutionResult:
        found = execution_result(
            self._workflow, self._context.run_id, self.results, self.root.inputs, self.journal.spent, self._engine
        )
        return replace(found, engine_reason=self._context.engine_reason)

    # -------------------------------------------------------------------------------------------- for engines

    async def decide(self, graph: GraphState, step: Step) -> StepResult:
        """Decide a step whose needs have settled; returns that it is ready, or the result that it settled with."""
        decided = consider(graph.workflow, step.name, graph.results, graph.inputs)
        assert decided is not None  # noqa: S101 - all that it needs has settled
        self._move(graph, step, decided)
        if decided.state is not StepState.READY:
            await self.journal.settle(graph.full_name(step), decided)
        return decided

    def waits(self, graph: GraphState, step: Step) -> bool:
        """Return whether something that a step needs has not settled; a loop has, from outside, with its last pass."""
        loops = graph.workflow.loop_of
        own, needs = loops.get(step.name), set(step.needs)
        needs |= {loops[need] for need in step.needs if loops.get(need, own) != own}
        return not all(graph.results.get(need, PENDING).state.settled for need in needs)

    def repeat(self, graph: GraphState, step: Step) -> bool:
        """Begin another pass of the loop that a settled step ends, when one follows; returns whether."""
        number = graph.passes.get(step.name, 1)
        if not goes_on(step, number, graph.results, graph.inputs):
            return False
        body = graph.workflow.loops[step.name]
        begin_pass(body, graph.results)
        graph.passes.update(dict.fromkeys(body, number + 1))
        known = {name: self.results.get(row_name(graph.prefix + name, number + 1)) for name in body}
        graph.results.update((name, result) for name, result in known.items() if result is not None)
        return True

    async def admit(self, graph: GraphState, step: Step) -> StepResult:
        """Let a ready step run; returns that it runs, or that it was skipped for want of time or of budget."""
        full, budget = graph.full_name(step), self._context.budget
        waited = full in self._begun and step.kind in _WAITING
        result = RUNNING
        if not waited and self._clock.now() + EARLY >= self._limit(graph, step):
            result = StepResult(state=StepState.SKIPPED, skip_reason=SkipReason.TIMEOUT)
        elif not waited and budget is not None and not budget.fits(self._committed(), step):
            result = StepResult(state=StepState.SKIPPED, skip_reason=SkipReason.BUDGET)
        self._move(graph, step, result)
        if result is not RUNNING:
            await self.journal.settle(full, result)
        elif step.kind not in _WAITING:
            self._under_way[full] = step
        return result

    async def work(self, graph: GraphState, step: Step) -> StepResult:
        """Run a step that was admitted until it has settled; returns its result. Cancelled, it settles nothing."""
        assert step.run is not None  # noqa: S101 - the definition has seen to it
        full = graph.full_name(step)
        given = self._input(graph, step)
        try:
            if isinstance(given, StepResult):
                result = await self.journal.settle(full, given)
            else:
                ending = self._ending(graph, step)
                result = await self._runner.run(step, step.run, given, self._limit(graph, step), ending)
            self._move(graph, step, result)
        finally:
            del self._under_way[full]
        return result

    async def ask(self, graph: GraphState, step: Step) -> StepResult:
        """Ask for the decision about an approval, admitted or paused; returns that it is paused, or its result."""
        given = self._input(graph, step)
        if isinstance(given, StepResult):
            result = await self.journal.settle(graph.full_name(step), given)
        else:
            result = await self._runner.ask(step, given, self._limit(graph, step), self._ending(graph, step))
        before = graph.results[step.name].state
        if before is StepState.PAUSED and result.state is StepState.SUCCEEDED:
            self._move(graph, step, RUNNING)
        if before is not StepState.PAUSED or result.state is not StepState.PAUSED:
            self._move(graph, step, result)
        return result

    async def enter(self, graph: GraphState, step: Step) -> GraphState | StepResult:
        """Begin the subgraph that a step is, which was admitted; returns its graph, or how it failed at once."""
        assert step.workflow is not None  # noqa: S101 - the definition has seen to it
        full = graph.full_name(step)
        given = self._input(graph, step)
        if isinstance(given, StepResult):
            self._move(graph, step, given)
            await self.journal.settle(full, given)
            return given
        prefix = f"{full}."
        own = math.inf if step.timeout is None else self._clock.now() + step.timeout
        await self.journal.begin(full, 1, given.input_hash)
        found = GraphState(step.workflow, given.inputs, prefix, min(own, graph.limit), (graph, step), given.input_hash)
        known = ((name, self.results.get(prefix + name)) for name in step.workflow.by_name)
        found.results.update((name, result) for name, result in known if result is not None)
        self._passes[prefix] = found.passes
        return found

    async def leave(self, graph: GraphState) -> tuple[GraphState, Step]:
        """Settle the step that a subgraph is, all of whose steps have; returns it, and the graph that it stands in."""
        assert graph.outer is not None  # noqa: S101 - the graph of the workflow ends with the run
        outer, step = graph.outer
        result = subgraph_result(graph.workflow, graph.results, graph.inputs, graph.prefix)
        if (ending := self._ending(outer, step)) is not None:
            result = ending(result)
        result = await self.journal.settle(outer.full_name(step), result, graph.key)
        self._move(outer, step, result)
        return graph.outer

    async def pause(self, graph: GraphState) -> None:
        """Note that a subgraph, and all that it stands in, waits for a decision inside of it."""
        while graph.outer is not None:
            graph, step = graph.outer
            if graph.results[step.name].state is not StepState.PAUSED:
                self._move(graph, step, PAUSED)
                await self.journal.record(RunEventKind.STEP_PAUSED, graph.full_name(step))

    def _ending(self, graph: GraphState, step: Step) -> Ending | None:
        """Return the last word about a step that ends a loop: its condition is asked before the step is kept."""
        if step.loop is None:
            return None
        number = graph.passes.get(step.name, 1)
        return lambda result: ended_pass(step, number, result, graph.results, graph.inputs)

    def _input(self, graph: GraphState, step: Step) -> StepInput | StepResult:
        """Return what a step reads, or that it fails since that cannot be."""
        name = graph.full_name(step)
        try:
            given = step_input(step, name, self._context.run_id, self._workflow.hash, graph.inputs, graph.results)
            if step.workflow is not None:
                given = replace(given, inputs=step.workflow.with_defaults(given.inputs))
        except (ExpressionTypeError, WorkflowError) as error:
            return StepResult(state=StepState.FAILED, error=f"inputs: {error.message}")
        return given

    def _limit(self, graph: GraphState, step: Step) -> float:
        """Return the instant by which a step has to end: some time of the run is kept for steps that always run."""
        if step.always:
            return graph.limit
        budget = self._context.budget
        return min(graph.limit, self._deadline - (0.0 if budget is None else budget.reserve.seconds))

    def _committed(self) -> Costs:
        """Return what was spent, and what the steps under way will probably add to it."""
        total = self.journal.spent
        for name, step in self._under_way.items():
            charged, expected = self.journal.charged.get(name, FREE), step.expected
            rest = {cost: max(0.0, expected.get(cost, 0.0) - getattr(charged, cost)) for cost in COSTS}
            total += Costs(**rest)
        return total

    def _move(self, graph: GraphState, step: Step, result: StepResult) -> None:
        moved(graph.results.get(step.name, PENDING).state, result.state)
        graph.results[step.name] = self.results[graph.full_name(step)] = result


async def _ignored() -> None:
    """Do nothing at a heartbeat: nothing waits for a decision."""


RUNNING = StepResult(state=StepState.RUNNING)
PAUSED = StepResult(state=StepState.PAUSED)
_WAITING = ("approval", "workflow")
"""The kinds of steps that do nothing themselves."""
