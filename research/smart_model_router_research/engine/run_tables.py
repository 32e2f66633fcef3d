"""The tables of runs, and every read and write of them. Blocks: on the connection's thread, in a transaction.

The statements are those that SQLite and PostgreSQL both have, with `?` for a parameter.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, replace
from typing import Any, Protocol

from smart_model_router.domain.shared_state import ClockReading, Deadline, remaining
from smart_model_router_research.engine.processes import started_at, this_process
from smart_model_router_research.engine.protocol import Approval, CheckpointRef, RunEvent, RunEventKind
from smart_model_router_research.engine.states import OPEN, RunState, StepResult, StepState
from smart_model_router_research.engine.store_port import (
    NewRun,
    PendingApproval,
    RunLease,
    RunNotFound,
    StaleLease,
    StoredRun,
    StoredStep,
    StoreUnavailable,
    TooManyRuns,
    WorkflowChanged,
)
from smart_model_router_research.engine.store_rules import (
    STATE_BY_EVENT,
    Holder,
    check_state,
    decided_step,
    differing_steps,
    granted,
    is_gone,
    json_text,
    late_decision,
    readable,
)
from smart_model_router_research.workflow.definition import Costs

_RUN = """
SELECT id, workflow, workflow_hash, step_hashes, inputs, engine, origin, state, outputs, reason, deadline,
  forked_from, created_at, changed_at, owner, lease, holder,
  (SELECT coalesce(max(seq), 0) FROM events WHERE run = id),
  (SELECT coalesce(sum(tokens), 0.0) FROM ledger WHERE run = id),
  (SELECT coalesce(sum(usd), 0.0) FROM ledger WHERE run = id),
  (SELECT coalesce(sum(seconds), 0.0) FROM ledger WHERE run = id),
  (SELECT coalesce(sum(calls), 0.0) FROM ledger WHERE run = id)
FROM runs
"""
_SPENT = """
SELECT coalesce(sum(tokens), 0.0), coalesce(sum(usd), 0.0), coalesce(sum(seconds), 0.0), coalesce(sum(calls), 0.0)
FROM ledger WHERE run = ?
"""
_PUT_STEP = """
INSERT INTO run_steps (run, step, result, input_hash, number, size) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (run, step) DO UPDATE SET result = excluded.result, input_hash = excluded.input_hash,
  number = excluded.number, size = excluded.size
"""
_PUT_CHARGE = """
INSERT INTO ledger (run, step, tokens, usd, seconds, calls) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (run, step) DO UPDATE SET tokens = ledger.tokens + excluded.tokens, usd = ledger.usd + excluded.usd,
  seconds = ledger.seconds + excluded.seconds, calls = ledger.calls + excluded.calls
"""
_ADD_EVENT = """
INSERT INTO events (run, seq, kind, at, step, data)
SELECT ?, coalesce(max(seq), 0) + 1, ?, ?, ?, ? FROM events WHERE run = ? RETURNING seq
"""
_PRUNE = """
DELETE FROM runs WHERE id IN (
  SELECT id FROM runs WHERE changed_at < ? AND state NOT IN ('running', 'paused') ORDER BY changed_at LIMIT 10
)
"""


class TableCursor(Protocol):
    """The rows that a statement found, and how many it changed."""

    @property
    def rowcount(self) -> int:
        """The number of rows that were changed."""
        ...

    def fetchone(self) -> Any:
        """Return the next row, None after the last."""
        ...

    def fetchall(self) -> list[Any]:
        """Return all further rows."""
        ...

    def __iter__(self) -> Iterator[Any]:
        """Return all further rows, one by one."""
        ...


class TableConnection(Protocol):
    """A connection within a transaction."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> TableCursor:
        """Execute a statement."""
        ...


class RunTables:
    """The tables within one transaction, at one reading of the clocks.

    What is not to be read raises StoreUnavailable, which names the file or the server, `place`. `one_host` says that
    all processes with these tables are of this host.
    """

    def __init__(self, connection: TableConnection, place: str, here: ClockReading, *, one_host: bool = True) -> None:
        self._execute = connection.execute
        self._place = place
        self._here = here
        self._one_host = one_host

    # ------------------------------------------------------------------------------------------------ runs

    def create(
        self, run: NewRun, inputs: str, origin: str, settled: Sequence[tuple[str, StoredStep, str]]
    ) -> StoredRun:
        """Create a run, or return the one of that id. `inputs`, `origin` and results of `settled` are JSON text."""
        found = self._execute("SELECT workflow_hash, step_hashes FROM runs WHERE id = ?", (run.run_id,)).fetchone()
        if found is not None:
            if found[0] != run.workflow_hash:
                raise WorkflowChanged(run.run_id, differing_steps(json.loads(found[1]), run.step_hashes))
            return self.load(run.run_id)
        if run.most_alike is not None:
            alike = "SELECT count(*) FROM runs WHERE origin = ? AND state IN (?, ?)"
            if self._execute(alike, (origin, *sorted(OPEN))).fetchone()[0] >= run.most_alike:
                raise TooManyRuns(run.run_id, run.most_alike)
        check_state(run.run_id, "its inputs", len(inputs))
        self._execute(
            "INSERT INTO runs (id, workflow, workflow_hash, step_hashes, inputs, engine, origin, state, deadline,"
            " forked_from, created_at, changed_at, size) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                run.run_id,
                run.workflow,
                run.workflow_hash,
                json_text(run.step_hashes),
                inputs,
                run.engine,
                origin,
                RunState.RUNNING,
                self._after(run.seconds),
                None if run.forked_from is None else str(run.forked_from),
                self._here.wall,
                self._here.wall,
                len(inputs),
            ),
        )
        for name, step, text in settled:
            self._settle(run.run_id, name, text, step.input_hash, holds=step.result.outputs is not None)
        forked = {} if run.forked_from is None else {"forked_from": str(run.forked_from)}
        self._add(run.run_id, RunEventKind.RUN_STARTED, "", json_text({"workflow": run.workflow} | forked))
        return self.load(run.run_id)

    def prune(self, days: float) -> None:
        """Delete ten of the runs that ended more than so many days ago, the oldest first: no write waits for long."""
        self._execute(_PRUNE, (self._here.wall - days * 86_400,))

    def delete(self, run_id: str) -> bool:
        """Delete a run that has ended; returns whether there was one."""
        ended = "DELETE FROM runs WHERE id = ? AND state NOT IN (?, ?)"
        return bool(self._execute(ended, (run_id, *sorted(OPEN))).rowcount)

    def load(self, run_id: str) -> StoredRun:
        """Return a run."""
        row = self._execute(f"{_RUN} WHERE id = ?", (run_id,)).fetchone()
        if row is None:
            raise RunNotFound(run_id)
        steps = self._execute("SELECT step, result, input_hash, number FROM run_steps WHERE run = ?", (run_id,))
        return self._stored(row, {step: self._step(run_id, step, *rest) for step, *rest in steps})

    def runs(
        self,
        limit: int,
        workflow: str | None = None,
        origin: str | None = None,
        state: str | None = None,
        changed_before: float | None = None,
    ) -> list[StoredRun]:
        """Return the runs that changed last, without their steps; `origin` is JSON text."""
        asked = {"workflow =": workflow, "origin =": origin, "state =": state, "changed_at <": changed_before}
        given = {what: value for what, value in asked.items() if value is not None}
        where = f" WHERE {' AND '.join(f'{what} ?' for what in given)}" if given else ""
        latest = f"{_RUN}{where} ORDER BY changed_at DESC LIMIT ?"
        rows = self._execute(latest, (*given.values(), limit)).fetchall()
        return [self._stored(row, {}) for row in rows]

    def unheld(self) -> list[str]:
        """Return the ids of runs that are to go on and that no process holds."""
        rows = self._execute(f"{_RUN} WHERE state = 'running' ORDER BY changed_at DESC").fetchall()
        return [run.run_id for run in (self._stored(row, {}) for row in rows) if not run.owner]

    def lost(self) -> list[tuple[StoredRun, int]]:
        """Return the runs that are to go on, and that a process holds no more without having given them back.

        Each with the fence of that process.
        """
        query = f"{_RUN} WHERE state = 'running' AND owner <> '' ORDER BY changed_at"
        rows = self._execute(query).fetchall()
        found = [run for run in (self._stored(row, {}) for row in rows) if not run.owner]
        fence = "SELECT fence FROM runs WHERE id = ?"
        return [(run, self._execute(fence, (run.run_id,)).fetchone()[0]) for run in found]

    # ------------------------------------------------------------------------------------------------ leases

    def lease(self, run_id: str, owner: str, seconds: float) -> RunLease:
        """Take a run, or keep it."""
        row = self._execute("SELECT owner, fence, lease, holder, cancel_asked FROM runs WHERE id = ?", (run_id,))
        found = row.fetchone()
        if found is None:
            raise RunNotFound(run_id)
        held_by, fence, lease, holder, cancel_asked = found
        me = json.dumps(astuple(this_process()))
        own = (held_by, holder) == (owner, me)  # processes of two containers may go by one name
        with self._reading(run_id, "lease"):
            gone = not own and self._is_gone(holder)
            fence += granted(run_id, held_by, self._left(lease) or 0.0, own=own, gone=gone)
        self._execute(
            "UPDATE runs SET owner = ?, fence = ?, lease = ?, holder = ? WHERE id = ?",
            (owner, fence, self._after(seconds), me, run_id),
        )
        return RunLease(run_id=run_id, owner=owner, fence=fence, seconds=seconds, cancel_asked=bool(cancel_asked))

    def release(self, lease: RunLease) -> None:
        """Give a run back, unless another process has taken it."""
        self._execute("UPDATE runs SET owner = '' WHERE id = ? AND fence = ?", (lease.run_id, lease.fence))

    def ask_cancel(self, run_id: str) -> None:
        """Ask the holder of a run to cancel it; one that has ended stays as it is."""
        self._known(run_id)
        open_run = "UPDATE runs SET cancel_asked = 1 WHERE id = ? AND cancel_asked = 0 AND state IN (?, ?)"
        if self._execute(open_run, (run_id, *sorted(OPEN))).rowcount:
            self._add(run_id, RunEventKind.CANCEL_ASKED, "", "{}")

    # ------------------------------------------------------------------------------------------------ steps

    def begin(self, lease: RunLease, step: str, attempt: int, input_hash: str) -> StepResult | None:
        """Note that an attempt begins, or return the result that the step settled with for the same input."""
        self._held(lease)
        run_id = lease.run_id
        found = self._execute(
            "SELECT result, input_hash, number, size FROM run_steps WHERE run = ? AND step = ?", (run_id, step)
        ).fetchone()
        if found is not None and found[2] is not None and found[1] == input_hash:
            return self._step(run_id, step, *found[:3]).result
        running = json_text(StepResult(state=StepState.RUNNING, attempts=attempt).as_json())
        self._execute(
            "UPDATE runs SET state = ?, size = size - ? WHERE id = ?",
            (RunState.RUNNING, 0 if found is None else found[3], run_id),
        )
        self._execute(_PUT_STEP, (run_id, step, running, input_hash, None, 0))
        self._add(run_id, RunEventKind.STEP_STARTED, step, json_text({"attempt": attempt}))
        return None

    def charge(self, lease: RunLease, step: str, costs: Costs) -> Costs:
        """Add to what a step has paid; returns what the run has spent."""
        self._held(lease)
        values = (lease.run_id, step, costs.tokens, costs.usd, costs.seconds, costs.calls)
        self._execute(_PUT_CHARGE, values)
        return self._spent(lease.run_id)

    def settle(self, lease: RunLease, step: str, result: str, input_hash: str, *, holds: bool) -> CheckpointRef:
        """Keep the result of a step, JSON text; it counts towards the size of the run when it `holds` outputs."""
        self._held(lease)
        run_id = lease.run_id
        query = (
            "SELECT c.number, c.step, c.at FROM run_steps s JOIN checkpoints c ON c.run = s.run AND c.number = s.number"
            " WHERE s.run = ? AND s.step = ?"
        )
        if found := self._execute(query, (run_id, step)).fetchone():
            return CheckpointRef(run_id, *found)
        ref = self._settle(run_id, step, result, input_hash, holds=holds)
        self._execute("DELETE FROM approvals WHERE run = ? AND step = ?", (run_id, step))
        self._add(run_id, RunEventKind.STEP_SETTLED, step, result)
        return ref

    def record(self, lease: RunLease, kind: RunEventKind, step: str, data: str) -> RunEvent:
        """Keep an event; `data` is JSON text."""
        self._held(lease)
        if kind in STATE_BY_EVENT:
            self._change(lease.run_id, step, STATE_BY_EVENT[kind])
        if kind is RunEventKind.RUN_RESUMED:
            self._execute("UPDATE runs SET state = ? WHERE id = ?", (RunState.RUNNING, lease.run_id))
        return self._add(lease.run_id, kind, step, data)

    def end(self, lease: RunLease, state: RunState, outputs: str, reason: str) -> RunEvent:
        """Keep the end of a run, or its pause; `outputs` are JSON text."""
        self._held(lease)
        reason = readable(reason)
        change = "UPDATE runs SET state = ?, outputs = ?, reason = ? WHERE id = ?"
        self._execute(change, (state, outputs, reason, lease.run_id))
        kind = RunEventKind.RUN_PAUSED if state is RunState.PAUSED else RunEventKind.RUN_ENDED
        return self._add(lease.run_id, kind, "", json_text({"state": state, "reason": reason}))

    # ------------------------------------------------------------------------------------------------ history

    def checkpoints(self, run_id: str) -> tuple[CheckpointRef, ...]:
        """Return the checkpoints of a run, oldest first."""
        self._known(run_id)
        rows = self._execute("SELECT number, step, at FROM checkpoints WHERE run = ? ORDER BY number", (run_id,))
        return tuple(CheckpointRef(run_id, *row) for row in rows)

    def checkpoint(self, run_id: str) -> CheckpointRef:
        """Return the latest checkpoint of a run."""
        created_at = self._known(run_id)
        latest = "SELECT number, step, at FROM checkpoints WHERE run = ? ORDER BY number DESC LIMIT 1"
        found = self._execute(latest, (run_id,)).fetchone()
        return CheckpointRef(run_id, 0, time=created_at) if found is None else CheckpointRef(run_id, *found)

    def events_since(self, run_id: str, after: int, limit: int) -> list[RunEvent]:
        """Return the events of a run with a greater seq, in order."""
        self._known(run_id)
        rows = self._execute(
            "SELECT seq, kind, at, step, data FROM events WHERE run = ? AND seq > ? ORDER BY seq LIMIT ?",
            (run_id, after, limit),
        )
        return [self._event(run_id, *row) for row in rows]

    # ------------------------------------------------------------------------------------------------ decisions

    def approvals(self, run_id: str) -> list[PendingApproval]:
        """Return the decisions that a run waits for."""
        self._known(run_id)
        query = (
            "SELECT step, message, asked_at, until FROM approvals WHERE run = ? AND decision IS NULL"
            " ORDER BY asked_at, step"
        )
        found: list[PendingApproval] = []
        for step, message, asked_at, until in self._execute(query, (run_id,)):
            with self._reading(run_id, f"approval of step {step!r}"):
                left = self._left(until)
            if left is None or left > 0:
                found.append(
                    PendingApproval(run_id=run_id, step=step, message=message, asked_at=asked_at, seconds_left=left)
                )
        return found

    def ask(self, lease: RunLease, step: str, message: str, seconds: float | None) -> Approval | None:
        """Pause a step for a decision, or return the decision; one that is late is a rejection."""
        self._held(lease)
        run_id = lease.run_id
        query = "SELECT until, decision FROM approvals WHERE run = ? AND step = ?"
        if (found := self._execute(query, (run_id, step)).fetchone()) is not None:
            with self._reading(run_id, f"approval of step {step!r}"):
                if found[1] is not None:
                    return Approval(step=step, **json.loads(found[1]))
                return late_decision(step) if self._left(found[0]) == 0.0 else None
        message = readable(message)
        self._execute(
            "INSERT INTO approvals (run, step, message, asked_at, until) VALUES (?, ?, ?, ?, ?)",
            (run_id, step, message, self._here.wall, self._after(seconds)),
        )
        running = json_text(StepResult(state=StepState.RUNNING).as_json())
        self._execute(
            "INSERT INTO run_steps (run, step, result, input_hash, size) VALUES (?, ?, ?, '', 0)"
            " ON CONFLICT DO NOTHING",
            (run_id, step, running),
        )
        self._change(run_id, step, StepState.PAUSED)
        self._add(run_id, RunEventKind.STEP_PAUSED, step, json_text({"message": message}))
        return None

    def decide(self, run_id: str, approval: Approval, decision: str) -> str:
        """Keep a decision, JSON text of all but its step; returns the step."""
        asked = [step for (step,) in self._execute("SELECT step FROM approvals WHERE run = ?", (run_id,))]
        step = decided_step(run_id, approval, [waiting.step for waiting in self.approvals(run_id)], asked)
        self._execute("UPDATE approvals SET decision = ? WHERE run = ? AND step = ?", (decision, run_id, step))
        return step

    # ------------------------------------------------------------------------------------------------ rows

    def _known(self, run_id: str) -> float:
        """Return when a run was created."""
        found = self._execute("SELECT created_at FROM runs WHERE id = ?", (run_id,)).fetchone()
        if found is None:
            raise RunNotFound(run_id)
        return float(found[0])

    def _held(self, lease: RunLease) -> None:
        """Raise StaleLease when the lease is not the latest. The transaction keeps others from taking the run."""
        held = "SELECT 1 FROM runs WHERE id = ? AND fence = ? AND owner = ?"
        if self._execute(held, (lease.run_id, lease.fence, lease.owner)).fetchone() is not None:
            return
        if self._execute("SELECT 1 FROM runs WHERE id = ?", (lease.run_id,)).fetchone() is not None:
            raise StaleLease(lease.run_id, lease.fence)
        raise StoreUnavailable(self._place, f"run {lease.run_id!r} is no longer in it: was it deleted?")

    def _settle(self, run_id: str, step: str, result: str, input_hash: str, *, holds: bool) -> CheckpointRef:
        size = len(result) if holds else 0
        (held,) = self._execute("SELECT size FROM runs WHERE id = ?", (run_id,)).fetchone()
        if holds:
            check_state(run_id, f"the outputs of step {step}", held + size)
        count = "SELECT coalesce(max(number), 0) + 1 FROM checkpoints WHERE run = ?"
        (number,) = self._execute(count, (run_id,)).fetchone()
        self._execute(_PUT_STEP, (run_id, step, result, input_hash, number, size))
        self._execute("UPDATE runs SET size = size + ? WHERE id = ?", (size, run_id))
        self._execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?)", (run_id, number, step, self._here.wall))
        return CheckpointRef(run_id, number, step, self._here.wall)

    def _add(self, run_id: str, kind: RunEventKind, step: str, data: str) -> RunEvent:
        self._execute("UPDATE runs SET changed_at = ? WHERE id = ?", (self._here.wall, run_id))
        row = (kind, self._here.wall, step, data)
        ((seq,),) = self._execute(_ADD_EVENT, (run_id, *row, run_id)).fetchall()
        return self._event(run_id, seq, *row)

    def _event(self, run_id: str, seq: int, kind: str, at: float, step: str, data: str) -> RunEvent:
        with self._reading(run_id, f"event {seq}"):
            return RunEvent(seq=seq, run_id=run_id, kind=RunEventKind(kind), time=at, step=step, data=json.loads(data))

    def _change(self, run_id: str, step: str, state: StepState) -> None:
        """Change the state of a step that has begun."""
        query = "SELECT result FROM run_steps WHERE run = ? AND step = ?"
        for (text,) in self._execute(query, (run_id, step)).fetchall():
            changed = replace(self._step(run_id, step, text).result, state=state)
            update = "UPDATE run_steps SET result = ? WHERE run = ? AND step = ?"
            self._execute(update, (json_text(changed.as_json()), run_id, step))

    def _step(self, run_id: str, step: str, result: str, input_hash: str = "", number: int | None = None) -> StoredStep:
        with self._reading(run_id, f"step {step!r}"):
            return StoredStep(result=StepResult.from_json(json.loads(result)), input_hash=input_hash, number=number)

    def _spent(self, run_id: str) -> Costs:
        return Costs(*self._execute(_SPENT, (run_id,)).fetchone())

    def _stored(self, row: Sequence[Any], steps: Mapping[str, StoredStep]) -> StoredRun:
        run_id, workflow, workflow_hash, step_hashes, inputs, engine, origin, state, outputs, *rest = row
        reason, deadline, forked_from, created_at, changed_at, owner, lease, holder, seq, *spent = rest
        with self._reading(run_id, "row"):
            held = bool(owner) and (self._left(lease) or 0.0) > 0 and not self._is_gone(holder)
            return StoredRun(
                run_id=run_id,
                workflow=workflow,
                workflow_hash=workflow_hash,
                step_hashes=json.loads(step_hashes),
                inputs=json.loads(inputs),
                engine=engine,
                origin=json.loads(origin),
                state=RunState(state),
                steps=steps,
                seq=seq,
                created_at=created_at,
                changed_at=changed_at,
                outputs=json.loads(outputs),
                reason=reason,
                spent=Costs(*spent),
                seconds_left=self._left(deadline),
                forked_from=None if forked_from is None else CheckpointRef.parse(forked_from),
                owner=owner if held else "",
            )

    def _after(self, seconds: float | None) -> str | None:
        return None if seconds is None else json.dumps(astuple(Deadline.after(seconds, self._here)))

    def _left(self, deadline: str | None) -> float | None:
        if deadline is None:
            return None
        until = Deadline(*json.loads(deadline))
        return remaining(until, self._here, until.duration)

    def _is_gone(self, holder: str | None) -> bool:
        if holder is None:
            return False
        process = Holder(*json.loads(holder))
        return is_gone(process, this_process(), started_at(process.pid), one_host=self._one_host)

    @contextmanager
    def _reading(self, run_id: str, what: str) -> Generator[None]:
        """Raise StoreUnavailable for text that a row cannot have."""
        try:
            yield
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            reason = f"run {run_id!r}: its {what} cannot be read: {type(error).__name__}: {error}"
            raise StoreUnavailable(self._place, reason) from error
