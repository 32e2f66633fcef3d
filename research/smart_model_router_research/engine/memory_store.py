"""A store of runs in memory: the default of every engine, and the verified fake of the stores in files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from smart_model_router.flow.clock import SystemClock, WallClock
from smart_model_router_research.engine.graph_store import MemoryThreads
from smart_model_router_research.engine.graph_threads import GraphThreads
from smart_model_router_research.engine.protocol import (
    LEASE_SECONDS,
    Approval,
    CheckpointRef,
    RunEvent,
    RunEventKind,
)
from smart_model_router_research.engine.states import FREE, OPEN, RunState, StepResult, StepState
from smart_model_router_research.engine.store_port import (
    NewRun,
    PendingApproval,
    RunLease,
    RunNotFound,
    StaleLease,
    StoredRun,
    StoredStep,
    TooManyRuns,
    WorkflowChanged,
)
from smart_model_router_research.engine.store_rules import (
    STATE_BY_EVENT,
    check_state,
    decided_step,
    differing_steps,
    granted,
    json_text,
    late_decision,
    readable,
)
from smart_model_router_research.workflow.definition import Costs


class MemoryRunStore:
    """Runs in the memory of this process, lost with it. `now` is monotonic seconds, `wall` seconds since 1970.

    It keeps results, outputs and events as JSON text, as a file would: what is read shares no object with the store.
    Raises TypeError and ValueError for what is no JSON.
    """

    def __init__(
        self, *, now: Callable[[], float] = SystemClock.now, wall: Callable[[], float] = WallClock.now
    ) -> None:
        self._now = now
        self._wall = wall
        self._runs: dict[str, _Run] = {}
        self._documents: dict[str, bytes] = {}
        self._graphs = MemoryThreads(wall)

    @property
    def graph_threads(self) -> GraphThreads:
        """Threads of LangGraph graphs, for `RunSaver`."""
        return self._graphs

    async def create(self, run: NewRun) -> StoredRun:
        """Create a run, or return the one of that id. Raises WorkflowChanged, StateTooLarge, TooManyRuns."""
        if (row := self._runs.get(run.run_id)) is not None:
            if row.new.workflow_hash != run.workflow_hash:
                raise WorkflowChanged(run.run_id, differing_steps(row.new.step_hashes, run.step_hashes))
            return self._stored(row)
        alike = sum(row.new.origin == run.origin and row.state in OPEN for row in self._runs.values())
        if run.most_alike is not None and alike >= run.most_alike:
            raise TooManyRuns(run.run_id, run.most_alike)
        at = self._wall()
        deadline = None if run.seconds is None else self._now() + run.seconds
        row = _Run(replace(run, settled={}), json_text(run.inputs), at, at, deadline)
        row.grow("its inputs", len(row.inputs))
        copied = sorted(run.settled.items(), key=lambda each: each[1].number or 0)
        for name, step in copied:
            row.settle(name, step.result, step.input_hash, at)
        self._runs[run.run_id] = row
        forked = {} if run.forked_from is None else {"forked_from": str(run.forked_from)}
        self._add(row, RunEventKind.RUN_STARTED, "", {"workflow": run.workflow} | forked)
        return self._stored(row)

    async def load(self, run_id: str) -> StoredRun:
        """Return a run. Raises RunNotFound."""
        return self._stored(self._found(run_id))

    async def runs(
        self,
        limit: int = 100,
        *,
        workflow: str | None = None,
        origin: Mapping[str, Any] | None = None,
        state: RunState | None = None,
        changed_before: float | None = None,
    ) -> Sequence[StoredRun]:
        """Return the runs that changed last, the latest first, without their steps; all, or those that are alike."""
        found = [
            row
            for row in self._runs.values()
            if workflow in (None, row.new.workflow)
            and origin in (None, row.new.origin)
            and state in (None, row.state)
            and (changed_before is None or row.changed_at < changed_before)
        ]
        latest = sorted(found, key=lambda row: row.changed_at, reverse=True)
        return [replace(self._stored(row), steps={}) for row in latest[:limit]]

    async def lease(self, run_id: str, owner: str, seconds: float = LEASE_SECONDS) -> RunLease:
        """Take the run, or keep it: its holder asks again before the time is over. Raises RunNotFound, RunBusy."""
        row, now = self._found(run_id), self._now()
        if granted(run_id, row.owner, row.lease_until - now, own=row.owner == owner, gone=False):
            row.owner = owner
            row.fence += 1
        row.lease_until = now + seconds
        return RunLease(run_id=run_id, owner=owner, fence=row.fence, seconds=seconds, cancel_asked=row.cancel_asked)

    async def release(self, lease: RunLease) -> None:
        """Give the run back; another process can take it at once. Nothing happens when it was taken over."""
        row = self._runs.get(lease.run_id)
        if row is not None and row.fence == lease.fence:
            row.owner = ""

    async def begin(self, lease: RunLease, step: str, attempt: int, input_hash: str) -> StepResult | None:
        """Note that an attempt of a step begins, or return the result that it settled with for the same input."""
        row = self._held(lease)
        found = row.steps.get(step)
        if found is not None and found.number is not None and found.input_hash == input_hash:
            return found.read().result
        if found is not None:
            row.size -= found.size
        running, data = _began(attempt)
        row.steps[step] = _Step(running, input_hash)
        row.state = RunState.RUNNING
        self._add(row, RunEventKind.STEP_STARTED, step, data)
        return None

    async def charge(self, lease: RunLease, step: str, costs: Costs) -> Costs:
        """Add to the ledger what a step has paid; returns what the run has spent."""
        row = self._held(lease)
        del step
        row.spent += costs
        return row.spent

    async def settle(self, lease: RunLease, step: str, result: StepResult, input_hash: str = "") -> CheckpointRef:
        """Keep the result of a step that has settled, which is a checkpoint. It settles once: a second is ignored."""
        row = self._held(lease)
        found = row.steps.get(step)
        if found is not None and found.number is not None:
            return row.checkpoints[found.number - 1]
        ref = row.settle(step, result, input_hash, self._wall())
        row.approvals.pop(step, None)
        self._add(row, RunEventKind.STEP_SETTLED, step, row.steps[step].text)
        return ref

    async def record(
        self, lease: RunLease, kind: RunEventKind, step: str = "", data: Mapping[str, Any] | None = None
    ) -> RunEvent:
        """Keep an event that settles no step, and the state that it says of its step or its run."""
        row = self._held(lease)
        if kind in STATE_BY_EVENT and step in row.steps:
            row.steps[step].change(STATE_BY_EVENT[kind])
        if kind is RunEventKind.RUN_RESUMED:
            row.state = RunState.RUNNING
        self._add(row, kind, step, data or {})
        return (await self.events_since(lease.run_id, len(row.events) - 1))[0]

    async def end(self, lease: RunLease, state: RunState, outputs: Mapping[str, Any], reason: str) -> RunEvent:
        """Keep the end of a run, or its pause."""
        row = self._held(lease)
        reason = readable(reason)
        row.outputs, row.state, row.reason = json_text(outputs), state, reason
        kind = RunEventKind.RUN_PAUSED if state is RunState.PAUSED else RunEventKind.RUN_ENDED
        self._add(row, kind, "", {"state": state, "reason": reason})
        return (await self.events_since(lease.run_id, len(row.events) - 1))[0]

    async def checkpoint(self, run_id: str) -> CheckpointRef:
        """Return the latest checkpoint; its number is 0 before the first step settled. Raises RunNotFound."""
        row = self._found(run_id)
        return row.checkpoints[-1] if row.checkpoints else CheckpointRef(run_id, 0, time=row.created_at)

    async def checkpoints(self, run_id: str) -> Sequence[CheckpointRef]:
        """Return all checkpoints, oldest first. Raises RunNotFound."""
        return tuple(self._found(run_id).checkpoints)

    async def events_since(self, run_id: str, after: int = 0, limit: int = 1_000) -> Sequence[RunEvent]:
        """Return the events with a greater seq than `after`, in order. Raises RunNotFound."""
        events = self._found(run_id).events
        return [
            RunEvent(seq=seq, run_id=run_id, kind=kind, time=at, step=step, data=json.loads(data))
            for seq, (kind, at, step, data) in enumerate(events[after : after + limit], after + 1)
        ]

    async def approvals(self, run_id: str) -> Sequence[PendingApproval]:
        """Return the decisions that the run waits for. Raises RunNotFound."""
        waiting = self._waiting(self._found(run_id))
        return [
            PendingApproval(
                run_id=run_id,
                step=step,
                message=asked.message,
                asked_at=asked.at,
                seconds_left=None if asked.until is None else asked.until - self._now(),
            )
            for step, asked in waiting.items()
        ]

    async def ask(self, lease: RunLease, step: str, message: str, seconds: float | None) -> Approval | None:
        """Pause a step for a decision; returns the decision when there is one already, or it is late."""
        row = self._held(lease)
        if (asked := row.approvals.get(step)) is not None:
            if asked.decision is None and asked.until is not None and asked.until <= self._now():
                return late_decision(step)
            return asked.decision
        until = None if seconds is None else self._now() + seconds
        message = readable(message)
        row.approvals[step] = _Asked(message, self._wall(), until)
        row.steps.setdefault(step, _Step(json_text(StepResult(state=StepState.RUNNING).as_json()), ""))
        row.steps[step].change(StepState.PAUSED)
        self._add(row, RunEventKind.STEP_PAUSED, step, {"message": message})
        return None

    async def decide(self, run_id: str, approval: Approval) -> str:
        """Keep a decision, which needs no lease; returns the full name of its step.

        Raises RunNotFound, and ConfigurationError when no such step is paused, or several are and it names none.
        """
        row = self._found(run_id)
        step = decided_step(run_id, approval, self._waiting(row), row.approvals)
        payload = json.loads(json_text(approval.payload))
        row.approvals[step].decision = replace(approval, step=step, payload=payload)
        return step

    async def ask_cancel(self, run_id: str) -> None:
        """Ask the holder of a run to cancel it: its next lease says so. Raises RunNotFound."""
        row = self._found(run_id)
        if not row.cancel_asked and row.state in OPEN:
            row.cancel_asked = True
            self._add(row, RunEventKind.CANCEL_ASKED, "", {})

    async def delete(self, run_id: str) -> bool:
        """Delete a run that has ended; returns whether there was one."""
        row = self._runs.get(run_id)
        if row is None or row.state in OPEN:
            return False
        del self._runs[run_id]
        return True

    async def put_document(self, content: bytes) -> str:
        """Keep a document; returns its id, the SHA-256 of its content in hex."""
        document = hashlib.sha256(content).hexdigest()
        self._documents[document] = content
        return document

    async def get_document(self, document: str) -> bytes:
        """Return a document. Raises KeyError when it is not there."""
        return self._documents[document]

    async def aclose(self) -> None:
        """Do nothing: what it holds is let go with it."""

    def _found(self, run_id: str) -> _Run:
        if (row := self._runs.get(run_id)) is None:
            raise RunNotFound(run_id)
        return row

    def _held(self, lease: RunLease) -> _Run:
        """Return the run of a lease that is the latest, and has not been given back."""
        row = self._found(lease.run_id)
        if (row.fence, row.owner) != (lease.fence, lease.owner):
            raise StaleLease(lease.run_id, lease.fence)
        return row

    def _waiting(self, row: _Run) -> dict[str, _Asked]:
        now = self._now()
        return {
            step: asked
            for step, asked in row.approvals.items()
            if asked.decision is None and (asked.until is None or asked.until > now)
        }

    def _add(self, row: _Run, kind: RunEventKind, step: str, data: Mapping[str, Any] | str) -> None:
        """Add an event; `data` may be JSON text already."""
        row.changed_at = self._wall()
        row.events.append((kind, row.changed_at, step, data if isinstance(data, str) else json_text(data)))

    def _stored(self, row: _Run) -> StoredRun:
        now = self._now()
        return StoredRun(
            run_id=row.new.run_id,
            workflow=row.new.workflow,
            workflow_hash=row.new.workflow_hash,
            step_hashes=dict(row.new.step_hashes),
            inputs=json.loads(row.inputs),
            engine=row.new.engine,
            state=row.state,
            steps={name: step.read() for name, step in row.steps.items()},
            seq=len(row.events),
            created_at=row.created_at,
            changed_at=row.changed_at,
            origin=row.new.origin,
            outputs=json.loads(row.outputs),
            reason=row.reason,
            spent=row.spent,
            seconds_left=None if row.deadline is None else max(0.0, row.deadline - now),
            forked_from=row.new.forked_from,
            owner=row.owner if row.lease_until > now else "",
        )


@dataclass(slots=True)
class _Step:
    text: str
    input_hash: str
    number: int | None = None
    size: int = 0
    """Characters that count towards the limit of the run."""

    def read(self) -> StoredStep:
        result = StepResult.from_json(json.loads(self.text))
        return StoredStep(result=result, input_hash=self.input_hash, number=self.number)

    def change(self, state: StepState) -> None:
        self.text = json_text(replace(self.read().result, state=state).as_json())


@dataclass(slots=True)
class _Asked:
    message: str
    at: float
    until: float | None
    decision: Approval | None = None


@dataclass(slots=True)
class _Run:
    new: NewRun
    inputs: str
    created_at: float
    changed_at: float
    deadline: float | None
    state: RunState = RunState.RUNNING
    steps: dict[str, _Step] = field(default_factory=dict)
    events: list[tuple[RunEventKind, float, str, str]] = field(default_factory=list)
    checkpoints: list[CheckpointRef] = field(default_factory=list)
    spent: Costs = FREE
    approvals: dict[str, _Asked] = field(default_factory=dict)
    outputs: str = "{}"
    reason: str = ""
    owner: str = ""
    fence: int = 0
    lease_until: float = 0.0
    cancel_asked: bool = False
    size: int = 0

    def grow(self, what: str, size: int) -> None:
        check_state(self.new.run_id, what, self.size + size)
        self.size += size

    def settle(self, step: str, result: StepResult, input_hash: str, at: float) -> CheckpointRef:
        number = len(self.checkpoints) + 1
        text = json_text(result.as_json())
        if result.outputs is not None:
            self.grow(f"the outputs of step {step}", len(text))
        self.steps[step] = _Step(text, input_hash, number, 0 if result.outputs is None else len(text))
        self.checkpoints.append(CheckpointRef(self.new.run_id, number, step, at))
        return self.checkpoints[-1]


@lru_cache
def _began(attempt: int) -> tuple[str, str]:
    """Return the result of a step that runs, and the data of the event that says so, as JSON text."""
    running = StepResult(state=StepState.RUNNING, attempts=attempt)
    return json_text(running.as_json()), json_text({"attempt": attempt})
