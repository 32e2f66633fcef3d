"""With what words the best round is delivered when it is not good enough (ADR-003, graceful degradation)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smart_model_router_scoring.confidence.confidence_index import DEFAULT_WEIGHTS, metric
from smart_model_router_scoring.confidence.levels import HIGH, LOW_CI, MODERATE_CI, TARGET_CI, reaches


def confidence_level(best_ci: float, gate_passed: bool) -> str:
    """full needs 0.80 and a passed gate; moderate from 0.65, low from 0.50, else (and for NaN) insufficient."""
    if gate_passed and reaches(best_ci, TARGET_CI):
        return "full"
    if reaches(best_ci, MODERATE_CI):
        return "moderate"
    return "low" if reaches(best_ci, LOW_CI) else "insufficient"


def quality_metadata(
    scores: Mapping[str, object],
    *,
    best_ci: float,
    gate_passed: bool,
    selected_round: int,
    rounds_completed: int,
    target_ci: float = TARGET_CI,
) -> dict[str, Any]:
    """The data delivered with every answer. `scores` are those of the selected round, counted from 1.

    `failing_metrics` are those below High (0.75) or without a usable score, which is then None. They are not the
    `floor_violations` of a gate: a metric may fail and be far above its floor.
    """
    values = {name: metric(scores, name) for name in DEFAULT_WEIGHTS}
    passing = {name for name, value in values.items() if value is not None and value >= HIGH}
    return {
        "confidence_level": confidence_level(best_ci, gate_passed),
        "best_ci_achieved": best_ci,
        "target_ci": target_ci,
        "selected_round": selected_round,
        "rounds_completed": rounds_completed,
        "failing_metrics": [{name: value} for name, value in values.items() if name not in passing],
        "passing_metrics": [{name: value} for name, value in values.items() if name in passing],
    }
