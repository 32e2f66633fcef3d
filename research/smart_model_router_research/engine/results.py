"""The result of a run by those of its steps: status, outputs, and one sentence that says why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smart_model_router_research.engine.joining import run_state
from smart_model_router_research.engine.loops import latest, rows_of
from smart_model_router_research.engine.protocol import ExecutionResult
from smart_model_router_research.engine.states import (
    PENDING,
    Results,
    RunState,
    SkipReason,
    StepResult,
    StepState,
    outputs_of,
)
from smart_model_router_research.workflow.definition import Costs, WorkflowDefinition
from smart_model_router_research.workflow.evaluation import ExpressionTypeError
from smart_model_router_research.workflow.expressions import fill


def execution_result(
    workflow: WorkflowDefinition, run_id: str, results: Results, inputs: Mapping[str, Any], usage: Costs, engine: str
) -> ExecutionResult:
    """Return the result of a run; steps are in the order of the definition, whichever ended first.

    `results` go by full names; steps of a subgraph that did not begin have none. A run whose outputs have a type error
    has failed, and says so.
    """
    state = run_state(workflow, results)
    outputs, state, reason = _outputs(workflow, results, inputs, state, _reason(workflow, results, state))
    found = dict.fromkeys(workflow.by_name, PENDING) | dict(results)
    return ExecutionResult(
        run_id=run_id,
        status=state,
        steps={name: result for name, _, result in rows_of(workflow, found)},
        outputs=outputs,
        reason=reason,
        usage=usage,
        engine=engine,
    )


def subgraph_result(
    workflow: WorkflowDefinition, results: Results, inputs: Mapping[str, Any], prefix: str
) -> StepResult:
    """Return the result of a step whose subgraph is over: it fails as that does, else its outputs are those.

    `results` are those of the steps of the subgraph by their own names; full names begin with `prefix`.
    """
    state = run_state(workflow, results)
    outputs, state, reason = _outputs(workflow, results, inputs, state, _reason(workflow, results, state, prefix))
    if state is RunState.FAILED:
        return StepResult(state=StepState.FAILED, error=reason, attempts=1)
    return StepResult(state=StepState.SUCCEEDED, outputs=outputs, attempts=1)


def _outputs(
    workflow: WorkflowDefinition, results: Results, inputs: Mapping[str, Any], state: RunState, reason: str
) -> tuple[Mapping[str, Any], RunState, str]:
    """Return the outputs, and state and reason, which a type error changes."""
    last = latest(workflow, results)
    scope = {"inputs": inputs, "steps": {name: {"outputs": outputs_of(last, name)} for name in workflow.by_name}}
    try:
        return fill(workflow.outputs, scope), state, reason
    except ExpressionTypeError as error:
        if state in (RunState.COMPLETED, RunState.PARTIAL):
            return {}, RunState.FAILED, f"outputs: {error.message}"
        return {}, state, reason


def _reason(workflow: WorkflowDefinition, results: Results, state: RunState, prefix: str = "") -> str:
    """Return one sentence that names the step which decided, "" for a run that is completed."""
    if state is RunState.COMPLETED:
        return ""
    if state is RunState.CANCELLED:
        return "the run was cancelled"
    found = [(f"{prefix}{name}", step, result) for name, step, result in rows_of(workflow, results)]
    if state is RunState.PAUSED:
        paused = (name for name, step, result in found if result.state is StepState.PAUSED and step.workflow is None)
        return f"step {next(paused, '')} waits for a decision"
    for name, step, result in found:
        decided = state is RunState.PARTIAL or (step.on_error == "fail" and workflow.by_name.get(step.name) is step)
        if result.state is StepState.FAILED and decided:
            return f"step {name} failed: {result.error}"
    for name, step, result in found:
        if result.skip_reason is SkipReason.BUDGET and not step.estimate:
            return f"step {name} was skipped: the budget is spent"
        if result.skip_reason in _CUT:
            return f"step {name} was skipped: {_CUT[result.skip_reason]}"
    return "no step ran"


_CUT: Mapping[SkipReason | None, str] = {
    SkipReason.BUDGET: "its estimate does not fit into the budget",
    SkipReason.TIMEOUT: "the time limit of the run came first",
}
