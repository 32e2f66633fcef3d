"""A budget that processes share: what is spent of it, what is reserved, and when it begins anew."""

from __future__ import annotations

from dataclasses import dataclass, replace

from smart_model_router.domain.shared_state.clocks import ClockReading, Deadline, remaining
from smart_model_router.domain.shared_state.limits import BucketGrant

SETTLES_SOON = 5.0
"""Seconds. A budget that is used up only by reservations has something left once their answers are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRow:
    """A budget as all processes see it, in micro-dollars: `used` until `until`; `reserved` is the part not spent yet.

    A reservation whose process died stays reserved until `until`.
    """

    key: str
    used: int
    reserved: int
    until: Deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetAsk:
    """One process's account of a budget of `capacity` micro-dollars in `period` seconds.

    `want` is to be reserved. `reserved` was reserved without asking. Of the reservations `settled` are over, and their
    answers cost `spent`.
    """

    key: str
    capacity: int
    period: float
    want: int = 0
    reserved: int = 0
    settled: int = 0
    spent: int = 0


def spend(row: BudgetRow | None, ask: BudgetAsk, here: ClockReading) -> tuple[BudgetRow, BucketGrant]:
    """Settle one process's account with a budget: the budget afterwards, and the reservation that was granted.

    The period begins with the first use. A reservation is granted whole while anything is left: the last one may
    exceed the budget, by the cost of one answer.
    """
    row = _current(row, ask, here)
    reserved = row.reserved + ask.reserved
    settled = min(ask.settled, reserved)  # a reservation of an earlier period is not part of this one
    used = max(0, row.used + ask.reserved + ask.spent - settled)
    granted = ask.want if used < ask.capacity else 0
    row = replace(row, used=used + granted, reserved=reserved - settled + granted)
    ends_in = remaining(row.until, here, ask.period)
    due_in = 0.0
    if ask.want and not granted:
        due_in = ends_in if row.used - row.reserved >= ask.capacity else min(ends_in, SETTLES_SOON)
    return row, BucketGrant(ask.key, float(granted), float(ask.capacity - row.used), due_in, ends_in)


def _current(row: BudgetRow | None, ask: BudgetAsk, here: ClockReading) -> BudgetRow:
    """The budget in its present period, whose end is told by this boot's clock."""
    left = 0.0 if row is None else remaining(row.until, here, ask.period)
    if row is None or left <= 0.0:
        return BudgetRow(key=ask.key, used=0, reserved=0, until=Deadline.after(ask.period, here))
    if here.boot and row.until.boot == here.boot:
        return row
    return replace(row, until=Deadline.after(left, here))
