"""A rate limit that processes share: what is left of it, and the rules by which each has its part."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from smart_model_router.domain.shared_state.clocks import ClockReading

_NO_ROOM = 1e-6
_CHUNK = 0.02
_PLENTY = 4
"""Chunks."""
_UNDER_WAY = 1.0
"""Seconds. A provider's bucket that is full begins to refill when the first call arrives, not when it is leased for.

A process that has just begun takes that long to send it where the machine is busy; and that long nobody else knows of
its first calls, which its provider has counted.
"""
_HALF = 0.5
"""Of a window: two measurements of its end that differ by more are about different windows."""
_LEAST_SHARE = 4.0
"""Of what is left nobody gets more than one part in so many, unless that is less than it needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketRow:
    """A limit as all processes see it: `level` tokens at the instant `at` that nobody has leased yet.

    It refills at `rate` a second up to `capacity`, or (with a `window`) at once at `resets_at`; without one, that is
    the instant at which it was first heard of. Nothing is there before `held_until`. Instants are `ClockReading.ticks`.
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
    """One process's word on a limit, and what it would like of it.

    `most` is what can be left at all as far as it knows; `resets_in` and `held_for` are seconds. Without a `window` it
    has seen none, and `steady` says that there is none. `debt` was used without having been leased, `back` is leased
    and not needed. Of `want` at least `least` has to be there. A limit that is `ours` begins full, and the others need
    not hear of it: no provider counts it.
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
    """What came of it: `granted` tokens, `left` at the limit; in `due_in` seconds the least that was asked is there.

    `ends_in` is the rest of a budget's period in seconds; a bucket has none.
    """

    key: str
    granted: float
    left: float
    due_in: float
    ends_in: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldLimit:
    """What a process hears of a limit: how it refills, and how many tokens nobody has leased. Durations are seconds."""

    capacity: float
    rate: float
    window: float | None
    resets_in: float
    left: float


def chunk_of(capacity: float) -> float:
    """How many tokens are leased at a time: 2 % of the limit, at least one (routing.md section 10)."""
    return max(1.0, float(int(capacity * _CHUNK)))


def is_plenty(left: float, capacity: float) -> bool:
    """Whether so much is left that a process may take a chunk first and lease it afterwards."""
    return left >= _PLENTY * chunk_of(capacity)


def is_news(before: BucketRow | None, after: BucketRow) -> bool:
    """Whether others are to hear of it: of a limit nobody knew, of another size or manner, of its running out."""
    if before is None or (before.boot, before.capacity, before.window) != (after.boot, after.capacity, after.window):
        return True
    return is_plenty(before.level, before.capacity) != is_plenty(after.level, after.capacity)


def told(row: BucketRow, here: ClockReading) -> ToldLimit | None:
    """What a process hears of a limit; None of what another boot knew."""
    now = here.ticks
    if row.boot != here.boot or row.at > now:
        return None
    row = _refilled(row, now)
    left = min(0.0, row.level) if now < row.held_until else row.level
    return ToldLimit(
        capacity=row.capacity, rate=row.rate, window=row.window, resets_in=max(0.0, row.resets_at - now), left=left
    )


def lease_tokens(row: BucketRow | None, ask: BucketAsk, here: ClockReading) -> tuple[BucketRow, BucketGrant]:
    """Settle one process's account with a limit: the limit afterwards, and what was granted."""
    now = here.ticks
    row = _heard(_refilled(_same_boot(row, ask, here), now), ask, now)
    level = min(row.level, 0.0) if now < row.held_until else row.level
    granted = 0.0
    if ask.want > 0 and level + _NO_ROOM >= max(ask.least, _NO_ROOM):
        granted = min(ask.want, level, max(ask.least, level / _LEAST_SHARE))
    if float(ask.want).is_integer():
        granted = float(math.floor(granted + _NO_ROOM))
    level -= granted
    due_in = 0.0 if granted else _due_in(replace(row, level=level), ask.least, now)
    return replace(row, at=now, level=level), BucketGrant(ask.key, granted, level, due_in)


def _same_boot(row: BucketRow | None, ask: BucketAsk, here: ClockReading) -> BucketRow:
    """The limit, begun anew when nobody knew it in this boot."""
    now = here.ticks
    if row is not None and row.boot == here.boot and row.at <= now:
        return row
    left = min(ask.capacity, ask.most + ask.debt)  # the debt is settled with the rest
    under_way = 0.0 if ask.ours else ask.rate * _UNDER_WAY
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
    """What the process has learned of the limit from its provider.

    Each process measures the end of a window a little differently: one that has begun for anybody has begun, and does
    not begin twice. Who is still in the window before says nothing of what is left in this one.
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
        return replace(known, level=settled)  # who does not know of the window cannot tell what is left in it
    begun = row.resets_at if row.window is None else now
    return replace(known, level=min(settled, ask.most), window=None, resets_at=begun)


def _heard_of_window(row: BucketRow, ask: BucketAsk, window: float, now: float) -> BucketRow:
    told = replace(row, window=window, resets_at=now + ask.resets_in)
    if row.window is None:
        return replace(told, level=_left_after_all(row, ask, window, now - row.resets_at))
    lag = (told.resets_at - row.resets_at) / row.window
    if lag < -_HALF:
        return replace(row, window=window)
    level = ask.capacity if lag > _HALF else row.level
    return replace(told, level=min(level + ask.back - ask.debt, ask.capacity, ask.most))


def _left_after_all(row: BucketRow, ask: BucketAsk, window: float, known_for: float) -> float:
    """What is left of a limit that did not refill as was thought.

    What came back was a mistake, as far as it was not told already. After a whole window the count says nothing any
    more; who found out knows what is left then, though not what others have leased of it.
    """
    most = min(ask.capacity, ask.most)
    others = _PLENTY * chunk_of(ask.capacity)
    if known_for <= window:
        return min(row.level + ask.back - ask.debt, most) - min(known_for * ask.rate, others)
    return most - others


def _due_in(row: BucketRow, amount: float, now: float) -> float:
    held = max(0.0, row.held_until - now)
    if row.window is not None:
        return max(held, row.resets_at - now)
    return held + max(0.0, amount - row.level) / row.rate
