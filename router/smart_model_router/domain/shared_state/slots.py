"""The slots of a bulkhead that processes share: each leases what its calls need; a dead process loses its lease."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from smart_model_router.domain.shared_state.clocks import ClockReading

SLOT_SECONDS = 30.0
"""How long slots belong to their holder; a holder renews them every third of that."""
WAITING_SECONDS = 0.5
"""How long a process counts as waiting after it was refused; it asks again before."""
_LOT = 0.05
_LEFT_FREE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRow:
    """The slots of the bulkhead `key` that `holder` has until `until`; it has waited for more since `waits` (0: no).

    Instants are `ClockReading.ticks`.
    """

    key: str
    holder: str
    boot: str
    held: int
    until: float
    waits: float

    def alive(self, here: ClockReading) -> bool:
        """True while the lease lasts. A lease of an earlier boot is over."""
        return self.boot == here.boot and here.ticks < self.until <= here.ticks + SLOT_SECONDS

    def waiting(self, here: ClockReading) -> bool:
        """True while the holder needs more than it has. A process that waits asks again: one that does not is gone."""
        return self.waits > 0 and self.alive(here) and self.until - here.ticks >= SLOT_SECONDS - WAITING_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotAsk:
    """A process asks for `want` of a bulkhead's `slots` in all; `least` of them are in use or waited for.

    `in_flight` of them hold calls: those cannot be taken away.
    """

    key: str
    holder: str
    slots: int
    in_flight: int
    least: int
    want: int


@dataclass(frozen=True, slots=True)
class SlotGrant:
    """The process has `held` now, and `keeps` of them at most when they are idle.

    `others_wait` says that another process needs more than it has.
    """

    held: int
    keeps: int
    others_wait: bool


def lot_of(slots: int) -> int:
    """The slots leased at a time: 5 %, at least one."""
    return max(1, int(slots * _LOT))


def slots_alone(slots: int, held: int, others: int) -> int:
    """Return how many slots a process has that cannot ask: its equal part, no less than it holds, at least one."""
    return max(1, held, math.ceil(slots / (others + 1)))


def lease_slots(rows: Iterable[SlotRow], ask: SlotAsk, here: ClockReading) -> tuple[SlotRow, SlotGrant]:
    """Lease slots to a process. `rows` are all of the bulkhead.

    Idle slots are leased as long as a quarter of all slots stays free: a process that begins to call must find some.
    While others wait, a process gets the slots it needs and no more. An equal part is its own; the slots that are left
    over go round: the process that has waited longest is next.
    """
    rows = [row for row in rows if row.alive(here)]
    before = next((row for row in rows if row.holder == ask.holder), None)
    others = [row for row in rows if row.holder != ask.holder]
    waiting = [row for row in others if row.waiting(here)]
    free = ask.slots - sum(row.held for row in others)
    since = before.waits if before is not None and before.waits > 0 else here.ticks
    keeps = 0 if waiting else max(0, free - math.ceil(ask.slots * _LEFT_FREE))
    if waiting:
        part = ask.slots // (len(others) + 1)
        owed = sum(max(0, part - row.held) for row in waiting)
        ahead = sum(row.held >= part and row.waits < since for row in waiting)
        want = min(ask.least, max(part, free - owed - ahead))
    else:
        want = max(ask.least, min(ask.want, keeps))
    held = max(ask.in_flight, min(want, free), 0)
    if before is None or held > before.held:
        since = here.ticks  # it had its turn
    row = SlotRow(
        key=ask.key,
        holder=ask.holder,
        boot=here.boot,
        held=held,
        until=here.ticks + SLOT_SECONDS,
        waits=since if held < ask.least else 0.0,
    )
    return row, SlotGrant(held, keeps, bool(waiting))
