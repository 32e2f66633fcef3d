"""Why a relevant document that a strategy did find is not among the results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from smart_model_router_scoring.evaluate.running import Qrels
from smart_model_router_scoring.fusion.config import TOP_N, check_top_n
from smart_model_router_scoring.fusion.facts import Facts
from smart_model_router_scoring.fusion.pipeline import Fusion, answered
from smart_model_router_scoring.fusion.ranks import ranks_of, reciprocal_sums

Lists = Mapping[str, Sequence[Any] | None]
"""Strategy -> ids, best first; None for a strategy without an answer."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A relevant id that was retrieved and not returned.

    `reason`: `disabled` (only strategies of weight 0 found it), `outranked` (its place is beyond `top_n`) or
    `unconfident` (its score is below `min_confidence`). `ranks` are its ranks in the strategies, `place` and `score`
    what fusion made of them: None when it was disabled.
    """

    query: str
    id: Any
    reason: str
    ranks: Mapping[str, int]
    place: int | None = None
    score: float | None = None


def diagnose(lists: Mapping[str, Lists], qrels: Qrels, fusion: Fusion, *, top_n: int = TOP_N) -> list[Finding]:
    """Every such id of every judged query, in the order of queries, then of places, then of ids."""
    check_top_n(top_n)
    everything = Fusion(replace(fusion.config, min_confidence=0.0))
    findings: list[Finding] = []
    for query in sorted(qrels):
        ranks = {name: ranks_of(ids or ()) for name, ids in lists.get(query, {}).items()}
        places = _places(everything, lists.get(query, {}))
        lost: list[Finding] = []
        for key in sorted((key for key, grade in qrels[query].items() if grade > 0), key=str):
            found = {name: ranked[key] for name, ranked in ranks.items() if key in ranked}
            if not found:
                continue  # never retrieved: nothing that fusion could have done
            if key not in places:
                lost.append(Finding(query, key, "disabled", found))
                continue
            place, score = places[key]
            if place > top_n or score < fusion.config.min_confidence:
                reason = "outranked" if place > top_n else "unconfident"
                lost.append(Finding(query, key, reason, found, place, score))
        findings += sorted(lost, key=lambda finding: finding.place or math.inf)
    return findings


def _places(everything: Fusion, lists: Lists) -> dict[Any, tuple[int, float]]:
    """Every id with its place and its score, uncut."""
    basis = everything.basis(answered(lists))
    ranks = {name: ranks_of(lists[name] or ()) for name in basis.weights}
    sums = reciprocal_sums(ranks, basis.weights, basis.k)
    hits = everything.best(sums, ranks, basis, Facts(), len(sums))
    return {hit.id: (place, hit.score) for place, hit in enumerate(hits, 1)}
