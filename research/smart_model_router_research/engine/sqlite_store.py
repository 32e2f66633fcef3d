"""A store of runs in a file, runs.db, that any number of processes of this host read and write."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from smart_model_router.domain.shared_state import ClockReading, SharedStateError
from smart_model_router.flow import clock
from smart_model_router_research.engine.documents import DocumentFiles
from smart_model_router_research.engine.graph_store import FileThreads
from smart_model_router_research.engine.graph_threads import GraphThreads
from smart_model_router_research.engine.protocol import (
    LEASE_SECONDS,
    Approval,
    CheckpointRef,
    RunEvent,
    RunEventKind,
)
from smart_model_router_research.engine.run_schema import RUN_MIGRATIONS
from smart_model_router_research.engine.run_tables import RunTables
from smart_model_router_research.engine.states import RunState, StepResult
from smart_model_router_research.engine.store_port import (
    NewRun,
    PendingApproval,
    RunLease,
    StoredRun,
    StoreUnavailable,
)
from smart_model_router_research.engine.store_rules import json_text
from smart_model_router_research.workflow.definition import Costs
from smart_model_router_stats.open_db import GuardedConnection, StoreUnavailableError, filesystem_of, open_to_read
from smart_model_router_stats.sqlite_file import SqliteFile

T = TypeVar("T")
RETENTION_DAYS = 30.0
_PRAGMAS = (
    # What was acknowledged survives a power cut, too: the statistics file may lose its last commits there.
    "synchronous = FULL",
    "foreign_keys = ON",
    # A busy file ends no run: others write for milliseconds, but where many do one may lose each turn for a while. Less
    # than a lease less a heartbeat: the lease is kept by the same thread.
    "busy_timeout = 20000",
)


class SqliteRunStore:
    """Runs in a file for their owner alone, and documents beside it. Runs that ended `retention_days` ago are deleted.

    Every write is one transaction, on a thread of its own, and on the disk before it returns. Network file systems,
    files of a newer release and damaged ones are refused: StoreUnavailable. Deadlines are on the clocks of `here`.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        retention_days: float = RETENTION_DAYS,
        here: Callable[[], ClockReading] = clock.here,
        filesystem: Callable[[Path], str] = filesystem_of,
    ) -> None:
        self._file = SqliteFile(Path(path), RUN_MIGRATIONS, filesystem=filesystem, pragmas=_PRAGMAS, keep_damaged=True)
        self._documents = DocumentFiles(documents_path(self.path))
        self._retention_days = retention_days
        self._here = here
        self._graphs = FileThreads(self._file, here)

    @property
    def graph_threads(self) -> GraphThreads:
        """Threads of LangGraph graphs in the same file, for `RunSaver`."""
        return self._graphs

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self._file.path

    async def create(self, run: NewRun) -> StoredRun:
        """Create a run, or return the one of that id. Raises WorkflowChanged, StateTooLarge, TooManyRuns."""
        inputs, origin = json_text(run.inputs), json_text(run.origin)
        copied = sorted(run.settled.items(), key=lambda each: each[1].number or 0)
        settled = [(name, step, json_text(step.result.as_json())) for name, step in copied]

        def create(tables: RunTables) -> StoredRun:
            tables.prune(self._retention_days)
            return tables.create(run, inputs, origin, settled)

        return await self._write(create)

    async def load(self, run_id: str) -> StoredRun:
        """Return a run. Raises RunNotFound."""
        return await self._read(lambda tables: tables.load(run_id))

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
        text = None if origin is None else json_text(origin)
        return await self._read(lambda tables: tables.runs(limit, workflow, text, state, changed_before))

    async def lease(self, run_id: str, owner: str, seconds: float = LEASE_SECONDS) -> RunLease:
        """Take the run, or keep it. Raises RunNotFound, RunBusy. The lease of a process that is gone is taken at once.

        Time is that of the boot, suspended time included: a wall clock that is set changes nothing.
        """
        return await self._write(lambda tables: tables.lease(run_id, owner, seconds))

    async def release(self, lease: RunLease) -> None:
        """Give the run back; another process can take it at once. Nothing happens when it was taken over."""
        await self._write(lambda tables: tables.release(lease))

    async def begin(self, lease: RunLease, step: str, attempt: int, input_hash: str) -> StepResult | None:
        """Note that an attempt of a step begins, or return the result that it settled with for the same input."""
        return await self._write(lambda tables: tables.begin(lease, step, attempt, input_hash))

    async def charge(self, lease: RunLease, step: str, costs: Costs) -> Costs:
        """Add to the ledger what a step has paid; returns what the run has spent."""
        return await self._write(lambda tables: tables.charge(lease, step, costs))

    async def settle(self, lease: RunLease, step: str, result: StepResult, input_hash: str = "") -> CheckpointRef:
        """Keep the result of a step that has settled, which is a checkpoint. It settles once. Raises StateTooLarge."""
        text, holds = json_text(result.as_json()), result.outputs is not None
        return await self._write(lambda tables: tables.settle(lease, step, text, input_hash, holds=holds))

    async def record(
        self, lease: RunLease, kind: RunEventKind, step: str = "", data: Mapping[str, Any] | None = None
    ) -> RunEvent:
        """Keep an event that settles no step: retries, pauses, the engine that was selected."""
        text = json_text(data or {})
        return await self._write(lambda tables: tables.record(lease, kind, step, text))

    async def end(self, lease: RunLease, state: RunState, outputs: Mapping[str, Any], reason: str) -> RunEvent:
        """Keep the end of a run, or its pause."""
        text = json_text(outputs)
        return await self._write(lambda tables: tables.end(lease, state, text, reason))

    async def checkpoint(self, run_id: str) -> CheckpointRef:
        """Return the latest checkpoint; its number is 0 before the first step settled. Raises RunNotFound."""
        return await self._read(lambda tables: tables.checkpoint(run_id))

    async def checkpoints(self, run_id: str) -> Sequence[CheckpointRef]:
        """Return all checkpoints, oldest first. Raises RunNotFound."""
        return await self._read(lambda tables: tables.checkpoints(run_id))

    async def events_since(self, run_id: str, after: int = 0, limit: int = 1_000) -> Sequence[RunEvent]:
        """Return the events with a greater seq than `after`, in order. Raises RunNotFound."""
        return await self._read(lambda tables: tables.events_since(run_id, after, limit))

    async def approvals(self, run_id: str) -> Sequence[PendingApproval]:
        """Return the decisions that the run waits for. Raises RunNotFound."""
        return await self._read(lambda tables: tables.approvals(run_id))

    async def ask(self, lease: RunLease, step: str, message: str, seconds: float | None) -> Approval | None:
        """Pause a step for a decision; returns the decision when there is one already, a rejection when it is late."""
        return await self._write(lambda tables: tables.ask(lease, step, message, seconds))

    async def decide(self, run_id: str, approval: Approval) -> str:
        """Keep a decision, which needs no lease; returns the full name of its step.

        Raises RunNotFound, and ConfigurationError when no such step is paused, or several are and it names none.
        """
        decision = json_text({"approved": approval.approved, "payload": approval.payload})
        return await self._write(lambda tables: tables.decide(run_id, approval, decision))

    async def ask_cancel(self, run_id: str) -> None:
        """Ask the holder of a run to cancel it: its next lease says so. Raises RunNotFound."""
        await self._write(lambda tables: tables.ask_cancel(run_id))

    async def delete(self, run_id: str) -> bool:
        """Delete a run that has ended; returns whether there was one."""
        return await self._write(lambda tables: tables.delete(run_id))

    async def put_document(self, content: bytes) -> str:
        """Keep a document; returns its id, the SHA-256 of its content in hex."""
        return await asyncio.to_thread(self._documents.put, content)

    async def get_document(self, document: str) -> bytes:
        """Return a document. Raises KeyError when it is not there."""
        return await asyncio.to_thread(self._documents.get, document)

    async def aclose(self) -> None:
        """Close the file; safe to call twice."""
        await asyncio.to_thread(self._graphs.close)
        await self._file.aclose()

    async def _read(self, work: Callable[[RunTables], T]) -> T:
        return await self._asked(self._file.read(lambda connection: work(self._tables(connection))))

    async def _write(self, work: Callable[[RunTables], T]) -> T:
        return await self._asked(self._file.write(lambda connection: work(self._tables(connection))))

    async def _asked(self, answer: Coroutine[Any, Any, T]) -> T:
        try:
            return await answer
        except SharedStateError as error:
            raise StoreUnavailable(str(self.path), error.reason) from error

    def _tables(self, connection: GuardedConnection) -> RunTables:
        return RunTables(connection, str(self.path), self._here())


def documents_path(runs: Path) -> Path:
    """Return the folder of the documents that belongs to a file of runs: `runs-documents` beside `runs.db`."""
    return runs.with_name(f"{runs.stem}-documents")


def unheld_runs(path: Path) -> list[str]:
    """Return the ids of runs in a file that are to go on and that no process holds. Blocks. Raises StoreUnavailable."""
    try:
        with closing(open_to_read(path, RUN_MIGRATIONS)) as connection:
            return RunTables(connection, str(path), clock.here()).unheld()
    except StoreUnavailableError as error:
        raise StoreUnavailable(str(path), error.reason) from error
    except sqlite3.Error as error:
        raise StoreUnavailable(str(path), str(error)) from error
