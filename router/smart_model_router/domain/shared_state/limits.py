"""Limits that processes share: the tokens left of a rate, what is spent of a budget, and the part of each process."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from smart_model_router.domain.shared_state.clocks import CLOCK_ERROR, ClockReading, Deadline, remaining

NO_ROOM = 1e-6
CHUNK = 0.02
PLENTY = 4
"""Chunks."""
UNDER_WAY = 1.0
"""Seconds. A provider's bucket that is full begins to refill when the first call arrives, not when it is leased for.

On a busy machine a process that has just begun takes that long to send its first call. For that long no other process
knows of its first calls, which the provider has counted.
"""
HALF = 0.5
"""Of a window: two measurements of its end that differ by more are about different windows."""
LEAST_SHARE = 4.0
"""A process gets at most this part (1/n) of the tokens left, unless that is less than it needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketRow:
    """A limit as all processes see it: `level` tokens are not leased at the instant `at`.

    It refills at `rate` a second up to `capacity`, or (with a `window`) at once at `resets_at`. Without a window,
    `resets_at` is the instant at which the limit was first known. No token is available before `held_until`. Instants
    are `ClockReading.ticks`.
    """

    key: str
    boot: str
    at: float
    level: float
    capacity: float
    rate: float
    window: float | None
    resets_at: float
    held_until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketAsk:
    """One process's report on a limit, and its request for tokens.

    `most` is the largest number of tokens that can be left, as far as the process knows; `resets_in` and `held_for` are
    seconds. Without a `window` it has seen none, and `steady` says that there is none. `debt` tokens were used without
    a lease, `back` were leased and not needed. Of `want` tokens at least `least` have to be available. A limit that is
    `ours` is set by the router, not by a provider: it begins full, and other processes need not be told of it.
    """

    key: str
    capacity: float
    rate: float
    most: float
    window: float | None = None
    steady: bool = False
    resets_in: float = 0.0
    held_for: float = 0.0
    debt: float = 0.0
    back: float = 0.0
    want: float = 0.0
    least: float = 0.0
    ours: bool = False


@dataclass(frozen=True, slots=True)
class BucketGrant:
    """The answer: `granted` tokens, `left` at the limit; in `due_in` seconds the `least` that was asked is available.

    `ends_in` is the rest of a budget's period in seconds; a bucket has none.
    """

    key: str
    granted: float
    left: float
    due_in: float
    ends_in: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldLimit:
    """A limit as told to a process: how it refills, and how many tokens are not leased. Durations are seconds."""

    capacity: float
    rate: float
    window: float | None
    resets_in: float
    left: float


def chunk_of(capacity: float) -> float:
    """The number of tokens leased at a time: 2 % of the limit, at least one (routing.md section 10)."""
    return max(1.0, float(int(capacity * CHUNK)))


def is_plenty(left: float, capacity: float) -> bool:
    """True when so much is left that a process may take a chunk first and lease it afterwards."""
    return left >= PLENTY * chunk_of(capacity)


def is_news(before: BucketRow | None, after: BucketRow) -> bool:
    """True when the other processes have to be told: the limit is new, changed its size or refill, or runs out."""
    if before is None or (before.boot, before.capacity, before.window) != (after.boot, after.capacity, after.window):
        return True
    return is_plenty(before.level, before.capacity) != is_plenty(after.level, after.capacity)


def told(row: BucketRow, here: ClockReading) -> ToldLimit | None:
    """The limit as told to a process; None for one of another boot."""
    if not _is_of_this_boot(row, here):
        return None
    now = max(here.ticks, row.at)
    row = _refilled(row, now)
    left = min(0.0, row.level) if now < row.held_until else row.level
    return ToldLimit(
        capacity=row.capacity, rate=row.rate, window=row.window, resets_in=max(0.0, row.resets_at - now), left=left
    )


def lease_tokens(row: BucketRow | None, ask: BucketAsk, here: ClockReading) -> tuple[BucketRow, BucketGrant]:
    """Settle one process's account with a limit. Returns the limit afterwards, and the grant."""
    row = _same_boot(row, ask, here)
    now = max(here.ticks, row.at)
    row = _heard(_refilled(row, now), ask, now)
    level = min(row.level, 0.0) if now < row.held_until else row.level
    granted = 0.0
    if ask.want > 0 and level + NO_ROOM >= max(ask.least, NO_ROOM):
        granted = min(ask.want, level, max(ask.least, level / LEAST_SHARE))
    if float(ask.want).is_integer():
        granted = float(math.floor(granted + NO_ROOM))
    level -= granted
    due_in = 0.0 if granted else _due_in(replace(row, level=level), ask.least, now)
    return replace(row, at=now, level=level), BucketGrant(ask.key, granted, level, due_in)


def _is_of_this_boot(row: BucketRow, here: ClockReading) -> bool:
    """False also for a row of the future, which is none of this boot's clock."""
    return row.boot == here.boot and row.at <= here.ticks + CLOCK_ERROR


def _same_boot(row: BucketRow | None, ask: BucketAsk, here: ClockReading) -> BucketRow:
    """The known limit, or a new row when no process wrote one in this boot."""
    now = here.ticks
    if row is not None and _is_of_this_boot(row, here):
        return row
    left = min(ask.capacity, ask.most + ask.debt)  # the debt is settled with the rest
    under_way = 0.0 if ask.ours else ask.rate * UNDER_WAY
    return BucketRow(
        key=ask.key,
        boot=here.boot,
        at=now,
        level=ask.capacity if ask.window is not None else max(ask.debt, left - under_way),
        capacity=ask.capacity,
        rate=ask.rate,
        window=ask.window,
        resets_at=now + ask.resets_in,
        held_until=now + ask.held_for,
    )


def _refilled(row: BucketRow, now: float) -> BucketRow:
    if row.window is None:
        since = max(row.at, row.held_until)
        return replace(row, level=min(row.capacity, row.level + max(0.0, now - since) * row.rate))
    if now < row.resets_at:
        return row
    begun = row.resets_at + row.window * math.floor((now - row.resets_at) / row.window)
    return replace(row, level=row.capacity, resets_at=begun + row.window)


def _heard(row: BucketRow, ask: BucketAsk, now: float) -> BucketRow:
    """Take in what the process has learned of the limit from its provider.

    Each process measures the end of a window a little differently: a window that has begun for one process has begun
    for all, and does not begin twice. A process still in the window before cannot tell how much is left in this one.
    """
    grown = row.level if ask.ours else row.level + max(0.0, ask.capacity - row.capacity)
    known = replace(
        row,
        capacity=ask.capacity,
        rate=ask.rate,
        level=min(grown, ask.capacity),
        held_until=max(row.held_until, now + ask.held_for) if ask.held_for else row.held_until,
    )
    if ask.window is not None:
        return _heard_of_window(known, ask, ask.window, now)
    settled = min(known.level + ask.back - ask.debt, ask.capacity)
    if row.window is not None and not ask.steady:
        return replace(known, level=settled)  # a process that does not know the window cannot tell what is left in it
    begun = row.resets_at if row.window is None else now
    return replace(known, level=min(settled, ask.most), window=None, resets_at=begun)


def _heard_of_window(row: BucketRow, ask: BucketAsk, window: float, now: float) -> BucketRow:
    told = replace(row, window=window, resets_at=now + ask.resets_in)
    if row.window is None:
        return replace(told, level=_left_after_all(row, ask, window, now - row.resets_at))
    lag = (told.resets_at - row.resets_at) / row.window
    if lag < -HALF:
        return replace(row, window=window)
    level = ask.capacity if lag > HALF else row.level
    return replace(told, level=min(level + ask.back - ask.debt, ask.capacity, ask.most))


def _left_after_all(row: BucketRow, ask: BucketAsk, window: float, known_for: float) -> float:
    """The tokens left of a limit with a window that was taken for one without.

    The refill was a mistake, as far as it was not reported already. After a whole window the count is void: the process
    that saw the window knows how much is left, though not how much the others have leased of it.
    """
    most = min(ask.capacity, ask.most)
    others = PLENTY * chunk_of(ask.capacity)
    if known_for <= window:
        return min(row.level + ask.back - ask.debt, most) - min(known_for * ask.rate, others)
    return most - others


def _due_in(row: BucketRow, amount: float, now: float) -> float:
    held = max(0.0, row.held_until - now)
    if row.window is not None:
        return max(held, row.resets_at - now)
    return held + max(0.0, amount - row.level) / row.rate


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
