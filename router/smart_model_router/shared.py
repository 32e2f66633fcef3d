"""What processes of one host tell each other and what outlives them: plain rows, and the rules by which they are read.

A monotonic instant means nothing to another process or after a restart. So every deadline is written on two clocks,
CLOCK_BOOTTIME (with the boot's id) and the wall, together with how long it was to last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from smart_model_router.outcome import FailureClass

BreakerKind = Literal["whole", "stream", "transport"]
SharedBreakerState = Literal["closed", "open", "half_open"]
RestName = Literal["cooldown", "wait", "wall", "off"]

LEASE_SECONDS = 30.0
"""How long a probe belongs to its holder; whoever still probes renews it every third of that."""
_NO_ROOM = 1e-6


@dataclass(frozen=True, slots=True)
class Here:
    """Now, on clocks that other processes read as well: `boottime` since the boot with this id, `wall` since the epoch.

    `boot` is "" where the system names no boots: then nothing is ever of the same boot, and the wall alone counts.
    """

    boot: str
    boottime: float
    wall: float

    @property
    def ticks(self) -> float:
        """The clock that processes alive at the same time compare by."""
        return self.boottime if self.boot else self.wall


@dataclass(frozen=True, slots=True)
class Deadline:
    """An instant that outlives the process which wrote it. `duration` is how long it was to last then, in seconds."""

    boot: str
    boottime: float
    boottime_until: float
    wall: float
    wall_until: float
    duration: float

    @classmethod
    def after(cls, seconds: float, here: Here) -> Deadline:
        """The instant so many seconds (>= 0) from `here`."""
        return cls(here.boot, here.boottime, here.boottime + seconds, here.wall, here.wall + seconds, seconds)


def remaining(deadline: Deadline, here: Here, cap: float) -> float:
    """How many seconds of `deadline` are left, in [0, min(its duration, cap)] (stats.md, "Persisted deadlines").

    Within one boot CLOCK_BOOTTIME tells, which counts suspended time; after another boot the wall does. A clock that
    went back tells nothing: then all of it is left. Figures that are none are a deadline that is over, which still
    has to be proven by a probe.
    """
    longest = min(deadline.duration, cap)
    if not 0.0 <= longest < math.inf:
        return 0.0
    if here.boot and deadline.boot == here.boot:
        written, until, now = deadline.boottime, deadline.boottime_until, here.boottime
    else:
        written, until, now = deadline.wall, deadline.wall_until, here.wall
    left = until - now if now >= written else longest
    return min(max(0.0, left), longest) if math.isfinite(left) else longest


def age(then: Here, here: Here, most: float) -> float:
    """How many seconds ago `then` was, in [0, most], by the same rule: after a clock went back it has just been."""
    return most - remaining(Deadline.after(most, then), here, most)


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerRow:
    """A breaker as all processes see it. `gen` grows with every change: who knows an older one may change nothing.

    `until` is when its probe is due (open), or until when `holder` has the probe (half_open). `step` is how often the
    open time has grown. `provider` is its owner's: one probe at a time there, whichever of its breakers it is for.
    """

    owner: str
    kind: BreakerKind
    provider: str
    state: SharedBreakerState
    until: Deadline
    step: int = 0
    reason: str = ""
    holder: str = ""
    gen: int = 0

    @property
    def key(self) -> tuple[str, str]:
        """Which breaker it is."""
        return self.owner, self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class RestRow:
    """A cooldown, wait, wall or off period. `over` means that a success or the operator has ended it.

    `step` is how many there were in a row; `gen` grows with every change, as a breaker's.
    """

    owner: str
    reason: RestName
    until: Deadline
    cause: FailureClass | None = None
    hinted: bool = False
    step: int = 0
    over: bool = False
    gen: int = 0

    @property
    def key(self) -> tuple[str, str]:
        """Which rest it is."""
        return self.owner, self.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRow:
    """A recent call of a target: what remains of statistics after a restart. `anew`: nothing before it counts."""

    target: str
    at: Here
    failure: FailureClass | None
    stream: bool
    seconds: float
    ttft_seconds: float | None = None
    completion_tokens: int | None = None
    anew: bool = False


@dataclass(frozen=True, slots=True)
class SharedView:
    """Everything shared at one instant, deadlines as of `here`."""

    breakers: tuple[BreakerRow, ...] = ()
    rests: tuple[RestRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Restored:
    """What a process finds when it begins: the view, and the newest calls of each target, oldest first."""

    view: SharedView = SharedView()
    calls: tuple[CallRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Changes:
    """What one process has to tell."""

    breakers: tuple[BreakerRow, ...] = ()
    rests: tuple[RestRow, ...] = ()
    calls: tuple[CallRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """Probes that were granted (none: somebody else has one, and `view` says who)."""

    granted: tuple[BreakerRow, ...]
    view: SharedView


class SharedStateError(Exception):
    """The shared state cannot be read or written now; `reason` says why. Every process decides alone meanwhile."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def is_due(row: BreakerRow, here: Here) -> bool:
    """Whether a probe may be taken: the open time is over, or the lease of whoever had it."""
    return row.state != "closed" and remaining(row.until, here, math.inf) <= 0


def accepts_breaker(known: BreakerRow | None, new: BreakerRow) -> bool:
    """Whether a change may be written over what is there: only by who knows the newest generation."""
    return new.gen == (0 if known is None else known.gen)


def accepts_rest(known: RestRow | None, new: RestRow, here: Here) -> bool:
    """Whether a rest may be written over what is there.

    Who knows the newest generation may write what it likes; anybody may replace a guess by a hint, or lengthen a rest
    of the same kind; nobody else ends one.
    """
    if known is None:
        return not new.over
    if new.gen == known.gen:
        return True
    if new.over:
        return False
    if known.over or new.hinted != known.hinted:
        return known.over or new.hinted
    return remaining(new.until, here, math.inf) > remaining(known.until, here, math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketRow:
    """A limit as all processes see it: `level` tokens at the instant `at` that nobody has leased yet.

    It refills at `rate` a second up to `capacity`, or (with a `window`) at once at `resets_at`. Nothing is there
    before `held_until`. Instants are `Here.ticks` of the boot.
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

    `most` is what can be left at all as far as it knows; `resets_in` and `held_for` are seconds. `debt` was used
    without having been leased, `back` is leased and not needed. Of `want` at least `least` has to be there.
    """

    key: str
    capacity: float
    rate: float
    most: float
    window: float | None = None
    resets_in: float = 0.0
    held_for: float = 0.0
    debt: float = 0.0
    back: float = 0.0
    want: float = 0.0
    least: float = 0.0


@dataclass(frozen=True, slots=True)
class BucketGrant:
    """What came of it: `granted` tokens, `left` at the limit; in `due_in` seconds the least that was asked is there."""

    key: str
    granted: float
    left: float
    due_in: float


_UNDER_WAY = 1.0
"""Seconds. A provider's bucket that is full begins to refill when the first call arrives, not when it is leased for.

A process that has just begun takes that long to send it where the machine is busy.
"""
_HALF = 0.5
"""Of a window: two measurements of its end that differ by more are about different windows."""
_LEAST_SHARE = 4.0
"""Of what is left nobody gets more than one part in so many, unless that is less than it needs."""


def lease_tokens(row: BucketRow | None, ask: BucketAsk, here: Here) -> tuple[BucketRow, BucketGrant]:
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


def _same_boot(row: BucketRow | None, ask: BucketAsk, here: Here) -> BucketRow:
    """The limit, begun anew when nobody knew it in this boot."""
    now = here.ticks
    if row is not None and row.boot == here.boot and row.at <= now:
        return row
    resets_at = now + ask.resets_in
    return BucketRow(
        key=ask.key,
        boot=here.boot,
        at=now,
        level=ask.capacity if ask.window is not None else max(0.0, ask.capacity - ask.rate * _UNDER_WAY),
        capacity=ask.capacity,
        rate=ask.rate,
        window=ask.window,
        resets_at=resets_at,
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
    told = now + ask.resets_in
    lag = 0.0 if ask.window is None or row.window is None else (told - row.resets_at) / ask.window
    grown = row.level + max(0.0, ask.capacity - row.capacity)
    known = replace(
        row,
        capacity=ask.capacity,
        rate=ask.rate,
        window=ask.window,
        level=min(grown, ask.capacity),
        held_until=max(row.held_until, now + ask.held_for),
    )
    if lag < -_HALF:
        return known
    if lag > _HALF:
        known = replace(known, level=ask.capacity)
    return replace(known, level=min(known.level + ask.back - ask.debt, ask.capacity, ask.most), resets_at=told)


def _due_in(row: BucketRow, amount: float, now: float) -> float:
    held = max(0.0, row.held_until - now)
    if row.window is not None:
        return max(held, row.resets_at - now)
    return held + max(0.0, amount - row.level) / row.rate
