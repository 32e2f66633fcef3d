"""The port of stores that runs survive in: what was acknowledged is there after any crash, and one process writes.

A run is its row, a row for each step that began, its events, its charges and its checkpoints. All that is written says
which lease it is written under; a store refuses the rest. Steps go by their full names: `outer.inner` in a subgraph,
and `step#2` for the second pass of a loop, so that each row settles once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from smart_model_router.domain.errors import SmartRouterError
from smart_model_router_research.engine.protocol import LEASE_SECONDS, Approval, CheckpointRef, RunEvent, RunEventKind
from smart_model_router_research.engine.states import FREE, RunState, StepResult
from smart_model_router_research.workflow.definition import Costs


class RunNotFound(SmartRouterError):
    """No run has the id: `run_id`. `place` is the store, where it is told."""

    def __init__(self, run_id: str, place: str = "") -> None:
        where = f" in {place}; `smr workflow runs` lists those that are" if place else ""
        super().__init__(f"run {run_id!r} is not known{where}")
        self.run_id = run_id


class RunBusy(SmartRouterError):
    """Another process holds the run: `owner`, for `seconds` more unless it goes on."""

    def __init__(self, run_id: str, owner: str, seconds: float) -> None:
        super().__init__(f"run {run_id!r} is held by {owner} for {seconds:.1f} s more")
        self.run_id = run_id
        self.owner = owner
        self.seconds = seconds


class StaleLease(SmartRouterError):
    """Another process took the run over: nothing was written, and nothing more may be."""

    def __init__(self, run_id: str, fence: int) -> None:
        super().__init__(f"run {run_id!r} was taken over: fence {fence} is no longer the latest")
        self.run_id = run_id
        self.fence = fence


class WorkflowChanged(SmartRouterError):
    """The run began with another workflow: `steps` differ, are new or are gone. None differs in inputs or outputs."""

    def __init__(self, run_id: str, steps: Sequence[str]) -> None:
        where = ", ".join(steps) or "inputs or outputs"
        super().__init__(f"run {run_id!r} began with another workflow; these differ: {where}. A fork can change them")
        self.run_id = run_id
        self.steps = tuple(steps)


class TooManyRuns(SmartRouterError):
    """As many runs with the origin of this one are open as may be, `most`: it was not created."""

    def __init__(self, run_id: str, most: int) -> None:
        super().__init__(f"run {run_id!r} was not created: {most} of its origin go on already, and no more may")
        self.run_id = run_id
        self.most = most


class StoreUnavailable(SmartRouterError):
    """The store cannot be read or written: `reason`. What it acknowledged before is not lost."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.place = place
        self.reason = reason


class RunInterrupted(SmartRouterError):
    """A step cannot go on for a reason that may pass (`place`, `reason`): its run breaks off, and can be resumed.

    Raised by the work of a step, it settles nothing, unlike every other error.
    """

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.place = place
        self.reason = reason


class StateTooLarge(SmartRouterError):
    """`what` would make a run hold `size` characters of JSON, above `limit`: nothing was written."""

    def __init__(self, run_id: str, what: str, size: int, limit: int) -> None:
        super().__init__(
            f"run {run_id!r}: with {what} it would hold {size} characters of JSON, above {limit}: "
            "store a document, and its id"
        )
        self.run_id = run_id
        self.what = what
        self.size = size
        self.limit = limit


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLease:
    """The right to write a run. `fence` grows with each holder; `cancel_asked` says that the run is to be cancelled."""

    run_id: str
    owner: str
    fence: int
    seconds: float
    cancel_asked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStep:
    """The row of a step. `input_hash` is the SHA-256 of all that it read; `number` is its place among the settled."""

    result: StepResult
    input_hash: str = ""
    number: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run to create. `seconds` is its time limit from now, None without one.

    `origin` is JSON by which its caller finds the workflow again. At most `most_alike` runs with the same origin are
    open at once, None is no limit. A fork begins with the `settled` steps of another run, `forked_from`.
    """

    run_id: str
    workflow: str
    workflow_hash: str
    step_hashes: Mapping[str, str]
    inputs: Mapping[str, Any]
    engine: str
    origin: Mapping[str, Any] = field(default_factory=dict)
    most_alike: int | None = None
    seconds: float | None = None
    forked_from: CheckpointRef | None = None
    settled: Mapping[str, StoredStep] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run as it is kept. `seq` is that of its latest event, `seconds_left` its time limit from now.

    `spent` is the sum of its ledger. `owner` holds it, "" when no process does. Instants are seconds since 1970.
    """

    run_id: str
    workflow: str
    workflow_hash: str
    step_hashes: Mapping[str, str]
    inputs: Mapping[str, Any]
    engine: str
    state: RunState
    steps: Mapping[str, StoredStep]
    seq: int
    created_at: float
    changed_at: float
    origin: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    spent: Costs = FREE
    seconds_left: float | None = None
    forked_from: CheckpointRef | None = None
    owner: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingApproval:
    """A decision that is waited for; `seconds_left` until it counts as a rejection, None without an end."""

    run_id: str
    step: str
    message: str
    asked_at: float
    seconds_left: float | None = None


class RunStore(Protocol):
    """Where runs are kept. A method that returned has made its effect durable; cancelled, it has done all or nothing.

    Every method may raise StoreUnavailable; those that take a lease raise StaleLease when it is not the latest.
    """

    async def create(self, run: NewRun) -> StoredRun:
        """Create a run, or return the one of that id. Raises StateTooLarge, TooManyRuns.

        Raises WorkflowChanged when the one of that id has another workflow.
        """
        ...

    async def load(self, run_id: str) -> StoredRun:
        """Return a run. Raises RunNotFound."""
        ...

    async def runs(
        self,
        limit: int = 100,
        *,
        workflow: str | None = None,
        origin: Mapping[str, Any] | None = None,
        state: RunState | None = None,
        changed_before: float | None = None,
    ) -> Sequence[StoredRun]:
        """Return the runs that changed last, the latest first, without their steps.

        Only those of a workflow, of an origin, in a state, and that changed before an instant, where these are given.
        """
        ...

    async def lease(self, run_id: str, owner: str, seconds: float = LEASE_SECONDS) -> RunLease:
        """Take the run, or keep it: its holder asks again before the time is over. Raises RunNotFound, RunBusy.

        A new holder gets a greater fence. The lease of a process of this host that is gone is taken at once.
        """
        ...

    async def release(self, lease: RunLease) -> None:
        """Give the run back; another process can take it at once. Nothing happens when it was taken over."""
        ...

    async def begin(self, lease: RunLease, step: str, attempt: int, input_hash: str) -> StepResult | None:
        """Note that an attempt of a step begins; returns None.

        Where the step has settled with the same input hash, nothing is noted and its result is returned: it must not
        run again.
        """
        ...

    async def charge(self, lease: RunLease, step: str, costs: Costs) -> Costs:
        """Add to the ledger what a step has paid; returns what the run has spent."""
        ...

    async def settle(self, lease: RunLease, step: str, result: StepResult, input_hash: str = "") -> CheckpointRef:
        """Keep the result of a step that has settled, which is a checkpoint. It settles once: a second is ignored.

        Raises StateTooLarge for outputs that the run has no room for; a result without outputs is always kept.
        """
        ...

    async def record(
        self, lease: RunLease, kind: RunEventKind, step: str = "", data: Mapping[str, Any] | None = None
    ) -> RunEvent:
        """Keep an event that settles no step: retries, pauses, the engine that was selected.

        `step_retrying` and `step_paused` change the state of a step that began, `run_resumed` that of the run.
        """
        ...

    async def end(self, lease: RunLease, state: RunState, outputs: Mapping[str, Any], reason: str) -> RunEvent:
        """Keep the end of a run, or its pause."""
        ...

    async def checkpoint(self, run_id: str) -> CheckpointRef:
        """Return the latest checkpoint; its number is 0 before the first step settled. Raises RunNotFound."""
        ...

    async def checkpoints(self, run_id: str) -> Sequence[CheckpointRef]:
        """Return all checkpoints, oldest first. Raises RunNotFound."""
        ...

    async def events_since(self, run_id: str, after: int = 0, limit: int = 1_000) -> Sequence[RunEvent]:
        """Return the events with a greater seq than `after`, in order. Raises RunNotFound."""
        ...

    async def approvals(self, run_id: str) -> Sequence[PendingApproval]:
        """Return the decisions that the run waits for. Raises RunNotFound."""
        ...

    async def ask(self, lease: RunLease, step: str, message: str, seconds: float | None) -> Approval | None:
        """Pause a step for a decision, for so many seconds at most; returns the decision when there is one already.

        Once it is late that is `store_rules.late_decision`.
        """
        ...

    async def decide(self, run_id: str, approval: Approval) -> str:
        """Keep a decision, which needs no lease; returns the full name of its step.

        Raises RunNotFound, and ConfigurationError when no such step is paused, or several are and it names none.
        """
        ...

    async def ask_cancel(self, run_id: str) -> None:
        """Ask the holder of a run to cancel it: its next lease says so. One that has ended stays as it is.

        Raises RunNotFound.
        """
        ...

    async def delete(self, run_id: str) -> bool:
        """Delete a run that has ended; returns whether there was one. A run that may go on stays."""
        ...

    async def aclose(self) -> None:
        """Let go of it; safe to call twice."""
        ...


@runtime_checkable
class SupportsDocuments(Protocol):
    """A store with documents beside the runs: outputs hold their ids, and stay small."""

    async def put_document(self, content: bytes) -> str:
        """Keep a document; returns its id, the SHA-256 of its content in hex."""
        ...

    async def get_document(self, document: str) -> bytes:
        """Return a document. Raises KeyError when it is not there."""
        ...
