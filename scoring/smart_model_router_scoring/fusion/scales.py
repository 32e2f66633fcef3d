"""The scores of one list on a scale that lists share, so that their weighted sums can be compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from smart_model_router_scoring.explain import Term, combined, given
from smart_model_router_scoring.options import is_number

RRF, RELATIVE, DISTRIBUTION = METHODS = ("rrf", "relative", "distribution")
DEVIATIONS = 3.0
"""Around the mean, which are the whole of the scale `distribution`: as in LlamaIndex, Haystack and Qdrant."""
_LARGE = 400
"""Of a binary exponent: scores beyond it are scaled by a power of two, so that no square overflows or vanishes."""


@dataclass(frozen=True, slots=True)
class ScoreScale:
    """The share of a score: (score / 2 ** shift - floor) / width, and never below 0. `best` is that of the highest.

    A width of 0 is that of scores that are all equal, or of one: each has the share `best`.
    """

    floor: float
    width: float
    best: float
    shift: int = 0

    def share(self, score: float | None) -> float:
        """The share of a score; 0.0 for what is no finite number."""
        if not is_number(score):
            return 0.0
        return max((math.ldexp(score, -self.shift) - self.floor) / self.width, 0.0) if self.width else self.best

    def explain(self, score: float | None) -> Term:
        """The same as a term that recomposes."""
        if not is_number(score):
            return given("share", 0.0)
        if not self.width:
            return given("share", self.best, score=score)
        told = {"score": score} if self.shift else {}
        above = [given("score", math.ldexp(score, -self.shift), **told), given("-floor", -self.floor)]
        share = combined("share", "ratio", [combined("above the floor", "sum", above), given("width", self.width)])
        return share if share.value >= 0 else combined("share", "max", [share, given("least", 0.0)])


def relative(scores: Iterable[float]) -> ScoreScale | None:
    """The lowest is 0 and the highest 1; 1 for each when all are equal. None without any finite number."""
    shift, usable = _usable(scores)
    if not usable:
        return None
    low, high = min(usable), max(usable)
    return ScoreScale(low, high - low, 1.0, shift)


def distribution(scores: Iterable[float]) -> ScoreScale | None:
    """The mean is 0.5, three standard deviations below it 0, three above it 1, and an outlier more than that.

    0.5 for each when all are equal. None without any finite number.
    """
    shift, usable = _usable(scores)
    if not usable:
        return None
    if min(usable) == max(usable):
        return ScoreScale(0.0, 0.0, 0.5)
    mean = math.fsum(usable) / len(usable)
    deviation = math.sqrt(math.fsum((score - mean) * (score - mean) for score in usable) / len(usable))
    floor, width = mean - DEVIATIONS * deviation, 2 * DEVIATIONS * deviation
    return ScoreScale(floor, width, (max(usable) - floor) / width, shift)


SCALES: Mapping[str, Callable[[Iterable[float]], ScoreScale | None]] = MappingProxyType(
    {RELATIVE: relative, DISTRIBUTION: distribution}
)


def _usable(scores: Iterable[float]) -> tuple[int, list[float]]:
    """The exponent to scale by, 0 for ordinary scores, and the scaled finite numbers."""
    numbers = [float(score) for score in scores if is_number(score)]
    exponent = math.frexp(max(map(abs, numbers), default=0.0))[1]
    shift = exponent if abs(exponent) > _LARGE else 0
    return shift, [math.ldexp(score, -shift) for score in numbers]
