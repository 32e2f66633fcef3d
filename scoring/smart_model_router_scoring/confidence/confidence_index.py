"""The Confidence Index, one number of five metrics: its levels and sensitivity (docs/design/scoring.md section 3)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from types import MappingProxyType

from smart_model_router_scoring.explain import Term, combined, given
from smart_model_router_scoring.options import ConfigError, check_choice, check_number, is_number

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_FLAGS = {"true": True, "false": False}


def as_number(value: object) -> float | None:
    """A finite number, or text that is one in decimal notation ("0.80"); None for everything else, a bool included."""
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    return float(value) if is_number(value) else None


def as_flag(value: object) -> bool | None:
    """A bool, or the text "true" or "false" in any case; None for everything else."""
    return value if isinstance(value, bool) else _FLAGS.get(value.strip().lower()) if isinstance(value, str) else None


def as_count(value: object) -> int | None:
    """A whole number from 0 up ("12.0" is 12), the number of items of a collection, a flag as 0 or 1; else None."""
    if not isinstance(value, str) and isinstance(value, Sized):
        return len(value)
    flag = as_flag(value)
    if flag is not None:
        return int(flag)
    number = as_number(value)
    return int(number) if number is not None and number >= 0 and number.is_integer() else None


TARGET_CI = 0.80
MODERATE_CI = 0.65
LOW_CI = 0.50
ELITE, HIGH, MEDIUM = 0.90, 0.75, 0.50
_ROUNDING = 1e-12


def reaches(ci: float, level: float) -> bool:
    """True when a computed index is at a level or above, up to the rounding of its sum. NaN reaches no level."""
    return ci >= level - _ROUNDING


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
    """The computation of `compute_ci` as a term. With data errors, a given NaN that names them."""
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


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The index, and what becomes of it. `perturbed` has "coverage+" and "coverage-" for each weight.

    `gate_stable` says that every one is on the same side of the target as `ci`.
    """

    ci: float
    perturbed: Mapping[str, float]
    min: float
    max: float
    gate_stable: bool


def sensitivity(
    scores: Mapping[str, object],
    delta: float = 0.05,
    *,
    weights: Mapping[str, float] | None = None,
    method: str = "arithmetic",
    target_ci: float = TARGET_CI,
) -> Sensitivity:
    """Each weight once more and once less by `delta` (0..1, of the weights' own scale; never below 0), renormalised.

    A perturbation that leaves no weight is left out. With data errors every number is NaN and nothing is stable.
    """
    check_number("delta", delta, 0, 1)
    used = checked(weights)
    ci = compute_ci(scores, used, method)
    perturbed: dict[str, float] = {}
    for name, weight in used.items():
        for sign, changed in (("+", weight + delta), ("-", max(weight - delta, 0.0))):
            changed_weights = {**used, name: changed}
            if any(changed_weights.values()):
                perturbed[name + sign] = compute_ci(scores, changed_weights, method)
    every = [ci, *perturbed.values()]
    stable = ci == ci and len({reaches(value, target_ci) for value in every}) == 1  # noqa: PLR0124 - NaN is not itself
    return Sensitivity(ci, MappingProxyType(perturbed), min(every), max(every), stable)
