"""The passes of loops: which rows of a run are those of which pass, and whether another pass follows. Pure.

The row of the second pass of a step is `step#2`, that of a step inside a subgraph that is in a loop `outer#2.step`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from dataclasses import replace
from itertools import count
from typing import Any

from smart_model_router_research.engine.states import Results, StepResult, StepState, outputs_of
from smart_model_router_research.workflow.definition import BEFORE, Step, WorkflowDefinition, scope_of
from smart_model_router_research.workflow.evaluation import ExpressionTypeError
from smart_model_router_research.workflow.expressions import evaluate, holds

_PASS = re.compile(r"#(\d+)")


def row_name(name: str, number: int) -> str:
    """Return the name of the row of a step in pass `number`, from 1."""
    return name if number == 1 else f"{name}#{number}"


def ended_pass(step: Step, number: int, result: StepResult, results: Results, inputs: Mapping[str, Any]) -> StepResult:
    """Return the result with which the last step of a loop settles in pass `number`: its condition may change it."""
    assert step.loop is not None  # noqa: S101 - the caller has seen to it
    if result.state is not StepState.SUCCEEDED:
        return result
    try:
        met, note = holds(_condition(step, {**results, step.name: result}, inputs))
    except ExpressionTypeError as error:
        return replace(result, state=StepState.FAILED, outputs=None, error=f"loop: {error.message}")
    if met and number >= step.loop.max_passes:
        note = f"the loop ended with pass {number}, the last that is allowed: its condition held"
    return replace(result, note=note) if note else result


def goes_on(step: Step, number: int, results: Results, inputs: Mapping[str, Any]) -> bool:
    """Return whether another pass of a loop follows, whose last step has settled in pass `number`."""
    if step.loop is None or number >= step.loop.max_passes or results[step.name].state is not StepState.SUCCEEDED:
        return False
    return holds(_condition(step, results, inputs))[0]


def begin_pass(body: Collection[str], results: MutableMapping[str, StepResult]) -> None:
    """Let the results of the steps of a loop be those of the pass before."""
    for name in body:
        results[name + BEFORE] = results.pop(name)


def passes_of(workflow: WorkflowDefinition, rows: Collection[str], prefix: str = "") -> dict[str, int]:
    """Return the latest pass of each step that is in a loop, by the names of rows; each begins with `prefix`."""
    found: dict[str, int] = {}
    for body in workflow.loops.values():
        later = (n for n in count(2) if not any(row_name(prefix + name, n) in rows for name in body))
        found |= dict.fromkeys(body, next(later) - 1)
    return found


def latest(workflow: WorkflowDefinition, results: Results) -> Results:
    """Return the results of the steps of a workflow by their own names: of those in a loop, the latest pass."""
    if not workflow.loops:
        return results
    passes = passes_of(workflow, results)
    rows = {name: results.get(row_name(name, passes.get(name, 1))) for name in workflow.by_name}
    return {name: row for name, row in rows.items() if row is not None}


def rows_of(workflow: WorkflowDefinition, results: Results) -> Iterator[tuple[str, Step, StepResult]]:
    """Yield each row with its step in the order of the definition, later passes behind earlier ones."""
    later: dict[str, list[str]] = {}
    for name in results:
        if "#" in name:
            later.setdefault(_PASS.sub("", name), []).append(name)
    for name, step in workflow.walk():
        if name in results:
            yield name, step, results[name]
        for row in sorted(later.get(name, ()), key=lambda row: [int(number) for number in _PASS.findall(row)]):
            yield row, step, results[row]


def _condition(step: Step, results: Results, inputs: Mapping[str, Any]) -> Any:
    assert step.loop is not None  # noqa: S101 - the caller has seen to it
    return evaluate(step.loop.condition, scope_of(step, inputs, lambda name: outputs_of(results, name)))
