"""Stores of runs in the tables of `run_tables`: a file of this host, or a database that many machines share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from smart_model_router_research.engine.protocol import (
    LEASE_SECONDS,
    Approval,
    CheckpointRef,
    RunEvent,
    RunEventKind,
)
from smart_model_router_research.engine.run_tables import RunTables
from smart_model_router_research.engine.states import RunState, StepResult
from smart_model_router_research.engine.store_port import NewRun, PendingApproval, RunLease, StoredRun
from smart_model_router_research.engine.store_rules import json_text
from smart_model_router_research.workflow.definition import Costs

T = TypeVar("T")
RETENTION_DAYS = 30.0


class TableRunStore(ABC):
    """A RunStore with documents, over tables. Runs that ended `retention_days` ago are deleted.

    A subclass reads and writes the tables, each time in one transaction that is durable when it returns.
    """

    def __init__(self, retention_days: float = RETENTION_DAYS) -> None:
        self._retention_days = retention_days

    @property
    def retention_days(self) -> float:
        """The days for which runs are kept that have ended."""
        return self._retention_days

    @property
    @abstractmethod
    def place(self) -> str:
        """The place of the runs, as errors name it: a path, or a URL without its password."""

    @abstractmethod
    async def standing(self) -> str:
        """Return what keeps the runs, and the number of its schema, for people. Raises StoreUnavailable."""

    @abstractmethod
    async def _read(self, work: Callable[[RunTables], T]) -> T:
        """Let `work` read at one instant. Raises StoreUnavailable."""

    @abstractmethod
    async def _write(self, run_id: str | None, work: Callable[[RunTables], T], *, twice: bool = False) -> T:
        """Do `work` as one transaction that no other one about the run sees half done. Raises StoreUnavailable.

        Without a `run_id` no other run is created meanwhile. `twice` says that to do it twice is to do it once.
        """

    @abstractmethod
    async def put_document(self, content: bytes) -> str:
        """Keep a document; returns its id, the SHA-256 of its content in hex."""

    @abstractmethod
    async def get_document(self, document: str) -> bytes:
        """Return a document. Raises KeyError when it is not there."""

    @abstractmethod
    async def aclose(self) -> None:
        """Let go of it; safe to call twice."""

    async def create(self, run: NewRun) -> StoredRun:
        """Create a run, or return the one of that id. Raises WorkflowChanged, StateTooLarge, TooManyRuns."""
        inputs, origin = json_text(run.inputs), json_text(run.origin)
        copied = sorted(run.settled.items(), key=lambda each: each[1].number or 0)
        settled = [(name, step, json_text(step.result.as_json())) for name, step in copied]

        def create(tables: RunTables) -> StoredRun:
            tables.prune(self._retention_days)
            return tables.create(run, inputs, origin, settled)

        return await self._write(None, create, twice=True)

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

    async def lost(self) -> Sequence[tuple[StoredRun, int]]:
        """Return the runs that go on nowhere because their process is gone, each with its fence, without their steps.

        One that was given back, at Ctrl-C say, is none of them.
        """
        return await self._read(lambda tables: tables.lost())

    async def lease(self, run_id: str, owner: str, seconds: float = LEASE_SECONDS) -> RunLease:
        """Take the run, or keep it. Raises RunNotFound, RunBusy.

        The lease of a process of this host that is gone is taken at once.
        """
        return await self._write(run_id, lambda tables: tables.lease(run_id, owner, seconds), twice=True)

    async def release(self, lease: RunLease) -> None:
        """Give the run back; another process can take it at once. Nothing happens when it was taken over."""
        await self._write(lease.run_id, lambda tables: tables.release(lease), twice=True)

    async def begin(self, lease: RunLease, step: str, attempt: int, input_hash: str) -> StepResult | None:
        """Note that an attempt of a step begins, or return the result that it settled with for the same input."""
        return await self._write(lease.run_id, lambda tables: tables.begin(lease, step, attempt, input_hash))

    async def charge(self, lease: RunLease, step: str, costs: Costs) -> Costs:
        """Add to the ledger what a step has paid; returns what the run has spent."""
        return await self._write(lease.run_id, lambda tables: tables.charge(lease, step, costs))

    async def settle(self, lease: RunLease, step: str, result: StepResult, input_hash: str = "") -> CheckpointRef:
        """Keep the result of a step that has settled, which is a checkpoint. It settles once. Raises StateTooLarge."""
        text, holds = json_text(result.as_json()), result.outputs is not None
        return await self._write(
            lease.run_id, lambda tables: tables.settle(lease, step, text, input_hash, holds=holds), twice=True
        )

    async def record(
        self, lease: RunLease, kind: RunEventKind, step: str = "", data: Mapping[str, Any] | None = None
    ) -> RunEvent:
        """Keep an event that settles no step: retries, pauses, the engine that was selected."""
        text = json_text(data or {})
        return await self._write(lease.run_id, lambda tables: tables.record(lease, kind, step, text))

    async def end(self, lease: RunLease, state: RunState, outputs: Mapping[str, Any], reason: str) -> RunEvent:
        """Keep the end of a run, or its pause."""
        text = json_text(outputs)
        return await self._write(lease.run_id, lambda tables: tables.end(lease, state, text, reason))

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
        return await self._write(lease.run_id, lambda tables: tables.ask(lease, step, message, seconds), twice=True)

    async def decide(self, run_id: str, approval: Approval) -> str:
        """Keep a decision, which needs no lease; returns the full name of its step.

        Raises RunNotFound, and ConfigurationError when no such step is paused, or several are and it names none.
        """
        decision = json_text({"approved": approval.approved, "payload": approval.payload})
        return await self._write(run_id, lambda tables: tables.decide(run_id, approval, decision))

    async def ask_cancel(self, run_id: str) -> None:
        """Ask the holder of a run to cancel it: its next lease says so. Raises RunNotFound."""
        await self._write(run_id, lambda tables: tables.ask_cancel(run_id), twice=True)

    async def delete(self, run_id: str) -> bool:
        """Delete a run that has ended; returns whether there was one."""
        return await self._write(run_id, lambda tables: tables.delete(run_id))
