"""The functions of the founding document, under their names (aggregate-scoring-system, version 1.6)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from smart_model_router_scoring.calibration.curves import RAW_STEEPNESS, RAW_THRESHOLD, Sigmoid
from smart_model_router_scoring.fusion.config import RRF_K, FusionConfig
from smart_model_router_scoring.fusion.facts import Facts
from smart_model_router_scoring.fusion.order import ordered
from smart_model_router_scoring.fusion.ranks import ranks_of, reciprocal_sums
from smart_model_router_scoring.options import is_number

Id = TypeVar("Id", str, int)


def fuse_results(
    results: Mapping[str, Sequence[Id]],
    k: float = RRF_K,
    weights: Mapping[str, float] | None = None,
    modified_times: Mapping[Id, object] | None = None,
    *,
    now: datetime | None = None,
) -> list[tuple[Id, float]]:
    """Every id with its fused, uncalibrated score: reciprocal ranks times recency. Highest first, then by id.

    Raises ConfigError as `FusionConfig` does, and for `modified_times` without `now`.
    """
    config = FusionConfig(k=k, weights=weights or {})
    facts = Facts(modified_times, now)
    ranks = {name: ranks_of(ids) for name, ids in results.items() if config.weight(name)}
    sums = reciprocal_sums(ranks, {name: config.weight(name) for name in ranks}, k)
    scores = facts.apply(sums, config.evidence_gate)
    return [(key, scores[key]) for key in ordered(scores)]


def normalize_scores(
    fused_results: Sequence[tuple[Id, float]], threshold: float = RAW_THRESHOLD, steepness: float = RAW_STEEPNESS
) -> list[tuple[Id, float]]:
    """The same list with each score calibrated on the scale `raw`. An answer of one result is not 1.0 for that."""
    curve = Sigmoid(scale="raw", threshold=threshold, steepness=steepness)
    return [(key, curve.calibrate(score, 0.0)) for key, score in fused_results]


def minmax(fused_results: Sequence[tuple[Id, float]]) -> list[tuple[Id, float]]:
    """The same list with scores stretched over 0..1; all 1.0 when they are equal or there is one.

    Version 1.5 of the document. It says where a hit stands within one answer and nothing about how good it is: never
    compare it with a threshold. A score that is no number becomes 0.0.
    """
    finite = [score for _, score in fused_results if is_number(score)]
    if not finite:
        return [(key, 0.0) for key, _ in fused_results]
    low, high = min(finite), max(finite)
    return [(key, _share(score, low, high)) for key, score in fused_results]


def _share(score: float, low: float, high: float) -> float:
    if not is_number(score):
        return 0.0
    if low == high:
        return 1.0
    if math.isinf(high - low):  # the difference of two finite numbers may be too large, that of their halves is not
        score, low, high = score / 2, low / 2, high / 2
    return (score - low) / (high - low)
