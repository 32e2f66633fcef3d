"""The join rule, the states of steps and the state of a run."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router_research.engine.joining import consider, run_state
from smart_model_router_research.engine.states import (
    MOVES,
    IllegalMove,
    RunState,
    SkipReason,
    StepResult,
    StepState,
    moved,
    outputs_of,
)
from smart_model_router_research.workflow import RoundScope, Step, StepInput, WorkflowDefinition, WorkflowInput
from smart_model_router_research.workflow.definition import scope_of

SUCCEEDED = StepResult(state=StepState.SUCCEEDED, outputs={"x": 1})
FAILED = StepResult(state=StepState.FAILED, error="no")
CANCELLED = StepResult(state=StepState.CANCELLED)
READY = StepResult(state=StepState.READY)
RUNNING = StepResult(state=StepState.RUNNING)
PAUSED = StepResult(state=StepState.PAUSED)


def skipped(reason: SkipReason, note: str = "") -> StepResult:
    """Make the result of a skipped step."""
    return StepResult(state=StepState.SKIPPED, skip_reason=reason, note=note)


UNMET = skipped(SkipReason.CONDITION)
BY_FAILURE = skipped(SkipReason.DEPENDENCY_FAILED)
BY_SKIP = skipped(SkipReason.DEPENDENCY_SKIPPED)
UNPAID = skipped(SkipReason.BUDGET)
LATE = skipped(SkipReason.TIMEOUT)


async def work(step: StepInput) -> Mapping[str, Any]:
    """Put nothing out."""
    return {}


def joined(*results: StepResult, on_error: tuple[str, ...] = (), **options: Any) -> StepResult | None:
    """Return the decision of a step that needs steps with these results (`on_error` of each)."""
    names = [f"n{number}" for number, _ in enumerate(results)]
    needs: list[Any] = [
        Step(name, work, on_error=error)  # type: ignore[arg-type]  # one of the two
        for name, error in zip(names, on_error or ("fail",) * len(names), strict=True)
    ]
    workflow = WorkflowDefinition("w", [*needs, Step("s", work, names, **options)])
    return consider(workflow, "s", dict(zip(names, results, strict=True)), {"q": 1})


# ------------------------------------------------------------------------------------------------ moves


def test_the_table_of_moves_is_the_documented_one() -> None:
    """Written out a second time."""
    assert {str(state): " ".join(sorted(to)) for state, to in MOVES.items()} == {
        "pending": "cancelled failed ready skipped",
        "ready": "cancelled running skipped",
        "running": "cancelled failed paused retrying succeeded",
        "retrying": "cancelled failed running",
        "paused": "cancelled failed running",
        "succeeded": "",
        "failed": "",
        "skipped": "",
        "cancelled": "",
    }


@pytest.mark.parametrize("state", StepState)
@pytest.mark.parametrize("to", StepState)
def test_a_move_outside_of_the_table_raises(state: StepState, to: StepState) -> None:
    """An engine that makes one has a bug."""
    allowed = to in MOVES[state]
    if allowed:
        assert moved(state, to) is to
        return
    with pytest.raises(IllegalMove, match=f"{state} -> {to}: .* may follow {state}"):
        moved(state, to)


def test_a_settled_state_is_the_end() -> None:
    """These four, and no other."""
    assert {str(state) for state in StepState if state.settled} == {"succeeded", "failed", "skipped", "cancelled"}
    with pytest.raises(IllegalMove, match=r"^failed -> ready: nothing may follow failed$"):
        moved(StepState.FAILED, StepState.READY)
    with pytest.raises(IllegalMove, match=r"^ready -> failed: cancelled, running, skipped may follow ready$"):
        moved(StepState.READY, StepState.FAILED)


# ------------------------------------------------------------------------------------------------ the join rule


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        ([], READY),
        ([SUCCEEDED], READY),
        ([SUCCEEDED, SUCCEEDED], READY),
        ([SUCCEEDED, RUNNING], None),
        ([FAILED, PAUSED], None),
        ([UNMET, StepResult()], None),
        ([FAILED], BY_FAILURE),
        ([SUCCEEDED, FAILED], BY_FAILURE),
        ([BY_FAILURE], BY_FAILURE),
        ([SUCCEEDED, BY_FAILURE], BY_FAILURE),
        ([UNMET, FAILED], BY_FAILURE),
        ([UNMET], BY_SKIP),
        ([BY_SKIP], BY_SKIP),
        ([UNPAID, LATE], BY_SKIP),
        ([UNMET, BY_SKIP], BY_SKIP),
        ([UNMET, SUCCEEDED], READY),
        ([UNPAID, SUCCEEDED, LATE], READY),
        ([CANCELLED], CANCELLED),
        ([SUCCEEDED, CANCELLED], CANCELLED),
        ([FAILED, CANCELLED], CANCELLED),
        ([CANCELLED, RUNNING], None),
    ],
)
def test_a_step_is_decided_by_its_needs(needs: list[StepResult], expected: StepResult | None) -> None:
    """Once all have settled: a failure skips it first, then skips of all of them; a skip of some does not."""
    assert joined(*needs) == expected


@pytest.mark.parametrize(
    ("needs", "on_error", "expected"),
    [
        ([FAILED], ("continue",), READY),
        ([FAILED, UNMET], ("continue", "fail"), READY),
        ([FAILED, FAILED], ("continue", "fail"), BY_FAILURE),
        ([BY_FAILURE], ("continue",), BY_FAILURE),
    ],
)
def test_the_failure_of_a_step_that_says_continue_skips_nothing(
    needs: list[StepResult], on_error: tuple[str, ...], expected: StepResult
) -> None:
    """It is the step that failed that says so; one that was skipped for a failure before it passes that on."""
    assert joined(*needs, on_error=on_error) == expected


@pytest.mark.parametrize("needs", [[FAILED], [BY_FAILURE], [UNMET], [BY_SKIP], [UNPAID, FAILED], [SUCCEEDED]])
def test_a_step_that_always_runs_is_skipped_by_its_condition_alone(needs: list[StepResult]) -> None:
    """Neither failures nor skips; a cancelled run cancels it."""
    assert joined(*needs, always=True) == READY
    assert joined(*needs, always=True, when="null") == skipped(
        SkipReason.CONDITION, "the condition is null, not true or false"
    )
    assert joined(*needs, RUNNING, always=True) is None
    assert joined(*needs, CANCELLED, always=True) == CANCELLED


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        (True, READY),
        (False, UNMET),
        ("true", READY),
        ("${steps.n0.outputs.x == 1}", READY),
        ("steps.n0.outputs.x == 2", UNMET),
        ("steps.n1.outputs.x == null", READY),
        ("steps.n1.outputs == null", READY),
        ("steps.n1.outputs.x", skipped(SkipReason.CONDITION, "the condition is null, not true or false")),
        ("'false'", skipped(SkipReason.CONDITION, "the condition is a text, not true or false")),
        ("1", skipped(SkipReason.CONDITION, "the condition is a number, not true or false")),
        (
            "steps.n0.outputs.x and true",
            StepResult(state=StepState.FAILED, error="when: steps.n0.outputs.x: a number is neither true nor false"),
        ),
    ],
)
def test_the_condition_is_asked_last(when: str | bool, expected: StepResult) -> None:
    """It reads nulls of steps that have no outputs; a wrong type in it fails the step."""
    assert joined(SUCCEEDED, UNMET, when=when) == expected
    assert joined(FAILED, UNMET, when=when) == BY_FAILURE


def test_a_condition_reads_the_inputs_of_the_run() -> None:
    """As they were given to it."""
    workflow = WorkflowDefinition("w", [Step("s", work, when="inputs.q == 1")], {"q": _input()})
    assert consider(workflow, "s", {}, {"q": 1}) == READY
    assert consider(workflow, "s", {}, {"q": 2}) == UNMET


def _input() -> Any:
    return WorkflowInput()


def test_the_outputs_of_a_step_are_those_of_its_success() -> None:
    """A step that failed later than it put something out has none."""
    half = StepResult(state=StepState.FAILED, outputs={"x": 1})
    assert outputs_of({"a": SUCCEEDED, "b": half}, "a") == {"x": 1}
    assert outputs_of({"a": SUCCEEDED, "b": half}, "b") is None
    assert outputs_of({}, "a") is None


def test_the_steps_of_a_scope_are_looked_up_and_not_listed() -> None:
    """Among thousands of steps an expression names the one that it reads."""
    steps = scope_of(Step("s", work), {}, {"a": {"x": 1}}.get)["steps"]
    assert steps["a"] == {"outputs": {"x": 1}}
    assert steps["b"] == {"outputs": None}
    assert (len(steps), list(steps)) == (0, [])


def test_rounds_read_the_round_before_and_the_latest_that_is_not_null() -> None:
    """With round 2 skipped, round 3 sees null from it, and the value of round 1 as the last."""
    names = ["gate_r1", "gate_r2", "gate_r3"]
    scope = RoundScope(3, {}, {"gate": "gate_r2"}, {"gate": ["gate_r2", "gate_r1"]}, {"passed": "gate"})

    def third(when: str) -> StepResult | None:
        steps = [Step("gate_r1", work), Step("gate_r2", work, ["gate_r1"])]
        step = Step("gate_r3", work, names[:2], when=when, round=scope, always=True)
        results = {
            "gate_r1": StepResult(state=StepState.SUCCEEDED, outputs={"passed": False, "score": 0.5, "none": None}),
            "gate_r2": UNMET,
        }
        return consider(WorkflowDefinition("w", [*steps, step]), "gate_r3", results, {})

    assert third("prev.gate.passed == null and prev.passed == null and round_number == 3") == READY
    assert third("last.gate.passed == false and last.passed == false and last.gate.score == 0.5") == READY
    assert third("last.gate.none == null and last.gate.missing == null") == READY
    assert third("not prev.gate.passed") == skipped(SkipReason.CONDITION, "the condition is null, not true or false")


def test_the_latest_round_wins_where_it_is_not_null() -> None:
    """Each output by itself."""
    scope = RoundScope(3, {}, {"g": "g_r2"}, {"g": ["g_r2", "g_r1"]})
    step = Step("s", work, ["g_r1", "g_r2"], when="last.g.x == 2 and last.g.y == 1 and prev.g.x == 2", round=scope)
    workflow = WorkflowDefinition("w", [Step("g_r1", work), Step("g_r2", work), step])
    results = {
        "g_r1": StepResult(state=StepState.SUCCEEDED, outputs={"x": 1, "y": 1}),
        "g_r2": StepResult(state=StepState.SUCCEEDED, outputs={"x": 2, "y": None}),
    }
    assert consider(workflow, "s", results, {}) == READY


# ------------------------------------------------------------------------------------------------ the state of a run


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([SUCCEEDED, SUCCEEDED], RunState.COMPLETED),
        ([SUCCEEDED, UNMET], RunState.COMPLETED),
        ([SUCCEEDED, BY_SKIP], RunState.COMPLETED),
        ([SUCCEEDED, FAILED], RunState.FAILED),
        ([UNPAID, FAILED], RunState.FAILED),
        ([FAILED, BY_FAILURE], RunState.FAILED),
        ([SUCCEEDED, UNPAID], RunState.PARTIAL),
        ([SUCCEEDED, LATE], RunState.PARTIAL),
        ([UNMET, UNMET], RunState.PARTIAL),
        ([UNMET, BY_SKIP], RunState.PARTIAL),
        ([SUCCEEDED, CANCELLED], RunState.CANCELLED),
        ([FAILED, CANCELLED], RunState.CANCELLED),
        ([PAUSED, CANCELLED], RunState.CANCELLED),
        ([SUCCEEDED, PAUSED], RunState.PAUSED),
        ([FAILED, PAUSED], RunState.PAUSED),
        ([PAUSED, StepResult()], RunState.PAUSED),
        ([SUCCEEDED, StepResult()], RunState.RUNNING),
        ([FAILED, StepResult()], RunState.RUNNING),
        ([CANCELLED, RUNNING], RunState.RUNNING),
        ([PAUSED, READY], RunState.RUNNING),
        ([PAUSED, StepResult(state=StepState.RETRYING)], RunState.RUNNING),
    ],
)
def test_the_state_of_a_run_follows_from_its_steps(results: list[StepResult], expected: RunState) -> None:
    """A run of which nothing ran, or of which something was cut off, is never completed."""
    workflow = WorkflowDefinition("w", [Step("a", work), Step("b", work)])
    assert run_state(workflow, dict(zip("ab", results, strict=True))) == expected
    pending = {name: result for name, result in zip("ab", results, strict=True) if result != StepResult()}
    assert run_state(workflow, pending) == expected


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ({"s": SUCCEEDED, "s.a": SUCCEEDED, "b": UNMET}, RunState.COMPLETED),
        ({"s": SUCCEEDED, "s.a": FAILED, "b": SUCCEEDED}, RunState.PARTIAL),
        ({"s": SUCCEEDED, "s.a": UNPAID, "b": SUCCEEDED}, RunState.PARTIAL),
        ({"s": SUCCEEDED, "s.a": UNMET, "b": UNMET}, RunState.PARTIAL),
        ({"s": SUCCEEDED, "s.a": UNMET, "b": SUCCEEDED}, RunState.COMPLETED),
        ({"s": FAILED, "b": SUCCEEDED}, RunState.PARTIAL),
        ({"s": UNMET, "b": SUCCEEDED}, RunState.COMPLETED),
        ({"s": UNPAID, "b": SUCCEEDED}, RunState.PARTIAL),
        ({"s": PAUSED, "s.a": PAUSED, "b": SUCCEEDED}, RunState.PAUSED),
    ],
)
def test_a_subgraph_is_what_ran_inside_of_it(results: dict[str, StepResult], expected: RunState) -> None:
    """It counts itself only where it did not succeed; steps of one that did not begin count for nothing."""
    inner = WorkflowDefinition("v", [Step("a", work)])
    outer = Step("s", kind="workflow", workflow=inner, on_error="continue")
    assert run_state(WorkflowDefinition("w", [outer, Step("b", work)]), results) is expected


def test_a_failure_that_says_continue_makes_the_run_partial() -> None:
    """Also where every step failed like that; beside a failure of another it failed."""
    steps = [Step("a", work, on_error="continue"), Step("b", work)]
    workflow = WorkflowDefinition("w", steps)
    assert run_state(workflow, {"a": FAILED, "b": SUCCEEDED}) == RunState.PARTIAL
    assert run_state(workflow, {"a": FAILED, "b": UNMET}) == RunState.PARTIAL
    assert run_state(workflow, {"a": FAILED, "b": FAILED}) == RunState.FAILED


# ------------------------------------------------------------------------------------------------ properties

PLANS = st.sampled_from([SUCCEEDED, SUCCEEDED, FAILED, UNPAID, LATE])
WHENS = st.sampled_from(
    [None, None, True, False, "null", "inputs.q == 1", "READ == 1", "READ == null", "READ and true"]
)


@st.composite
def planned_workflows(draw: st.DrawFn) -> tuple[WorkflowDefinition, dict[str, StepResult]]:
    """Draw a graph of up to nine steps, and the result of each step when it runs."""
    steps: list[Step] = []
    for number in range(draw(st.integers(1, 9))):
        names = [step.name for step in steps]
        needs = draw(st.lists(st.sampled_from(names), unique=True, max_size=3)) if names else []
        when = draw(WHENS)
        if isinstance(when, str) and "READ" in when:
            when = when.replace("READ", f"steps.{needs[0]}.outputs.x") if needs else None
        on_error: Any = draw(st.sampled_from(["fail", "fail", "continue"]))
        always = draw(st.sampled_from([False, False, True]))
        steps.append(Step(f"s{number}", work, needs, when, always, on_error))
    plan = {step.name: draw(PLANS) for step in steps}
    return WorkflowDefinition("w", steps, {"q": _input()}), plan


def played(workflow: WorkflowDefinition, plan: Mapping[str, StepResult], seed: int) -> dict[str, StepResult]:
    """Settle the steps one at a time, in an order that `seed` draws; return their results."""
    draw = random.Random(seed)
    results: dict[str, StepResult] = {}
    decided: dict[str, StepResult] = {}
    while True:
        for step in draw.sample(workflow.steps, len(workflow.steps)):
            found = consider(workflow, step.name, results, {"q": 1})
            earlier = decided.get(step.name)
            assert earlier is None or found == earlier, "a decision changed"
            if found is not None and earlier is None:
                decided[step.name] = found
        open_ones = sorted(decided.keys() - results.keys())
        if not open_ones:
            return results
        name = draw.choice(open_ones)
        results[name] = plan[name] if decided[name].state is StepState.READY else decided[name]


Planned = tuple[WorkflowDefinition, dict[str, StepResult]]


@given(planned_workflows(), st.integers(0, 9))
def test_the_order_of_settling_never_matters(planned: Planned, seed: int) -> None:
    """Each step is decided once, whatever settles first; all of them are, and the run has an end."""
    workflow, plan = planned
    results = played(workflow, plan, seed)
    assert results == played(workflow, plan, seed + 1)
    assert results.keys() == workflow.by_name.keys()
    assert run_state(workflow, results) in {RunState.COMPLETED, RunState.PARTIAL, RunState.FAILED}


@given(planned_workflows(), st.integers(0, 9))
def test_a_step_runs_only_when_the_rule_lets_it(planned: Planned, seed: int) -> None:
    """By the rule in other words: what skipped a step can be named, and nothing skipped one that ran."""
    workflow, plan = planned
    results = played(workflow, plan, seed)

    def poisoned(name: str) -> bool:
        own = results[name]
        failed = own.state is StepState.FAILED and workflow.by_name[name].on_error == "fail"
        return failed or own.skip_reason is SkipReason.DEPENDENCY_FAILED

    for step in workflow.steps:
        own, needs = results[step.name], [results[need] for need in step.needs]
        reason = own.skip_reason
        by_failure = not step.always and any(poisoned(need) for need in step.needs)
        by_skips = not step.always and bool(needs) and all(need.state is StepState.SKIPPED for need in needs)
        assert (reason is SkipReason.DEPENDENCY_FAILED) == by_failure
        assert (reason is SkipReason.DEPENDENCY_SKIPPED) == (by_skips and not by_failure)
        assert (reason is SkipReason.CONDITION) <= (step.when not in (None, True))


@given(planned_workflows(), st.integers(0, 9))
def test_the_state_of_a_run_is_monotone(planned: Planned, seed: int) -> None:
    """It is running until the last step has settled, and then has its result."""
    workflow, plan = planned
    results = played(workflow, plan, seed)
    sofar: dict[str, StepResult] = {}
    for name, result in list(results.items())[:-1]:
        sofar[name] = result
        assert run_state(workflow, sofar) is RunState.RUNNING
