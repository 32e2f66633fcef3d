"""The rules of a workflow: everything that a definition, or the inputs of a run, can have wrong. Nothing is raised.

The values of a definition are `Any` here: their annotations are what is checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from smart_model_router.domain.suggest import did_you_mean
from smart_model_router.domain.tree_path import Path
from smart_model_router_research.workflow.evaluation import CONSTANTS, is_number, same
from smart_model_router_research.workflow.expressions import (
    FORMS,
)
from smart_model_router_research.workflow.faults import WorkflowFault
from smart_model_router_research.workflow.graph import Found, StepGraph
from smart_model_router_research.workflow.references import NAME, References, json_faults
from smart_model_router_research.workflow.step import COSTS, Step, StepLoop, WorkflowInput

if TYPE_CHECKING:
    from smart_model_router_research.workflow.definition import WorkflowDefinition

MAX_STEPS = 10_000
MAX_SUBGRAPHS = 32
MAX_ATTEMPTS = 100
MAX_PASSES = 100
MAX_NAME = 100
RESERVED = frozenset({*FORMS, *CONSTANTS})


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
    if not isinstance(name, str) or len(name) > MAX_NAME or not NAME.fullmatch(name) or name.startswith("__"):
        yield WorkflowFault(path, name, f"a name is needed: letters, digits and _, at most {MAX_NAME}, no digit first")
    elif iskeyword(name) or name in RESERVED:
        yield WorkflowFault(path, name, "the name is reserved; another one is needed")


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
    references = References(workflow, graph)
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
        if not isinstance(name, str) or len(name) > MAX_NAME or not NAME.fullmatch(name):
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
