"""The Confidence Index of a round of research, the gates it must pass, and which round is delivered in what words."""

from __future__ import annotations

from smart_model_router_scoring.confidence.confidence_index import (
    DEFAULT_WEIGHTS,
    METHODS,
    Sensitivity,
    as_count,
    as_flag,
    as_number,
    compute_ci,
    data_errors,
    explain_ci,
    sensitivity,
)
from smart_model_router_scoring.confidence.gates import (
    GATES,
    GateResult,
    Matrix,
    Regression,
    TwoTier,
    coalesce_best_round,
    confidence_level,
    quality_metadata,
    regression,
    tier_of,
)

__all__ = [
    "DEFAULT_WEIGHTS",
    "GATES",
    "METHODS",
    "GateResult",
    "Matrix",
    "Regression",
    "Sensitivity",
    "TwoTier",
    "as_count",
    "as_flag",
    "as_number",
    "coalesce_best_round",
    "compute_ci",
    "confidence_level",
    "data_errors",
    "explain_ci",
    "quality_metadata",
    "regression",
    "sensitivity",
    "tier_of",
]
