"""The Confidence Index: one number of five metrics (ADR-003)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from smart_model_router_scoring.confidence.parsing import as_number
from smart_model_router_scoring.errors import ConfigError
from smart_model_router_scoring.explain import Term, combined, given
from smart_model_router_scoring.options import check_choice, check_number

DEFAULT_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"coverage": 0.25, "source_quality": 0.20, "agreement": 0.20, "verification": 0.20, "recency": 0.15}
)
"""The metrics and what they weigh. Read-only."""
Weighted = Sequence[tuple[float, float]]
"""(weight, score) of each metric that weighs anything."""


def metric(scores: Mapping[str, object], name: str) -> float | None:
    """The score of a metric; None when it is missing, no number, or outside 0..1."""
    value = as_number(scores.get(name))
    return value if value is not None and 0 <= value <= 1 else None


def data_errors(scores: Mapping[str, object], weights: Mapping[str, float] | None = None) -> tuple[str, ...]:
    """The metrics whose score cannot be used, in the order of the weights."""
    return tuple(name for name in checked(weights) if metric(scores, name) is None)


def compute_ci(
    scores: Mapping[str, object], weights: Mapping[str, float] | None = None, method: str = "arithmetic"
) -> float:
    """The weighted mean (0..1) of the metrics: arithmetic, or geometric, where one metric near 0 cannot be bought off.

    NaN when a metric is missing, no number or outside 0..1: nothing is clamped into a good score. Weights are divided
    by their sum; ConfigError for a negative one, for none above 0, and for another method.
    """
    check_choice("method", method, tuple(METHODS))
    used = checked(weights)
    if data_errors(scores, used):
        return math.nan
    return METHODS[method]([(weight, metric(scores, name) or 0.0) for name, weight in used.items() if weight])


def explain_ci(
    scores: Mapping[str, object], weights: Mapping[str, float] | None = None, method: str = "arithmetic"
) -> Term:
    """How `compute_ci` comes by its number. With data errors, a given NaN that names them."""
    value = compute_ci(scores, weights, method)
    used = {name: weight for name, weight in checked(weights).items() if weight}
    if math.isnan(value):
        return given("ci", value, errors=", ".join(data_errors(scores, weights)))
    total = math.fsum(used.values())
    parts = [
        combined(name, _JOINED[method], _pair(metric(scores, name) or 0.0, weight / total))
        for name, weight in used.items()
    ]
    return combined("ci", _JOINING[method], parts, method=method)


def _pair(score: float, weight: float) -> list[Term]:
    return [given("score", score), given("weight", weight)]


def checked(weights: Mapping[str, float] | None) -> Mapping[str, float]:
    """The weights in force. Raises ConfigError for weights that are none."""
    used = DEFAULT_WEIGHTS if weights is None else weights
    for name, weight in used.items():
        check_number(f"weights.{name}", weight, 0, 1_000_000)
    if not any(used.values()):
        raise ConfigError("weights", dict(used), "a weight above 0")
    return used


def _arithmetic(metrics: Weighted) -> float:
    total = math.fsum(weight for weight, _ in metrics)
    return _between(math.fsum(weight * score for weight, score in metrics) / total, metrics)


def _geometric(metrics: Weighted) -> float:
    if any(score == 0 for _, score in metrics):
        return 0.0
    total = math.fsum(weight for weight, _ in metrics)
    mean = math.exp(math.fsum(weight * math.log(score) for weight, score in metrics) / total)
    # Rounding may lift it over the arithmetic mean, which it never exceeds.
    return min(_between(mean, metrics), _arithmetic(metrics))


def _between(mean: float, metrics: Weighted) -> float:
    """A mean is between the least and the greatest, whatever the last bit says."""
    scores = [score for _, score in metrics]
    return min(max(mean, min(scores)), max(scores))


METHODS: Mapping[str, Callable[[Weighted], float]] = MappingProxyType(
    {"arithmetic": _arithmetic, "geometric": _geometric}
)
_JOINED = {"arithmetic": "product", "geometric": "power"}
_JOINING = {"arithmetic": "sum", "geometric": "product"}
