"""A run against its judgements: the metrics of each query, their means, and how sure those are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any

from smart_model_router_scoring.evaluate.metrics import METRICS, Metric
from smart_model_router_scoring.evaluate.resampling import RESAMPLES, Interval, bootstrap

Run = Mapping[str, Sequence[Any]]
"""Query -> ids, best first."""
Qrels = Mapping[str, Mapping[Any, float]]
"""Query -> id -> grade; above 0 is relevant."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The metrics of a run: by query, and their means with intervals.

    `unjudged` are queries of the run without any relevant id: nothing can be said of them. A judged query that the run
    does not have counts with 0. `metadata` describes the run, `updated_at` its time (ISO 8601; "" when unknown).
    """

    metrics: Mapping[str, Interval]
    per_query: Mapping[str, Mapping[str, float]]
    unjudged: tuple[str, ...]
    metadata: Mapping[str, object] = field(default_factory=dict)
    updated_at: str = ""


def evaluate(
    run: Run,
    qrels: Qrels,
    *,
    metrics: Mapping[str, Metric] = METRICS,
    seed: int = 0,
    resamples: int = RESAMPLES,
    metadata: Mapping[str, object] | None = None,
    now: datetime | None = None,
) -> Evaluation:
    """Every metric of `run`, with a 95 % bootstrap interval of its mean. The order of queries changes no bit."""
    judged = sorted(query for query, grades in qrels.items() if any(grade > 0 for grade in grades.values()))
    per_query = {
        name: MappingProxyType({query: metric(run.get(query, ()), qrels[query]) for query in judged})
        for name, metric in metrics.items()
    }
    return Evaluation(
        metrics=MappingProxyType(
            {
                name: bootstrap(list(values.values()), seed=seed, resamples=resamples)
                for name, values in per_query.items()
            }
        ),
        per_query=MappingProxyType(per_query),
        unjudged=tuple(sorted(set(run) - set(judged))),
        metadata=MappingProxyType({"queries": len(judged), "seed": seed, "resamples": resamples, **(metadata or {})}),
        updated_at="" if now is None else now.isoformat(),
    )
