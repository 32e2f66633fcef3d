"""From a fused score to one that means something by itself: 0..1, the same from query to query."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Protocol

from smart_model_router_scoring.explain import Term, combined, given, sigmoid
from smart_model_router_scoring.options import ConfigError, check_choice, check_number, check_positive, is_number

__all__ = [
    "Calibration",
    "Isotonic",
    "Sigmoid",
    "calibrate_score",
    "fit",
    "fit_isotonic",
    "fit_platt",
    "interpret",
]

SCALES = ("attainment", "raw")
RAW_THRESHOLD = 0.035
RAW_STEEPNESS = 150.0
"""On the scale `raw`: the document's own (docs/design/scoring.md section 2)."""
_THREE_AT_BEST = 3 / 61
DEFAULTS = {
    "raw": (RAW_THRESHOLD, RAW_STEEPNESS),
    # 0.711667 and 7.377049: the same curve where three strategies of weight 1 are the best that can be.
    "attainment": (RAW_THRESHOLD / _THREE_AT_BEST, RAW_STEEPNESS * _THREE_AT_BEST),
}


class Calibration(Protocol):
    """A curve. `attainable` is the highest sum there could have been.

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
    def given(self) -> tuple[float | None, float | None]:
        """Threshold and steepness where they are no defaults."""
        return self.threshold, self.steepness

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


Label = tuple[float, bool]
"""The curve's input for a hit (its fused score: raw, or a share of the attainable one), and its relevance."""
Point = tuple[float, float]
LEAST_PLATT = 50
LEAST_ISOTONIC = 1_000
_LEAST_SLOPE = 1e-9
"""From the lowest score to the highest: a level line has a slope, too, when sums are rounded."""
_SMALLEST_SHARE = 1e-10
_RIDGE = 1e-12


def fit(labels: Sequence[Label], method: str = "platt", scale: str = "attainment") -> Calibration:
    """A fitted curve: `method` is platt or isotonic.

    Raises ConfigError for too few labels (50, 1,000), for labels of one kind only, and for scores that do not rise with
    relevance: no curve makes sense of those. Labels whose score is not a number are left out before they are counted.
    """
    if method not in METHODS:
        raise ConfigError("method", method, f"one of {', '.join(METHODS)}")
    return METHODS[method](labels, scale)


def fit_platt(labels: Sequence[Label], scale: str = "attainment") -> Sigmoid:
    """The sigmoid of greatest likelihood (Platt 1999), found by Newton's method as Lin, Lin and Weng (2007) do it.

    The targets are theirs too: (n+ + 1) / (n+ + 2) and 1 / (n- + 2) instead of 1 and 0, so that labels which a
    threshold separates do not make the curve a cliff.
    """
    usable = _usable(labels, LEAST_PLATT)
    positive = sum(relevant for _, relevant in usable)
    high, low = (positive + 1) / (positive + 2), 1 / (len(usable) - positive + 2)
    # Stretched over 0..1: scores that lie close together, or far from 0, would take Newton for ever.
    start, end = min(usable)[0], max(usable)[0]
    points = [((x - start) / (end - start), high if relevant else low) for x, relevant in usable]
    slope, intercept = _newton(points, math.log((positive + 1) / (len(usable) - positive + 1)))
    if slope < _LEAST_SLOPE:
        raise ConfigError("labels", f"slope {slope:.3g}", "scores that rise with relevance")
    threshold = start - intercept / slope * (end - start)
    return Sigmoid(scale=scale, threshold=threshold, steepness=slope / (end - start), fitted=True)


def fit_isotonic(labels: Sequence[Label], scale: str = "attainment") -> Isotonic:
    """The non-decreasing curve of least squares, by pooling adjacent violators (Ayer et al. 1955)."""
    usable = _usable(labels, LEAST_ISOTONIC)
    at: dict[float, list[bool]] = {}
    for x, relevant in usable:
        at.setdefault(x, []).append(relevant)
    blocks: list[tuple[float, float, int, int]] = []  # first x, last x, relevant, all
    for x in sorted(at):
        block = (x, x, sum(at[x]), len(at[x]))
        while blocks and blocks[-1][2] * block[3] >= block[2] * blocks[-1][3]:
            before = blocks.pop()
            block = (before[0], block[1], before[2] + block[2], before[3] + block[3])
        blocks.append(block)
    if len(blocks) == 1:
        raise ConfigError("labels", "one level", "scores that rise with relevance")
    knots = [(x, relevant / count) for first, last, relevant, count in blocks for x in dict.fromkeys((first, last))]
    return Isotonic(scale=scale, knots=tuple(knots))


METHODS: Mapping[str, Callable[[Sequence[Label], str], Calibration]] = MappingProxyType(
    {"platt": fit_platt, "isotonic": fit_isotonic}
)


def _usable(labels: Sequence[Label], least: int) -> list[Label]:
    usable = [(float(x), bool(relevant)) for x, relevant in labels if is_number(x)]
    if len(usable) < least:
        raise ConfigError("labels", len(usable), f"at least {least} labels")
    if len({relevant for _, relevant in usable}) == 1:
        raise ConfigError("labels", len(usable), "both relevant and irrelevant labels")
    if len({x for x, _ in usable}) == 1:
        raise ConfigError("labels", "one level", "scores that rise with relevance")
    return usable


def _newton(points: Sequence[Point], intercept: float) -> tuple[float, float]:
    """Slope and intercept of greatest likelihood, from slope 0 and this intercept."""
    at = (0.0, intercept)
    while (better := _better(points, at, _step(points, at))) is not None:
        at = better
    return at


def _step(points: Sequence[Point], at: Point) -> Point:
    """Newton's step: the gradient over the curvature."""
    predicted = [(x, target, sigmoid(at[0] * x + at[1])) for x, target in points]
    by_slope = math.fsum(x * (p - target) for x, target, p in predicted)
    by_intercept = math.fsum(p - target for _, target, p in predicted)
    a = math.fsum(x * x * p * (1 - p) for x, _, p in predicted) + _RIDGE
    b = math.fsum(x * p * (1 - p) for x, _, p in predicted)
    c = math.fsum(p * (1 - p) for _, _, p in predicted) + _RIDGE
    determinant = a * c - b * b
    return (b * by_intercept - c * by_slope) / determinant, (b * by_slope - a * by_intercept) / determinant


def _better(points: Sequence[Point], at: Point, step: Point) -> Point | None:
    """Where the step, or the first half of a half of it that gains, leads; None when nothing gains any more."""
    loss = _loss(points, at)
    share = 1.0
    while share >= _SMALLEST_SHARE:
        tried = at[0] + share * step[0], at[1] + share * step[1]
        if _loss(points, tried) < loss:
            return tried
        share /= 2
    return None


def _loss(points: Sequence[Point], at: Point) -> float:
    """The negative logarithm of the likelihood, in the form that overflows for no exponent."""
    exponents = [(at[0] * x + at[1], target) for x, target in points]
    return math.fsum(math.log1p(math.exp(-abs(z))) + max(z, 0.0) - target * z for z, target in exponents)


WORDS = ((0.9, "excellent"), (0.7, "good"), (0.5, "moderate"), (0.3, "weak"))
"""(at least, word), best first."""


def interpret(score: float) -> str:
    """excellent, good, moderate, weak, or noise: below 0.3, and what is no number."""
    return next((word for least, word in WORDS if score >= least), "noise")
