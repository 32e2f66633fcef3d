"""What a failure costs sets how often a target is asked again (routing.md section 0a, D7)."""

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
