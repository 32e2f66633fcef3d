"""The result of a run by those of its steps: status, outputs, and one sentence that says why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smart_model_router_research.engine.joining import Results, outputs_of, run_state
from smart_model_router_research.engine.protocol import ExecutionResult
from smart_model_router_research.engine.states import RunState, SkipReason, StepResult, StepState
from smart_model_router_research.workflow.definition import Costs, WorkflowDefinition
from smart_model_router_research.workflow.evaluation import ExpressionTypeError
from smart_model_router_research.workflow.expressions import fill


def execution_result(
    workflow: WorkflowDefinition, run_id: str, results: Results, inputs: Mapping[str, Any], usage: Costs, engine: str
) -> ExecutionResult:
    """Return the result of a run; steps are in the order of the definition, whichever ended first.

    A run whose outputs have a type error has failed, and says so.
    """
    state = run_state(workflow, results)
    reason = _reason(workflow, results, state)
    outputs: Mapping[str, Any] = {}
    scope = {"inputs": inputs, "steps": {name: {"outputs": outputs_of(results, name)} for name in workflow.by_name}}
    try:
        outputs = fill(workflow.outputs, scope)
    except ExpressionTypeError as error:
        if state in (RunState.COMPLETED, RunState.PARTIAL):
            state, reason = RunState.FAILED, f"outputs: {error.message}"
    return ExecutionResult(
        run_id=run_id,
        status=state,
        steps={step.name: results.get(step.name, StepResult()) for step in workflow.steps},
        outputs=outputs,
        reason=reason,
        usage=usage,
        engine=engine,
    )


def _reason(workflow: WorkflowDefinition, results: Results, state: RunState) -> str:
    """Return one sentence that names the step which decided, "" for a run that is completed."""
    if state is RunState.COMPLETED:
        return ""
    if state is RunState.CANCELLED:
        return "the run was cancelled"
    found = [(step, results.get(step.name, StepResult())) for step in workflow.steps]
    for step, result in found:
        if result.state is StepState.FAILED and (step.on_error == "fail" or state is RunState.PARTIAL):
            return f"step {step.name} failed: {result.error}"
    for step, result in found:
        if result.skip_reason in _CUT:
            return f"step {step.name} was skipped: {_CUT[result.skip_reason]}"
    return "no step ran"


_CUT: Mapping[SkipReason | None, str] = {
    SkipReason.BUDGET: "its estimate does not fit into the budget",
    SkipReason.TIMEOUT: "the time limit of the run came first",
}
