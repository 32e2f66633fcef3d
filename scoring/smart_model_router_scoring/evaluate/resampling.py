"""Intervals and tests by resampling. Chance comes in as a seed; the same seed gives the same bits everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from smart_model_router_scoring.options import check_count, check_number

RESAMPLES = 1_000
_EXACT_UP_TO = 12
"""Pairs that differ, up to which every assignment of signs (4,096 at most) is tried instead of a sample."""
_MASK = (1 << 64) - 1


class Dice:
    """Numbers in a row that a seed decides: SplitMix64 (Steele, Lea and Flood 2014)."""

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def roll(self) -> int:
        """The next 64 bits."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def below(self, count: int) -> int:
        """A number of 0..count-1, each as likely as 64 bits allow."""
        return (self.roll() * count) >> 64

    def shuffled(self, items: Sequence[str]) -> list[str]:
        """The items in an order of chance (Fisher and Yates)."""
        mixed = list(items)
        for last in range(len(mixed) - 1, 0, -1):
            other = self.below(last + 1)
            mixed[last], mixed[other] = mixed[other], mixed[last]
        return mixed


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and the interval that holds it at `level`. All are 0.0 of nothing."""

    mean: float
    low: float
    high: float
    level: float


def bootstrap(values: Sequence[float], *, seed: int = 0, resamples: int = RESAMPLES, level: float = 0.95) -> Interval:
    """The mean and its percentile interval over `resamples` (>= 1) draws with replacement (Efron 1979)."""
    check_count("resamples", resamples, 1)
    check_number("level", level, 0, 1)
    if not values:
        return Interval(0.0, 0.0, 0.0, level)
    dice, count = Dice(seed), len(values)
    means = sorted(math.fsum(values[dice.below(count)] for _ in range(count)) / count for _ in range(resamples))
    tail = (1 - level) / 2
    low, high = math.floor(tail * (resamples - 1)), math.ceil((1 - tail) * (resamples - 1))
    return Interval(math.fsum(values) / count, means[low], means[high], level)


def sign_flip_test(differences: Sequence[float], *, seed: int = 0, resamples: int = 10_000) -> float:
    """The two-sided p of paired differences, were each as likely to have the other sign (Fisher 1935).

    Exact up to 12 differences that are not 0; a sample of `resamples` beyond, which counts the observed one too.
    """
    check_count("resamples", resamples, 1)
    moved = [value for value in differences if value]
    # As far from 0 as observed, less what sums of other orders may differ by.
    observed = abs(math.fsum(moved)) * (1 - 1e-12)
    if len(moved) <= _EXACT_UP_TO:
        every = range(1 << len(moved))
        return sum(abs(_flipped(moved, signs)) >= observed for signs in every) / len(every)
    dice = Dice(seed)
    far = sum(abs(_flipped(moved, _signs(dice, len(moved)))) >= observed for _ in range(resamples))
    return (far + 1) / (resamples + 1)


def _signs(dice: Dice, count: int) -> int:
    """`count` bits of chance."""
    bits = 0
    for _ in range(0, count, 64):
        bits = (bits << 64) | dice.roll()
    return bits


def _flipped(values: Sequence[float], signs: int) -> float:
    return math.fsum(-value if signs >> place & 1 else value for place, value in enumerate(values))
