"""Metrics of one ranked list against the grades of its query (0: irrelevant). An id that is repeated counts once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

Grades = Mapping[Any, float]
Metric = Callable[[Sequence[Any], Grades], float]


def ndcg(ranking: Sequence[Any], grades: Grades, at: int = 10) -> float:
    """Normalised discounted cumulative gain: gain is the grade (as trec_eval has it), discount log2(rank + 1)."""
    best = sorted((grade for grade in grades.values() if grade > 0), reverse=True)
    ideal = _discounted(best[:at])
    found = [max(grades.get(key, 0.0), 0.0) for key in _first(ranking, at)]
    return _discounted(found) / ideal if ideal else 0.0


def reciprocal_rank(ranking: Sequence[Any], grades: Grades, at: int = 10) -> float:
    """1 / rank of the first relevant id among the first `at`; 0.0 without one. Its mean over queries is MRR."""
    ranks = (rank for rank, key in enumerate(_first(ranking, at), 1) if grades.get(key, 0.0) > 0)
    return next((1.0 / rank for rank in ranks), 0.0)


def recall(ranking: Sequence[Any], grades: Grades, at: int = 100) -> float:
    """The share of the relevant ids that are among the first `at`."""
    relevant = {key for key, grade in grades.items() if grade > 0}
    return len(relevant.intersection(_first(ranking, at))) / len(relevant) if relevant else 0.0


METRICS: Mapping[str, Metric] = MappingProxyType({"ndcg@10": ndcg, "mrr@10": reciprocal_rank, "recall@100": recall})
"""Metrics by their names."""


def _first(ranking: Sequence[Any], at: int) -> list[Any]:
    return list(dict.fromkeys(ranking))[:at]


def _discounted(gains: Sequence[float]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))
