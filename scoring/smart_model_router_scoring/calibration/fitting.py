"""Curves fitted to labels: Platt's (two numbers, 50 labels) and isotonic (any rising shape, 1,000 labels)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from smart_model_router_scoring.calibration.curves import Calibration, Isotonic, Sigmoid
from smart_model_router_scoring.errors import ConfigError
from smart_model_router_scoring.explain import sigmoid
from smart_model_router_scoring.options import is_number

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
