"""The slots of a bulkhead that processes share: each leases what its calls need; a dead process loses its lease."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from smart_model_router.domain.shared_state.clocks import CLOCK_ERROR, ClockReading

SlotScope = Literal["process", "host", "fleet"]

SLOT_SECONDS = 30.0
"""The seconds for which slots belong to their holder; a holder renews them every third of that."""
WAITING_SECONDS = 3.0
"""The seconds for which a process counts as waiting after it wrote so; it writes so again before."""
_LOT = 0.05
LEFT_FREE = 0.25
"""The part of all slots that is not leased idle."""


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
        return self.boot == here.boot and here.ticks < self.until <= here.ticks + SLOT_SECONDS + CLOCK_ERROR

    def waiting(self, here: ClockReading) -> bool:
        """True while the holder needs more than it has. One that wrote nothing for some seconds is gone."""
        return self.waits > 0 and self.alive(here) and self.until - here.ticks >= SLOT_SECONDS - WAITING_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotAsk:
    """A process has `keeps` of a bulkhead's `slots` from now on, and asks for more.

    Calls may begin on those before the answer is there, so they cannot be taken away. The process has given back all
    others before it asks. `least` slots are in use or waited for, `want` in all are worth having.
    """

    key: str
    holder: str
    slots: int
    keeps: int
    least: int
    want: int


@dataclass(frozen=True, slots=True)
class SlotGrant:
    """The process has `held` slots now, and gives back those that it may not keep (`kept_slots`).

    It may keep `idle` unused ones, and `most` in all as its calls end. `others_wait`: another process needs more slots
    than it has, or more are held than there are.
    """

    held: int
    idle: int
    most: int
    others_wait: bool


def slot_scope(configured: SlotScope | None, *, written: bool, embedded: bool) -> SlotScope:
    """Return the scope of a bulkhead: as `configured`, else the host where its number is `written`.

    A written number is what the provider takes from this machine, so processes share it. The catalog's number protects
    one process from piling up calls: shared, more workers would serve no more than one. An embedded model is in each
    process.
    """
    if configured is not None:
        return configured
    return "host" if written and not embedded else "process"


def lot_of(slots: int) -> int:
    """The slots leased at a time: 5 %, at least one."""
    return max(1, int(slots * _LOT))


def slots_alone(slots: int, held: int, others: int) -> int:
    """Return how many slots a process has that cannot ask: its equal part, no less than it holds, at least one."""
    return max(1, held, math.ceil(slots / (others + 1)))


def kept_slots(grant: SlotGrant, held: int, *, in_use: int, needed: int, recent: int) -> int:
    """Return how many of the `held` slots a process keeps. A slot in use is never given back.

    `needed` are in use or waited for, `recent` were in use at once in the last seconds.
    """
    return min(held, max(in_use, min(grant.most, max(needed, min(grant.idle, recent)))))


def lease_slots(rows: Iterable[SlotRow], ask: SlotAsk, here: ClockReading) -> tuple[SlotRow, SlotGrant]:
    """Lease slots to a process. `rows` are all of the bulkhead.

    Idle slots are leased as long as a quarter of all slots stays free: a process that begins to call must find some.
    Free slots go first to the waiting processes with less than an equal part, the longest waiting one before the
    others. Where there are fewer slots than processes, one slot is a part, and the slots go round.
    """
    rows = [row for row in rows if row.alive(here)]
    before = next((row for row in rows if row.holder == ask.holder), None)
    others = [row for row in rows if row.holder != ask.holder]
    waiting = [row for row in others if row.waiting(here)]
    part = ask.slots // (1 + sum(row.held > 0 or row.waiting(here) for row in others))
    due = max(1, part)
    turn_goes_on = before is not None and before.waits > 0 and ask.keeps >= before.held
    since = before.waits if before is not None and turn_goes_on else here.ticks
    short = [(row.waits, due - row.held) for row in waiting if row.held < due]
    left = ask.slots - sum(row.held for row in others)
    free = left - ask.keeps
    idle = 0 if waiting else max(0, left - math.ceil(ask.slots * LEFT_FREE))
    ahead = sum(lacks for waits, lacks in short if waits < since)
    own = _clip(min(ask.least, due) - ask.keeps, free - ahead)
    want = max(ask.least, min(ask.want, idle)) - ask.keeps - own
    more = _clip(want, free - own - sum(lacks for _, lacks in short))
    held = ask.keeps + own + more
    if held > ask.keeps:
        since = here.ticks  # it had its turn
    row = SlotRow(
        key=ask.key,
        holder=ask.holder,
        boot=here.boot,
        held=held,
        until=here.ticks + SLOT_SECONDS,
        waits=since if held < ask.least else 0.0,
    )
    over = held > left
    return row, SlotGrant(held, idle, part if short or over else ask.slots, bool(waiting) or over)


def _clip(wanted: int, most: int) -> int:
    return max(0, min(wanted, most))
