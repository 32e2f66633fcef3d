"""The promises of engines and of expressions see what they are there for: each is shown code that breaks it."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from langgraph.errors import GraphRecursionError

from smart_model_router.domain.errors import SmartRouterError
from smart_model_router_research.engine import (
    KahnEngine,
    RunStore,
    StepState,
    StoreUnavailable,
    held_run,
    joining,
    langgraph,
    shadow,
    steps,
)
from smart_model_router_research.engine.journal import RunJournal
from smart_model_router_research.engine.memory_store import MemoryRunStore
from smart_model_router_research.engine.states import StepResult
from smart_model_router_research.workflow import evaluation
from smart_model_router_research.workflow.evaluation import Evaluator
from tests.conformance import test_engines as engines
from tests.conformance import test_two_engines as two_engines
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


# ------------------------------------------------------------------------------------------------ LangGraph, loops


def all_at_once(patch: pytest.MonkeyPatch) -> None:
    """As many nodes work as there are in a superstep."""
    patch.setattr(asyncio, "Semaphore", lambda _: asyncio.BoundedSemaphore(1_000))


def pauses_unseen(patch: pytest.MonkeyPatch) -> None:
    """A node runs when the library says so, also behind a pause."""
    patch.setattr(held_run.HeldRun, "waits", lambda self, graph, step: False)


def news_unseen(patch: pytest.MonkeyPatch) -> None:
    """A graph is not run again after a decision that came too late for it."""
    unseen = property(lambda self: False, lambda self, value: None)
    patch.setattr(langgraph._Supersteps, "_decided", unseen, raising=False)


def errors_lost(patch: pytest.MonkeyPatch) -> None:
    """An error of the store ends one node, and nothing else."""
    advance = langgraph._Supersteps._advance

    async def advanced(self: langgraph._Supersteps, graph: Any, step: Any) -> str:
        try:
            return await advance(self, graph, step)
        except StoreUnavailable:
            return "pending"

    patch.setattr(langgraph._Supersteps, "_advance", advanced)


def part_of_ours(patch: pytest.MonkeyPatch) -> None:
    """Steps run in the context of their node."""
    patch.setattr(langgraph, "copy_context", lambda: SimpleNamespace(copy=copy_context))


def no_edge_behind(patch: pytest.MonkeyPatch) -> None:
    """Steps behind a loop are joined with its steps, and not with its end."""
    patch.setattr(langgraph, "_sources", lambda _, step, nodes: [nodes[need] for need in step.needs])


def limit_of_one_pass(patch: pytest.MonkeyPatch) -> None:
    """The recursion limit counts each step once."""
    patch.setattr(langgraph, "sum", lambda passes: 1, raising=False)


def one_pass(patch: pytest.MonkeyPatch) -> None:
    """No loop goes on."""
    patch.setattr(held_run, "goes_on", lambda *_: False)


def without_end(patch: pytest.MonkeyPatch) -> None:
    """A loop goes on while its condition holds, beyond its last pass."""
    patch.setattr(held_run, "goes_on", lambda step, number, *_: step.loop is not None and number < 6)


def one_row(patch: pytest.MonkeyPatch) -> None:
    """All passes of a step have one row."""
    patch.setattr(held_run, "row_name", lambda name, number: name)


def nothing_before(patch: pytest.MonkeyPatch) -> None:
    """A pass does not know the one before."""

    def begin(body: Any, results: dict[str, StepResult]) -> None:
        for name in body:
            del results[name]

    patch.setattr(held_run, "begin_pass", begin)


def asked_too_late(patch: pytest.MonkeyPatch) -> None:
    """The condition of a loop has no part in the result of its step."""
    patch.setattr(held_run, "ended_pass", lambda step, number, result, *_: result)


def first_pass_counts(patch: pytest.MonkeyPatch) -> None:
    """The state of a run is that of the first passes."""
    patch.setattr(joining, "latest", lambda workflow, results: results)


def no_differences(patch: pytest.MonkeyPatch) -> None:
    """Two results are the same."""
    patch.setattr(shadow, "_differences", lambda *_: ())


def called_again(patch: pytest.MonkeyPatch) -> None:
    """A shadow runs the steps themselves."""
    patch.setattr(shadow, "_recorded", lambda workflow, _: workflow)


def always_over(patch: pytest.MonkeyPatch) -> None:
    """A shadow has all the time."""
    patch.setattr(shadow, "SHADOW_SECONDS", 7_200.0)


Judged = engines.TestLangGraphEngine
LOOPED: list[tuple[Break, Callable[[Judged], Any]]] = [
    (all_at_once, Judged.test_no_more_steps_run_at_once_than_allowed),
    (pauses_unseen, Judged.test_a_run_pauses_at_an_approval_and_goes_on_with_the_decision),
    (news_unseen, Judged.test_a_decision_that_comes_while_others_run_begins_the_next_pass),
    (errors_lost, Judged.test_a_store_that_cannot_be_written_ends_the_run_with_its_error),
    (part_of_ours, Judged.test_a_step_that_runs_a_graph_of_its_own_is_no_part_of_ours),
    (no_edge_behind, lambda of: of.test_a_loop_runs_its_steps_until_its_condition_does_not_hold(2)),
    (limit_of_one_pass, Judged.test_a_loop_may_have_as_many_passes_as_are_allowed),
    (one_pass, lambda of: of.test_a_loop_runs_its_steps_until_its_condition_does_not_hold(2)),
    (without_end, Judged.test_a_step_that_loops_over_itself_ends_at_its_most),
    (one_row, Judged.test_a_step_that_loops_over_itself_ends_at_its_most),
    (nothing_before, lambda of: of.test_a_loop_runs_its_steps_until_its_condition_does_not_hold(2)),
    (asked_too_late, lambda of: of.test_a_condition_of_the_wrong_type_fails_its_step("fail", "dependency_failed")),
    (first_pass_counts, Judged.test_a_pass_that_fails_is_the_last),
    (no_differences, lambda _: two_engines.test_a_difference_is_an_event_and_changes_nothing_of_the_result()),
    (
        called_again,
        lambda _: two_engines.test_a_shadow_finds_no_difference_on_the_canonical_suite(two_engines.three),
    ),
    (always_over, lambda _: two_engines.test_a_shadow_that_crashes_or_does_not_end_changes_nothing()),
]


@pytest.mark.parametrize(("spoil", "promise"), LOOPED, ids=[spoil.__name__ for spoil, _ in LOOPED])
def test_a_broken_second_engine_is_caught(
    spoil: Break, promise: Callable[[Judged], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the engine, loops or shadows broken in this way, the promise of the contrary fails."""
    promise(Judged())
    spoil(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception, SmartRouterError, GraphRecursionError, KeyError)):
        promise(Judged())


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
