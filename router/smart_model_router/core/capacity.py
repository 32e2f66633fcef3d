"""Limits the calls in flight at a target: by slots, by a learned limit, and by the throttle.

Pure: instants are monotonic seconds. Not thread-safe.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from smart_model_router.core.checked_options import CountOrZero, Interval, Options, Ratio, Unit


class Bulkhead:
    """Slots of one provider. The limit may be learned from a hint about concurrency and grows back with success.

    `granted` is how many this process has while the other processes of the host need all others; None: as many as
    there are. Until `returned_by` other processes give back those of their slots that are idle.
    """

    __slots__ = ("_changed_at", "_learned", "_regrow_seconds", "granted", "in_flight", "returned_by", "slots")

    def __init__(self, slots: int, *, regrow_seconds: float = 10.0) -> None:
        self.slots = slots
        self.in_flight = 0
        self.granted: int | None = None
        self.returned_by = 0.0
        self._learned: int | None = None
        self._changed_at = 0.0
        self._regrow_seconds = regrow_seconds

    @property
    def limit(self) -> int:
        """The number of calls that may be in flight now; calls already in flight are never cut off."""
        return self.slots if self._learned is None else min(self._learned, self.slots)

    @property
    def free(self) -> int:
        """Slots left, at least 0."""
        most = self.slots if self._learned is None else self.limit
        if self.granted is not None and self.granted < most:
            most = self.granted
        return most - self.in_flight if most > self.in_flight else 0  # `max` takes thrice as long

    def enter(self) -> None:
        """Take a slot. The gate asked `free` first, in the same breath."""
        self.in_flight += 1

    def leave(self) -> None:
        """Give a slot back."""
        self.in_flight -= 1

    def resize(self, slots: int) -> None:
        """Change the configured number of slots; never blocks and cuts nothing off."""
        self.slots = slots

    def shrink(self, now: float) -> None:
        """The provider said 'too many at once': one less than are in flight, at least 1."""
        self._learned = max(1, self.in_flight - 1)
        self._changed_at = now

    def succeeded(self, now: float) -> None:
        """A success: a learned limit that is used grows by one for every `regrow_seconds` without a new complaint."""
        if self._learned is None:
            return
        grown = int((now - self._changed_at) / self._regrow_seconds)
        if self.in_flight < self.limit:  # callers want no more: nothing was learned about one more call
            self._changed_at = max(self._changed_at, now - self._regrow_seconds)
        elif grown:
            self._changed_at += grown * self._regrow_seconds
            self._learned += grown
            if self._learned >= self.slots:
                self._learned = None


_NEWEST = 60
_SERVICE_TIMES = 50
_LEFT = 0.1
"""About so much of the success share is left above the limit."""
_MOST_SHARE = 0.95
_ODDS = math.log(200.0)
_DOUBT = math.log(5.0)
"""From here on a refusal at the limit delays its growth."""
_LONGEST_HOLD = 16.0
_HOLD_FADES = 0.95
_UNKNOWN_SERVICE_TIME = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveConfig(Options):
    """The configuration of the learned limit of calls in flight, which never exceeds the configured slots."""

    enabled: bool = True


class LearnedLimit:
    """The learned limit of calls in flight, in [1, most], beginning at `most`.

    It falls when refusals depend on the number in flight, and grows while calls are borne. Refusals at random (529s of
    a provider in trouble) are no reason for fewer calls at once: a limit that falls with each of them collapses to one
    call. Only a likelihood ratio that says "more in flight, more refusals" moves it (routing.md section 0a, D5b).
    Outcomes carry the number in flight that they were sent with, themselves included.
    """

    __slots__ = ("_grows_at", "_hold", "_most", "_outcomes", "_service_time", "_service_times", "limit")

    def __init__(self, most: int) -> None:
        self._most = most
        self.limit = most
        """The number of calls that may be in flight."""
        self._outcomes: deque[tuple[int, bool]] = deque(maxlen=_NEWEST)
        self._service_times: deque[float] = deque(maxlen=_SERVICE_TIMES)
        self._service_time: float | None = _UNKNOWN_SERVICE_TIME
        self._grows_at = -math.inf
        self._hold = 1.0

    @property
    def service_time(self) -> float:
        """Seconds that an answer usually takes: the median of the newest; 1 while none is known."""
        if self._service_time is None:
            self._service_time = sorted(self._service_times)[len(self._service_times) // 2]
        return self._service_time

    def resize(self, most: int) -> None:
        """The owner allows another number. A limit that was at the old one goes to the new one."""
        self.limit = most if self.limit >= self._most else min(self.limit, most)
        self._most = most

    def reset(self) -> None:
        """Forget what was learned: an outage said nothing about the number in flight."""
        self.limit = self._most
        self._outcomes.clear()
        self._grows_at, self._hold = -math.inf, 1.0

    def accepted(self, at: int, seconds: float, now: float) -> None:
        """A call sent as the `at`-th in flight was answered after `seconds`."""
        self._outcomes.append((at, True))
        self._service_times.append(seconds)
        self._service_time = None
        if self.limit < self._most and at >= self.limit - 1 and now >= self._grows_at:
            self.limit += 1
            self._grows_at = now + self.service_time
            self._hold = max(1.0, self._hold * _HOLD_FADES)

    def refused(self, at: int, now: float, outlived: Sequence[int], *, hinted: bool = False) -> None:
        """A call sent as the `at`-th in flight was turned away, while those sent as `outlived` are still served.

        `hinted` says that the provider asked for a short pause: that is its word for fewer at once.
        """
        self._outcomes.append((at, False))
        seen = [*self._outcomes, *((number, True) for number in outlived)]
        below = [accepted for number, accepted in seen if number < at]
        above = [accepted for number, accepted in seen if number >= at]
        odds = _likely(below, above) if hinted else _proven(below, above)
        if any(below) and odds >= _ODDS and at - 1 < self.limit:
            self.limit = max(1, at - 1)
            self._hold = min(_LONGEST_HOLD, self._hold * 2)
        elif at < self.limit or odds <= _DOUBT:
            return
        self._grows_at = max(self._grows_at, now + self._hold * self.service_time)


def _likely(below: Sequence[bool], above: Sequence[bool]) -> float:
    """The ln likelihood ratio of "a tenth of the share below is left above" to one share, as estimated from below."""
    usual = min(_MOST_SHARE, (sum(below) + 1) / (len(below) + 2))
    refusal, success = math.log((1 - _LEFT * usual) / (1 - usual)), math.log(_LEFT)
    return sum(success if accepted else refusal for accepted in above)


def _proven(below: Sequence[bool], above: Sequence[bool]) -> float:
    """The same without an estimate: averaged over all that the share below may be, and about a tenth of it above.

    With one call in flight six refusals in a row are odds of 200 by the estimate. One in four such rows is chance
    where four calls of five are refused at random, and the limit would stay at a few calls.
    """
    ok, failed, ok_above, failed_above = sum(below), below.count(False), sum(above), above.count(False)
    two = _ln_beta(ok + 1, failed + 1) + _ln_beta(ok_above + 1, failed_above + 1 / _LEFT) - _ln_beta(1, 1 / _LEFT)
    return two - _ln_beta(ok + ok_above + 1, failed + failed_above + 1)


def _ln_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def rejection_probability(requests: float, accepts: float, k: float = 2.0) -> float:
    """max(0, (requests - k x accepts) / (requests + 1)), as the SRE book has it."""
    return max(0.0, (requests - k * accepts) / (requests + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleConfig(Options):
    """`k` requests are sent for each one accepted before any is refused; `cells` one-second cells are remembered.

    Below `minimum_requests` known outcomes nothing is refused; the probability never exceeds `max_probability`.
    """

    k: Annotated[float, Interval(ge=1, le=100)] = 2.0
    cells: Annotated[int, Unit("count"), Interval(ge=1, le=3600)] = 120
    minimum_requests: CountOrZero = 20
    max_probability: Ratio = 0.9


@dataclass(frozen=True, slots=True)
class ThrottleSnapshot:
    """The counts of a throttle at its last query."""

    requests: int
    accepts: int


class AdaptiveThrottle:
    """Stop sending what a provider would only turn away (Google SRE book, chapter 21).

    Counts calls whose outcome is known and its own refusals; a call in flight is neither.
    """

    __slots__ = ("_config", "_rejects", "_rejects_in", "_requests", "_requests_in", "_second")

    def __init__(self, config: ThrottleConfig | None = None) -> None:
        self._config = config or ThrottleConfig()
        self._second: int | None = None
        self.reset()

    def reset(self) -> None:
        """Forget everything: a breaker of the provider closed."""
        self._requests_in = [0] * self._config.cells
        self._rejects_in = [0] * self._config.cells
        self._requests = 0
        self._rejects = 0

    def probability(self, now: float) -> float:
        """The chance in [0, 1] that a call is refused at `now`."""
        if self._requests == 0:
            return 0.0
        self._advance(now)
        if self._requests < self._config.minimum_requests:
            return 0.0
        likely = rejection_probability(self._requests, self._requests - self._rejects, self._config.k)
        return min(self._config.max_probability, likely)

    def try_pass(self, now: float, roll: float) -> bool:
        """Toss: False refuses the call, and counts the refusal as a request. `roll` in [0, 1)."""
        if roll >= self.probability(now):
            return True
        self.record(False, now)
        return False

    def snapshot(self) -> ThrottleSnapshot:
        """The counters, for checkers."""
        return ThrottleSnapshot(self._requests, self._requests - self._rejects)

    @property
    def empty(self) -> bool:
        """True when no call was recorded since the last reset."""
        return self._requests == 0

    def record(self, accepted: bool, now: float) -> None:
        """The outcome of a call that was sent; a call refused here counts as one not accepted."""
        cell = self._advance(now) % self._config.cells
        self._requests_in[cell] += 1
        self._requests += 1
        if not accepted:
            self._rejects_in[cell] += 1
            self._rejects += 1

    def _advance(self, now: float) -> int:
        second = int(now)
        if self._second == second:
            return second
        if self._second is None:
            self._second = second
        cells = self._config.cells
        for step in range(self._second + 1, min(second, self._second + cells) + 1):
            cell = step % cells
            self._requests -= self._requests_in[cell]
            self._rejects -= self._rejects_in[cell]
            self._requests_in[cell] = self._rejects_in[cell] = 0
        self._second = max(self._second, second)
        return self._second
