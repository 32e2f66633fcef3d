"""The journal of a run: all that an engine writes about it, under one lease, and told to its observers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from smart_model_router_research.engine.protocol import Approval, RunEvent, RunEventKind
from smart_model_router_research.engine.states import FREE, RunState, StepResult, StepState
from smart_model_router_research.engine.store_port import RunLease, RunStore, StateTooLarge
from smart_model_router_research.workflow.definition import Costs

_log = logging.getLogger("smart_model_router.workflows")


class RunJournal:
    """The writes of one holder of a run. Raises StaleLease and StoreUnavailable.

    `spent` is what the run has spent, steps under way included; `charged` is what each step has charged to this
    holder. `seq` is the latest event that observers know. An observer that raises is counted in
    `observer_failures`, and changes nothing. `readers` are told of each write.
    """

    def __init__(
        self,
        store: RunStore,
        lease: RunLease,
        *,
        seq: int = 0,
        spent: Costs,
        observers: Sequence[Callable[[RunEvent], object]] = (),
        readers: Collection[asyncio.Event] = (),
    ) -> None:
        self._store = store
        self._lease = lease
        self._seq = seq
        self._observers = observers
        self._readers = readers
        self.spent = spent
        self.charged: dict[str, Costs] = {}
        self.observer_failures = 0

    async def begin(self, step: str, attempt: int, input_hash: str) -> StepResult | None:
        """Note that an attempt begins; returns the result of a step that has settled with the same input."""
        known = await self._store.begin(self._lease, step, attempt, input_hash)
        await self.tell()
        return known

    def charge(self, step: str, costs: Costs) -> None:
        """Count what a step under way has paid; `keep_charge` keeps it."""
        self.spent += costs
        self.charged[step] = self.charged.get(step, FREE) + costs

    async def keep_charge(self, step: str, costs: Costs) -> None:
        """Keep what a step has paid."""
        await self._store.charge(self._lease, step, costs)

    async def settle(self, step: str, result: StepResult, input_hash: str = "") -> StepResult:
        """Keep the result of a step that has settled; returns it, or that it failed as the run has no room for it."""
        try:
            await self._store.settle(self._lease, step, result, input_hash)
        except StateTooLarge as error:
            result = replace(result, state=StepState.FAILED, outputs=None, error=error.message)
            await self._store.settle(self._lease, step, result, input_hash)
        await self.tell()
        return result

    async def ask(self, step: str, message: str, seconds: float | None) -> Approval | None:
        """Pause a step for a decision, for so many seconds; returns the decision when there is one."""
        decision = await self._store.ask(self._lease, step, message, seconds)
        await self.tell()
        return decision

    async def record(self, kind: RunEventKind, step: str = "", data: Mapping[str, Any] | None = None) -> None:
        """Keep an event that settles no step."""
        await self._store.record(self._lease, kind, step, data)
        await self.tell()

    async def end(self, state: RunState, outputs: Mapping[str, Any], reason: str) -> None:
        """Keep the end of the run."""
        await self._store.end(self._lease, state, outputs, reason)
        await self.tell()

    async def tell(self) -> None:
        """Call the observers with each event that they do not know."""
        for reader in self._readers:
            reader.set()
        if not self._observers:
            return
        known, run_id = self._seq, self._lease.run_id
        for event in await self._store.events_since(run_id, known):
            if event.seq <= self._seq:  # another step's write has told it while this one read
                continue
            self._seq = event.seq
            for observer in self._observers:
                self._call(observer, event)

    def _call(self, observer: Callable[[RunEvent], object], event: RunEvent) -> None:
        try:
            observer(event)
        except Exception:  # noqa: BLE001 - whatever a reader of events makes of them, the run goes on
            self.observer_failures += 1
            _log.warning("run %s: an observer failed at event %d", event.run_id, event.seq, exc_info=True)
