"""Lease the slots of shared bulkheads: an admitted call waits for its slot, and idle slots are given back.

The store leases slots (`lease_slots`); this process alone gives them back. A slot that is given back is not used from
that moment on, and a slot that was asked for is used once the answer is there: so the processes together never use more
slots than there are, however late the store answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_model_router.coordination.store_health import StoreReachability
from smart_model_router.core.capacity import Bulkhead
from smart_model_router.core.gate import Gate
from smart_model_router.domain.ports import SharedState
from smart_model_router.domain.shared_state import (
    ClockReading,
    SharedStateError,
    SlotAsk,
    SlotGrant,
    SlotRow,
    lease_slots,
)
from smart_model_router.domain.shared_state.slots import (
    SLOT_SECONDS,
    WAITING_SECONDS,
    kept_slots,
    lot_of,
    slots_alone,
)

if TYPE_CHECKING:
    from smart_model_router.coordination.local_router import LocalRouter

LOOK_SECONDS = 0.02
"""Seconds between two looks by a process without a slot for slots that others gave back."""
RETURN_SECONDS = 0.25
"""The other processes have given back their idle slots by then."""
_HOPE_AGAIN = 5.0
"""A wait for idle slots that brought none is not repeated for so many seconds."""
_ALONE = SlotGrant(held=0, idle=0, most=0, others_wait=False)
"""The rule before the store was asked."""
_RENEW_SECONDS = SLOT_SECONDS / 3
_WAIT_AGAIN_SECONDS = WAITING_SECONDS / 3


@dataclass(eq=False, slots=True)
class _Slots:
    """The slots that this process holds of one bulkhead.

    `key` names it among processes, of which there are `members`. `pending` calls are admitted here and wait for their
    slot. `peak` is the greatest number of calls in flight since the last renewal: as many slots are kept, so that most
    calls find one here and ask for none. `told` is False while the store does not know what was given back here. `rule`
    is what the store said last, and `rows` are the leases of all processes that were heard last. `alone` is True when
    only later versions can read what the store has of this bulkhead.
    """

    key: str
    bulkhead: Bulkhead
    members: Callable[[], int]
    held: int = 0
    pending: int = 0
    peak: int = 0
    told: bool = True
    renew_at: float = 0.0
    hope_at: float = 0.0
    rule: SlotGrant = _ALONE
    rows: Sequence[SlotRow] = ()
    alone: bool = False

    @property
    def confirmed(self) -> int:
        """Calls that have their slot."""
        return self.bulkhead.in_flight - self.pending

    @property
    def refused(self) -> bool:
        """True while requests wait here for slots that other processes have."""
        return self.bulkhead.granted is not None

    def due(self, now: float) -> bool:
        """True when the store is to be asked: for a call without a slot, or with news of what is held here."""
        return self.pending > 0 or not self.told or (now >= self.renew_at and (self.held > 0 or self.refused))

    def give_back(self, needed: int) -> bool:
        """Use no more slots than the rule leaves to this process; False when that changes nothing."""
        kept = kept_slots(self.rule, self.held, in_use=self.confirmed, needed=needed, recent=self.peak)
        if kept == self.held:
            return False
        self.held, self.told = kept, False
        return True

    def bind(self, now: float) -> None:
        """Limit the bulkhead to the held slots: the host has no more for this process."""
        if not self.refused and now >= self.hope_at:
            self.bulkhead.returned_by, self.hope_at = now + RETURN_SECONDS, now + _HOPE_AGAIN
        self.bulkhead.granted = self.held

    def release(self) -> None:
        """Remove the limit: calls ask for their slots again."""
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
        look_soon: Callable[[], None],
    ) -> None:
        self._state = state
        self._shared = shared
        self._reach = reach
        self._here = here
        self._look_soon = look_soon
        self._holder = ""
        self._slots: dict[str, _Slots] = {}
        self._task: asyncio.Task[None] | None = None
        self._given_up: set[asyncio.Task[None]] = set()
        self._answered = self._next = asyncio.Event()
        """The store answered the question that is under way, and the one after it; or it does not answer."""
        self._again = False
        self._turns = 0
        """The number of times that the store was lost or regained, or that another router took over."""
        self._after: SlotLeases | None = None

    def begin(self, holder: str) -> None:
        """Ask in this name from now on; earlier leases belong to another process."""
        self._holder = holder
        self.forget()
        for slots in self._slots.values():
            slots.held = slots.pending = slots.peak = 0
            slots.rule = _ALONE
            slots.release()

    def forget(self) -> None:
        """Drop the task and the calls that wait for it: they belong to another loop."""
        self._task = None
        self._answered = self._next = asyncio.Event()

    @property
    def waiting(self) -> bool:
        """True while this process needs slots that other processes have."""
        return any(slots.refused and self._is_shared(slots) for slots in self._slots.values())

    def register(self, gate: Gate, key: str, members: Callable[[], int]) -> None:
        """Share the bulkhead of this target's provider, which processes name by `key`: as many as `members` says."""
        name, bulkhead = gate.provider.name, gate.provider.bulkhead
        known = self._slots.get(name)
        if known is None:
            self._slots[name] = slots = _Slots(key, bulkhead, members)
            if self._reach.reason:
                self._decide_alone(slots)
        elif known.bulkhead is not bulkhead:
            known.bulkhead = bulkhead

    def continue_from(self, before: SlotLeases) -> None:
        """Take the place of another router of this process, whose calls are counted in the same bulkheads."""
        self._holder, before._after = before._holder, self
        for name, slots in before._slots.items():
            ours = self._slots.get(name)
            if ours is None or ours.bulkhead is not slots.bulkhead:
                slots.release()
            elif ours.key == slots.key:
                ours.held, ours.peak, ours.rule, ours.told = slots.held, slots.peak, slots.rule, False
        before._slots = {}
        before._let_go()

    def has_slot(self, gate: Gate) -> bool:
        """True when a call that was just admitted has its slot without asking the store, or needs none."""
        if self._after is not None:
            return self._after.has_slot(gate)
        slots = self._slots_of(gate)
        if slots is None:
            return True
        slots.peak = max(slots.peak, slots.bulkhead.in_flight)
        return slots.held >= slots.bulkhead.in_flight

    async def may_enter(self, gate: Gate, within: float) -> bool:
        """Get a slot for a call that was just admitted: when the store answered, or counts as out of reach.

        False when there is none. Wait for `within` seconds at most.
        """
        if self._after is not None:
            return await self._after.may_enter(gate, within)
        slots = self._slots_of(gate)
        if slots is None or self.has_slot(gate):
            return True
        slots.pending += 1
        try:
            answered = self._next
            self._start()
            with suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await answered.wait()
            return slots.held > slots.confirmed and self._after is None
        finally:
            slots.pending -= 1

    def settled(self, gate: Gate) -> None:
        """After a call, if another process waits, give back at once the slots that are idle, or not this one's turn."""
        if self._after is not None:
            self._after.settled(gate)
            return
        name, slots = gate.provider.name, self._slots_of(gate)
        if slots is None or not slots.rule.others_wait or not self._is_shared(slots):
            return
        all_were_used = slots.confirmed + 1 >= slots.held
        waiting = self._waiting_for(name) if all_were_used or slots.refused else 0
        if slots.give_back(slots.bulkhead.in_flight + waiting):
            if waiting:  # they must not take it before others could
                slots.bulkhead.granted = slots.held
            self._start()

    def hear(self, rows: Sequence[SlotRow]) -> None:
        """Give back idle slots when another process waits for some; ask for slots when another gave some back."""
        here = self._here()
        for name, slots in self._slots.items():
            slots.rows = [row for row in rows if row.key == slots.key]
            if not self._is_shared(slots):
                continue
            slots.rule = lease_slots(slots.rows, self._ask(name, slots), here)[1]
            if slots.refused and slots.rule.held > slots.held:
                slots.told = False
            if slots.give_back(self._needed(name, slots)) or not slots.told:
                self._start()

    def settle(self) -> None:
        """Renew leases, and give back the slots that were not used lately; wait for nothing."""
        now = self._state.clock.now()
        for name, slots in self._slots.items():
            if not self._is_shared(slots):
                continue
            needed = self._needed(name, slots)
            if slots.refused and needed <= slots.held:
                slots.told = False  # no request waits here any more
            if slots.give_back(needed) or slots.due(now):
                self._start()

    async def settle_all(self) -> None:
        """Give everything back. Calls that begin or end afterwards have nothing to do with the host."""
        self._let_go()
        await self._round(ending=True)

    def suspend(self) -> None:
        """Use an equal part of the slots while the store cannot be asked."""
        for slots in self._slots.values():
            slots.release()
            self._decide_alone(slots)
        self._let_go()

    def resume(self) -> None:
        """Lease slots again."""
        for slots in self._slots.values():
            slots.release()
            slots.held, slots.told, slots.alone = slots.confirmed, False, False
        self._let_go()

    def _let_go(self) -> None:
        """Abandon an answer that is under way: it does not count any more."""
        self._turns += 1
        if self._task is not None and not self._task.done():
            self._given_up.add(self._task)
            self._task.add_done_callback(self._given_up.discard)
        self._task = None
        self._answered.set()
        self._next.set()
        self._next = asyncio.Event()

    def _is_shared(self, slots: _Slots) -> bool:
        """False while this process decides alone on these slots."""
        return not self._reach.reason and not slots.alone

    def _decide_alone(self, slots: _Slots) -> None:
        most, others = slots.bulkhead.slots, {row.holder for row in slots.rows} - {self._holder}
        slots.held = slots_alone(most, slots.held, max(len(others), slots.members() - 1))
        slots.bulkhead.granted = slots.held if slots.held < most else None

    def _start(self) -> None:
        self._again = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        turns = self._turns
        while self._again and turns == self._turns:
            self._again = False
            answered, self._next = self._next, asyncio.Event()
            self._answered = answered
            with self._reach.patience():
                try:
                    await self._round()
                except Exception as error:  # noqa: BLE001 - a fault of the store must not end the task in silence
                    reason = error.reason if isinstance(error, SharedStateError) else f"{type(error).__name__}: {error}"
                    if turns == self._turns:
                        self._reach.lose(reason)
                finally:
                    answered.set()

    async def _round(self, *, ending: bool = False) -> None:
        now = self._state.clock.now()
        asked = {
            name: slots
            for name, slots in self._slots.items()
            if self._is_shared(slots) and (slots.held or slots.refused if ending else slots.due(now))
        }
        if not asked:
            return
        asks = [self._ask(name, slots, ending=ending) for name, slots in asked.items()]
        if ending:
            self._slots = {}
        for slots in asked.values():
            slots.told = True
            if now >= slots.renew_at:
                slots.peak = slots.bulkhead.in_flight
        turns = self._turns
        grants = await self._shared.lease_slots(asks)
        if turns != self._turns:
            return  # too late: this process decides, or decided, alone
        for (name, slots), ask, grant in zip(asked.items(), asks, grants, strict=True):
            was = slots.bulkhead.granted
            if grant is None:
                slots.alone = True
                self._decide_alone(slots)
            else:
                self._take(name, slots, grant, grant.held - ask.keeps, now)
            if was is not None and (slots.bulkhead.granted is None or slots.bulkhead.granted > was):
                self._state.pump(name)

    def _take(self, name: str, slots: _Slots, grant: SlotGrant, more: int, now: float) -> None:
        """Take in an answer of the store, which brought so many `more` slots."""
        slots.rule = grant
        slots.held += more
        if more > 0:
            slots.hope_at = now
        if slots.held < self._needed(name, slots):
            slots.bind(now)
            slots.renew_at = now + _WAIT_AGAIN_SECONDS
            self._look_soon()
        else:
            slots.release()
            slots.renew_at = now + _RENEW_SECONDS

    def _slots_of(self, gate: Gate) -> _Slots | None:
        """Return the slots that a call at this gate needs, None where its bulkhead is this process's own."""
        slots = self._slots.get(gate.provider.name)
        return slots if slots is not None and slots.bulkhead is gate.provider.bulkhead else None

    def _waiting_for(self, provider: str) -> int:
        return sum(self._state.queued(target) for target in self._state.fleet.targets(provider))

    def _needed(self, name: str, slots: _Slots) -> int:
        """Return the slots in use or waited for. Waiting requests count once the host refused: not all need a slot."""
        waiting = self._waiting_for(name) if slots.refused else 0
        return min(slots.bulkhead.slots, slots.bulkhead.in_flight + waiting)

    def _ask(self, name: str, slots: _Slots, *, ending: bool = False) -> SlotAsk:
        """The request for slots, in lots, for the calls of now and of the last seconds."""
        most = slots.bulkhead.slots
        if ending:
            return SlotAsk(key=slots.key, holder=self._holder, slots=most, keeps=0, least=0, want=0)
        least, lot = self._needed(name, slots), lot_of(most)
        want = min(most, -(-max(least, slots.peak) // lot) * lot)
        return SlotAsk(key=slots.key, holder=self._holder, slots=most, keeps=slots.held, least=least, want=want)
