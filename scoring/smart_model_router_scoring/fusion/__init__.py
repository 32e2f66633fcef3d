"""Several ranked lists become one (reciprocal rank fusion), with scores that mean the same from query to query."""

from __future__ import annotations

from smart_model_router_scoring.fusion.compat import fuse_results, minmax, normalize_scores
from smart_model_router_scoring.fusion.config import TOP_N, FusionConfig, check_top_n, retrieval_depth
from smart_model_router_scoring.fusion.evidence import EvidenceGate, best_evidence
from smart_model_router_scoring.fusion.hit import Fused, Hit
from smart_model_router_scoring.fusion.pipeline import Fusion, UnreachableConfidence
from smart_model_router_scoring.fusion.recency import recency_multiplier

__all__ = [
    "TOP_N",
    "EvidenceGate",
    "Fused",
    "Fusion",
    "FusionConfig",
    "Hit",
    "UnreachableConfidence",
    "best_evidence",
    "check_top_n",
    "fuse_results",
    "minmax",
    "normalize_scores",
    "recency_multiplier",
    "retrieval_depth",
]
