"""The Confidence Index of a round of research, the gates it must pass, and which round is delivered in what words."""

from __future__ import annotations

from smart_model_router_scoring.confidence.confidence_index import (
    DEFAULT_WEIGHTS,
    METHODS,
    compute_ci,
    data_errors,
    explain_ci,
)
from smart_model_router_scoring.confidence.delivery import confidence_level, quality_metadata
from smart_model_router_scoring.confidence.gates import GATES, GateResult, Matrix, TwoTier, tier_of
from smart_model_router_scoring.confidence.parsing import as_count, as_flag, as_number
from smart_model_router_scoring.confidence.rounds import Regression, coalesce_best_round, regression
from smart_model_router_scoring.confidence.sensitivity import Sensitivity, sensitivity

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
