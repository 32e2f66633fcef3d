"""The rules of a workflow: everything that a definition, or the inputs of a run, can have wrong. Nothing is raised.

The values of a definition are `Any` here: their annotations are what is checked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from smart_model_router.domain.suggest import did_you_mean
from smart_model_router.domain.tree_path import Path
from smart_model_router_research.workflow.evaluation import CONSTANTS, is_number, same
from smart_model_router_research.workflow.expressions import (
    FORMS,
    ExpressionError,
    Reference,
    bare,
    parse_expression,
    parse_template,
)
from smart_model_router_research.workflow.faults import WorkflowFault
from smart_model_router_research.workflow.graph import Found, StepGraph
from smart_model_router_research.workflow.step import COSTS, Step, StepLoop, WorkflowInput

if TYPE_CHECKING:
    from smart_model_router_research.workflow.definition import WorkflowDefinition

MAX_STEPS = 10_000
MAX_SUBGRAPHS = 32
MAX_ATTEMPTS = 100
MAX_PASSES = 100
MAX_NAME = 100
MAX_VALUES = 100_000
MAX_NESTING = 64
RESERVED = frozenset({*FORMS, *CONSTANTS})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def faults_of(workflow: Any) -> Found:
    """Yield every fault of a definition."""
    if not (isinstance(workflow.name, str) and 0 < len(workflow.name) <= MAX_NAME and workflow.name.isprintable()):
        yield WorkflowFault(("name",), workflow.name, f"a text of 1 to {MAX_NAME} printable characters is needed")
    for key in ("checkpoint", "stream"):
        yield from _choice((key,), getattr(workflow, key), ("optional", "required"))
    yield from _declared_inputs(workflow.inputs)
    steps = workflow.steps
    if not isinstance(steps, tuple) or not steps:
        yield WorkflowFault(("steps",), steps or None, "the workflow has no steps; at least one is needed")
    elif len(steps) > MAX_STEPS:
        yield WorkflowFault(("steps",), len(steps), f"at most {MAX_STEPS} steps are allowed")
    else:
        yield from _step_faults(workflow, steps)


def input_faults(wanted: Mapping[str, WorkflowInput], given: Mapping[str, Any]) -> Found:
    """Yield every fault of the inputs that a run was given."""
    for name, value in given.items():
        if name not in wanted:
            yield WorkflowFault(
                ("inputs", name),
                value,
                f"the workflow has no such input; {did_you_mean(name, wanted) or 'it has none'}",
            )
    for name, declared in wanted.items():
        if name in given:
            yield from _value_faults(("inputs", name), declared, given[name])
        elif declared.required:
            yield WorkflowFault(("inputs", name), None, f"the input is required: {_described(declared)}")


def name_fault(path: Path, name: object) -> Found:
    """Yield the fault of a name that expressions could not read."""
    if not isinstance(name, str) or len(name) > MAX_NAME or not _NAME.fullmatch(name) or name.startswith("__"):
        yield WorkflowFault(path, name, f"a name is needed: letters, digits and _, at most {MAX_NAME}, no digit first")
    elif iskeyword(name) or name in RESERVED:
        yield WorkflowFault(path, name, "the name is reserved; another one is needed")


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


# ------------------------------------------------------------------------------------------------ inputs


def _declared_inputs(inputs: object) -> Found:
    if not isinstance(inputs, Mapping):
        yield WorkflowFault(("inputs",), inputs, "a mapping of names to WorkflowInput is needed")
        return
    for name, declared in inputs.items():
        path = ("inputs", str(name))
        yield from name_fault(path, name)
        if not isinstance(declared, WorkflowInput):
            yield WorkflowFault(path, declared, "a WorkflowInput is needed")
            continue
        yield from _declared_input(path, declared)


def _declared_input(path: Path, declared: Any) -> Found:
    unknown = list(_choice((*path, "type"), declared.type, tuple(_TYPES)))
    yield from unknown
    yield from _boolean((*path, "required"), declared.required)
    numeric = declared.type in ("number", "integer")
    for key, bound in (("min", declared.minimum), ("max", declared.maximum)):
        if bound is not None and not numeric:
            yield WorkflowFault((*path, key), bound, "a bound is for the types number and integer")
        elif bound is not None and not (is_number(bound) and math.isfinite(bound)):
            yield WorkflowFault((*path, key), bound, "a number is needed")
            return
    if declared.minimum is not None and declared.maximum is not None and declared.minimum > declared.maximum:
        yield WorkflowFault((*path, "min"), declared.minimum, f"at most max, {declared.maximum}, is needed")
    if unknown:
        return
    if declared.enum is not None and not (isinstance(declared.enum, list | tuple) and declared.enum):
        yield WorkflowFault((*path, "enum"), declared.enum, "a list of at least one value is needed")
        return
    for number, value in enumerate(declared.enum or ()):
        yield from _typed((*path, "enum", number), declared, value)
    if declared.required and declared.default is not None:
        yield WorkflowFault((*path, "default"), declared.default, "an input that is required has no default")
    elif declared.default is not None:
        yield from _value_faults((*path, "default"), declared, declared.default)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "any": lambda _: True,
    "string": lambda value: isinstance(value, str),
    "number": is_number,
    "integer": lambda value: is_number(value) and isinstance(value, int),
    "boolean": lambda value: isinstance(value, bool),
    "list": lambda value: isinstance(value, list | tuple),
    "mapping": lambda value: isinstance(value, Mapping),
}


def _value_faults(path: Path, declared: WorkflowInput, value: object) -> Found:
    if value is None and not declared.required:
        return
    found = list(_typed(path, declared, value))
    yield from found
    if not found and declared.enum is not None and not any(same(value, one) for one in declared.enum):
        yield WorkflowFault(path, value, f"{_described(declared)} is needed")


def _typed(path: Path, declared: WorkflowInput, value: Any) -> Found:
    found = list(json_faults(path, value))
    yield from found
    if found:
        return
    low, high = declared.minimum, declared.maximum
    fits = _TYPES[declared.type](value)
    if not fits or (low is not None and value < low) or (high is not None and value > high):
        yield WorkflowFault(path, value, f"{_described(declared)} is needed")


def _described(declared: WorkflowInput) -> str:
    if declared.enum is not None:
        return f"one of {', '.join(map(repr, declared.enum))}"
    bounds = [f"at least {declared.minimum}"] * (declared.minimum is not None)
    bounds += [f"at most {declared.maximum}"] * (declared.maximum is not None)
    return ", ".join([f"a value of type {declared.type}", *bounds])


# ------------------------------------------------------------------------------------------------ steps


def _step_faults(workflow: WorkflowDefinition, steps: Sequence[Any]) -> Found:
    strangers = [number for number, step in enumerate(steps) if not isinstance(step, Step)]
    for number in strangers:
        yield WorkflowFault(("steps", number), steps[number], "a Step is needed")
    if strangers:
        return
    first: dict[object, int] = {}
    for number, step in enumerate(steps):
        path = ("steps", number)
        yield from name_fault((*path, "name"), step.name)
        if isinstance(step.name, str) and first.setdefault(step.name, number) != number:
            yield WorkflowFault(
                (*path, "name"), step.name, f"steps[{first[step.name]}] has that name; another is needed"
            )
        yield from _own_faults(path, step, type(workflow))
    graph = StepGraph(steps)
    yield from graph.faults()
    if all(isinstance(step.workflow, type(workflow) | None) for step in steps):
        total, depth = workflow.extent
        if total > MAX_STEPS or depth > MAX_SUBGRAPHS:
            limits = f"at most {MAX_STEPS} steps with those of subgraphs, nested {MAX_SUBGRAPHS} deep, are allowed"
            yield WorkflowFault(("steps",), f"{total} steps, nested {depth} deep", limits)
    references = _References(workflow, graph)
    for number, step in enumerate(steps):
        yield from references.of_step(("steps", number), step)
    yield from references.of_outputs()
    yield from _shared_loops(graph)


def _shared_loops(graph: StepGraph) -> Found:
    """Yield the loops that have a step of an earlier one: the passes of the two could not be told apart."""
    taken: dict[str, object] = {}
    for number, step in enumerate(graph.steps):
        if isinstance(step.loop, StepLoop):
            body = graph.loop_body(step.loop.to, step.name)
            if shared := next((name for name in body if name in taken), None):
                expected = f"loops without a step in common are needed; {taken[shared]!r} loops over {shared!r}, too"
                yield WorkflowFault(("steps", number, "loop"), step.loop.to, expected)
            taken |= dict.fromkeys(body, step.name)


def _own_faults(path: Path, step: Any, kind_of_workflow: type) -> Found:
    """Yield the faults of a step that concern no other one."""
    yield from _boolean((*path, "always"), step.always)
    yield from _choice((*path, "on_error"), step.on_error, ("fail", "continue"))
    if step.timeout is not None and not (is_number(step.timeout) and 0 < step.timeout < math.inf):
        yield WorkflowFault((*path, "timeout"), step.timeout, "a number of seconds above 0 is needed")
    yield from _count((*path, "attempts"), step.attempts, MAX_ATTEMPTS)
    yield from _names((*path, "outputs"), step.outputs)
    yield from _estimate((*path, "estimate"), step.estimate)
    yield from _kind_faults(path, step, kind_of_workflow)
    if step.loop is not None:
        if isinstance(step.loop, StepLoop):
            yield from _count((*path, "loop", "max"), step.loop.max_passes, MAX_PASSES)
        else:
            yield WorkflowFault((*path, "loop"), step.loop, "a StepLoop is needed")


def _kind_faults(path: Path, step: Any, kind_of_workflow: type) -> Found:
    """Yield the faults of a step that come from its kind."""
    if step.kind == "workflow":
        if isinstance(step.workflow, kind_of_workflow):
            yield from _subgraph_inputs((*path, "inputs"), step)
        else:
            yield WorkflowFault((*path, "workflow"), step.workflow, "a WorkflowDefinition is needed")
    elif step.workflow is not None:
        yield WorkflowFault((*path, "workflow"), "a workflow", "a subgraph is for steps of kind workflow")
    if step.kind != "approval" and step.message is not None:
        yield WorkflowFault((*path, "message"), step.message, "a message is for steps of kind approval")
    if step.kind == "approval" and not isinstance(step.message, str | None):
        yield WorkflowFault((*path, "message"), step.message, "a text is needed")
    if step.kind in ("approval", "workflow"):
        if step.run is not None:
            yield WorkflowFault((*path, "run"), step.run, f"a step of kind {step.kind} runs no function")
        if step.attempts != 1:
            yield WorkflowFault((*path, "attempts"), step.attempts, f"a step of kind {step.kind} has one attempt")
    elif not callable(step.run):
        hint = did_you_mean(str(step.kind), ("approval", "call", "workflow"))
        more = "" if step.kind == "call" or not hint.startswith("did") else f" (kind {step.kind!r}: {hint})"
        yield WorkflowFault((*path, "run"), step.run, f"a coroutine function that takes a StepInput is needed{more}")


def _subgraph_inputs(path: Path, step: Step) -> Found:
    assert step.workflow is not None  # noqa: S101 - its kind was checked
    wanted = step.workflow.inputs
    inputs: Any = step.inputs
    given = inputs if isinstance(inputs, Mapping) else {}
    for name in given:
        if name not in wanted:
            yield WorkflowFault((*path, str(name)), given[name], f"unknown; {did_you_mean(str(name), wanted)}")
    for name, declared in wanted.items():
        if declared.required and name not in given:
            yield WorkflowFault((*path, name), None, f"the workflow {step.workflow.name!r} requires this input")


def _estimate(path: Path, estimate: object) -> Found:
    if not isinstance(estimate, Mapping):
        yield WorkflowFault(path, estimate, f"a mapping of {', '.join(COSTS)} is needed")
        return
    for key, value in estimate.items():
        if key not in COSTS:
            yield WorkflowFault((*path, str(key)), value, f"unknown; {did_you_mean(str(key), COSTS)}")
        elif not (is_number(value) and 0 <= value < math.inf):
            yield WorkflowFault((*path, key), value, "a number of at least 0 is needed")


def _names(path: Path, names: object) -> Found:
    """Yield the faults of a list of outputs."""
    if names is None:
        return
    if not isinstance(names, tuple):
        yield WorkflowFault(path, names, "a list of names is needed")
        return
    for number, name in enumerate(names):
        if not isinstance(name, str) or len(name) > MAX_NAME or not _NAME.fullmatch(name):
            yield WorkflowFault((*path, number), name, "a name is needed: letters, digits and _, no digit first")
        elif name in names[:number]:
            yield WorkflowFault((*path, number), name, "the name stands here twice; each name once is needed")


def _boolean(path: Path, value: object) -> Found:
    if not isinstance(value, bool):
        yield WorkflowFault(path, value, "true or false is needed")


def _count(path: Path, value: object, most: int) -> Found:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        yield WorkflowFault(path, value, f"a whole number from 1 to {most} is needed")


def _choice(path: Path, value: object, choices: Sequence[str]) -> Found:
    if value not in choices:
        yield WorkflowFault(path, value, f"one of {', '.join(choices)} is needed")


# ------------------------------------------------------------------------------------------------ references


@dataclass(frozen=True, slots=True)
class _References:
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
                if isinstance(name, str) and not _NAME.fullmatch(name)
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
