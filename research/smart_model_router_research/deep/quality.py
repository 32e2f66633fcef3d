"""The audit of a round and the quality of a result: computed from graphs and settings alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from smart_model_router_research.deep.claims import ClaimGraph
from smart_model_router_research.deep.metrics import MetricsConfig, metrics_of
from smart_model_router_research.deep.rounds import STOP_POLICIES
from smart_model_router_scoring.confidence import (
    DEFAULT_WEIGHTS,
    Matrix,
    TwoTier,
    coalesce_best_round,
    quality_metadata,
    sensitivity,
)
from smart_model_router_scoring.confidence.gates import (
    FLOORS,
    MIN_RECENT_SOURCES,
    TIER_THRESHOLDS,
    check_tier_thresholds,
)
from smart_model_router_scoring.options import check_choice, check_count, check_number

SENSITIVITY = 0.05
"""Each weight is moved by so much, up and down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditConfig:
    """The settings of audits: those of the metrics and those of the gate. Raises ConfigError.

    `policy` is `two_tier` or `matrix`. The latter has its own bounds: `min_ci` (0..1) is then only the target that is
    named, and `floors` count for nothing. `tier_thresholds` are the least scores of the tiers Elite, High and Medium:
    `matrix` asks for High of each metric, and metrics below it are named as failing.
    """

    metrics: MetricsConfig
    policy: str = "two_tier"
    min_ci: float = 0.80
    min_recent_sources: int = MIN_RECENT_SOURCES
    floors: Mapping[str, float] = field(default_factory=lambda: dict(FLOORS))
    tier_thresholds: tuple[float, ...] = TIER_THRESHOLDS

    def __post_init__(self) -> None:
        check_choice("policy", self.policy, STOP_POLICIES)
        check_number("min_ci", self.min_ci, 0, 1)
        check_count("min_recent_sources", self.min_recent_sources, 0)
        check_tier_thresholds("tier_thresholds", self.tier_thresholds)
        self.gate()
        ordered = {name: float(self.floors[name]) for name in (*FLOORS, *sorted(self.floors)) if name in self.floors}
        object.__setattr__(self, "floors", ordered)

    def gate(self) -> TwoTier | Matrix:
        """Return the gate."""
        if self.policy == "matrix":
            return Matrix(
                high=self.high, min_recent_sources=self.min_recent_sources, tier_thresholds=self.tier_thresholds
            )
        return TwoTier(
            floors=self.floors,
            min_recent_sources=self.min_recent_sources,
            target_ci=self.min_ci,
            weights=self.weights,
            method=self.metrics.aggregation,
            tier_thresholds=self.tier_thresholds,
        )

    @property
    def high(self) -> float:
        """The least score that is High."""
        return self.tier_thresholds[1]

    @property
    def weights(self) -> Mapping[str, float]:
        """The weights of the metrics."""
        given = DEFAULT_WEIGHTS if self.metrics.weights is None else self.metrics.weights
        return {name: float(given[name]) for name in (*DEFAULT_WEIGHTS, *sorted(given)) if name in given}


def audits_of(graphs: Sequence[ClaimGraph], config: AuditConfig) -> list[dict[str, Any]]:
    """Return the audit of each round: its metrics, and what the gate says of them. Rounds count from 1."""
    found = [metrics_of(graph, config.metrics) for graph in graphs]
    fell = [False, *(after["ci_score"] < before["ci_score"] for before, after in pairwise(found))]
    audits: list[dict[str, Any]] = []
    for number, (metrics, regressed) in enumerate(zip(found, fell, strict=False), start=1):
        result = config.gate().check(metrics, regressed=regressed)
        audits.append(
            {
                "round": number,
                **metrics,
                "gate_passed": result.passed,
                "floor_violations": list(result.floor_violations),
                "gate_reasons": list(result.reasons),
            }
        )
    return audits


def best_of(audits: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the audit of the round that is delivered. There has to be one."""
    best = coalesce_best_round(audits)
    if best is None:
        raise ValueError("there is no round")
    return best


def quality_of(audits: Sequence[Mapping[str, Any]], config: AuditConfig, stop_reason: str) -> dict[str, Any]:
    """Return `quality_metadata` of the round that is delivered: scoring's own fields, and ours.

    `sensitivity` has the least and the greatest index with each weight 0.05 up and down, and whether all of them are on
    one side of the target. A gate that is passed and is not stable is `borderline`.
    """
    best = best_of(audits)
    moved = sensitivity(
        best, SENSITIVITY, weights=config.weights, method=config.metrics.aggregation, target_ci=config.min_ci
    )
    return {
        **quality_metadata(
            best,
            best_ci=best["ci_score"],
            gate_passed=best["gate_passed"],
            selected_round=best["round"],
            rounds_completed=len(audits),
            target_ci=config.min_ci,
            high=config.high,
        ),
        "floor_violations": best["floor_violations"],
        "policy": config.policy,
        "as_of": config.metrics.as_of.isoformat(),
        "stop_reason": stop_reason,
        "aggregation": config.metrics.aggregation,
        "ci_geometric": best["ci_geometric"],
        "sensitivity": {"min": moved.min, "max": moved.max, "gate_stable": moved.gate_stable},
        "borderline": bool(config.policy == "two_tier" and best["gate_passed"] and not moved.gate_stable),
    }
