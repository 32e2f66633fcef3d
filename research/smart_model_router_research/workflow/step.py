"""A step of a workflow, and what its work is given. Checked as a part of a definition (checks.py)."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from smart_model_router.domain.fast_dataclass import quick

if TYPE_CHECKING:
    from smart_model_router_research.workflow.definition import WorkflowDefinition

OnError = Literal["fail", "continue"]
InputType = Literal["any", "string", "number", "integer", "boolean", "list", "mapping"]


@quick
@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of model calls: tokens, US dollars, seconds, calls. All at least 0."""

    tokens: float = 0.0
    usd: float = 0.0
    seconds: float = 0.0
    calls: float = 0.0

    def __add__(self, other: Costs) -> Costs:
        return Costs(
            self.tokens + other.tokens, self.usd + other.usd, self.seconds + other.seconds, self.calls + other.calls
        )


COSTS = tuple(each.name for each in fields(Costs))
"""The names of the costs."""


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class StepInput:
    """The argument of a step's `run`.

    `inputs` and `options` are those of the step with their references resolved, `steps` the outputs of the steps that
    this one needs (null for one that has none). An input of the run is read by a reference, `${inputs.x}`: that says
    which steps depend on it. `services` are those of the run's context. `step` is the full name (`outer.inner` in a
    subgraph), `attempt` counts from 1. `input_hash` is the SHA-256 of inputs, options and steps.
    `idempotency_key` is the same for each attempt of the same work. `deadline` is monotonic. `charge` adds to what the
    run has spent; a step calls it once for each thing that it paid for.
    """

    run_id: str
    step: str
    inputs: Mapping[str, Any]
    steps: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    services: Mapping[str, Any] = field(default_factory=dict)
    attempt: int = 1
    input_hash: str = ""
    idempotency_key: str = ""
    deadline: float = math.inf
    charge: Callable[[Costs], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class StepLoop:
    """A loop: when its step has succeeded and `condition` is true, all steps from `to` to it run again.

    There are at most `max_passes` passes, the first one included. The condition may read the step itself; one of a
    wrong type fails the step. Steps of the loop read the pass before as `${prev.STEP.y}`, null in the first; steps
    behind it wait for the last pass, and read that. For engines with the capability `cycles`.
    """

    to: str
    condition: str
    max_passes: int = 10


@dataclass(frozen=True, slots=True)
class RoundScope:
    """The place of a step in the rounds that a template was expanded to: `prev`, `last` and `round_number`.

    `prev` leads from a step of the template to the step of the round before, `last` to those of all rounds before, the
    latest first, `short` from an output that one step of the template declares to that step. In round 1 they are empty.
    `same` leads from a step of the template to the step of this round.
    """

    number: int
    same: Mapping[str, str] = field(default_factory=dict)
    prev: Mapping[str, str] = field(default_factory=dict)
    last: Mapping[str, Sequence[str]] = field(default_factory=dict)
    short: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorkflowInput:
    """An input of a workflow. One without a default that is not required is null when it is not given.

    `minimum` and `maximum` are for numbers; `enum` lists all values that are allowed.
    """

    type: InputType = "any"
    default: Any = None
    required: bool = False
    enum: Sequence[Any] | None = None
    minimum: float | None = None
    maximum: float | None = None


Run = Callable[[StepInput], Awaitable[Mapping[str, Any]]]
"""The work of a step: its outputs are values of JSON by name."""
OutputsOf = Callable[[str], Mapping[str, Any] | None]


@dataclass(frozen=True)
class Step:
    """One step. `needs` are the steps that have to be settled before it.

    `when` is an expression (text; `${...}` around it may be left out), or true or false: the step runs only on true.
    `always` runs it although steps that it needs failed or were skipped. `on_error="continue"` lets its dependants run
    when it fails. `timeout` is in seconds, for each attempt; `attempts` at least 1. `inputs` are values of JSON whose
    texts may have references, `${...}`. `outputs` are the names that it declares (None: any). `estimate` are the costs
    that it will probably have (tokens, usd, seconds, calls). `workflow` is the subgraph of kind `workflow`, `message`
    the question of kind `approval`; `options` are the keys that its kind has of its own. `round` is set by expansion.

    Steps are checked as parts of a WorkflowDefinition.
    """

    name: str
    run: Run | None = None
    needs: Sequence[str] = ()
    when: str | bool | None = None
    always: bool = False
    on_error: OnError = "fail"
    timeout: float | None = None
    attempts: int = 1
    kind: str = field(default="call", kw_only=True)
    inputs: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    outputs: Sequence[str] | None = field(default=None, kw_only=True)
    estimate: Mapping[str, float] = field(default_factory=dict, kw_only=True)
    workflow: WorkflowDefinition | None = field(default=None, kw_only=True)
    message: str | None = field(default=None, kw_only=True)
    loop: StepLoop | None = field(default=None, kw_only=True)
    options: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    round: RoundScope | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("needs", "outputs"):
            object.__setattr__(self, name, fixed(getattr(self, name)))
        for name in ("inputs", "estimate", "options"):
            object.__setattr__(self, name, owned(getattr(self, name)))

    @property
    def expected(self) -> Mapping[str, float]:
        """The costs that it will probably have: its estimate, and a call at least where it asks a model."""
        return {"calls": 1.0, **self.estimate} if self.kind == "model" else self.estimate

    @property
    def declared_outputs(self) -> frozenset[str] | None:
        """The names of its outputs, None when they are not declared.

        A subgraph declares those of its workflow, an approval `approved` and `payload`.
        """
        given: Any = ("approved", "payload") if self.kind == "approval" and self.outputs is None else self.outputs
        if given is None and self.workflow is not None:
            return frozenset(self.workflow.outputs)
        return frozenset(name for name in given if isinstance(name, str)) if isinstance(given, tuple) else None


BEFORE = "#before"
"""The end of the name by which the outputs of a step in the pass before are known."""


class _Named(Mapping[str, Any]):
    """A name of expressions that has steps, looked up when they are read."""

    def __init__(self, look: Callable[[str], Any]) -> None:
        self._look = look

    def __getitem__(self, name: str) -> Any:
        return self._look(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())  # an expression names the step that it reads

    def __len__(self) -> int:
        return 0


def scope_of(step: Step, inputs: Mapping[str, Any], outputs_of: OutputsOf) -> dict[str, Any]:
    """Return the names that the expressions of a step read.

    `outputs_of` gives the outputs of a step by its name, None for one that has none.
    """
    if (rounds := step.round) is None:
        return {
            "inputs": inputs,
            "steps": _Named(lambda name: {"outputs": outputs_of(name)}),
            "prev": _Named(lambda name: outputs_of(name + BEFORE)),
        }
    same = rounds.same
    prev: dict[str, Any] = {name: outputs_of(before) for name, before in rounds.prev.items()}
    last = {name: _latest([outputs_of(before) or {} for before in earlier]) for name, earlier in rounds.last.items()}
    return {
        "inputs": inputs,
        "steps": _Named(lambda name: {"outputs": outputs_of(same.get(name, name))}),
        "round_number": rounds.number,
        "prev": _with_short(prev, rounds.short),
        "last": _with_short(last, rounds.short),
    }


def _latest(outputs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return each output as the latest round has it in which it is not null."""
    found: dict[str, Any] = {}
    for earlier in reversed(outputs):
        found |= {name: value for name, value in earlier.items() if value is not None}
    return found


def _with_short(outputs: Mapping[str, Any], short: Mapping[str, str]) -> dict[str, Any]:
    return {name: (outputs.get(of) or {}).get(name) for name, of in short.items()} | dict(outputs)


def owned(value: Any) -> Any:
    """Return a copy of JSON data, which later changes of the original leave alone; anything else as it is."""
    try:
        return _copied(value)
    except RecursionError:  # a fault, which the check of the definition finds
        return value


def _copied(value: Any) -> Any:
    if type(value) is dict:
        return {key: _copied(member) for key, member in value.items()}
    return [_copied(member) for member in value] if type(value) is list else value


def fixed(names: Any) -> Any:
    """Return a list as a tuple; anything else as it is."""
    return tuple(names) if isinstance(names, list) else names
