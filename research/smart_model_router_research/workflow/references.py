"""The references of a workflow: what its expressions may read, and the faults of those that read something else."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smart_model_router.domain.suggest import did_you_mean
from smart_model_router.domain.tree_path import Path
from smart_model_router_research.workflow.evaluation import is_number
from smart_model_router_research.workflow.expressions import (
    ExpressionError,
    Reference,
    bare,
    parse_expression,
    parse_template,
)
from smart_model_router_research.workflow.faults import WorkflowFault
from smart_model_router_research.workflow.graph import Found, StepGraph
from smart_model_router_research.workflow.step import Step, StepLoop

if TYPE_CHECKING:
    from smart_model_router_research.workflow.definition import WorkflowDefinition

MAX_VALUES = 100_000
MAX_NESTING = 64
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""The names that expressions can read."""


@dataclass(frozen=True, slots=True)
class References:
    """The things that the expressions of a workflow may read: its inputs, and outputs of the steps that come before."""

    workflow: WorkflowDefinition
    graph: StepGraph

    def of_step(self, path: Path, step: Any) -> Found:
        """Yield the faults of everything in a step that may have references."""
        if isinstance(step.when, str):
            yield from self._condition((*path, "when"), step.when, step)
        elif step.when is not None and not isinstance(step.when, bool):
            yield WorkflowFault((*path, "when"), step.when, "an expression, true or false is needed")
        for key in ("inputs", "options"):
            yield from self._data((*path, key), getattr(step, key), step)
        if isinstance(step.message, str):
            yield from self._text((*path, "message"), step.message, step)
        if isinstance(step.loop, StepLoop):
            if step.loop.to != step.name and not self.graph.comes_before(step.loop.to, step.name):
                yield WorkflowFault((*path, "loop", "to"), step.loop.to, "the step itself, or one before it, is needed")
            else:
                yield from self.graph.joins_of_loop(step.loop.to, step.name)
            yield from self._condition((*path, "loop", "while"), step.loop.condition, step, after=True)

    def of_outputs(self) -> Found:
        """Yield the faults of the outputs of the workflow, which may read every step."""
        outputs: Any = self.workflow.outputs
        yield from self._data(("outputs",), outputs, None)
        if isinstance(outputs, Mapping):
            yield from (
                WorkflowFault(("outputs", name), name, "a name is needed: letters, digits and _, no digit first")
                for name in outputs
                if isinstance(name, str) and not NAME.fullmatch(name)
            )

    def _data(self, path: Path, value: object, step: Step | None) -> Found:
        if not isinstance(value, Mapping):
            yield WorkflowFault(path, value, "a mapping is needed")
            return
        faults = list(json_faults(path, value))
        yield from faults
        for here, text in _texts(path, value) if not faults else ():
            yield from self._text(here, text, step)

    def _text(self, path: Path, text: str, step: Step | None) -> Found:
        template = _read(parse_template, path, text)
        if isinstance(template, WorkflowFault):
            yield template
            return
        for expression in template.expressions:
            for reference in expression.references:
                yield from self._reference(path, reference, step)

    def _condition(self, path: Path, text: object, step: Step, *, after: bool = False) -> Found:
        if not isinstance(text, str):
            yield WorkflowFault(path, text, "an expression is needed")
            return
        expression = _read(parse_expression, path, bare(text))
        if isinstance(expression, WorkflowFault):
            yield expression
            return
        for reference in expression.references:
            yield from self._reference(path, reference, step, after=after)

    def _reference(self, path: Path, reference: Reference, step: Step | None, *, after: bool = False) -> Found:
        root, *names = reference
        written = ".".join(reference)
        if root == "inputs":
            if names[0] not in self.workflow.inputs:
                hint = did_you_mean(names[0], self.workflow.inputs) or "it declares none"
                yield WorkflowFault(path, written, f"the workflow declares no such input; {hint}")
        elif root == "steps":
            same = {} if step is None or step.round is None else step.round.same
            yield from self._output(path, written, same.get(names[0], names[0]), names[2:], step, after=after)
        elif step is None or step.round is None:
            if root == "prev" and step is not None and names[0] in self._looped_with(step):
                yield from self._declared(path, written, names[0], names[1:])
            else:
                of_loops = ", and for those of one loop" if root == "prev" else ""
                yield WorkflowFault(path, written, f"{root} is for the steps of a template of rounds{of_loops}")
        elif step.round.number > 1 and root != "round_number":
            rounds = step.round
            short = rounds.short.get(names[0]) if names[0] not in rounds.prev else None
            of = short or names[0]
            earlier = rounds.last.get(of, ())
            if not earlier:
                yield WorkflowFault(path, written, f"the template has no such step; {did_you_mean(of, rounds.prev)}")
            for name in earlier[: 1 if root == "prev" else None]:
                yield from self._output(path, written, name, names if short else names[1:], step)

    def _output(
        self, path: Path, written: str, name: str, members: Sequence[str], step: Step | None, *, after: bool = False
    ) -> Found:
        found = self.graph.by_name.get(name)
        if found is None:
            yield WorkflowFault(path, written, f"no step is named {name!r}; {self.graph.suggested(name)}")
            return
        itself = after and step is not None and step.name == name
        if step is not None and not itself and not self.graph.comes_before(name, step.name):
            yield WorkflowFault(path, written, f"{name!r} is not among the steps that {step.name!r} needs")
            return
        yield from self._declared(path, written, name, members)

    def _declared(self, path: Path, written: str, name: str, members: Sequence[str]) -> Found:
        declared = self.graph.by_name[name].declared_outputs
        if members and declared is not None and members[0] not in declared:
            hint = did_you_mean(members[0], declared)
            yield WorkflowFault(path, written, f"{name!r} declares no such output; {hint}")

    def _looped_with(self, step: Step) -> tuple[str, ...]:
        """Return the steps of the loop that a step is in."""
        for last in self.graph.steps:
            if isinstance(last.loop, StepLoop) and step.name in (body := self.graph.loop_body(last.loop.to, last.name)):
                return body
        return ()


def _read(parse: Callable[[str], Any], path: Path, text: str) -> Any:
    try:
        return parse(text)
    except ExpressionError as error:
        return WorkflowFault(path, text, error.reason)


def _texts(path: Path, value: Any) -> Iterator[tuple[Path, str]]:
    """Yield the texts of JSON data, which is not nested deeply."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, member in value.items():
            yield from _texts((*path, key), member)
    elif isinstance(value, list | tuple):
        for number, member in enumerate(value):
            yield from _texts((*path, number), member)


def json_faults(path: Path, value: object) -> Found:
    """Yield the faults of a value that has to be JSON. It may be nested or shared without end."""
    left = MAX_VALUES
    waiting: list[tuple[Path, Any]] = [(path, value)]
    while waiting:
        here, one = waiting.pop()
        left -= 1
        if left < 0 or len(here) - len(path) > MAX_NESTING:
            limits = f"at most {MAX_VALUES} values, nested {MAX_NESTING} deep, are allowed"
            yield WorkflowFault(path, f"a {type(value).__name__}", limits)
            return
        if isinstance(one, Mapping):
            yield from (
                WorkflowFault(here, key, "a key that is text is needed") for key in one if not isinstance(key, str)
            )
            waiting += [((*here, key), member) for key, member in one.items() if isinstance(key, str)]
        elif isinstance(one, list | tuple):
            waiting += [((*here, number), member) for number, member in enumerate(one)]
        elif is_number(one):
            if not (-(2**63) <= one < 2**63 if isinstance(one, int) else math.isfinite(one)):
                yield WorkflowFault(here, one, "a finite number of at most 64 bits is needed")
        elif one is not None and not isinstance(one, str | bool):
            yield WorkflowFault(here, one, "a value of JSON is needed")
