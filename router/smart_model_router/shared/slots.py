"""The slots of a bulkhead that processes share: each leases what its calls need; a dead process loses its lease."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from smart_model_router.shared.clocks import Here

SLOT_SECONDS = 30.0
"""How long slots belong to their holder; a holder renews them every third of that."""
WAITING_SECONDS = 0.5
"""How long a process counts as waiting after it was refused; it asks again before."""
_LOT = 0.05
_LEFT_FREE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRow:
    """The slots of the bulkhead `key` that `holder` has until `until`; it counts as waiting until `waits`.

    Instants are `Here.ticks`.
    """

    key: str
    holder: str
    boot: str
    held: int
    until: float
    waits: float

    def alive(self, here: Here) -> bool:
        """True while the lease lasts. A lease of an earlier boot is over."""
        return self.boot == here.boot and here.ticks < self.until <= here.ticks + SLOT_SECONDS

    def waiting(self, here: Here) -> bool:
        """True while the holder needs more than it has."""
        return self.alive(here) and here.ticks < self.waits <= here.ticks + WAITING_SECONDS


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
    """The process has `held` now; `others_wait` says that another process needs more than it has."""

    held: int
    others_wait: bool


def lot_of(slots: int) -> int:
    """The slots leased at a time: 5 %, at least one."""
    return max(1, int(slots * _LOT))


def lease_slots(rows: Iterable[SlotRow], ask: SlotAsk, here: Here) -> tuple[SlotRow, SlotGrant]:
    """Lease slots to a process. `rows` are all of the bulkhead.

    Idle slots are leased as long as a quarter of all slots stays free: a process that begins to call must find some.
    While others wait a process gets the slots it needs and no more, and of these no more than an equal part.
    """
    others = [row for row in rows if row.holder != ask.holder and row.alive(here)]
    others_wait = any(row.waiting(here) for row in others)
    free = ask.slots - sum(row.held for row in others)
    want = max(ask.least, min(ask.want, free - math.ceil(ask.slots * _LEFT_FREE)))
    if others_wait:
        want = min(ask.least, max(ask.in_flight, math.ceil(ask.slots / (len(others) + 1))))
    held = max(ask.in_flight, min(want, free), 0)
    row = SlotRow(
        key=ask.key,
        holder=ask.holder,
        boot=here.boot,
        held=held,
        until=here.ticks + SLOT_SECONDS,
        waits=here.ticks + (WAITING_SECONDS if held < ask.least else 0.0),
    )
    return row, SlotGrant(held, others_wait)
