"""The length of a target's rest: by the cost of its failure, and by the time that rate limits took to clear before."""

from __future__ import annotations

_BASE_FACTOR = 10.0
_CAP_FACTOR = 20.0
_LEAST_CAP = 15.0
"""Seconds. A target that fails in milliseconds is back within this, and a probe, of its recovery."""
_MOST_TIMES = 300
"""Growth ends here: ten (the largest multiplier) to this power is a float still."""


def base_seconds(lost: float | None, least: float, most: float) -> float:
    """Ten times the seconds that the failure lost a request, in [`least`, `most`]; `most` when that is unknown."""
    return most if lost is None else min(max(least, _BASE_FACTOR * lost), max(least, most))


def cap_seconds(largest_loss: float | None, least: float, cap: float) -> float:
    """Twenty times the largest loss of this outage, at least 15 s and the owner's `least`, at most `cap`."""
    return cap if largest_loss is None else min(cap, max(_LEAST_CAP, least, _CAP_FACTOR * largest_loss))


def grown(base: float, multiplier: float, times: int, cap: float) -> float:
    """base x multiplier^times, at most `cap`."""
    return min(cap, base * multiplier ** min(times, _MOST_TIMES))


_TOWARDS_THE_LEAST = 0.25
"""The step of the next guess from the shortest sufficient wait towards the longest insufficient one."""
_IDLE = 2.0
"""Seconds. A call so long after the end of a wait shows that none was made sooner, not how long clearing took."""


class RateLimitRecovery:
    """Learns how long the rate limit of one target takes to clear after an un-hinted refusal.

    The time runs from the first refusal to the next admitted call. It lies between the longest wait that was too short
    and the shortest that was long enough. Instants are monotonic seconds.
    """

    __slots__ = ("_enough", "_too_short", "_waits_until", "began")

    def __init__(self) -> None:
        self.began: float | None = None
        """When the spell began; None: no calls are refused."""
        self._waits_until = 0.0
        self._too_short = 0.0
        self._enough: float | None = None

    def refused(self, now: float) -> float | None:
        """Take in a refusal; return the seconds after which the limit will probably clear, None while unknown."""
        if self.began is None:
            self.began = now
        else:  # the wait that was guessed was too short
            self._too_short = now - self.began
            if self._enough is not None and self._enough <= self._too_short:
                self._enough = None
        if self._enough is None:
            return None
        return self._enough - _TOWARDS_THE_LEAST * (self._enough - self._too_short)

    def waits(self, until: float) -> None:
        """Note that no call is sent before `until`."""
        self._waits_until = until

    def admitted(self, admitted_at: float) -> None:
        """Take in an answered call: if it was sent after the first refusal, the limit has cleared."""
        if self.began is None or admitted_at <= self.began:
            return
        if admitted_at <= self._waits_until + _IDLE:
            self._enough = admitted_at - self.began
        self.began = None
