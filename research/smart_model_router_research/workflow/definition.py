"""The definition of a workflow: steps and what each needs. It is frozen, checked when it is made, and has a hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any, Literal

from smart_model_router_research.workflow import checks
from smart_model_router_research.workflow.faults import WorkflowError, WorkflowFault
from smart_model_router_research.workflow.graph import StepGraph
from smart_model_router_research.workflow.step import (
    BEFORE,
    COSTS,
    Costs,
    InputType,
    OnError,
    RoundScope,
    Run,
    Step,
    StepInput,
    StepLoop,
    WorkflowInput,
    fixed,
    owned,
    scope_of,
)

__all__ = [
    "BEFORE",
    "COSTS",
    "Costs",
    "InputType",
    "OnError",
    "RoundScope",
    "Run",
    "Step",
    "StepInput",
    "StepLoop",
    "Want",
    "WorkflowDefinition",
    "WorkflowError",
    "WorkflowFault",
    "WorkflowInput",
    "owned",
    "scope_of",
]

Want = Literal["optional", "required"]


@dataclass(frozen=True)
class WorkflowDefinition:
    """A workflow: its steps, inputs and outputs (values of JSON with references to what steps put out).

    `checkpoint` and `stream` say whether an engine without them will do. Raises WorkflowError with every fault.
    """

    name: str
    steps: Sequence[Step]
    inputs: Mapping[str, WorkflowInput] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: Want = "optional"
    stream: Want = "optional"

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", fixed(self.steps))
        for name in ("inputs", "outputs"):
            object.__setattr__(self, name, owned(getattr(self, name)))
        if faults := list(checks.faults_of(self)):
            raise WorkflowError(faults)

    @cached_property
    def by_name(self) -> Mapping[str, Step]:
        """The steps by their names."""
        return {step.name: step for step in self.steps}

    @cached_property
    def loops(self) -> Mapping[str, tuple[str, ...]]:
        """The steps of each loop, by the name of its last one. A step is in one loop at most."""
        ends = {step.name: step.loop.to for step in self.steps if step.loop is not None}
        graph = StepGraph(self.steps)
        return {last: graph.loop_body(first, last) for last, first in ends.items()}

    @cached_property
    def loop_of(self) -> Mapping[str, str]:
        """The last step of the loop that each step is in, of those that are in one."""
        return {name: last for last, body in self.loops.items() for name in body}

    def needs_of(self, step: str) -> tuple[str, ...]:
        """Return the names of the steps that `step` needs, each once. Raises KeyError for an unknown step."""
        return tuple(dict.fromkeys(self.by_name[step].needs))

    def walk(self) -> Iterator[tuple[str, Step]]:
        """Yield each step with its full name; the steps of a subgraph, `outer.inner`, follow it."""
        waiting = [(step.name, step) for step in reversed(self.steps)]
        while waiting:
            name, step = waiting.pop()
            yield name, step
            if step.workflow is not None:
                waiting += [(f"{name}.{inner.name}", inner) for inner in reversed(step.workflow.steps)]

    @cached_property
    def extent(self) -> tuple[int, int]:
        """The number of steps, those of subgraphs included, and the depth to which subgraphs are nested."""
        inner = [step.workflow.extent for step in self.steps if step.workflow is not None]
        return len(self.steps) + sum(steps for steps, _ in inner), 1 + max((depth for _, depth in inner), default=0)

    @cached_property
    def step_hashes(self) -> Mapping[str, str]:
        """The SHA-256 of each step by name: two definitions differ in the steps whose hashes differ.

        A function counts by its qualified name, a subgraph by its hash.
        """
        return {step.name: _hash(_plain(step) | _without_order(step)) for step in self.steps}

    @cached_property
    def hash(self) -> str:
        """The SHA-256 of the definition, in hex. The order of steps, needs and keys does not count."""
        # Only what decides the course of a run: a better name does not keep an old run from being resumed.
        inputs = {name: _plain(given) for name, given in self.inputs.items()}
        return _hash({"steps": self.step_hashes, "inputs": inputs, "outputs": self.outputs})

    def with_defaults(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the inputs of a run: checked, and defaults for those not given. Raises WorkflowError."""
        if faults := list(checks.input_faults(self.inputs, given)):
            raise WorkflowError(faults)
        return {name: owned(given.get(name, wanted.default)) for name, wanted in self.inputs.items()}


def _plain(value: Any) -> Any:
    """Return a part of a definition as JSON data that says all that a run depends on."""
    if isinstance(value, WorkflowDefinition):
        return value.hash
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    return _function_name(value) if callable(value) else value


def _without_order(step: Step) -> dict[str, Any]:
    return {"needs": sorted(set(step.needs)), "outputs": None if step.outputs is None else sorted(step.outputs)}


def _function_name(function: Callable[..., Any]) -> str:
    # Not its module: a script runs as __main__, and another program resumes what it began.
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _hash(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, allow_nan=False, separators=(",", ":")).encode()).hexdigest()
