"""Lease the slots of shared bulkheads: an admitted call waits for its slot, and idle slots are given back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_model_router.core.bulkhead import Bulkhead
from smart_model_router.core.gate import Gate
from smart_model_router.ports import SharedState
from smart_model_router.runtime.sharing.probes import PROBE_SECONDS
from smart_model_router.runtime.sharing.reach import Reach
from smart_model_router.shared import Here, SharedStateError, SlotAsk, SlotRow
from smart_model_router.shared.slots import SLOT_SECONDS, lot_of

if TYPE_CHECKING:
    from smart_model_router.runtime.sharing.local_router import LocalRouter

_RENEW_SECONDS = SLOT_SECONDS / 3


@dataclass(eq=False, slots=True)
class _Slots:
    """The slots that this process holds of one bulkhead.

    `pending` calls are admitted here and wait for their slot. `peak` is the greatest number of calls in flight since
    the last renewal: as many slots are kept, so that most calls find one here and ask for none.
    """

    bulkhead: Bulkhead
    held: int = 0
    pending: int = 0
    peak: int = 0
    renew_at: float = 0.0
    others_wait: bool = False

    @property
    def confirmed(self) -> int:
        """Calls that have their slot, or were let go on without one."""
        return self.bulkhead.in_flight - self.pending

    def due(self, now: float) -> bool:
        """True when the store is to be asked: a call without a slot, a refusal, a renewal, idle slots others need."""
        if self.held < self.bulkhead.in_flight or self.bulkhead.granted is not None:
            return True
        return self.held > 0 and (now >= self.renew_at or self.others_need_some)

    @property
    def others_need_some(self) -> bool:
        """True when another process waits and this one holds idle slots."""
        return self.others_wait and self.held > self.bulkhead.in_flight


class SlotLeases:
    """The shared bulkheads of this process. Not thread-safe: it belongs to the router's loop."""

    def __init__(self, state: LocalRouter, shared: SharedState, reach: Reach, here: Callable[[], Here]) -> None:
        self._state = state
        self._shared = shared
        self._reach = reach
        self._here = here
        self._holder = ""
        self._slots: dict[str, _Slots] = {}
        self._task: asyncio.Task[None] | None = None
        self._asked: list[asyncio.Future[bool]] = []
        self._again = False
        self._retired = False

    def begin(self, holder: str) -> None:
        """Ask in this name from now on; earlier leases belong to another process."""
        self._holder = holder
        self.forget()
        for slots in self._slots.values():
            slots.held = slots.pending = slots.peak = 0
            slots.bulkhead.granted = None

    def forget(self) -> None:
        """Drop the task and its waiters: they belong to another loop."""
        self._task = None
        self._asked.clear()

    def register(self, gate: Gate) -> None:
        """Share the bulkhead of this target's provider."""
        name, bulkhead = gate.provider.name, gate.provider.bulkhead
        known = self._slots.get(name)
        if known is None:
            self._slots[name] = _Slots(bulkhead)
        elif known.bulkhead is not bulkhead:
            known.bulkhead = bulkhead

    def continue_from(self, before: SlotLeases) -> None:
        """Take the place of another router of this process, whose calls are counted in the same bulkheads."""
        self._holder, before._retired = before._holder, True
        for name, slots in before._slots.items():
            ours = self._slots.get(name)
            if ours is not None and ours.bulkhead is slots.bulkhead:
                ours.held, ours.peak, ours.others_wait = slots.held, slots.peak, slots.others_wait

    def has_slot(self, gate: Gate) -> bool:
        """True when a call that was just admitted has its slot without asking the store, or needs none."""
        slots = self._slots.get(gate.provider.name)
        if slots is None or self._retired or self._reach.reason:
            return True
        slots.peak = max(slots.peak, slots.bulkhead.in_flight)
        return slots.held >= slots.bulkhead.in_flight

    async def may_enter(self, gate: Gate) -> bool:
        """Get a slot for a call that was just admitted. Wait 20 ms at most; without an answer the call goes on."""
        if self.has_slot(gate):
            return True
        slots = self._slots[gate.provider.name]
        slots.pending += 1
        answered = asyncio.get_running_loop().create_future()
        self._asked.append(answered)
        try:
            self._start()
            await asyncio.wait({answered}, timeout=PROBE_SECONDS)
            heard = answered.done() and answered.result()
            return slots.held > slots.confirmed or not heard
        finally:
            slots.pending -= 1

    def settled(self, gate: Gate) -> None:
        """A call ended: give its slot back at once if another process waits."""
        slots = self._slots.get(gate.provider.name)
        if slots is not None and slots.others_need_some:
            self._start()

    def hear(self, rows: Iterable[SlotRow]) -> None:
        """Another process waits for slots: give back those that are idle here."""
        here = self._here()
        waiting = {row.key for row in rows if row.holder != self._holder and row.waiting(here)}
        for name, slots in self._slots.items():
            slots.others_wait = name in waiting
            if slots.others_need_some:
                self._start()

    def settle(self) -> None:
        """Renew leases and ask again where the host was full; wait for nothing."""
        now = self._state.clock.now()
        if not self._reach.reason and any(slots.due(now) for slots in self._slots.values()):
            self._start()

    async def settle_all(self) -> None:
        """Give everything back."""
        if not self._retired:
            await self._round(ending=True)

    def suspend(self, *, suspended: bool) -> None:
        """Use all slots while the store cannot be asked; lease them again afterwards."""
        for slots in self._slots.values():
            slots.held = 0 if suspended else slots.held
            slots.bulkhead.granted = None

    def _start(self) -> None:
        if self._retired:
            return
        self._again = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while self._again:
            self._again = False
            asked, self._asked = self._asked, []
            heard = False
            with self._reach.patience():
                try:
                    await self._round()
                    heard = not self._reach.reason
                except SharedStateError as error:
                    self._reach.lose(error.reason)
                except Exception as bug:  # noqa: BLE001 - a fault of the store must not end the task in silence
                    self._reach.lose(f"{type(bug).__name__}: {bug}")
                finally:
                    for answered in asked:
                        if not answered.done():
                            answered.set_result(heard)

    async def _round(self, *, ending: bool = False) -> None:
        now = self._state.clock.now()
        busy = {name: slots for name, slots in self._slots.items() if ending or slots.due(now)}
        asks = [self._ask(name, slots, ending=ending) for name, slots in busy.items() if slots.held or not ending]
        if not asks:
            return
        for slots in busy.values():
            if now >= slots.renew_at:
                slots.peak = slots.bulkhead.in_flight
        grants = await self._shared.lease_slots(asks)
        if self._reach.reason:
            return  # too late: this process decides alone by now, and a refusal must not bind it
        for ask, grant in zip(asks, grants, strict=True):
            slots = busy[ask.key]
            slots.held, slots.others_wait = grant.held, grant.others_wait
            slots.renew_at = now + _RENEW_SECONDS
            refused = grant.held < ask.least
            was, slots.bulkhead.granted = slots.bulkhead.granted, grant.held if refused else None
            if was is not None and (not refused or grant.held > was):
                self._state.pump(ask.key)

    def _waiting_for(self, provider: str) -> int:
        return sum(self._state.queued(target) for target in self._state.fleet.targets(provider))

    def _ask(self, name: str, slots: _Slots, *, ending: bool) -> SlotAsk:
        """In lots, for the calls of now and of the last seconds."""
        bulkhead = slots.bulkhead
        most = bulkhead.slots
        if ending:
            return SlotAsk(key=name, holder=self._holder, slots=most, in_flight=0, least=0, want=0)
        waiting = slots.pending
        if bulkhead.granted is not None:
            waiting = max(waiting, min(1, self._waiting_for(name)))
        least = min(most, slots.confirmed + waiting)
        lot = lot_of(most)
        want = min(most, -(-max(least, slots.peak) // lot) * lot)
        return SlotAsk(key=name, holder=self._holder, slots=most, in_flight=slots.confirmed, least=least, want=want)
