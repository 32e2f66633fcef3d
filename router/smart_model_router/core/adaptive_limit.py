"""The learned in-flight limit: lower when refusals depend on the number in flight, higher while calls are borne.

Refusals at random (529s of a provider in trouble) are no reason for fewer calls at once: a limit that falls with each
of them collapses to one call. Only a likelihood ratio that says "more in flight, more refusals" moves it
(routing.md section 0a, D5b). Pure: instants are monotonic seconds. Not thread-safe.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from smart_model_router.core.checked_options import Options

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
    """Whether targets learn how many calls in flight their provider bears, up to the configured slots."""

    enabled: bool = True


class LearnedLimit:
    """A limit in [1, most], beginning at `most`.

    Outcomes carry the number in flight that they were sent with, themselves included.
    """

    __slots__ = ("_grows_at", "_hold", "_most", "_outcomes", "_service_time", "_service_times", "limit")

    def __init__(self, most: int) -> None:
        self._most = most
        self.limit = most
        """How many calls may be in flight."""
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
