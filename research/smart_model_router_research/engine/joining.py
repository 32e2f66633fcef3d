"""The join rule: when a step is decided, and how, by what it needs; and the state of a run by that of its steps.

Every engine calls these functions, so that paths of any length, skips and failures come to the same on all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smart_model_router_research.engine.loops import latest, rows_of
from smart_model_router_research.engine.states import (
    PENDING,
    SETTLED,
    Results,
    RunState,
    SkipReason,
    StepResult,
    StepState,
    outputs_of,
)
from smart_model_router_research.workflow.definition import Step, WorkflowDefinition, scope_of
from smart_model_router_research.workflow.evaluation import ExpressionTypeError
from smart_model_router_research.workflow.expressions import evaluate, holds

READY = StepResult(state=StepState.READY)
CANCELLED = StepResult(state=StepState.CANCELLED)


def consider(workflow: WorkflowDefinition, name: str, results: Results, inputs: Mapping[str, Any]) -> StepResult | None:
    """Return the result that a pending step moves to: ready, skipped, failed or cancelled; None while it has to wait.

    `results` are those of the steps so far, `inputs` those of the run. A step is decided once all that it needs has
    settled, and its decision is the same whatever else has settled since.
    """
    step = workflow.by_name[name]
    needs = {need: results.get(need, PENDING) for need in step.needs}
    states = {need.state for need in needs.values()}
    if not SETTLED.issuperset(states):
        return None
    if StepState.CANCELLED in states:
        return CANCELLED
    if not step.always and (reason := _skipped_by(workflow, needs)) is not None:
        return StepResult(state=StepState.SKIPPED, skip_reason=reason)
    return _asked(step, results, inputs)


def run_state(workflow: WorkflowDefinition, results: Results) -> RunState:
    """Return the state of a run by those of its steps; a step without a result is pending.

    `results` go by full names: a failure inside a subgraph that succeeded, or in an earlier pass of a loop, leaves the
    run partial.
    """
    last = latest(workflow, results)
    found = {step.name: last.get(step.name, PENDING) for step in workflow.steps}
    states = {result.state for result in found.values()}
    if states & _IN_FLIGHT:
        return RunState.RUNNING
    if StepState.CANCELLED in states:
        return RunState.CANCELLED
    if StepState.PAUSED in states:
        return RunState.PAUSED
    if StepState.PENDING in states:
        return RunState.RUNNING
    if any(result.state is StepState.FAILED and not _goes_on(workflow, name) for name, result in found.items()):
        return RunState.FAILED
    # A subgraph is what ran inside of it; one that was skipped, or refused its inputs, is so itself.
    worked = [
        result
        for _, step, result in rows_of(workflow, results)
        if step.workflow is None or result.state is not StepState.SUCCEEDED
    ]
    ran = any(result.state in _RAN for result in worked)
    cut = any(result.state is StepState.FAILED or result.skip_reason in _CUT for result in worked)
    return RunState.COMPLETED if ran and not cut else RunState.PARTIAL


_IN_FLIGHT = frozenset({StepState.READY, StepState.RUNNING, StepState.RETRYING})
_RAN = frozenset({StepState.SUCCEEDED, StepState.FAILED})
_CUT = frozenset({SkipReason.BUDGET, SkipReason.TIMEOUT})


def _skipped_by(workflow: WorkflowDefinition, needs: Results) -> SkipReason | None:
    """Return the reason by which what a step needs skips it."""
    for name, need in needs.items():
        failed = need.state is StepState.FAILED and not _goes_on(workflow, name)
        if failed or need.skip_reason is SkipReason.DEPENDENCY_FAILED:
            return SkipReason.DEPENDENCY_FAILED
    if needs and all(need.state is StepState.SKIPPED for need in needs.values()):
        return SkipReason.DEPENDENCY_SKIPPED
    return None


def _goes_on(workflow: WorkflowDefinition, name: str) -> bool:
    return workflow.by_name[name].on_error == "continue"


def _asked(step: Step, results: Results, inputs: Mapping[str, Any]) -> StepResult:
    """Return the decision of a step's condition."""
    if step.when is None or step.when is True:
        return READY
    try:
        value = step.when and evaluate(step.when, scope_of(step, inputs, lambda name: outputs_of(results, name)))
    except ExpressionTypeError as error:
        return StepResult(state=StepState.FAILED, error=f"when: {error.message}")
    met, note = holds(value)
    return READY if met else StepResult(state=StepState.SKIPPED, skip_reason=SkipReason.CONDITION, note=note)
