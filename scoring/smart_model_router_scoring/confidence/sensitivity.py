"""The sensitivity of a Confidence Index to its exact weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from smart_model_router_scoring.confidence.confidence_index import checked, compute_ci
from smart_model_router_scoring.confidence.levels import TARGET_CI, reaches
from smart_model_router_scoring.options import check_number


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
