"""The wrapper that steps run in: attempts, limits, costs and results, in virtual time."""

from __future__ import annotations

import asyncio
import contextvars
import json
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from smart_model_router.domain.errors import ConfigurationError, RequestRejected, RouterUnavailable
from smart_model_router.testing import START, FakeDice, LoopClock, run_virtual
from smart_model_router_research.engine import (
    Approval,
    MemoryRunStore,
    NewRun,
    RunEvent,
    StaleLease,
    StepResult,
    StepState,
)
from smart_model_router_research.engine.journal import RunJournal
from smart_model_router_research.engine.steps import MAX_OUTPUTS, StepRunner, checked, step_input
from smart_model_router_research.workflow import Costs, ExpressionTypeError, Step, StepInput
from smart_model_router_research.workflow.definition import Run

VALUE: contextvars.ContextVar[str] = contextvars.ContextVar("value", default="")


class Bench:
    """One run with a store, ready for steps."""

    def __init__(self, *rolls: float, limit: float = math.inf, observers: Any = ()) -> None:
        self.store = MemoryRunStore(now=LoopClock().now, wall=LoopClock().now)
        self.dice = FakeDice(*rolls or (0.5,))
        self.limit = limit
        self.observers = observers
        self.journal: RunJournal
        self.left: float | None = None

    async def run(self, step: Step, given: StepInput | None = None) -> StepResult:
        """Run one step."""
        assert step.run is not None
        await self.store.create(new_run())
        lease = await self.store.lease("r", "one")
        self.journal = RunJournal(self.store, lease, spent=Costs(), observers=self.observers)
        runner = StepRunner(journal=self.journal, clock=LoopClock(), dice=self.dice, services={"router": "it"})
        return await runner.run(step, step.run, given or step_input(step, step.name, "r", "h", {}, {}), self.limit)

    async def events(self) -> list[str]:
        """Return the kinds of the events of the step."""
        return [str(event.kind) for event in await self.store.events_since("r", 1)]


def new_run() -> NewRun:
    """Make a run."""
    return NewRun(run_id="r", workflow="w", workflow_hash="h", step_hashes={}, inputs={}, engine="kahn")


class Work:
    """Work that ends as it is told: an error is raised, a number slept for, anything else put out."""

    def __init__(self, *ends: Any) -> None:
        self.ends = list(ends)
        self.given: list[StepInput] = []
        self.at: list[float] = []

    async def __call__(self, step: StepInput) -> Any:
        self.given.append(step)
        self.at.append(LoopClock().now() - START)
        end = self.ends.pop(0)
        if isinstance(end, BaseException):
            raise end
        if isinstance(end, float):
            await asyncio.sleep(end)
            return {"slept": end}
        return end


def run(bench: Bench, work: Run, **options: Any) -> StepResult:
    """Run one step of such work in virtual time."""
    return run_virtual(bench.run(Step("s", work, **options)))


# ------------------------------------------------------------------------------------------------ results


def test_a_result_is_kept_before_it_is_returned() -> None:
    """With what it put out and how often it began."""
    bench, work = Bench(), Work({"y": [1, None]})
    result = run(bench, work)
    assert result == StepResult(state=StepState.SUCCEEDED, outputs={"y": [1, None]}, attempts=1)
    stored = run_virtual(bench.store.load("r"))
    assert stored.steps["s"].result == result
    assert stored.steps["s"].input_hash == step_input(Step("s"), "s", "r", "h", {}, {}).input_hash
    assert run_virtual(bench.events()) == ["step_started", "step_settled"]


def test_a_step_is_given_what_was_read_for_it() -> None:
    """Each field as it was made from the definition, and beside it the services, the attempt and the limit."""
    bench, work = Bench(limit=START + 9.0), Work({})
    step = Step("s", work, ["a"], inputs={"x": "${inputs.q}"}, options={"body": [1]})
    results = {"a": StepResult(state=StepState.SUCCEEDED, outputs={"y": 2})}
    made = step_input(step, "s", "r", "h", {"q": 3}, results)
    run_virtual(bench.run(step, made))
    (given,) = work.given
    assert (given.run_id, given.step, given.inputs, given.steps) == ("r", "s", {"x": 3}, {"a": {"y": 2}})
    assert (given.options, given.services, given.attempt, given.deadline) == (
        {"body": [1]},
        {"router": "it"},
        1,
        START + 9,
    )
    assert (given.input_hash, given.idempotency_key) == (made.input_hash, made.idempotency_key)
    assert len({given.input_hash, given.idempotency_key, ""}) == 3


def test_a_step_that_has_settled_does_not_run_again() -> None:
    """Its result answers, for the same input."""

    async def twice() -> None:
        bench, work = Bench(), Work({"y": 1})
        first = await bench.run(Step("s", work))
        assert await bench.run(Step("s", work)) == first
        assert len(work.given) == 1

    run_virtual(twice())


@pytest.mark.parametrize(
    ("outputs", "reason"),
    [
        (None, "a mapping of names to JSON is needed, not NoneType"),
        ([1], "not list"),
        ({"y": math.nan}, "no JSON"),
        ({"y": {1}}, "not JSON serializable"),
        ({1: 2}, "keys have to be texts"),
        ({"y": (1, 2)}, "sequences lists"),
        ({"y": "x" * MAX_OUTPUTS}, "1048585 characters of JSON are above 1048576: store a document"),
    ],
)
def test_outputs_that_are_no_json_or_too_large_fail_the_step_at_once(outputs: Any, reason: str) -> None:
    """No other attempt would make them JSON."""
    result = run(Bench(), Work(outputs, {}), attempts=2)
    assert (result.state, result.attempts) == (StepState.FAILED, 1)
    assert reason in result.error


class Wordless(Exception):
    """An error that cannot be made to text."""

    def __str__(self) -> str:
        raise ValueError("no words")


class Panic(BaseException):
    """An error as extensions raise it, beside all that `except Exception` catches."""


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Wordless(), "Wordless"),
        (Panic("at line 3"), "RuntimeError: Panic: at line 3"),
        (SystemExit(0), "RuntimeError: SystemExit: 0"),
    ],
)
def test_whatever_a_step_raises_fails_the_step_alone(error: BaseException, told: str) -> None:
    """Not the run, and not the process."""
    result = run(Bench(), Work(error))
    assert (result.state, result.error) == (StepState.FAILED, told)


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
def test_a_charge_that_is_no_cost_fails_the_step(wrong: float) -> None:
    """It would give a budget back, or make it one without end; nothing of it is counted."""

    async def work(step: StepInput) -> Mapping[str, Any]:
        step.charge(Costs(calls=1))
        step.charge(Costs(calls=1, usd=wrong))
        return {}

    bench = Bench()
    result = run(bench, work, attempts=2)
    assert (result.state, result.attempts, result.costs) == (StepState.FAILED, 1, Costs(calls=1))
    assert f"charge.usd: {wrong} - a number of at least 0 is needed" in result.error
    assert bench.journal.spent == Costs(calls=1)


def test_outputs_that_the_run_has_no_room_for_fail_the_step() -> None:
    """The run goes on, and the error says what to do."""

    async def twice() -> None:
        bench, work = Bench(), Work({"y": "x" * 600_000}, {"y": "x" * 600_000})
        assert (await bench.run(Step("a", work))).state is StepState.SUCCEEDED
        result = await bench.run(Step("b", work, attempts=2))
        assert (result.state, result.outputs, result.attempts) == (StepState.FAILED, None, 1)
        assert "store a document" in result.error
        assert (await bench.store.load("r")).steps["b"].result == result

    run_virtual(twice())


def test_outputs_that_contain_themselves_are_refused() -> None:
    """Nested without end as well."""
    loop: dict[str, Any] = {}
    loop["y"] = loop
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for outputs in (loop, {"y": deep}):
        with pytest.raises(ValueError, match="no JSON"):
            checked(outputs)


def test_any_mapping_is_taken_as_outputs() -> None:
    """Keys that are no texts are not."""
    assert checked(MappingProxyType({"y": (1)})) == {"y": 1}
    with pytest.raises(ValueError, match=r"^the outputs are no JSON: keys have to be texts, and sequences lists$"):
        checked({1: 2})


def test_outputs_up_to_the_limit_are_taken_and_owned() -> None:
    """A later change that the step makes to its own copy changes nothing."""
    mine: dict[str, Any] = {"y": ["x" * (MAX_OUTPUTS - 11)]}
    copy = checked(mine)
    assert len(json.dumps(copy)) == MAX_OUTPUTS
    mine["y"].clear()
    assert len(copy["y"]) == 1


# ------------------------------------------------------------------------------------------------ attempts


def test_an_error_is_tried_again_after_a_pause_that_the_dice_decide() -> None:
    """The ceilings double from 0.25 s: full jitter."""
    bench, work = Bench(0.5, 0.9, 0.0), Work(RouterUnavailable("no"), OSError("no"), RuntimeError("no"), {"y": 1})
    result = run(bench, work, attempts=4)
    assert (result.state, result.attempts) == (StepState.SUCCEEDED, 4)
    assert work.at == pytest.approx([0, 0.125, 0.125 + 0.45, 0.125 + 0.45])
    assert [given.attempt for given in work.given] == [1, 2, 3, 4]
    assert len({given.idempotency_key for given in work.given}) == 1
    assert run_virtual(bench.events()) == [*(["step_started", "step_retrying"] * 3), "step_started", "step_settled"]
    told = run_virtual(bench.store.events_since("r", 1))
    assert {event.step for event in told} == {"s"}
    assert [dict(event.data) for event in told[:3]] == [
        {"attempt": 1},
        {"attempt": 1, "reason": "RouterUnavailable: no", "pause": pytest.approx(0.125)},
        {"attempt": 2},
    ]


def test_no_pause_is_longer_than_eight_seconds() -> None:
    """However many attempts there were."""
    work = Work(*[RuntimeError("no")] * 40)
    result = run(Bench(0.999), work, attempts=40)
    assert (result.attempts, result.error) == (40, "RuntimeError: no")
    assert work.at[-1] - work.at[-2] == pytest.approx(0.999 * 8)


def test_a_step_has_one_attempt_unless_it_says_more() -> None:
    """The router retries model calls itself."""
    assert run(Bench(), Work(RuntimeError("no"), {})).attempts == 1


@pytest.mark.parametrize(
    "error", [RequestRejected("no"), ConfigurationError("k", 1, "2"), TypeError("no"), ExpressionTypeError("x", "no")]
)
def test_a_permanent_error_is_not_tried_again(error: Exception) -> None:
    """Another attempt would end in the same way."""
    bench = Bench()
    result = run(bench, Work(error, {}), attempts=3)
    assert (result.state, result.attempts) == (StepState.FAILED, 1)
    assert result.error.startswith(f"{type(error).__name__}: ")
    stored = run_virtual(bench.store.load("r")).steps
    key = step_input(Step("s"), "s", "r", "h", {}, {}).input_hash
    assert {name: (step.result, step.input_hash) for name, step in stored.items()} == {"s": (result, key)}


def test_the_text_of_an_error_is_cut() -> None:
    """It stands in the row of the step."""
    assert len(run(Bench(), Work(RuntimeError("x" * 5_000))).error) == 2_000


# ------------------------------------------------------------------------------------------------ limits


def test_a_time_out_is_tried_again() -> None:
    """Each attempt has the whole of it."""
    work = Work(60.0, 4.0)
    result = run(Bench(0.0), work, attempts=2, timeout=5.0)
    assert (result.state, result.outputs, result.attempts) == (StepState.SUCCEEDED, {"slept": 4.0}, 2)
    assert [given.deadline - START for given in work.given] == [5.0, 10.0]


def test_a_last_time_out_fails_the_step_and_names_the_limit() -> None:
    """So does one that the work answers with an error of its own."""

    async def stubborn(step: StepInput) -> Mapping[str, Any]:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise OSError("closed") from None
        return {}

    for work in (Work(60.0), stubborn):
        assert run(Bench(), work, timeout=5.0).error == "time-out after 5 s"


def test_work_that_ends_although_its_time_is_over_counts() -> None:
    """It was paid for."""

    async def slow(step: StepInput) -> Mapping[str, Any]:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return {"y": 1}
        return {}

    assert run(Bench(), slow, timeout=5.0).outputs == {"y": 1}


def test_the_limit_of_the_run_ends_a_step_for_good() -> None:
    """Whatever attempts are left; a pause that would go beyond it is not begun."""
    result = run(Bench(limit=START + 3.0), Work(60.0, {}), attempts=2, timeout=5.0)
    assert (result.error, result.attempts) == ("the time limit of the run came before its end", 1)
    work = Work(RuntimeError("no"), {})
    assert run(Bench(0.9, limit=START + 0.2), work, attempts=2).error == "RuntimeError: no"
    assert len(work.given) == 1
    for pause, attempts in ((0.125, 1), (0.1249, 2)):  # nothing can be done at the limit itself
        limit = START + 0.125
        work = Work(RuntimeError("no"), {})
        assert run(Bench(pause / 0.25, limit=limit), work, attempts=2).attempts == attempts
    result = run(Bench(limit=START + 5.0), Work(60.0, {}), attempts=2, timeout=5.0)
    assert result.error == "the time limit of the run came before its end"


# ------------------------------------------------------------------------------------------------ cancellation


def test_a_cancelled_step_settles_nothing_whatever_its_work_makes_of_it() -> None:
    """It is left running in the store, to be taken up again; its work has ended; what it paid is kept."""

    async def politely(step: StepInput) -> Mapping[str, Any]:
        step.charge(Costs(calls=1))
        await asyncio.sleep(60)
        return {}

    async def value(step: StepInput) -> Mapping[str, Any]:
        try:
            return await politely(step)
        except asyncio.CancelledError:
            return {"y": 1}

    async def error(step: StepInput) -> Mapping[str, Any]:
        try:
            return await politely(step)
        finally:
            raise OSError("closed")

    async def cancelled(work: Run) -> None:
        bench = Bench()
        task = asyncio.create_task(bench.run(Step("s", work, attempts=3)))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        run = await bench.store.load("r")
        assert run.steps["s"].result.state is StepState.RUNNING
        assert run.spent == Costs(calls=1)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    for work in (politely, value, error):
        run_virtual(cancelled(work))


def test_a_step_that_cancels_itself_has_failed() -> None:
    """It does not stay running, and cancels nothing else."""
    assert run(Bench(), Work(asyncio.CancelledError())).error == "RuntimeError: the step cancelled itself"


def test_each_attempt_has_a_context_of_its_own() -> None:
    """It reads what its caller set, and sets nothing for others."""
    seen: list[str] = []

    async def work(step: StepInput) -> Mapping[str, Any]:
        seen.append(VALUE.get())
        VALUE.set("mine")
        raise RuntimeError("no")

    async def main() -> None:
        VALUE.set("outer")
        await Bench(0.0).run(Step("s", work, attempts=2))
        assert VALUE.get() == "outer"

    run_virtual(main())
    assert seen == ["outer", "outer"]


# ------------------------------------------------------------------------------------------------ costs, observers


def test_what_a_step_pays_is_kept_also_for_attempts_that_failed() -> None:
    """It counts for the run at once."""
    bench = Bench(0.0)
    spent: list[Costs] = []

    async def bad(step: StepInput) -> Mapping[str, Any]:
        step.charge(Costs(calls=1))
        raise RuntimeError("no")

    async def work(step: StepInput) -> Mapping[str, Any]:
        step.charge(Costs(tokens=4, calls=1))
        step.charge(Costs(tokens=1))
        spent.append(bench.journal.spent)
        if step.attempt == 1:
            raise RuntimeError("no")
        return {}

    result = run(bench, work, attempts=2)
    assert (result.state, result.costs) == (StepState.SUCCEEDED, Costs(tokens=10, calls=2))
    failed = run(Bench(), bad)
    assert (failed.state, failed.costs) == (StepState.FAILED, Costs(calls=1))
    assert bench.journal.charged == {"s": Costs(tokens=10, calls=2)}
    assert spent == [Costs(tokens=5, calls=1), Costs(tokens=10, calls=2)]
    assert run_virtual(bench.store.load("r")).spent == Costs(tokens=10, calls=2)


def test_an_observer_sees_each_event_once_and_one_that_raises_is_counted() -> None:
    """The others see everything, and the step is as it would have been."""
    seen: list[RunEvent] = []

    def broken(event: RunEvent) -> None:
        raise RuntimeError("no")

    bench = Bench(0.0, observers=(broken, seen.append))
    assert run(bench, Work(RuntimeError("no"), {"y": 1}), attempts=2).state is StepState.SUCCEEDED
    assert [event.seq for event in seen] == [1, 2, 3, 4, 5]
    assert seen == run_virtual(bench.store.events_since("r"))
    assert bench.journal.observer_failures == 5


def test_a_run_that_was_taken_over_is_no_failure_of_the_step() -> None:
    """It goes to the engine; nothing is written."""

    async def main() -> None:
        bench = Bench()

        async def work(step: StepInput) -> Mapping[str, Any]:
            await asyncio.sleep(60)
            await bench.store.lease("r", "two")
            return {}

        with pytest.raises(StaleLease):
            await bench.run(Step("s", work))
        assert (await bench.store.load("r")).steps["s"].result.state is StepState.RUNNING

    run_virtual(main())


# ------------------------------------------------------------------------------------------------ decisions


async def asked(bench: Bench, timeout: float | None, decision: Approval | None, wait: float = 0.0) -> StepResult:
    """Ask twice about an approval; the decision comes in between, after so many seconds."""
    await bench.store.create(new_run())
    lease = await bench.store.lease("r", "one")
    journal = RunJournal(bench.store, lease, spent=Costs())
    runner = StepRunner(journal=journal, clock=LoopClock(), dice=bench.dice)
    step = Step("s", kind="approval", message="Send?", timeout=timeout)
    given = step_input(step, "s", "r", "h", {}, {})
    assert await runner.ask(step, given, bench.limit) == StepResult(state=StepState.PAUSED)
    (waiting,) = await bench.store.approvals("r")
    assert waiting.message == "Send?"
    bench.left = waiting.seconds_left
    await asyncio.sleep(wait)
    if decision is not None:
        await bench.store.decide("r", decision)
    result = await runner.ask(step, given, bench.limit)
    stored = (await bench.store.load("r")).steps["s"]
    assert result.state is StepState.PAUSED or (stored.result, stored.input_hash) == (result, given.input_hash)
    return result


@pytest.mark.parametrize(
    ("decision", "outputs", "error"),
    [
        (Approval(payload=[1]), {"approved": True, "payload": [1]}, ""),
        (Approval(approved=False), None, "rejected"),
        (Approval(approved=False, payload="not yet"), None, "rejected: not yet"),
        (Approval(approved=False, payload={"a": 1}), None, 'rejected: {"a": 1}'),
        (Approval(approved=False, payload="x" * 5_000), None, "rejected: " + "x" * 1_990),
    ],
)
def test_a_decision_settles_its_step(decision: Approval, outputs: Any, error: str) -> None:
    """An approval has outputs, a rejection a reason, which is cut; it is one attempt."""
    result = run_virtual(asked(Bench(), None, decision))
    state = StepState.FAILED if outputs is None else StepState.SUCCEEDED
    assert result == StepResult(state=state, outputs=outputs, error=error, attempts=1)


@pytest.mark.parametrize(
    ("timeout", "limit", "left"),
    [(None, math.inf, None), (60.0, math.inf, 60.0), (60.0, START + 20, 20.0), (None, START + 20, 20.0)],
)
def test_a_decision_is_waited_for_within_both_limits(timeout: float | None, limit: float, left: float | None) -> None:
    """That of the step and that of the run; without one it is waited for without end."""
    bench = Bench(limit=limit)
    result = run_virtual(asked(bench, timeout, None, wait=1e6 if left is None else left))
    assert bench.left == left
    late = StepResult(state=StepState.FAILED, error="rejected: no decision in time", attempts=1)
    assert result == (StepResult(state=StepState.PAUSED) if left is None else late)


def test_nothing_is_asked_for_longer_than_no_time() -> None:
    """A run that is past its limit rejects at once."""

    async def main() -> None:
        bench = Bench(limit=START - 5)
        await bench.store.create(new_run())
        journal = RunJournal(bench.store, await bench.store.lease("r", "one"), spent=Costs())
        runner = StepRunner(journal=journal, clock=LoopClock(), dice=bench.dice)
        step = Step("s", kind="approval")
        given = step_input(step, "s", "r", "h", {}, {})
        assert (await runner.ask(step, given, bench.limit)).state is StepState.PAUSED
        (event,) = await bench.store.events_since("r", 1)
        assert event.data == {"message": ""}
        assert (await runner.ask(step, given, bench.limit)).error == "rejected: no decision in time"

    run_virtual(main())


# ------------------------------------------------------------------------------------------------ what a step reads


def test_a_step_reads_copies_of_its_own() -> None:
    """Inputs and options with their references resolved, and the outputs of what it needs."""
    results = {"a": StepResult(state=StepState.SUCCEEDED, outputs={"y": [1]}), "b": StepResult(state=StepState.FAILED)}
    inputs = {"q": [2]}
    step = Step(
        "s", needs=("a", "b"), inputs={"x": "${steps.a.outputs.y}", "t": "q ${inputs.q}"}, options={"o": "${inputs.q}"}
    )
    given = step_input(step, "s", "r", "h", inputs, results)
    assert given.inputs == {"x": [1], "t": "q [2]"}
    assert (given.steps, given.options) == ({"a": {"y": [1]}, "b": None}, {"o": [2]})
    given.inputs["x"].append(0)
    given.options["o"].append(0)
    given.steps["a"]["y"].append(0)
    assert (inputs, results["a"].outputs) == ({"q": [2]}, {"y": [1]})


def test_the_message_of_an_approval_is_an_option_of_it() -> None:
    """With its references resolved, so that another question is another one."""
    step = Step("s", kind="approval", message="Send ${inputs.q}?", options={"o": 1})
    given = [step_input(step, "s", "r", "h", {"q": q}, {}) for q in (1, 2)]
    assert given[0].options == {"o": 1, "message": "Send 1?"}
    assert given[0].input_hash != given[1].input_hash


def test_keys_and_hashes_differ_where_the_work_does() -> None:
    """The key by run, step, workflow and all that is read, which is what the hash is of."""
    step = Step("s", needs=("a",), inputs={"x": "${inputs.q}"})

    def given(name: str = "s", run_id: str = "r", workflow: str = "h", q: int = 1, y: int = 1) -> StepInput:
        results = {"a": StepResult(state=StepState.SUCCEEDED, outputs={"y": y})}
        return step_input(step, name, run_id, workflow, {"q": q}, results)

    others = [given(), given(name="t"), given(run_id="u"), given(workflow="i"), given(q=2)]
    assert len({other.idempotency_key for other in others}) == 5
    assert given() == given()
    assert len({given().input_hash, given(q=2).input_hash, given(y=2).input_hash}) == 3
    assert given(name="t").input_hash == given().input_hash


def test_services_and_the_run_reach_the_work() -> None:
    """The engine does not look inside."""
    work = Work({})
    run(Bench(), work)
    (given,) = work.given
    assert (given.run_id, given.step, given.services, given.deadline) == ("r", "s", {"router": "it"}, math.inf)
