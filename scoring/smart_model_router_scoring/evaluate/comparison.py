"""Two runs beside each other: what moved, and whether one is better by more than chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from smart_model_router_scoring.evaluate.metrics import METRICS
from smart_model_router_scoring.evaluate.resampling import Interval, bootstrap, sign_flip_test
from smart_model_router_scoring.evaluate.running import Qrels, Run, evaluate


@dataclass(frozen=True, slots=True)
class Delta:
    """The changes in the list of one query: ids that came, that went, and that moved (id -> rank before, after)."""

    entered: tuple[Any, ...]
    left: tuple[Any, ...]
    moved: Mapping[Any, tuple[int, int]]


def diff(run_a: Run, run_b: Run) -> Mapping[str, Delta]:
    """The queries whose lists differ, and how. Empty is what a change that changes nothing must give."""
    deltas: dict[str, Delta] = {}
    for query in sorted({*run_a, *run_b}):
        before, after = (_ranks(run.get(query, ())) for run in (run_a, run_b))
        moved = {key: (before[key], after[key]) for key in before if key in after and before[key] != after[key]}
        entered = tuple(key for key in after if key not in before)
        left = tuple(key for key in before if key not in after)
        if moved or entered or left:
            deltas[query] = Delta(entered, left, MappingProxyType(moved))
    return MappingProxyType(deltas)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Of one metric, B against A by query: wins, losses and ties of B, the mean of B - A with its interval, and p.

    `p` is that of a paired two-sided sign-flip test: how likely chance alone sets them as far apart.
    """

    metric: str
    wins: tuple[str, ...]
    losses: tuple[str, ...]
    ties: int
    difference: Interval
    p: float


def compare(run_a: Run, run_b: Run, qrels: Qrels, *, metric: str = "ndcg@10", seed: int = 0) -> Comparison:
    """Compare run B with run A. Raises KeyError for a metric that is not in `METRICS`."""
    chosen = {metric: METRICS[metric]}
    of_a, of_b = (evaluate(run, qrels, metrics=chosen, resamples=1).per_query[metric] for run in (run_a, run_b))
    differences = {query: of_b[query] - of_a[query] for query in of_a}
    values = list(differences.values())
    return Comparison(
        metric=metric,
        wins=tuple(query for query, value in differences.items() if value > 0),
        losses=tuple(query for query, value in differences.items() if value < 0),
        ties=values.count(0.0),
        difference=bootstrap(values, seed=seed),
        p=sign_flip_test(values, seed=seed),
    )


def _ranks(ids: Any) -> dict[Any, int]:
    return {key: rank for rank, key in enumerate(dict.fromkeys(ids), 1)}
