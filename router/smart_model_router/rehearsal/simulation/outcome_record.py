"""The results of a target's calls, from the calls alone: its success share, and bounds of its tests.

A second account on purpose, as cooldown_oracle.py is. It does not repeat the sequential tests of
docs/design/routing.md sections 3 and 4: it bounds them. Which calls belong to the present run of failures is known
within bounds only; a call of which that is unknown counts in one bound and not in the other.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from smart_model_router.core.breaker import BreakerConfig
from smart_model_router.core.cooldown import CooldownConfig
from smart_model_router.domain.outcome import BreakerCount, Failure, FailureClass

_NEWEST = 20
_ANSWERED = 512
_CELL = 15.0
_QUARTER = 60
"""Cells of 15 s in the 15 minutes of a target's own share of failures."""
_MINUTE = 5
_LEAST_SHARE, _MOST_ILL, _MOST_DOWN = 0.05, 0.85, 0.9
_EMPTIES = 3
_FULL = frozenset({FailureClass.OVERLOADED, FailureClass.RATE_LIMITED})
_SHORT_HINT = 2.0
_STORM = 75
_LONGEST_PAUSE = 5.0
_EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class Flight:
    """A call that is still in flight: when it was sent, monotonic, and whether it is a stream, and has begun."""

    sent_at: float
    stream: bool
    begun: bool

    def is_silent(self, now: float, patience: float) -> bool:
        """True when it has brought nothing for as long as `patience`."""
        return not self.begun and now - self.sent_at >= patience


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of a test after a failure: whether it may say yes, whether it has to."""

    may: bool = False
    must: bool = False


@dataclass(slots=True)
class _Test:
    """Bounds of one sequential test. `failing` is the share of failures that it looks for."""

    failing: float
    cap: float
    odds: float
    odds_per_call: float
    least: float = 0.0
    most: float = 0.0

    def step(self, share: float, *, failed: bool) -> float:
        usual = min(max(share, _LEAST_SHARE), self.cap, self.failing)
        if failed:
            return math.log(self.failing / usual)
        return math.log((1.0 - self.failing) / (1.0 - usual)) if self.failing < 1.0 else -math.inf

    def add(self, share: float, *, failed: bool, certain: bool) -> None:
        """Take in an outcome; `certain` says that it belongs to the present run of failures."""
        step = self.step(share, failed=failed)
        if certain or not failed:
            self.least = max(0.0, self.least + step)
        if certain or failed:
            self.most = max(0.0, self.most + step)

    def bounds(self, share: float, calls: int, fewest: int, most: int, *, certain: bool) -> Bounds:
        """The verdict while from `fewest` to `most` other calls have outlived the failure."""
        threshold = math.log(max(self.odds, self.odds_per_call * calls))
        success = self.step(share, failed=False)
        highest = self.most + fewest * success if fewest else self.most
        lowest = self.least + most * success if most else self.least
        return Bounds(highest >= threshold - _EPSILON, certain and lowest >= threshold + _EPSILON)

    def forget(self) -> None:
        self.least = self.most = 0.0


@dataclass(slots=True)
class OutcomeRecord:
    """The outcomes of one target that say something of its health. Instants are the router's clock, in seconds."""

    rests: CooldownConfig
    breakers: BreakerConfig
    _newest: deque[bool] = field(default_factory=lambda: deque(maxlen=_NEWEST))
    _answered: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=_ANSWERED))
    _cells: dict[int, list[int]] = field(default_factory=dict)
    _ill: _Test = field(init=False)
    _down: dict[bool, _Test] = field(init=False)
    _run: float = -math.inf
    """The latest instant at which the first failure of the present run can have been sent."""
    _earliest: float = -math.inf
    """The earliest such instant."""
    _lost: float = 0.0
    _patience: float = 30.0
    _empties: int = 0
    turned_away: int = 0
    """Calls refused for want of capacity since one was answered: no fewer than were refused with none served."""
    turned_away_at: float = -math.inf

    def __post_init__(self) -> None:
        rests, down = self.rests, self.breakers
        self._ill = _Test(rests.failing_share, _MOST_ILL, rests.odds, rests.odds_per_call)
        self._down = {
            stream: _Test(down.failing_share, _MOST_DOWN, down.odds, down.odds_per_call) for stream in (False, True)
        }

    def counts_as_failure(self, failure_class: FailureClass | None, *, load: bool) -> bool | None:
        """The breaker's column of docs/design/routing.md section 9: a failure, a success, or nothing (None)."""
        if load:
            return None
        if failure_class is None:
            self._empties = 0
            return False
        match failure_class.policy.breaker:
            case BreakerCount.YES:
                self._empties = 0
                return True
            case BreakerCount.PROVIDER:
                return True
            case BreakerCount.THIRD_IN_A_ROW:
                self._empties = (self._empties + 1) % _EMPTIES
                return None if self._empties else True
            case BreakerCount.NO:
                return None

    def is_load(self, sent_at: float, now: float, flying: Iterable[Flight], patience: float) -> bool:
        """True when a call sent then, and refused for lack of capacity, was beside one that is or was being served."""
        if any(one.sent_at <= sent_at and not one.is_silent(now, patience) for one in flying):
            return True
        return any(at <= sent_at <= answered_at for at, answered_at in self._answered)

    def refused(self, failure: Failure, now: float) -> None:
        """A call failed: it counts when there may have been too many."""
        short = failure.wait is None or failure.wait.seconds <= _SHORT_HINT
        if failure.failure_class is FailureClass.TIMEOUT or (failure.failure_class in _FULL and short):
            self.turned_away += 1
            self.turned_away_at = now

    def storms(self, now: float, in_flight: int) -> bool:
        """True when so many calls were refused in a row that one at a time is made, after a pause."""
        return self.turned_away >= _STORM and (in_flight > 0 or now < self.turned_away_at + _LONGEST_PAUSE)

    def succeeded(self, sent_at: float, now: float, *, stream: bool) -> None:
        """A call was answered."""
        self._newest.append(True)
        self._answered.append((sent_at, now))
        self.turned_away = 0
        share, certain = self._share(now), sent_at >= self._run
        for test in (self._ill, self._down[stream]):
            test.add(share, failed=False, certain=certain)
        self._count(now, failed=False)

    def failed(
        self, sent_at: float, now: float, flying: Iterable[Flight], patience: float, *, stream: bool
    ) -> tuple[Bounds, Bounds]:
        """A call failed: (bounds of the test for a cooldown, of that of the breaker for calls of this kind)."""
        self._lost, self._patience = now - sent_at, patience
        ill, down, tests = self._ill, self._down[stream], (self._ill, *self._down.values())
        if not any(test.most for test in tests):
            self._run = self._earliest = sent_at
        elif not any(test.least for test in tests):
            self._run = max(self._run, sent_at)
        share = self._share(now)
        self._newest.append(False)
        self._count(now, failed=True)
        certain = sent_at >= self._run
        for test in (ill, down):
            test.add(share, failed=True, certain=certain)
        flights = [one for one in flying if one.sent_at <= sent_at]
        answered = sum(at >= self._earliest for at, _ in self._answered)
        sure = [one for one in flights if one.sent_at >= self._run and not one.is_silent(now, patience)]
        calls, same = self._of_last_minute(now), [one for one in flights if one.stream is stream]
        return (
            ill.bounds(share, calls, len(sure), len(flights) + answered, certain=certain),
            down.bounds(share, calls, sum(one.stream is stream for one in sure), len(same) + answered, certain=certain),
        )

    def success_share(self, flying: Iterable[Flight], now: float) -> float:
        """D4's s: of the newest 20 outcomes and the calls that outlived a failure; 1 when nothing is known."""
        alive = sum(one.begun or self._lost <= now - one.sent_at < self._patience for one in flying)
        known = len(self._newest) + alive
        return (sum(self._newest) + alive) / known if known else 1.0

    def rest_began(self) -> None:
        """The next rest needs evidence of its own."""
        self._ill.forget()

    def tripped(self) -> None:
        """A breaker opened: it decides from here on."""
        for test in (self._ill, *self._down.values()):
            test.forget()

    def forgiven(self) -> None:
        """The operator let the target in."""
        self.tripped()
        self._newest.clear()
        self._answered.clear()
        self._cells.clear()

    def _share(self, now: float) -> float:
        oldest = int(now / _CELL) - _QUARTER
        calls = failures = 0
        for number in list(self._cells):
            if number <= oldest:
                del self._cells[number]
                continue
            calls += self._cells[number][0]
            failures += self._cells[number][1]
        return failures / max(_NEWEST, calls)

    def _of_last_minute(self, now: float) -> int:
        newest = int(now / _CELL) - _MINUTE
        return sum(calls for number, (calls, _) in self._cells.items() if number > newest)

    def _count(self, now: float, *, failed: bool) -> None:
        cell = self._cells.setdefault(int(now / _CELL), [0, 0])
        cell[0] += 1
        cell[1] += failed
