"""Evaluates a ranking and its scores: metrics with intervals, comparisons with tests, tuning with a holdout."""

from __future__ import annotations

from smart_model_router_scoring.evaluate.evaluation import (
    Comparison,
    Delta,
    Evaluation,
    Finding,
    Tuned,
    compare,
    diagnose,
    diff,
    evaluate,
    parse_qrels,
    parse_run,
    tune,
)
from smart_model_router_scoring.evaluate.metrics import (
    METRICS,
    Dice,
    Interval,
    bootstrap,
    brier_score,
    expected_calibration_error,
    false_accept_rate,
    ndcg,
    recall,
    reciprocal_rank,
    sign_flip_test,
)

__all__ = [
    "METRICS",
    "Comparison",
    "Delta",
    "Dice",
    "Evaluation",
    "Finding",
    "Interval",
    "Tuned",
    "bootstrap",
    "brier_score",
    "compare",
    "diagnose",
    "diff",
    "evaluate",
    "expected_calibration_error",
    "false_accept_rate",
    "ndcg",
    "parse_qrels",
    "parse_run",
    "recall",
    "reciprocal_rank",
    "sign_flip_test",
    "tune",
]
