"""The beginning of a fork: the results of another run that a changed one keeps. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from graphlib import TopologicalSorter
from typing import Any

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.engine.joining import consider
from smart_model_router_research.engine.loops import begin_pass, goes_on, row_name
from smart_model_router_research.engine.protocol import CheckpointRef
from smart_model_router_research.engine.states import StepResult, StepState
from smart_model_router_research.engine.steps import checked, step_input
from smart_model_router_research.engine.store_port import NewRun, StoredRun, StoredStep
from smart_model_router_research.workflow.definition import Step, WorkflowDefinition, WorkflowError
from smart_model_router_research.workflow.evaluation import ExpressionTypeError

Outputs = Mapping[str, Mapping[str, Any]]


def forked(old: StoredRun, ref: CheckpointRef, workflow: WorkflowDefinition, new: NewRun, outputs: Outputs) -> NewRun:
    """Return the run `new` with all that it keeps of the run `old`, as that was at `ref`.

    A result is kept when its step reads the same as then. `outputs` go by the full names of steps that had settled;
    they take the place of those that had the same names, whatever the step reads. Raises ConfigurationError.
    """
    numbers = [step.number for step in old.steps.values() if step.number is not None]
    if ref.number > max(numbers, default=0):
        expected = f"the number of a checkpoint is needed, from 0 to {max(numbers, default=0)}"
        raise ConfigurationError("checkpoint", str(ref), expected)
    rows = {name: row for name, row in old.steps.items() if row.number is not None and row.number <= ref.number}
    known = {name for name, _ in workflow.walk()}
    for name in outputs:
        if name not in rows or name not in known:
            there = ", ".join(sorted(rows.keys() & known)) or "none had"
            raise ConfigurationError(f"outputs.{name}", name, f"a step that had settled at {ref} is needed: {there}")
    same = {name for name, found in old.step_hashes.items() if workflow.step_hashes.get(name) == found}
    fork = _Fork(new, rows, {name: _replaced(rows[name], name, each) for name, each in outputs.items()})
    fork.keep(workflow, new.inputs, "", same)
    for name in outputs:
        if name not in fork.kept:
            expected = "a step is needed whose subgraph does not run anew: something that this reads was changed, too"
            raise ConfigurationError(f"outputs.{name}", name, expected)
    return replace(new, forked_from=ref, settled=fork.kept)


def _replaced(row: StoredStep, name: str, outputs: Mapping[str, Any]) -> StoredStep:
    try:
        found = checked({**(row.result.outputs or {}), **outputs})
    except ValueError as error:
        raise ConfigurationError(f"outputs.{name}", f"a {type(outputs).__name__}", str(error)) from None
    result = StepResult(state=StepState.SUCCEEDED, outputs=found, note="the outputs were set by the fork")
    return replace(row, result=result)


class _Fork:
    """One fork in the making: `rows` are those of the old run, `replaced` those that were changed, `kept` the new."""

    def __init__(self, new: NewRun, rows: Mapping[str, StoredStep], replaced: Mapping[str, StoredStep]) -> None:
        self._new = new
        self._rows = rows
        self._replaced = replaced
        self.kept: dict[str, StoredStep] = {}

    def keep(self, workflow: WorkflowDefinition, inputs: Mapping[str, Any], prefix: str, same: set[str]) -> bool:
        """Keep what is valid of one graph; returns whether that is all of its steps. `same` are those not changed."""
        results: dict[str, StepResult] = {}
        order = [*TopologicalSorter({step.name: step.needs for step in workflow.steps}).static_order()]
        over: set[str] = set()  # the loops all of whose passes are kept

        def keep_step(name: str, number: int = 1) -> None:
            step, full = workflow.by_name[name], row_name(prefix + name, number)
            row, loops = self._replaced.get(full), workflow.loop_of
            ended = all(
                loops[need] in over for need in step.needs if loops.get(need, loops.get(name)) != loops.get(name)
            )
            if row is None and name in same and ended and all(need in results for need in step.needs):
                row = self._valid(workflow, step, full, inputs, results)
            if row is not None:
                results[name] = row.result
                self.kept[full] = row

        for name in order:
            keep_step(name)
            body, number = [each for each in order if each in workflow.loops.get(name, ())], 1
            while all(each in results for each in body) and goes_on(workflow.by_name[name], number, results, inputs):
                number += 1
                begin_pass(body, results)
                for each in body:
                    keep_step(each, number)
            if all(each in results for each in body):
                over.add(name)
        return all(name in results for name in workflow.by_name) and over.issuperset(workflow.loops)

    def _valid(
        self,
        workflow: WorkflowDefinition,
        step: Step,
        full: str,
        inputs: Mapping[str, Any],
        results: Mapping[str, StepResult],
    ) -> StoredStep | None:
        """Return the row of a step, all of whose needs are kept, when it would end in the same way again."""
        row = self._rows.get(full)
        decided = consider(workflow, step.name, results, inputs)
        if decided is None or decided.state is not StepState.READY:
            return row if row is not None and row.result == decided else None
        try:
            given = step_input(step, full, self._new.run_id, self._new.workflow_hash, inputs, results)
            inner = None if step.workflow is None else step.workflow.with_defaults(given.inputs)
        except (ExpressionTypeError, WorkflowError):
            return None
        if step.workflow is not None and inner is not None:
            whole = self.keep(step.workflow, inner, f"{full}.", set(step.workflow.by_name))
            if not whole or any(name.startswith(f"{full}.") for name in self._replaced):
                return None
        return row if row is not None and row.input_hash == given.input_hash else None
