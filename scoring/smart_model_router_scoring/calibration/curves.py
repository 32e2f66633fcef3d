"""Curves from a fused score to 0..1. Each is non-decreasing: calibration never changes an order."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from smart_model_router_scoring.errors import ConfigError
from smart_model_router_scoring.explain import Term, combined, given, sigmoid
from smart_model_router_scoring.options import check_choice, check_number, check_positive

SCALES = ("attainment", "raw")
RAW_THRESHOLD = 0.035
RAW_STEEPNESS = 150.0
"""On the scale `raw`: the document's own (aggregate-scoring-system 3.1.1)."""
_THREE_AT_BEST = 3 / 61
DEFAULTS = {
    "raw": (RAW_THRESHOLD, RAW_STEEPNESS),
    # 0.711667 and 7.377049: the same curve where three strategies of weight 1 are the best that can be.
    "attainment": (RAW_THRESHOLD / _THREE_AT_BEST, RAW_STEEPNESS * _THREE_AT_BEST),
}


class Calibration(Protocol):
    """A curve. `attainable` is the highest sum of reciprocal ranks there could have been.

    `meaning` is "probability" for a curve fitted to labels, "confidence index" for every other.
    """

    @property
    def meaning(self) -> str:
        """The meaning of the calibrated score."""
        ...

    def calibrate(self, raw: float, attainable: float) -> float:
        """The calibrated score of `raw`; 0.0 for what is not a number."""
        ...

    def explain(self, raw: Term, attainable: float) -> Term:
        """The same as a term that recomposes."""
        ...


@dataclass(frozen=True, kw_only=True)
class Sigmoid:
    """1 / (1 + exp(-steepness x (x - threshold))).

    On `attainment`, x is the share of what the strategies that answered could give at best, so that one strategy alone
    can convince; on `raw` it is the sum itself, exactly as founded: there one strategy at rank 1 is 0.0578, two
    0.4178, three 0.8935. `threshold` and `steepness` (> 0) default to those of the scale. `fitted` marks what `fit`
    has made.
    """

    scale: str = "attainment"
    threshold: float | None = None
    steepness: float | None = None
    fitted: bool = False

    def __post_init__(self) -> None:
        check_choice("scale", self.scale, SCALES)
        threshold, steepness = self.parameters
        check_number("threshold", threshold, -math.inf)
        check_positive("steepness", steepness)

    @property
    def parameters(self) -> tuple[float, float]:
        """Threshold and steepness in force."""
        threshold, steepness = DEFAULTS[self.scale]
        return (
            threshold if self.threshold is None else self.threshold,
            steepness if self.steepness is None else self.steepness,
        )

    @property
    def meaning(self) -> str:
        """A probability once fitted to labels; until then an index, whatever it looks like."""
        return "probability" if self.fitted else "confidence index"

    def calibrate(self, raw: float, attainable: float) -> float:
        """See `Calibration`."""
        threshold, steepness = self.parameters
        x = on_scale(self.scale, raw, attainable)
        return 0.0 if math.isnan(raw) else sigmoid(steepness * (x - threshold))

    def explain(self, raw: Term, attainable: float) -> Term:
        """See `Calibration`."""
        threshold, steepness = self.parameters
        x = _explained_scale(self.scale, raw, attainable)
        above = combined("above threshold", "sum", [x, given("-threshold", -threshold)])
        exponent = combined("exponent", "product", [given("steepness", steepness), above])
        return combined("score", "sigmoid", [exponent], meaning=self.meaning)


@dataclass(frozen=True, kw_only=True)
class Isotonic:
    """Straight lines between knots (x, value), both non-decreasing; flat outside. `fit_isotonic` makes it of labels."""

    knots: tuple[tuple[float, float], ...]
    scale: str = "attainment"

    def __post_init__(self) -> None:
        check_choice("scale", self.scale, SCALES)
        if not self.knots:
            raise ConfigError("knots", self.knots, "at least one (x, value)")
        for x, value in self.knots:
            check_number("knots", x, -math.inf)
            check_number("knots", value, 0, 1)
        if any(right[0] < left[0] or right[1] < left[1] for left, right in pairwise(self.knots)):
            raise ConfigError("knots", self.knots, "x and value that never fall")

    @property
    def meaning(self) -> str:
        """A probability: there is no such curve without labels."""
        return "probability"

    def calibrate(self, raw: float, attainable: float) -> float:
        """See `Calibration`."""
        if math.isnan(raw):
            return 0.0
        x = on_scale(self.scale, raw, attainable)
        start, value, slope = self._line(x)
        return math.fsum((value, slope * (x - start))) if slope else value

    def explain(self, raw: Term, attainable: float) -> Term:
        """See `Calibration`."""
        x = _explained_scale(self.scale, raw, attainable)
        start, value, slope = self._line(x.value)
        past = combined("past the knot", "sum", [x, given("-knot", -start)])
        rise = combined("rise", "product", [given("slope", slope), past])
        return combined("score", "sum", [given("value at the knot", value), rise], meaning=self.meaning)

    def _line(self, x: float) -> tuple[float, float, float]:
        """Where the line at `x` starts, its value there, and its slope."""
        right = bisect_right(self.knots, x, key=_abscissa)
        if right == 0 or right == len(self.knots):
            return x, self.knots[max(right - 1, 0)][1], 0.0
        (start, low), (end, high) = self.knots[right - 1], self.knots[right]
        return start, low, (high - low) / (end - start)


def calibrate_score(raw_score: float, threshold: float = RAW_THRESHOLD, steepness: float = RAW_STEEPNESS) -> float:
    """The founding function: the sigmoid on the scale `raw`. 0.0 for what is not a number.

    Raises ConfigError for a threshold that is not finite or a steepness that is not above 0.
    """
    return Sigmoid(scale="raw", threshold=threshold, steepness=steepness).calibrate(raw_score, 0.0)


def on_scale(scale: str, raw: float, attainable: float) -> float:
    """`raw` as a curve sees it: itself, or its share of what could be attained (0 when nothing could)."""
    if scale == "raw":
        return raw
    return raw / attainable if attainable else 0.0


def _explained_scale(scale: str, raw: Term, attainable: float) -> Term:
    if scale == "raw":
        return raw
    return combined("attainment", "ratio", [raw, given("attainable", attainable)])


def _abscissa(knot: tuple[float, float]) -> float:
    return knot[0]
