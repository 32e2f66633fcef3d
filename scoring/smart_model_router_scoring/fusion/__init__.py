"""Several lists become one, by their ranks or their scores, with scores that mean the same from query to query."""

from __future__ import annotations

from smart_model_router_scoring.fusion.hits import EvidenceGate, Fused, Hit, Listed, best_evidence, recency_multiplier
from smart_model_router_scoring.fusion.pipeline import (
    TOP_N,
    Fusion,
    FusionConfig,
    UnreachableConfidence,
    check_names,
    check_top_n,
    fuse_results,
    minmax,
    normalize_scores,
    retrieval_depth,
)

__all__ = [
    "TOP_N",
    "EvidenceGate",
    "Fused",
    "Fusion",
    "FusionConfig",
    "Hit",
    "Listed",
    "UnreachableConfidence",
    "best_evidence",
    "check_names",
    "check_top_n",
    "fuse_results",
    "minmax",
    "normalize_scores",
    "recency_multiplier",
    "retrieval_depth",
]
