"""How good a ranking and its scores are: metrics with intervals, comparisons with tests, tuning with a holdout."""

from __future__ import annotations

from smart_model_router_scoring.evaluate.comparison import Comparison, Delta, compare, diff
from smart_model_router_scoring.evaluate.diagnosis import Finding, diagnose
from smart_model_router_scoring.evaluate.metrics import METRICS, ndcg, recall, reciprocal_rank
from smart_model_router_scoring.evaluate.reliability import (
    brier_score,
    expected_calibration_error,
    false_accept_rate,
)
from smart_model_router_scoring.evaluate.resampling import Dice, Interval, bootstrap, sign_flip_test
from smart_model_router_scoring.evaluate.running import Evaluation, evaluate
from smart_model_router_scoring.evaluate.trec import parse_qrels, parse_run
from smart_model_router_scoring.evaluate.tuning import Tuned, tune

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
