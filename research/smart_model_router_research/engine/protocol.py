"""The protocol of engines: what runs a workflow, what it is given, and what it says of a run.

An engine has `execute`, `checkpoint` and `get_status`. Whatever else it can do is a capability with a protocol of its
own; `check_engine` compares the two. Runs are kept by a RunStore (store_port.py).
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.ports import Clock, Dice
from smart_model_router.flow.clock import SystemClock, SystemDice
from smart_model_router_research.engine.states import FREE, RunState, StepResult
from smart_model_router_research.workflow.definition import COSTS, Costs, Step, WorkflowDefinition

if TYPE_CHECKING:
    from smart_model_router_research.engine.store_port import RunStore

E = TypeVar("E", bound="ExecutionEngine")
MAX_RUN_ID = 128
LEASE_SECONDS = 30.0
HEARTBEAT_SECONDS = 5.0
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class Capability(StrEnum):
    """A thing that an engine can do, and a workflow or its caller may require."""

    CHECKPOINT = "checkpoint"
    """Steps that settled are durable."""
    RESUME = "resume"
    STREAM = "stream"
    HITL = "hitl"
    """A step of kind approval pauses the run until a person decides."""
    TIME_TRAVEL = "time_travel"
    """Checkpoints are listed, and new runs begin at old ones."""
    SUBGRAPH = "subgraph"
    CYCLES = "cycles"
    CONDITIONAL = "conditional"
    CANCEL = "cancel"
    WAVEFRONT = "wavefront"
    """A step starts as soon as its last need has settled, not with a batch."""
    DISTRIBUTED = "distributed"
    """Any machine goes on with a run."""


# ------------------------------------------------------------------------------------------------ what a run is given


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that a run may cost; None is no limit. Raises ConfigurationError.

    Of it `reserve` is kept for steps that always run: what has to end a run can be paid.
    """

    tokens: float | None = None
    usd: float | None = None
    seconds: float | None = None
    calls: float | None = None
    reserve: Costs = FREE

    def __post_init__(self) -> None:
        for name in COSTS:
            cap, kept = getattr(self, name), getattr(self.reserve, name)
            for key, value in ((f"budget.{name}", cap), (f"budget.reserve.{name}", kept)):
                if value is not None and not (_is_number(value) and 0 <= value < math.inf):
                    raise ConfigurationError(key, value, "a number of at least 0 is needed")
            if cap is not None and kept > cap:
                raise ConfigurationError(f"budget.reserve.{name}", kept, f"at most the budget, {cap}, is needed")

    def fits(self, spent: Costs, step: Step) -> bool:
        """Return whether the estimate of a step fits beside what was spent, or is reserved for steps under way."""
        for name in COSTS:
            cap = getattr(self, name)
            kept = 0.0 if step.always else getattr(self.reserve, name)
            if cap is not None and getattr(spent, name) + step.expected.get(name, 0.0) > cap - kept:
                return False
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionContext:
    """The surroundings of one run. Raises ConfigurationError.

    `run_id` names the run: letters, digits, `_`, `.` and `-`, at most 128. `inputs` are those of the workflow. Steps
    find what they use (router, search, fetch) in `services`; engines do not look inside. `deadline` is an instant of
    `clock`: steps in flight then fail, the others are skipped. At most `max_concurrency` steps run at once. `store`
    takes the place of the engine's for this run. Each of `observers` is called with every event; one that raises is
    counted and changes nothing. `origin` is JSON that is kept with a new run: by it a caller finds the workflow again.
    With `most_alike` a new run is refused (TooManyRuns) while so many of the same origin are open.
    The run is held for `lease` seconds, anew with every `heartbeat`: another process can take it once that is over.
    `engine_reason` says why the engine was selected, for events and results.
    """

    run_id: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    services: Mapping[str, Any] = field(default_factory=dict)
    clock: Clock = field(default_factory=SystemClock)
    dice: Dice = field(default_factory=SystemDice)
    deadline: float = math.inf
    budget: Budget | None = None
    max_concurrency: int = 10
    lease: float = LEASE_SECONDS
    heartbeat: float = HEARTBEAT_SECONDS
    store: RunStore | None = None
    observers: Sequence[Callable[[RunEvent], object]] = ()
    origin: Mapping[str, Any] = field(default_factory=dict)
    most_alike: int | None = None
    engine_reason: str = ""

    def __post_init__(self) -> None:
        most: Any = self.max_concurrency
        if not isinstance(most, int) or isinstance(most, bool) or most < 1:
            raise ConfigurationError("max_concurrency", most, "a whole number of at least 1 is needed")
        for name, longest in (("lease", 86_400.0), ("heartbeat", self.lease / 2)):  # one may come late
            if not (_is_number(value := getattr(self, name)) and 0 < value <= longest):
                raise ConfigurationError(name, value, f"seconds above 0, at most {longest:g}, are needed")
        if not _is_number(self.deadline) or math.isnan(self.deadline):
            raise ConfigurationError("deadline", self.deadline, "an instant of the clock is needed, in seconds")
        check_run_id(self.run_id)


def check_run_id(run_id: object) -> None:
    """Raise ConfigurationError for an id that could not name a run in a command line and in a file."""
    if not isinstance(run_id, str) or len(run_id) > MAX_RUN_ID or not _RUN_ID.fullmatch(run_id):
        wanted = f"letters, digits, '_', '.' and '-' are needed, at most {MAX_RUN_ID}, the first a letter or digit"
        raise ConfigurationError("run_id", run_id, wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A decision about a step that is paused: its outputs are {"approved": true, "payload": payload}, or it fails.

    `step` is its full name; None is the one that is paused, where there is one.
    """

    approved: bool = True
    payload: Any = None
    step: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkChanges:
    """The changes with which a fork begins: inputs of the workflow, and outputs of settled steps by full name.

    A step that reads something changed, or that depends on such a step, runs again.
    """

    inputs: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


# ------------------------------------------------------------------------------------------------ what it says of a run


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionResult:
    """The result of a run, or of the part of it until it paused.

    `steps` are the results by full name (`outer.inner` in a subgraph), `outputs` those of the workflow (null where
    they read steps that have none). `reason` is one sentence where the run is not completed. `usage` is what all steps
    charged. `engine` ran it, chosen by `engine_reason`.
    """

    run_id: str
    status: RunState
    steps: Mapping[str, StepResult]
    outputs: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    usage: Costs = FREE
    engine: str = ""
    engine_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """The state of a run at one instant. Later ones of a run have a greater `seq`, and all its settled steps."""

    run_id: str
    state: RunState
    steps: Mapping[str, StepResult]
    seq: int
    workflow_hash: str
    owner: str = ""
    """The process that holds the run, "" when none does."""


@dataclass(frozen=True, slots=True, order=True)
class CheckpointRef:
    """A point of a run that it can go on from, `RUN@NUMBER`. `number` counts the steps that had settled."""

    run_id: str
    number: int
    step: str = field(default="", compare=False)
    """The step that settled last."""
    time: float = field(default=0.0, compare=False)
    """Seconds since 1970."""

    def __str__(self) -> str:
        return f"{self.run_id}@{self.number}"

    @classmethod
    def parse(cls, text: str) -> CheckpointRef:
        """Return the checkpoint that `RUN@NUMBER` names. Raises ConfigurationError."""
        run_id, _, number = text.rpartition("@")
        if not re.fullmatch(r"[0-9]{1,9}", number):
            raise ConfigurationError("checkpoint", text, "RUN@NUMBER is needed, such as my-run@3")
        check_run_id(run_id)
        return cls(run_id, int(number))


class RunEventKind(StrEnum):
    """The kinds of events of a run."""

    RUN_STARTED = "run_started"
    RUN_RESUMED = "run_resumed"
    ENGINE_SELECTED = "engine_selected"
    STEP_STARTED = "step_started"
    STEP_RETRYING = "step_retrying"
    STEP_PAUSED = "step_paused"
    STEP_SETTLED = "step_settled"
    CANCEL_ASKED = "cancel_asked"
    RUN_PAUSED = "run_paused"
    RUN_ENDED = "run_ended"
    SHADOW_DIFFERED = "shadow_differed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """One event of a run, as it is kept. `seq` counts from 1 without gaps; `time` is seconds since 1970.

    `step` is the full name of its step, "" for an event of the run. `data` is JSON: `state`, `attempt`, `reason`,
    `outputs` and others, as the kind has them.
    """

    seq: int
    run_id: str
    kind: RunEventKind
    time: float
    step: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """A name that is the same on every engine: the run, the step, the kind, and the attempt where there is one."""
        attempt = self.data.get("attempt")
        return "/".join([self.run_id, self.step, self.kind, *([] if attempt is None else [str(attempt)])])


# ------------------------------------------------------------------------------------------------ engines


@runtime_checkable
class ExecutionEngine(Protocol):
    """A thing that runs workflows. It is made with a store."""

    @property
    def name(self) -> str:
        """The word by which a configuration names it."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The capabilities; each has the methods of its protocol."""
        ...

    async def execute(self, workflow: WorkflowDefinition, context: ExecutionContext) -> ExecutionResult:
        """Run a workflow to its end or to a pause. Failures of steps are results.

        A run that is known already goes on where it was: settled steps do not run again. Raises WorkflowError for
        inputs that are wrong, WorkflowChanged, RunBusy, StaleLease and StoreUnavailable. Cancelling the task stops
        the run so that it can be resumed.
        """
        ...

    async def checkpoint(self, run_id: str) -> CheckpointRef:
        """Return the latest durable point of a run; makes one first when there is unsaved work. Raises RunNotFound."""
        ...

    async def get_status(self, run_id: str) -> RunStatus:
        """Return the state of a run. Raises RunNotFound."""
        ...


@runtime_checkable
class SupportsResume(Protocol):
    """The capabilities `resume` and, with a payload, `hitl`."""

    async def resume(
        self, workflow: WorkflowDefinition, context: ExecutionContext, payload: Approval | None = None
    ) -> ExecutionResult:
        """Go on with the run `context.run_id`; its inputs are those that it began with.

        `payload` decides about a step that is paused. Raises RunNotFound, and as `execute` does.
        """
        ...


@runtime_checkable
class SupportsStream(Protocol):
    """The capability `stream`."""

    def stream(
        self, workflow: WorkflowDefinition, context: ExecutionContext, after: int = 0
    ) -> AsyncIterator[RunEvent]:
        """Yield the events of a run with a greater seq than `after`, up to its end or pause.

        A run that is known is attached to, whichever process runs it; it starts only when it is not known. A reader
        that goes away stops nothing.
        """
        ...


@runtime_checkable
class SupportsCancel(Protocol):
    """The capability `cancel`."""

    async def cancel(self, run_id: str) -> RunStatus:
        """Cancel a run for good, in whichever process it runs; returns when it has ended, or was asked to."""
        ...


@runtime_checkable
class SupportsTimeTravel(Protocol):
    """The capability `time_travel`."""

    async def history(self, run_id: str) -> Sequence[CheckpointRef]:
        """Return the checkpoints of a run, oldest first. Raises RunNotFound."""
        ...

    async def fork(
        self, ref: CheckpointRef, workflow: WorkflowDefinition, context: ExecutionContext, changes: ForkChanges
    ) -> ExecutionResult:
        """Begin the run `context.run_id` with the steps that had settled at `ref`, changed; the old run stays as it is.

        Raises RunNotFound, and as `execute` does.
        """
        ...


METHODS: Mapping[Capability, type] = {
    Capability.RESUME: SupportsResume,
    Capability.HITL: SupportsResume,
    Capability.STREAM: SupportsStream,
    Capability.CANCEL: SupportsCancel,
    Capability.TIME_TRAVEL: SupportsTimeTravel,
}
"""The capabilities that have methods, each with their protocol."""


def check_engine(engine: E) -> E:
    """Return the engine when it has every method of its capabilities, with the parameters of the protocol.

    Raises ConfigurationError. `isinstance` of a protocol sees names only.
    """
    name = getattr(engine, "name", type(engine).__name__)
    if strangers := set(engine.capabilities) - set(Capability):
        expected = f"one of {', '.join(Capability)} is needed"
        raise ConfigurationError(f"engine {name}.capabilities", min(map(str, strangers)), expected)
    protocols = {METHODS[each]: f"the capability {each} needs" for each in engine.capabilities if each in METHODS}
    for protocol, needs in ((ExecutionEngine, "every engine needs"), *protocols.items()):
        for method in (key for key, value in vars(protocol).items() if inspect.isfunction(value) and key[0] != "_"):
            wanted, found = _parameters(getattr(protocol, method)), _parameters(getattr(type(engine), method, None))
            if found != wanted:
                raise ConfigurationError(f"engine {name}.{method}", found, f"{needs} {method}{wanted}")
    return engine


def _parameters(method: Any) -> str | None:
    """Return the parameters of a method as text, without their types; None for no method."""
    if not callable(method):
        return None
    parameters = inspect.signature(method).parameters.values()
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in parameters]
    return str(inspect.Signature(plain))


def required_capabilities(workflow: WorkflowDefinition) -> frozenset[Capability]:
    """Return the capabilities that an engine needs for a workflow and its subgraphs."""
    needed: set[Capability] = set()
    waiting = [workflow]
    while waiting:
        one = waiting.pop()
        needed |= {Capability.CHECKPOINT} if one.checkpoint == "required" else set()
        needed |= {Capability.STREAM} if one.stream == "required" else set()
        for step in one.steps:
            if step.workflow is not None:
                needed.add(Capability.SUBGRAPH)
                waiting.append(step.workflow)
            needed |= {Capability.CYCLES} if step.loop is not None else set()
            needed |= {Capability.HITL} if step.kind == "approval" else set()
            needed |= {Capability.CONDITIONAL} if step.when is not None else set()
    return frozenset(needed)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
