"""The gates of a round, the round that is delivered, and its words (docs/design/scoring.md section 3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from smart_model_router_scoring.confidence.confidence_index import (
    DEFAULT_WEIGHTS,
    ELITE,
    HIGH,
    LOW_CI,
    MEDIUM,
    MODERATE_CI,
    TARGET_CI,
    as_count,
    as_flag,
    as_number,
    checked,
    compute_ci,
    data_errors,
    metric,
    reaches,
)
from smart_model_router_scoring.options import ConfigError, check_choice, check_count, check_number

FLOORS: Mapping[str, float] = MappingProxyType(
    {"source_quality": 0.40, "verification": 0.40, "coverage": 0.35, "agreement": 0.35, "recency": 0.30}
)
"""The least of each metric. Read-only."""
MIN_RECENT_SOURCES = 10
TIERS = ("Elite", "High", "Medium")
TIER_THRESHOLDS = (ELITE, HIGH, MEDIUM)
"""The least score of each of these tiers; below them all it is Low."""


@dataclass(frozen=True, slots=True)
class GateResult:
    """The result of a round's gate. `floor_violations` names scores that are too low, `data_errors` unreadable ones.

    `reasons` says in sentences what kept it from passing. `ci` is the index (NaN with data errors), `tiers` the tier of
    each metric that could be read.
    """

    passed: bool
    floor_violations: tuple[str, ...]
    reasons: tuple[str, ...]
    data_errors: tuple[str, ...]
    ci: float
    tiers: Mapping[str, str]


def tier_of(score: float, thresholds: Sequence[float] = TIER_THRESHOLDS) -> str:
    """Elite from 0.90, High from 0.75, Medium from 0.50, else Low; or from other thresholds."""
    return next((name for least, name in zip(thresholds, TIERS, strict=True) if score >= least), "Low")


def check_tier_thresholds(field: str, thresholds: Sequence[float]) -> None:
    """Refuse what is not three scores (0..1), each below the one before. Raises ConfigError."""
    for at, least in enumerate(thresholds):
        check_number(f"{field}[{at}]", least, 0, 1)
    if len(thresholds) != len(TIERS) or not all(higher > lower for higher, lower in pairwise(thresholds)):
        raise ConfigError(field, list(thresholds), "three falling scores, such as [0.90, 0.75, 0.50],")


@dataclass(frozen=True, kw_only=True)
class TwoTier:
    """Every metric at its floor or above, enough recent sources, the index at its target, no critical contradiction.

    All bounds are inclusive. Floors compare one metric each, so that none can be bought off by the others.
    `tier_thresholds` only name the tiers of its results.
    """

    floors: Mapping[str, float] = field(default_factory=lambda: FLOORS)
    min_recent_sources: int = MIN_RECENT_SOURCES
    target_ci: float = TARGET_CI
    weights: Mapping[str, float] = field(default_factory=lambda: DEFAULT_WEIGHTS)
    method: str = "arithmetic"
    tier_thresholds: Sequence[float] = TIER_THRESHOLDS

    def __post_init__(self) -> None:
        for name, floor in self.floors.items():
            check_number(f"floors.{name}", floor, 0, 1)
        check_count("min_recent_sources", self.min_recent_sources, 0)
        check_number("target_ci", self.target_ci, 0, 1)
        check_choice("method", self.method, ("arithmetic", "geometric"))
        check_tier_thresholds("tier_thresholds", self.tier_thresholds)
        object.__setattr__(self, "floors", MappingProxyType(dict(self.floors)))
        object.__setattr__(self, "weights", MappingProxyType(dict(checked(self.weights))))

    def check(self, outputs: Mapping[str, object], *, regressed: bool = False) -> GateResult:
        """Judge a round's outputs: its metrics, `recent_source_count`, `critical_contradictions`.

        `regressed` changes nothing here: this policy stops on regressions elsewhere (see `regression`).
        """
        del regressed
        ci = compute_ci(outputs, self.weights, self.method)
        failed = _Failures(outputs, self.weights, self.tier_thresholds)
        failed.floors(self.floors, self.min_recent_sources)
        if not failed.errors and not reaches(ci, self.target_ci):
            failed.reasons.append(f"the index {ci:.3f} is below its target {self.target_ci:g}")
        return failed.result(ci)


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """Every metric `high` (0.75) or better, enough recent sources, no critical contradiction, no regression.

    The index decides nothing here; it breaks ties between rounds (see `coalesce_best_round`). `tier_thresholds` only
    name the tiers of its results.
    """

    high: float = HIGH
    min_recent_sources: int = MIN_RECENT_SOURCES
    tier_thresholds: Sequence[float] = TIER_THRESHOLDS

    def __post_init__(self) -> None:
        check_tier_thresholds("tier_thresholds", self.tier_thresholds)
        check_number("high", self.high, 0, 1)
        check_count("min_recent_sources", self.min_recent_sources, 0)

    def check(self, outputs: Mapping[str, object], *, regressed: bool = False) -> GateResult:
        """Judge a round's outputs, as `TwoTier.check` does; `regressed` says that it is worse than the round before."""
        failed = _Failures(outputs, DEFAULT_WEIGHTS, self.tier_thresholds)
        failed.floors(dict.fromkeys(DEFAULT_WEIGHTS, self.high), self.min_recent_sources)
        if regressed:
            failed.reasons.append("the round is worse than the one before")
        return failed.result(compute_ci(outputs))


GATES: Mapping[str, Callable[[], TwoTier | Matrix]] = MappingProxyType({"two_tier": TwoTier, "matrix": Matrix})
"""The policies by their names; `two_tier` is the default."""


class _Failures:
    """Collects what is wrong with a round."""

    def __init__(
        self, outputs: Mapping[str, object], weights: Mapping[str, float], thresholds: Sequence[float]
    ) -> None:
        self.outputs = outputs
        self.errors = list(data_errors(outputs, weights))
        known = {name: value for name in weights if (value := metric(outputs, name)) is not None}
        self.tiers = {name: tier_of(value, thresholds) for name, value in known.items()}
        self.violations: list[str] = []
        self.reasons: list[str] = []

    def floors(self, floors: Mapping[str, float], min_recent_sources: int) -> None:
        for name, floor in floors.items():
            value = metric(self.outputs, name)
            if value is None:
                self.errors += [] if name in self.errors else [name]
            elif value < floor:
                self._violated(name, f"{value:g}", f"{floor:g}")
        recent = self._count("recent_source_count")
        if recent is not None and recent < min_recent_sources:
            self._violated("recent_source_count", str(recent), str(min_recent_sources))
        contradictions = self._count("critical_contradictions")
        if contradictions:
            self.reasons.append(f"critical contradictions: {contradictions}")

    def result(self, ci: float) -> GateResult:
        wrong = [f"{name} is missing or cannot be read: {self.outputs.get(name)!r}" for name in self.errors]
        reasons = (*wrong, *self.reasons)
        return GateResult(
            passed=not reasons,
            floor_violations=tuple(self.violations),
            reasons=reasons,
            data_errors=tuple(self.errors),
            ci=ci,
            tiers=MappingProxyType(self.tiers),
        )

    def _count(self, name: str) -> int | None:
        count = as_count(self.outputs.get(name))
        if count is None:
            self.errors.append(name)
        return count

    def _violated(self, name: str, value: str, floor: str) -> None:
        self.violations.append(name)
        self.reasons.append(f"{name} {value} is below its floor {floor}")


PATIENCE = 2
MATRIX_PATIENCE = 1
"""Regressions in a row that end the rounds: of the policy `two_tier`, and of `matrix`."""


def coalesce_best_round(rounds: Sequence[object]) -> Mapping[str, Any] | None:
    """The best round, as given: a passed gate first, then the higher `ci_score`, then the earlier round.

    An index that is missing or no number comes last among rounds of the same gate. What is no mapping is skipped; None
    when nothing is left.
    """
    known = [found for found in rounds if isinstance(found, Mapping)]
    # max() keeps the first of equals.
    return max(known, key=_key) if known else None


def _key(found: Mapping[str, Any]) -> tuple[bool, float]:
    ci = as_number(found.get("ci_score"))
    return as_flag(found.get("gate_passed")) is True, -math.inf if ci is None else ci


@dataclass(frozen=True, slots=True)
class Regression:
    """Rounds in a row that were worse than the one before each, and whether that is enough to stop."""

    count: int
    stop: bool


def regression(ci_scores: Sequence[object], *, patience: int = PATIENCE) -> Regression:
    """Counts rounds below the previous one, from the last improvement on; stops at `patience` (>= 1) of them.

    An equal round neither counts nor resets. An index that is missing or no number is below every other. Once reached,
    a stop stays: the rounds after it would not have been.
    """
    check_count("patience", patience, 1)
    indices = [-math.inf if (ci := as_number(score)) is None else ci for score in ci_scores]
    count = 0
    for before, after in pairwise(indices):
        if after > before:
            count = 0
        elif after < before:
            count += 1
        if count >= patience:
            return Regression(count, stop=True)
    return Regression(count, stop=False)


def confidence_level(best_ci: float | None, gate_passed: bool) -> str:
    """full needs 0.80 and a passed gate; moderate from 0.65, low from 0.50, else (and for NaN, None) insufficient."""
    if best_ci is None:
        return "insufficient"
    if gate_passed and reaches(best_ci, TARGET_CI):
        return "full"
    if reaches(best_ci, MODERATE_CI):
        return "moderate"
    return "low" if reaches(best_ci, LOW_CI) else "insufficient"


def quality_metadata(
    scores: Mapping[str, object],
    *,
    best_ci: float | None,
    gate_passed: bool,
    selected_round: int,
    rounds_completed: int,
    target_ci: float = TARGET_CI,
    high: float = HIGH,
) -> dict[str, Any]:
    """The data delivered with every answer. `scores` are those of the selected round, counted from 1.

    `failing_metrics` are those below `high` or without a usable score, which is then None. They are not the
    `floor_violations` of a gate: a metric may fail and be far above its floor.
    """
    values = {name: metric(scores, name) for name in DEFAULT_WEIGHTS}
    passing = {name for name, value in values.items() if value is not None and value >= high}
    return {
        "confidence_level": confidence_level(best_ci, gate_passed),
        "best_ci_achieved": best_ci,
        "target_ci": target_ci,
        "selected_round": selected_round,
        "rounds_completed": rounds_completed,
        "failing_metrics": [{name: value} for name, value in values.items() if name not in passing],
        "passing_metrics": [{name: value} for name, value in values.items() if name in passing],
    }
