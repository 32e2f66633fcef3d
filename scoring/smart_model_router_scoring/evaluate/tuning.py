"""Weights and k chosen on some queries and judged on others: what fits the first alone is seen on the second."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from smart_model_router_scoring.errors import ConfigError
from smart_model_router_scoring.evaluate.comparison import Comparison, compare
from smart_model_router_scoring.evaluate.metrics import METRICS
from smart_model_router_scoring.evaluate.resampling import Dice
from smart_model_router_scoring.evaluate.running import Qrels, Run, evaluate
from smart_model_router_scoring.fusion.compat import fuse_results
from smart_model_router_scoring.fusion.config import RRF_K
from smart_model_router_scoring.options import check_number

Lists = Mapping[str, Mapping[str, Sequence[Any]]]
"""Query -> strategy -> ids, best first."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best of the candidates on the training queries, and what it does to the held-out ones.

    `training` is its mean there. `holdout` compares it (B) with the defaults (A): all weights 1, k 60. Take it only
    when that says so.
    """

    weights: Mapping[str, float]
    k: float
    training: float
    holdout: Comparison


def tune(
    lists: Lists,
    qrels: Qrels,
    *,
    weights: Iterable[Mapping[str, float]] = ({},),
    ks: Iterable[float] = (RRF_K,),
    metric: str = "ndcg@10",
    holdout: float = 0.3,
    seed: int = 0,
) -> Tuned:
    """Tries every pair of `weights` and `ks`; the first of equals stays.

    `holdout` (0..1) is the share of judged queries kept aside, one at least. Raises ConfigError for fewer than two
    judged queries, and for no candidates.
    """
    check_number("holdout", holdout, 0, 1)
    judged = Dice(seed).shuffled(sorted(query for query in qrels if query in lists))
    if len(judged) < 2:
        raise ConfigError("qrels", len(judged), "at least two queries with lists")
    aside = min(max(math.ceil(holdout * len(judged)), 1), len(judged) - 1)
    held, training = judged[:aside], judged[aside:]
    candidates = list(product(weights, ks))
    if not candidates:
        raise ConfigError("weights", (), "at least one candidate")
    scored = [(_mean(lists, qrels, training, candidate, metric), candidate) for candidate in candidates]
    best, (chosen, k) = max(scored, key=lambda pair: pair[0])  # the first of equals
    held_qrels = {query: qrels[query] for query in held}
    comparison = compare(
        _run(lists, held, ({}, RRF_K)), _run(lists, held, (chosen, k)), held_qrels, metric=metric, seed=seed
    )
    return Tuned(dict(chosen), k, best, comparison)


Candidate = tuple[Mapping[str, float], float]


def _run(lists: Lists, queries: Iterable[str], candidate: Candidate) -> Run:
    weights, k = candidate
    return {query: [key for key, _ in fuse_results(lists[query], k, weights)] for query in queries}


def _mean(lists: Lists, qrels: Qrels, queries: Iterable[str], candidate: Candidate, metric: str) -> float:
    chosen = {query: qrels[query] for query in queries}
    metrics = {metric: METRICS[metric]}
    return evaluate(_run(lists, chosen, candidate), chosen, metrics=metrics, resamples=1).metrics[metric].mean
