"""Both engines of ours come to the same: from the start, one behind the other, as forks, and as shadows."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from smart_model_router.domain.errors import RequestRejected
from smart_model_router.testing import LoopClock, run_virtual
from smart_model_router_research.engine import (
    Approval,
    Budget,
    ExecutionContext,
    ExecutionResult,
    ForkChanges,
    KahnEngine,
    LangGraphEngine,
    MemoryRunStore,
    RunEvent,
    RunEventKind,
    RunState,
    RunStore,
    ShadowEngine,
    SkipReason,
    StepResult,
    StepState,
    StoreUnavailable,
    WorkflowChanged,
    select_engine,
    shadow,
)
from smart_model_router_research.engine.held_run import HeldRun
from smart_model_router_research.workflow import Costs, Step, StepInput, WorkflowDefinition, WorkflowInput
from tests.conformance.engine_harness import Process, Trace, digest, passing, states
from tests.conformance.engine_loops import draft_and_check
from tests.conformance.engine_pitfalls import research

Engine = type[KahnEngine] | type[LangGraphEngine]
ENGINES: tuple[Engine, Engine] = (KahnEngine, LangGraphEngine)
PAIRS = [(KahnEngine, LangGraphEngine), (LangGraphEngine, KahnEngine)]


def memory() -> MemoryRunStore:
    """Return a store on the clock of the loop."""
    return MemoryRunStore(now=LoopClock().now, wall=LoopClock().now)


def surroundings(run_id: str = "r", **options: Any) -> ExecutionContext:
    """Return the surroundings of a run in virtual time."""
    return ExecutionContext(run_id=run_id, clock=LoopClock(), **options)


def random_workflow(chance: random.Random) -> WorkflowDefinition:
    """Make a workflow with faults, conditions, retries and subgraphs: each step ends as its answers say."""

    def work(name: str, depth: int) -> Step:
        seconds, fault = chance.choice([0, 1, 1, 3]), chance.random()
        error = RuntimeError("no") if fault < 0.2 else RequestRejected("never") if fault < 0.25 else None

        async def run(step: StepInput) -> Mapping[str, Any]:
            step.charge(Costs(calls=1))
            await passing(seconds)
            if error is not None and (fault > 0.1 or step.attempt < 2):
                raise error
            read = sum(1 for each in step.steps.values() if each is not None)
            return {"n": read, "even": read % 2 == 0, "of": step.step}

        before = [each.name for each in steps if chance.random() < 0.3]
        gates: list[str | None] = [f"steps.{each}.outputs.even" for each in before] or [None]
        options: dict[str, Any] = {
            "when": chance.choice([None, None, True, False, chance.choice(gates)]),
            "always": chance.random() < 0.2,
            "on_error": chance.choice(["fail", "continue"]),
        }
        if depth == 0 and chance.random() < 0.15:
            inner, kept = random_steps(depth + 1), f"x{len(steps)}"
            workflow = WorkflowDefinition(kept, inner, outputs={"even": f"${{steps.{inner[0].name}.outputs.even}}"})
            return Step(name, kind="workflow", workflow=workflow, needs=tuple(before), **options)
        return Step(name, run, tuple(before), attempts=chance.randint(1, 2), **options)

    steps: list[Step] = []

    def random_steps(depth: int) -> list[Step]:
        nonlocal steps
        outer, steps = steps, []
        for number in range(chance.randint(1, 10 if depth == 0 else 3)):
            steps.append(work(f"s{number}", depth))
        found, steps = steps, outer
        return found

    found = random_steps(0)
    chance.shuffle(found)
    return WorkflowDefinition("w", found, outputs={"last": f"${{steps.{found[-1].name}.outputs}}"})


def partial_order(events: Sequence[RunEvent]) -> tuple[Counter[str], set[tuple[str, str]]]:
    """Return the events of a run, and which comes before which on the steps' own paths."""
    by_step: dict[str, list[str]] = {}
    for event in events:
        by_step.setdefault(event.step, []).append(event.id)
    own = {pair for ids in by_step.values() for pair in itertools.pairwise(ids)}
    return Counter(event.id for event in events), own


async def played(engine: Engine, workflow: WorkflowDefinition, most: int) -> tuple[ExecutionResult, list[RunEvent]]:
    """Run a workflow; its result and events."""
    store = memory()
    result = await engine(store).execute(workflow, surroundings(max_concurrency=most))
    events = list(await store.events_since("r"))
    settled = {event.step: event.seq for event in events if event.kind is RunEventKind.STEP_SETTLED}
    for event in events:
        needs = workflow.by_name[event.step].needs if event.step in workflow.by_name else ()
        assert all(settled[need] < event.seq for need in needs)
    return result, events


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_any_workflow_ends_in_the_same_way_on_both_engines(seed: int) -> None:
    """C20: states, outputs, costs, and the events with their partial order, of random workflows with faults."""
    note(f"seed {seed}")
    chance = random.Random(seed)
    workflow, most = random_workflow(chance), chance.randint(1, 4)
    (one, first), (other, second) = (run_virtual(played(engine, workflow, most)) for engine in ENGINES)
    assert digest(one) == digest(other)
    assert one.usage == other.usage
    assert partial_order(first) == partial_order(second)


def test_one_step_at_a_time_a_budget_skips_the_same_steps() -> None:
    """C19: the steps begin in the same order on both, whatever their names and places are."""

    def workflow(trace: Trace) -> WorkflowDefinition:
        one: dict[str, Any] = {"estimate": {"calls": 1}}
        needs = {"x": ("a",), "b": (), "a": (), "z": ("b",), "c": ("a", "b")}
        return WorkflowDefinition("w", [Step(name, trace.work(1), need, **one) for name, need in needs.items()])

    async def ran(engine: Engine, calls: int) -> tuple[list[str], str]:
        trace = Trace()
        context = surroundings(max_concurrency=1, budget=Budget(calls=calls))
        return trace.began, digest(await engine(memory()).execute(workflow(trace), context))

    for calls in range(1, 6):
        one, other = (run_virtual(ran(engine, calls)) for engine in ENGINES)
        assert one == other
        assert len(one[0]) == calls


# ------------------------------------------------------------------------------------------------ one behind the other


def chained(trace: Trace) -> WorkflowDefinition:
    """Make a workflow with a subgraph, a skip, a failure and a decision."""
    part = [Step("x", trace.work(1, y=1)), Step("z", trace.work(1, y=2), ("x",))]
    inner = WorkflowDefinition("v", part, outputs={"y": "${steps.z.outputs.y}"})
    steps = [
        Step("a", trace.work(1)),
        Step("no", trace.work(), ("a",), when=False),
        Step("bad", trace.work(1, fails=RuntimeError("no")), ("a",), on_error="continue"),
        Step("sub", kind="workflow", workflow=inner, needs=("a",)),
        Step("ok", kind="approval", needs=("sub",)),
        Step("b", trace.work(1), ("no", "bad", "ok"), inputs={"y": "${steps.sub.outputs.y}"}),
    ]
    return WorkflowDefinition("w", steps, outputs={"y": "${steps.sub.outputs.y}"})


async def decided(engine: Any, store: RunStore, workflow: WorkflowDefinition) -> ExecutionResult:
    """Go on with a run to its end, with a yes to its question."""
    result: ExecutionResult = await engine(store).resume(workflow, surroundings())
    if result.status is RunState.PAUSED:
        result = await engine(store).resume(workflow, surroundings(), Approval(payload="yes"))
    return result


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_run_that_died_at_any_write_goes_on_on_the_other_engine(first: Engine, second: Engine) -> None:
    """C11: what had settled does not run again; the end is that of a run on one engine."""

    async def whole() -> str:
        store = memory()
        await first(store).execute(chained(Trace()), surroundings())
        return digest(await decided(first, store, chained(Trace())))

    expected = run_virtual(whole())

    async def broken(writes: int) -> bool:
        store, trace = memory(), Trace()
        dying = Process(store, writes)
        try:
            await first(dying.store).execute(chained(trace), surroundings())
        except StoreUnavailable:
            await passing(31)
        settled = {name for name, step in (await store.load("r")).steps.items() if step.number is not None}
        before = len(trace.began)
        assert digest(await decided(second, store, chained(trace))) == expected
        assert not settled & set(trace.began[before:])
        return dying.left > 0

    writes = 1
    while not run_virtual(broken(writes)):
        writes += 1
    assert writes > 15


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_another_workflow_is_refused_by_the_other_engine_too(first: Engine, second: Engine) -> None:
    """C11: the steps that differ are named."""

    async def main() -> None:
        store, trace = memory(), Trace()
        await first(store).execute(WorkflowDefinition("w", [Step("a", trace.work())]), surroundings())
        other = WorkflowDefinition("w", [Step("a", trace.work()), Step("b", trace.work())])
        with pytest.raises(WorkflowChanged, match="these differ: b"):
            await second(store).resume(other, surroundings())

    run_virtual(main())


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_fork_is_the_same_on_both_engines(first: Engine, second: Engine) -> None:
    """C22: of a run of either; the same steps run again, and the old run is as it was."""
    trace = Trace()
    steps = [
        Step("a", trace.work(), inputs={"k": "${inputs.k}"}),
        Step("b", trace.work(), inputs={"m": "${inputs.m}"}),
        Step("c", trace.work(), ("a",)),
        Step("d", trace.work(), ("b", "c")),
    ]
    declared = {"k": WorkflowInput(default=1), "m": WorkflowInput(default=2)}
    workflow = WorkflowDefinition("w", steps, declared, {"d": "${steps.d.outputs.of}"})

    async def main() -> None:
        store = memory()
        await first(store).execute(workflow, surroundings())
        old = await store.load("r")
        ref = await store.checkpoint("r")
        ends = []
        for engine in (first, second):
            trace.began.clear()
            context = surroundings(f"f{engine.name}")
            result = await engine(store).fork(ref, workflow, context, ForkChanges(inputs={"k": 7}))
            ends.append((digest(result), sorted(trace.began)))
        assert ends[0] == ends[1]
        assert ends[0][1] == ["a", "c", "d"]
        assert await store.load("r") == old

    run_virtual(main())


# ------------------------------------------------------------------------------------------------ the shadow


class Forgetful(LangGraphEngine):
    """An engine that loses the outputs of the step b."""

    name = "forgetful"

    async def _drive(self, run: HeldRun) -> None:
        work = run.work

        async def forgets(graph: Any, step: Step) -> StepResult:
            result = await work(graph, step)
            if step.name == "b":
                graph.results["b"] = run.results["b"] = result = StepResult(state=StepState.SUCCEEDED, outputs={})
            return result

        run.work = forgets  # type: ignore[method-assign]  # the fault of this engine
        await super()._drive(run)


class Crashing(LangGraphEngine):
    """An engine that ends in an error."""

    name = "crashing"

    async def _drive(self, run: HeldRun) -> None:
        raise RecursionError("too deep")


class Endless(LangGraphEngine):
    """An engine that does not end."""

    name = "endless"

    async def _drive(self, run: HeldRun) -> None:
        await passing(3_600)


def three(trace: Trace) -> WorkflowDefinition:
    """Make a workflow of three steps, one of which charges and one of which fails."""
    steps = [
        Step("a", trace.work(1)),
        Step("b", trace.work(1), ("a",)),
        Step("c", trace.work(fails=RuntimeError("no")), ("b",), attempts=3),
    ]
    return WorkflowDefinition("w", steps, outputs={"b": "${steps.b.outputs.of}"})


async def shadowed(
    workflow: WorkflowDefinition, other: Callable[[RunStore | None], Any]
) -> tuple[ExecutionResult, Sequence[str], list[RunEvent], float]:
    """Run a workflow with a shadow; the result, the differences, the events behind the end, how long they took."""
    store = memory()
    engine = ShadowEngine(KahnEngine(store), other, store)
    result = await engine.execute(workflow, surroundings())
    ended, seq = LoopClock().now(), (await store.load("r")).seq
    found = await engine.differences()
    taken = LoopClock().now() - ended
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert (await store.load("r")).owner == ""
    return result, found, list(await store.events_since("r", seq)), taken


@pytest.mark.parametrize(
    "workflow",
    [three, chained, lambda trace: research(trace, True), lambda trace: research(trace, False)],
    ids=["three", "chained", "one round", "four rounds"],
)
def test_a_shadow_finds_no_difference_on_the_canonical_suite(workflow: Callable[[Trace], WorkflowDefinition]) -> None:
    """No step runs twice, and nothing is written to the run; decisions are those that were made."""

    async def main() -> None:
        trace, store = Trace(), memory()
        selected = select_engine(workflow(trace), "shadow", store=store)
        assert isinstance(selected.engine, ShadowEngine)
        result = await selected.engine.execute(workflow(trace), surroundings())
        if result.status is RunState.PAUSED:
            await selected.engine.differences()
            result = await selected.engine.resume(workflow(trace), surroundings(), Approval(payload="yes"))
        before, began = await store.load("r"), list(trace.began)
        assert await selected.engine.differences() == ()
        assert (await store.load("r"), trace.began) == (before, began)
        assert digest(await selected.engine.resume(workflow(trace), surroundings())) == digest(result)
        assert await selected.engine.differences() == ()

    run_virtual(main())


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_shadow_finds_no_difference_on_any_workflow(seed: int) -> None:
    """From recorded answers, whichever engine was first."""
    note(f"seed {seed}")
    workflow = random_workflow(random.Random(seed))
    _, found, events, taken = run_virtual(shadowed(workflow, LangGraphEngine))
    assert (found, events, taken) == ((), [], 0)


def test_a_shadow_of_a_loop_repeats_each_pass() -> None:
    """Between two engines that have cycles: each pass has the answer that it had."""

    class Second(LangGraphEngine):
        name = "second"

    async def main() -> None:
        trace, store = Trace(), memory()
        engine = ShadowEngine(LangGraphEngine(store), Second, store)
        await engine.execute(draft_and_check(trace, 3), surroundings())
        assert await engine.differences() == ()
        assert len(trace.began) == 11

    run_virtual(main())


def test_a_difference_is_an_event_and_changes_nothing_of_the_result() -> None:
    """It names the step, and what reads it."""
    alone = run_virtual(played(KahnEngine, three(Trace()), 10))[0]
    result, found, events, taken = run_virtual(shadowed(three(Trace()), Forgetful))
    assert digest(result) == digest(alone)
    assert found == ("step b: its outputs differ", "the outputs of the run differ")
    assert [(event.kind, event.data["differences"]) for event in events] == [
        (RunEventKind.SHADOW_DIFFERED, list(found))
    ]
    assert taken < shadow.SHADOW_SECONDS


@pytest.mark.parametrize(
    ("decisions", "found"),
    [
        (
            {"b": StepResult(state=StepState.SKIPPED, skip_reason=SkipReason.CONDITION)},
            [
                "the run: failed, and completed by the other engine",
                "step b: succeeded, and condition by the other engine",
                "step c: failed, and dependency_skipped by the other engine",
                "the outputs of the run differ",
            ],
        ),
        (
            {"d": StepResult(state=StepState.READY)},
            ["step d: condition, and failed by the other engine"],
        ),
    ],
    ids=["skipped", "run"],
)
def test_a_step_that_the_other_engine_decides_otherwise_is_told(
    decisions: Mapping[str, StepResult], found: Sequence[str]
) -> None:
    """One that it skips, and one that it runs, which has no recorded answer."""

    class Otherwise(LangGraphEngine):
        name = "otherwise"

        async def _drive(self, run: HeldRun) -> None:
            decide = run.decide

            async def decided(graph: Any, step: Step) -> StepResult:
                if (result := decisions.get(step.name)) is None:
                    return await decide(graph, step)
                run._move(graph, step, result)
                return result

            run.decide = decided  # type: ignore[method-assign]  # the fault of this engine
            await super()._drive(run)

    steps = [*three(Trace()).steps, Step("d", Trace().work(), when=False)]
    workflow = WorkflowDefinition("w", steps, outputs={"b": "${steps.b.outputs.of}"})
    assert list(run_virtual(shadowed(workflow, Otherwise))[1]) == found


def test_a_shadow_that_crashes_or_does_not_end_changes_nothing() -> None:
    """A crash is a difference; one that takes too long is left, after five seconds."""
    alone = run_virtual(played(KahnEngine, three(Trace()), 10))[0]
    result, found, events, _ = run_virtual(shadowed(three(Trace()), Crashing))
    assert (digest(result), found) == (digest(alone), ("the replay failed: RecursionError: too deep",))
    assert [event.kind for event in events] == [RunEventKind.SHADOW_DIFFERED]
    result, found, events, taken = run_virtual(shadowed(three(Trace()), Endless))
    assert (digest(result), found, events, taken) == (digest(alone), (), [], shadow.SHADOW_SECONDS)


def test_a_store_that_fails_after_the_end_of_a_run_keeps_no_difference() -> None:
    """The run has its result; nothing is raised."""

    async def main() -> None:
        store = memory()
        dying = Process(store)
        engine = ShadowEngine(KahnEngine(dying.store), Forgetful, dying.store)
        result = await engine.execute(three(Trace()), surroundings())
        dying.left = 0
        assert (result.status, await engine.differences()) == (RunState.FAILED, ())

    run_virtual(main())


@pytest.mark.parametrize("cut", ["cancelled", "limit"])
def test_a_run_that_was_cut_has_no_shadow(cut: str) -> None:
    """Its end is not a matter of its answers."""

    async def main() -> None:
        store, workflow = memory(), WorkflowDefinition("w", [Step("a", Trace().work(60)), Step("b", Trace().work(60))])
        engine = ShadowEngine(KahnEngine(store), Forgetful, store)
        deadline = LoopClock().now() + (5 if cut == "limit" else 600)
        context = surroundings(max_concurrency=1, deadline=deadline)
        task = asyncio.create_task(engine.execute(workflow, context))
        await passing(1)
        if cut == "cancelled":
            await engine.cancel("r")
        result = await task
        assert states(result)["b"] == ("cancelled" if cut == "cancelled" else "timeout")
        assert await engine.differences() == ()

    run_virtual(main())
