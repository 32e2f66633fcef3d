"""Lease the slots of shared bulkheads: an admitted call waits for its slot, and idle slots are given back.

The store decides (`lease_slots`). Between its answers the same rule is applied to the rows that were heard last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from smart_model_router.coordination.probe_leases import PROBE_SECONDS
from smart_model_router.coordination.store_health import StoreReachability
from smart_model_router.core.capacity import Bulkhead
from smart_model_router.core.gate import Gate
from smart_model_router.domain.ports import SharedState
from smart_model_router.domain.shared_state import ClockReading, SharedStateError, SlotAsk, SlotRow, lease_slots
from smart_model_router.domain.shared_state.slots import SLOT_SECONDS, lot_of, slots_alone

if TYPE_CHECKING:
    from smart_model_router.coordination.local_router import LocalRouter

LOOK_SECONDS = 0.02
"""How often a process without a slot looks for the slots that others gave back."""
RETURN_SECONDS = 0.25
"""The other processes have given back their idle slots by then."""
_HOPE_AGAIN = 5.0
"""A wait for idle slots that brought none is not repeated for so many seconds."""
_RENEW_SECONDS = SLOT_SECONDS / 3


@dataclass(eq=False, slots=True)
class _Slots:
    """The slots that this process holds of one bulkhead.

    `key` names it among processes. `keeps` of the slots that it holds are kept when they are idle. `pending` calls are
    admitted here and wait for their slot. `peak` is the greatest number of calls in flight since the last renewal: as
    many slots are kept, so that most calls find one here and ask for none. `rows` are those of all processes, as they
    were at the instant `heard`.
    """

    key: str
    bulkhead: Bulkhead
    held: int = 0
    keeps: int = 0
    pending: int = 0
    peak: int = 0
    renew_at: float = 0.0
    hope_at: float = 0.0
    others_wait: bool = False
    rows: Sequence[SlotRow] = ()
    heard: ClockReading | None = None

    @property
    def confirmed(self) -> int:
        """Calls that have their slot, or were let go on without one."""
        return self.bulkhead.in_flight - self.pending

    def due(self, now: float) -> bool:
        """True when the store is to be asked: a call without a slot, a refusal, a renewal, idle slots to give back."""
        if self.held < self.bulkhead.in_flight or self.bulkhead.granted is not None:
            return True
        return self.held > 0 and (now >= self.renew_at or self.held > max(self.keeps, self.bulkhead.in_flight))

    @property
    def others_need_some(self) -> bool:
        """True when another process waits and this one holds idle slots."""
        return self.others_wait and self.held > self.bulkhead.in_flight

    def bind(self, held: int, now: float) -> None:
        """The host has no more slots than `held` for this process."""
        if self.bulkhead.granted is None and now >= self.hope_at:
            self.bulkhead.returned_by, self.hope_at = now + RETURN_SECONDS, now + _HOPE_AGAIN
        self.bulkhead.granted = held

    def release(self) -> None:
        """Calls ask for their slots again."""
        self.bulkhead.granted, self.bulkhead.returned_by = None, 0.0


class SlotLeases:
    """The shared bulkheads of this process. Not thread-safe: it belongs to the router's loop."""

    def __init__(
        self,
        state: LocalRouter,
        shared: SharedState,
        reach: StoreReachability,
        here: Callable[[], ClockReading],
        *,
        processes: int,
        look_soon: Callable[[], None],
    ) -> None:
        self._state = state
        self._shared = shared
        self._reach = reach
        self._here = here
        self._processes = processes
        self._look_soon = look_soon
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
            slots.release()

    def forget(self) -> None:
        """Drop the task and its waiters: they belong to another loop."""
        self._task = None
        self._asked.clear()

    @property
    def waiting(self) -> bool:
        """True while this process needs slots that other processes have."""
        return not self._reach.reason and any(slots.bulkhead.granted is not None for slots in self._slots.values())

    def register(self, gate: Gate, key: str) -> None:
        """Share the bulkhead of this target's provider, which processes name by `key`."""
        name, bulkhead = gate.provider.name, gate.provider.bulkhead
        known = self._slots.get(name)
        if known is None:
            self._slots[name] = _Slots(key, bulkhead)
        elif known.bulkhead is not bulkhead:
            known.bulkhead = bulkhead

    def continue_from(self, before: SlotLeases) -> None:
        """Take the place of another router of this process, whose calls are counted in the same bulkheads."""
        self._holder, before._retired = before._holder, True
        for name, slots in before._slots.items():
            ours = self._slots.get(name)
            if ours is None or ours.bulkhead is not slots.bulkhead:
                slots.release()
            elif ours.key == slots.key:
                ours.held, ours.keeps, ours.peak = slots.held, slots.keeps, slots.peak
                ours.others_wait = slots.others_wait

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
            if not answered.done():
                return self._may_enter_unheard(gate.provider.name, slots)
            return slots.held > slots.confirmed or not answered.result()
        finally:
            slots.pending -= 1

    def _may_enter_unheard(self, name: str, slots: _Slots) -> bool:
        """Without an answer a call goes on, unless the host had no slot left as far as was heard."""
        held = self._foreseen(name, slots)
        if self._reach.reason or held > slots.confirmed:
            return True
        slots.bind(held, self._state.clock.now())
        return False

    def settled(self, gate: Gate) -> None:
        """A call ended: if another process waits, give back at once the slots that are idle, or not this one's turn."""
        slots = self._slots.get(gate.provider.name)
        if slots is None or not slots.others_need_some or self._reach.reason:
            return
        if self._waiting_for(gate.provider.name):
            keeps = self._foreseen(gate.provider.name, slots)
            if keeps < slots.held:  # the waiters here must not take it before the store was asked
                slots.bulkhead.granted = max(keeps, slots.bulkhead.in_flight)
        self._start()

    def hear(self, rows: Sequence[SlotRow]) -> None:
        """Another process waits for slots: give back those that are idle here; or gave some back: ask for them."""
        here = self._here()
        for name, slots in self._slots.items():
            slots.rows, slots.heard = [row for row in rows if row.key == slots.key], here
            slots.others_wait = any(row.holder != self._holder and row.waiting(here) for row in slots.rows)
            slots.keeps = 0 if slots.others_wait else slots.keeps
            waits = slots.bulkhead.granted is not None
            if slots.others_need_some or (waits and self._foreseen(name, slots) > slots.held):
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
        """Use an equal part of the slots while the store cannot be asked; lease them again afterwards."""
        for slots in self._slots.values():
            slots.release()
            if suspended:
                most, others = slots.bulkhead.slots, {row.holder for row in slots.rows} - {self._holder}
                alone = slots_alone(most, slots.held, max(len(others), self._processes - 1))
                slots.held = 0
                slots.bulkhead.granted = alone if alone < most else None

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
        busy = {name: slots for name, slots in self._slots.items() if (slots.held if ending else slots.due(now))}
        if not busy:
            return
        asks = [self._ask(name, slots, ending=ending) for name, slots in busy.items()]
        for slots in busy.values():
            if now >= slots.renew_at:
                slots.peak = slots.bulkhead.in_flight
        grants = await self._shared.lease_slots(asks)
        if self._reach.reason:
            return  # too late: this process decides alone by now, and a refusal must not bind it
        for (name, slots), ask, grant in zip(busy.items(), asks, grants, strict=True):
            slots.others_wait, slots.keeps = grant.others_wait, grant.keeps
            if not grant.others_wait:
                slots.rows = [replace(row, waits=0.0) for row in slots.rows]
            if grant.held > slots.held:
                slots.hope_at = now
            slots.held, slots.renew_at = grant.held, now + _RENEW_SECONDS
            was = slots.bulkhead.granted
            if grant.held < ask.least:
                slots.bind(grant.held, now)
                self._look_soon()
            else:
                slots.release()
            if was is not None and (slots.bulkhead.granted is None or grant.held > was):
                self._state.pump(name)

    def _foreseen(self, name: str, slots: _Slots) -> int:
        """Return how many slots this process would have by the rows that were heard last."""
        if slots.heard is None:
            return slots.bulkhead.slots
        return lease_slots(slots.rows, self._ask(name, slots), slots.heard)[1].held

    def _waiting_for(self, provider: str) -> int:
        return sum(self._state.queued(target) for target in self._state.fleet.targets(provider))

    def _ask(self, name: str, slots: _Slots, *, ending: bool = False) -> SlotAsk:
        """In lots, for the calls of now and of the last seconds."""
        bulkhead = slots.bulkhead
        most = bulkhead.slots
        if ending:
            return SlotAsk(key=slots.key, holder=self._holder, slots=most, in_flight=0, least=0, want=0)
        waiting = slots.pending
        if bulkhead.granted is not None or slots.others_wait:
            waiting = max(waiting, min(1, self._waiting_for(name)))
        least = min(most, slots.confirmed + waiting)
        lot = lot_of(most)
        want = min(most, -(-max(least, slots.peak) // lot) * lot)
        return SlotAsk(
            key=slots.key, holder=self._holder, slots=most, in_flight=slots.confirmed, least=least, want=want
        )
