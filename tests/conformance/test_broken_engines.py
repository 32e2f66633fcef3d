"""The promises of engines and of expressions see what they are there for: each is shown code that breaks it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from smart_model_router.domain.errors import SmartRouterError
from smart_model_router_research.engine import KahnEngine, RunStore, StepState, held_run, joining, steps
from smart_model_router_research.engine.journal import RunJournal
from smart_model_router_research.engine.memory_store import MemoryRunStore
from smart_model_router_research.engine.states import StepResult
from smart_model_router_research.workflow import evaluation
from smart_model_router_research.workflow.evaluation import Evaluator
from tests.conformance.engines import EngineContract
from tests.unit.research import test_expressions as expressions

Break = Callable[[pytest.MonkeyPatch], None]


class JudgedEngine(EngineContract):
    """The promises for Kahn's engine."""

    def engine(self, store: RunStore) -> KahnEngine:
        """Return one."""
        return KahnEngine(store)


# ------------------------------------------------------------------------------------------------ the join rule


def failures_join(patch: pytest.MonkeyPatch) -> None:
    """A need that failed counts as one that succeeded."""

    def consider(workflow: Any, name: str, found: Mapping[str, StepResult], inputs: Any) -> Any:
        other = {key: replace(each, state=StepState.SUCCEEDED) if each.error else each for key, each in found.items()}
        return joining.consider(workflow, name, other, inputs)

    patch.setattr(held_run, "consider", consider)


def skips_end(patch: pytest.MonkeyPatch) -> None:
    """A step whose needs were all skipped runs."""
    patch.setattr(joining, "_skipped_by", lambda workflow, needs: None)


def always_waits(patch: pytest.MonkeyPatch) -> None:
    """A step that always runs is skipped as any other."""

    def consider(workflow: Any, name: str, found: Mapping[str, StepResult], inputs: Any) -> Any:
        needs = {need: found[need] for need in workflow.by_name[name].needs}
        reason = joining._skipped_by(workflow, needs)
        skipped = StepResult(state=StepState.SKIPPED, skip_reason=reason)
        return joining.consider(workflow, name, found, inputs) if reason is None else skipped

    patch.setattr(held_run, "consider", consider)


def anything_holds(patch: pytest.MonkeyPatch) -> None:
    """A condition holds as Python has it: a text does."""
    patch.setattr(joining, "holds", lambda value: (bool(value), ""))


def cuts_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A run that had to leave steps out is completed."""
    patch.setattr(joining, "_CUT", frozenset())


def nothing_is_something(patch: pytest.MonkeyPatch) -> None:
    """A run in which no step ran is completed."""
    patch.setattr(joining, "_RAN", frozenset(StepState))


def subgraphs_succeed(patch: pytest.MonkeyPatch) -> None:
    """A subgraph that failed has succeeded."""
    patch.setattr(held_run, "subgraph_result", lambda *_: StepResult(state=StepState.SUCCEEDED, outputs={}))


# ------------------------------------------------------------------------------------------------ the wrapper


def permanent_retried(patch: pytest.MonkeyPatch) -> None:
    """No error is permanent."""
    patch.setattr(steps, "PERMANENT", ())


def no_pause(patch: pytest.MonkeyPatch) -> None:
    """Attempts follow each other at once."""
    patch.setattr(steps, "BACKOFF_BASE", 0.0)


def no_limit(patch: pytest.MonkeyPatch) -> None:
    """Nothing happens at the end of a step's time."""
    patch.setattr(steps._Attempt, "_expire", lambda self, task: None)


def inputs_shared(patch: pytest.MonkeyPatch) -> None:
    """Steps read the very objects that others read."""
    patch.setattr(steps, "owned", lambda value: value)


def costs_lost(patch: pytest.MonkeyPatch) -> None:
    """Charges count when they are kept, and not at once."""
    patch.setattr(RunJournal, "charge", lambda self, step, costs: None)


def everything_equal(patch: pytest.MonkeyPatch) -> None:
    """All that a step reads has one hash."""
    patch.setattr(steps, "_hash", lambda text: "same")


def results_late(patch: pytest.MonkeyPatch) -> None:
    """A result is told to the engine and never kept."""

    async def settle(self: RunJournal, step: str, result: StepResult, key: str = "") -> StepResult:
        return result

    patch.setattr(RunJournal, "settle", settle)


# ------------------------------------------------------------------------------------------------ runs


def room_for_all(patch: pytest.MonkeyPatch) -> None:
    """As many steps run at once as are ready."""
    endless = property(lambda self: 1_000, lambda self, value: None)
    patch.setattr(held_run.HeldRun, "max_concurrency", endless, raising=False)


def read_again(patch: pytest.MonkeyPatch) -> None:
    """A reader gets an event again that it had."""
    events = MemoryRunStore.events_since
    patch.setattr(
        MemoryRunStore, "events_since", lambda self, run, after=0, limit=1_000: events(self, run, max(0, after - 1))
    )


def limits_restart(patch: pytest.MonkeyPatch) -> None:
    """A decision is waited for without end."""
    ask = RunJournal.ask
    patch.setattr(RunJournal, "ask", lambda self, step, message, seconds: ask(self, step, message, None))


BROKEN: list[tuple[Break, Callable[[JudgedEngine], Any]]] = [
    (
        failures_join,
        lambda of: of.test_a_failure_skips_what_needs_it_and_nothing_else("fail", "dependency_failed", "failed"),
    ),
    (
        always_waits,
        lambda of: of.test_a_failure_skips_what_needs_it_and_nothing_else("fail", "dependency_failed", "failed"),
    ),
    (skips_end, JudgedEngine.test_a_skip_spreads_and_a_later_round_does_not_run_on_nothing),
    (anything_holds, JudgedEngine.test_a_text_is_no_truth_value),
    (cuts_forgotten, JudgedEngine.test_a_budget_that_is_spent_skips_what_does_not_fit),
    (nothing_is_something, JudgedEngine.test_a_run_that_ran_nothing_is_not_completed),
    (subgraphs_succeed, JudgedEngine.test_outputs_of_the_wrong_type_fail_the_subgraph),
    (permanent_retried, JudgedEngine.test_attempts_and_pauses_are_those_of_the_wrapper),
    (no_pause, JudgedEngine.test_attempts_and_pauses_are_those_of_the_wrapper),
    (no_limit, JudgedEngine.test_a_step_past_its_time_fails_alone),
    (inputs_shared, JudgedEngine.test_a_step_cannot_change_what_others_read),
    (costs_lost, JudgedEngine.test_a_budget_that_is_spent_skips_what_does_not_fit),
    (everything_equal, lambda of: of.test_a_fork_runs_what_depends_on_its_changes({"inputs": {"k": 7}}, "acd", 0)),
    (results_late, JudgedEngine.test_a_result_is_durable_before_the_next_step_begins),
    (room_for_all, JudgedEngine.test_no_more_steps_run_at_once_than_allowed),
    (read_again, JudgedEngine.test_a_reader_that_comes_back_misses_nothing_and_sees_nothing_twice),
    (limits_restart, lambda of: of.test_a_decision_that_does_not_come_in_time_is_a_rejection("step")),
]


def test_the_judged_promises_hold_of_the_code_as_it_is() -> None:
    """The promises that notice a break hold without it."""
    judged = JudgedEngine()
    for _, promise in BROKEN:
        if promise is not BROKEN[12][1]:
            promise(judged)
    judged.test_a_fork_runs_what_depends_on_its_changes({"inputs": {"k": 7}}, "acd", [[2], [[7]]])


@pytest.mark.parametrize(("spoil", "promise"), BROKEN, ids=[spoil.__name__ for spoil, _ in BROKEN])
def test_a_broken_engine_is_caught(
    spoil: Break, promise: Callable[[JudgedEngine], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the engine broken in this way, the promise of the contrary fails."""
    spoil(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        promise(JudgedEngine())


# ------------------------------------------------------------------------------------------------ expressions


def null_is_false(patch: pytest.MonkeyPatch) -> None:
    """An operand that is null counts as false."""
    truth = Evaluator.truth
    patch.setattr(Evaluator, "truth", lambda self, node: truth(self, node) or False)


def truth_is_a_number(patch: pytest.MonkeyPatch) -> None:
    """True is 1, as Python has it."""
    patch.setattr(evaluation, "same", lambda left, right: left == right)
    patch.setattr(evaluation, "is_number", lambda value: isinstance(value, int | float))


def texts_add_up(patch: pytest.MonkeyPatch) -> None:
    """Whatever Python adds is added."""
    patch.setattr(Evaluator, "number", lambda self, node, value: value)


def numbers_without_end(patch: pytest.MonkeyPatch) -> None:
    """A number is never out of range."""
    patch.setattr(evaluation, "in_range", lambda value: True)


def all_asked(patch: pytest.MonkeyPatch) -> None:
    """Operands behind the one that decides are asked as well."""

    def logic(evaluator: Evaluator, node: ast.BoolOp) -> bool | None:
        for operand in node.values:
            evaluator.truth(operand)
        return Evaluator.logic(evaluator, node)

    patch.setitem(evaluation._VALUES, ast.BoolOp, logic)


def falsy_is_missing(patch: pytest.MonkeyPatch) -> None:
    """The first value that Python takes for true is taken, not the first that is there."""

    def call(evaluator: Evaluator, node: ast.Call) -> Any:
        values = [evaluator.value(argument) for argument in node.args]
        return next(filter(None, values), None) if len(values) > 1 else Evaluator.call(evaluator, node)

    patch.setitem(evaluation._VALUES, ast.Call, call)


def gaps_raise(patch: pytest.MonkeyPatch) -> None:
    """A missing member is an error."""
    patch.setattr(Evaluator, "entry", lambda self, node, owner, key: owner[key])


def all_values() -> None:
    """Judge all values and errors that are tabled."""
    for text in expressions.VALUES:
        expressions.test_an_expression_has_its_value(text)
    for text in expressions.WRONG:
        expressions.test_a_wrong_type_is_an_error_that_names_the_part(text)


WORDS = (
    null_is_false,
    truth_is_a_number,
    texts_add_up,
    numbers_without_end,
    all_asked,
    falsy_is_missing,
    gaps_raise,
)


@pytest.mark.parametrize("spoil", WORDS, ids=[spoil.__name__ for spoil in WORDS])
def test_broken_expressions_are_caught(spoil: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    """With evaluation broken in this way, a value or an error of the tables differs."""
    all_values()
    spoil(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception, TypeError, LookupError, SmartRouterError)):
        all_values()
