"""Fusion, top to bottom: ranks, sums, recency and evidence, order, calibration, the cut."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from smart_model_router_scoring.fusion.config import STRATEGIES, TOP_N, FusionConfig, check_top_n
from smart_model_router_scoring.fusion.facts import Facts
from smart_model_router_scoring.fusion.hit import Basis, Fused, Hit
from smart_model_router_scoring.fusion.order import ordered
from smart_model_router_scoring.fusion.ranks import Ranks, ranks_of, reciprocal_sums
from smart_model_router_scoring.fusion.recency import MOST
from smart_model_router_scoring.fusion.ties import TIE_BREAKS

Id = TypeVar("Id", str, int)


class UnreachableConfidence(UserWarning):
    """Even a hit that is first everywhere and new would be below `min_confidence`: every answer would be empty."""


class Fusion:
    """Fuses ranked lists as its configuration says. It has no state: one may be shared.

    `strategies` are the names that will run (vector, keyword, graph and those with a weight, unless given). A
    `min_confidence` that no hit of theirs could reach is warned of (UnreachableConfidence) at once.
    """

    def __init__(self, config: FusionConfig | None = None, *, strategies: Iterable[str] = ()) -> None:
        self.config = config or FusionConfig()
        basis = self.basis(tuple(strategies) or {*STRATEGIES, *self.config.weights})
        best = self.config.calibration.calibrate(basis.attainable * MOST, basis.attainable)
        if best < self.config.min_confidence:
            message = f"min_confidence {self.config.min_confidence} cannot be reached: the best score is {best:.4f}"
            warnings.warn(message, UnreachableConfidence, stacklevel=2)

    def fuse(
        self,
        results: Mapping[str, Sequence[Id] | None],
        *,
        modified_times: Mapping[Id, object] | None = None,
        now: datetime | None = None,
        evidence: Mapping[Id, float] | None = None,
        top_n: int = TOP_N,
    ) -> Fused[Id]:
        """The best `top_n` (1..100) of `results` (strategy -> ids, best first; None for a strategy without an answer).

        Fewer hits of the same lists are the first of more. Raises ConfigError for `top_n`, and for `modified_times`
        without `now`; nothing in the data raises.
        """
        check_top_n(top_n)
        facts = Facts(modified_times, now, evidence)
        basis = self.basis(answered(results))
        ranks = {name: ranks_of(results[name] or ()) for name in basis.weights}
        sums = reciprocal_sums(ranks, basis.weights, basis.k)
        return Fused(tuple(self.best(sums, ranks, basis, facts, top_n)), without_answer(results), len(sums))

    def basis(self, strategies: Iterable[str]) -> Basis:
        """Return the shared data of hits of these strategies, without those of weight 0. Sorted like explanations."""
        weights = {name: self.config.weight(name) for name in sorted(strategies) if self.config.weight(name)}
        attainable = math.fsum(weight / (self.config.k + 1) for weight in weights.values())
        return Basis(weights, self.config.k, self.config.calibration, attainable)

    def best(
        self, sums: Mapping[Id, float], ranks: Ranks[Id], basis: Basis, facts: Facts[Id], top_n: int
    ) -> list[Hit[Id]]:
        """The best hits of these sums: ordered, then cut at `min_confidence` (a calibration never changes an order)."""
        gate, tie_breaks = self.config.evidence_gate, self.config.tie_breaks
        scores = facts.apply(sums, gate)

        def ranks_in(key: Id) -> dict[str, int]:
            return {name: ranked[key] for name, ranked in ranks.items() if key in ranked}

        def ties(key: Id) -> tuple[float, ...]:
            found, age = ranks_in(key).values(), facts.age(key)
            return tuple(TIE_BREAKS[name](found, age) for name in tie_breaks)

        hits: list[Hit[Id]] = []
        for key in ordered(scores, top_n, ties if tie_breaks else None):
            score = basis.calibration.calibrate(scores[key], basis.attainable)
            if score < self.config.min_confidence:
                break
            hits.append(
                Hit(
                    id=key,
                    score=score,
                    fused=scores[key],
                    rrf=sums[key],
                    recency=facts.recency(key),
                    evidence=gate.factor(facts.relevance(key)) or 0.0,
                    ranks=ranks_in(key),
                    age_days=facts.age(key),
                    notes=facts.notes(key),
                    basis=basis,
                )
            )
        return hits


def answered(results: Mapping[str, object]) -> list[str]:
    """The strategies that gave an answer, an empty one included."""
    return [name for name, ids in results.items() if ids is not None]


def without_answer(results: Mapping[str, object]) -> tuple[str, ...]:
    """The strategies that gave none, sorted."""
    return tuple(sorted(name for name, ids in results.items() if ids is None))
