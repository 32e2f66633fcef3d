"""The five metrics of a round, computed from the claim graph and the configuration alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import combinations
from types import MappingProxyType
from typing import Any

from smart_model_router_research.deep.claims import (
    CitedDocument,
    ClaimGraph,
    ClaimKind,
    ClaimStatus,
    Contradiction,
    ResearchClaim,
    SourceTier,
    SubQuestion,
    are_independent,
)
from smart_model_router_research.deep.comparing import Matter, matter_of
from smart_model_router_scoring.confidence import compute_ci
from smart_model_router_scoring.decay import MODES, age_days, get_recency_window, is_future, is_recent, recency_decay
from smart_model_router_scoring.options import ConfigError, check_choice, check_count

TIER_WEIGHTS: Mapping[SourceTier, float] = MappingProxyType({SourceTier.A: 1.0, SourceTier.B: 0.6, SourceTier.C: 0.0})
"""The quality of a cited document, by its tier. Read-only."""
UNKNOWN_DATE = 0.25
"""The recency of a document without a known date, in mode `decay`."""
NOTHING_COMPARED = 0.5
"""The agreement where no two independent sources speak of one matter."""
_DATED = ("high", "medium")
_NOT_FACTUAL = (ClaimStatus.SUPERSEDED,)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsConfig:
    """The settings of metrics beside the graph. Raises ConfigError.

    `as_of` is the day that ages are counted to. `domain` has a window of recency, unless `window_days` gives one, and a
    half-life, unless `half_life_days` does; both are days, more than 0. `recency_mode` is `decay` or `binary`.
    """

    as_of: datetime
    domain: str = "default"
    window_days: int | None = None
    half_life_days: int | None = None
    recency_mode: str = "decay"
    windows: Mapping[str, int] | None = None
    weights: Mapping[str, float] | None = None
    aggregation: str = "arithmetic"

    def __post_init__(self) -> None:
        if not isinstance(self.as_of, datetime):
            raise ConfigError("as_of", self.as_of, "a datetime")
        check_choice("recency_mode", self.recency_mode, MODES)
        for name in ("window_days", "half_life_days"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name), 1)
        if self.as_of.tzinfo is None:
            object.__setattr__(self, "as_of", self.as_of.replace(tzinfo=UTC))

    @property
    def window(self) -> int:
        """The days in which a source is recent."""
        return self.window_days or self._of_domain

    @property
    def half_life(self) -> int:
        """The days after which a source counts half, in mode `decay`."""
        return self.half_life_days or self._of_domain

    @property
    def _of_domain(self) -> int:
        return get_recency_window(self.domain, config_windows=self.windows)


def metrics_of(graph: ClaimGraph, config: MetricsConfig) -> dict[str, Any]:
    """Return the metrics (0..1), the counts that gates ask for, and the index in both means.

    `nothing_compared` says that no two independent sources speak of one matter. Without a cited document every metric
    is 0. What one model alone takes for an answer counts nowhere.
    """
    graph = replace(graph, claims=tuple(claim for claim in graph.claims if claim.is_counted))
    cited = _cited(graph)
    found: dict[str, Any] = dict.fromkeys(("coverage", "source_quality", "agreement", "verification", "recency"), 0.0)
    agreement = _agreement(graph)
    if cited:
        found |= {
            "coverage": _coverage(graph),
            "source_quality": _mean(TIER_WEIGHTS[document.tier] for document in cited),
            "agreement": NOTHING_COMPARED if agreement is None else agreement,
            "verification": _verification(graph.claims),
            "recency": _mean(recency_of(document, config) for document in cited),
        }
    return {
        **found,
        "nothing_compared": agreement is None,
        "recent_source_count": sum(is_recent_source(document, config) for document in cited),
        "critical_contradictions": len(_critical_contradictions(graph)),
        "ci_score": compute_ci(found, config.weights, config.aggregation),
        "ci_arithmetic": compute_ci(found, config.weights, "arithmetic"),
        "ci_geometric": compute_ci(found, config.weights, "geometric"),
    }


def covers(
    claim: ResearchClaim, documents: Mapping[str, CitedDocument], claims: Mapping[str, ResearchClaim] | None = None
) -> bool:
    """Return whether a supported claim covers its question: one that is critical needs two sources, one of tier A.

    One source will do where its corpus vouches for each document by itself. An inference covers when each of its
    premises does, which are among `claims`: two of one source each are not one of two. What one model alone takes for
    an answer covers nothing.
    """
    if claim.status is not ClaimStatus.SUPPORTED or not claim.is_counted:
        return False
    if claim.kind is ClaimKind.INFERENCE:
        known = _others(claim, claims)
        return bool(claim.premises) and all(
            premise in known and covers(known[premise], documents, known) for premise in claim.premises
        )
    if not claim.critical:
        return True
    cited = _documents_of(claim, documents)
    if any(document.alone_suffices for document in cited):
        return True
    return _has_two_sources(cited) and any(document.tier is SourceTier.A for document in cited)


def is_single_source(
    claim: ResearchClaim, documents: Mapping[str, CitedDocument], claims: Mapping[str, ResearchClaim] | None = None
) -> bool:
    """Return whether a critical claim, or a premise of it, stands in one source alone: the report says so."""
    if claim.kind is ClaimKind.INFERENCE:
        known = _others(claim, claims)
        premises = [known[premise] for premise in claim.premises if premise in known]
        return any(is_single_source(premise, documents, known) for premise in premises)
    return claim.critical and not _has_two_sources(_documents_of(claim, documents))


def _others(claim: ResearchClaim, claims: Mapping[str, ResearchClaim] | None) -> dict[str, ResearchClaim]:
    """Return the claims without one: premises that lead back to it vouch for nothing."""
    return {key: each for key, each in (claims or {}).items() if key != claim.id}


def _coverage(graph: ClaimGraph) -> float:
    total = math.fsum(question.weight for question in graph.questions)
    if not total:
        return 0.0
    return math.fsum(question.weight for question in graph.questions if _is_covered(question, graph)) / total


def _is_covered(question: SubQuestion, graph: ClaimGraph) -> bool:
    claims = {claim.id: claim for claim in graph.claims}
    return any(covers(claim, graph.documents, claims) for claim in graph.claims if claim.question_id == question.id)


def _agreement(graph: ClaimGraph) -> float | None:
    """Return 1 less the share of contradicted matters among those that two independent sources speak of.

    An inference is no further voice: it says what its premises say.
    """
    matters: dict[Matter, list[ResearchClaim]] = {}
    for claim in graph.claims:
        if claim.status in (ClaimStatus.SUPPORTED, ClaimStatus.CONTRADICTED) and claim.kind is not ClaimKind.INFERENCE:
            matters.setdefault(matter_of(claim) or ("", claim.id), []).append(claim)
    disputed = {claim_id for each in graph.unresolved for claim_id in (each.one, each.other)}
    compared = contradicted = 0
    for claims in matters.values():
        documents = {document.id: document for claim in claims for document in _documents_of(claim, graph.documents)}
        if not _has_two_sources(list(documents.values())):
            continue
        compared += 1
        contradicted += any(claim.status is ClaimStatus.CONTRADICTED or claim.id in disputed for claim in claims)
    return 1 - contradicted / compared if compared else None


def _verification(claims: Sequence[ResearchClaim]) -> float:
    factual = [claim for claim in claims if claim.status not in _NOT_FACTUAL]
    total = sum(2 if claim.critical else 1 for claim in factual)
    supported = sum(2 if claim.critical else 1 for claim in factual if claim.status is ClaimStatus.SUPPORTED)
    return supported / total if total else 0.0


def recency_of(document: CitedDocument, config: MetricsConfig) -> float:
    """Return what a document counts in recency; a date of low confidence never makes it more than an unknown one."""
    age = _age(document, config)
    if config.recency_mode == "binary":
        return float(is_recent_source(document, config))
    if age is None:
        return UNKNOWN_DATE
    decayed = recency_decay(age, half_life_days=config.half_life)
    return decayed if document.date_confidence in _DATED else min(decayed, UNKNOWN_DATE)


def is_recent_source(document: CitedDocument, config: MetricsConfig) -> bool:
    """Return whether a document is of the window, by a date that can be trusted."""
    age = _age(document, config)
    return age is not None and document.date_confidence in _DATED and is_recent(math.floor(age), config.window)


def _age(document: CitedDocument, config: MetricsConfig) -> float | None:
    """Return the days since a document's date; None for one that is unknown, or more than a day after `as_of`."""
    if is_future(document.published, config.as_of + timedelta(days=1)):
        return None
    return age_days(document.published, config.as_of)


def _critical_contradictions(graph: ClaimGraph) -> list[Contradiction]:
    critical = {claim.id for claim in graph.claims if claim.critical}
    return [each for each in graph.unresolved if critical & {each.one, each.other}]


def _cited(graph: ClaimGraph) -> list[CitedDocument]:
    """Return the documents that supported claims cite, each once."""
    found = {
        document.id: document
        for claim in graph.claims
        if claim.status in (ClaimStatus.SUPPORTED, ClaimStatus.CONTRADICTED)
        for document in _documents_of(claim, graph.documents)
    }
    return list(found.values())


def _documents_of(claim: ResearchClaim, documents: Mapping[str, CitedDocument]) -> list[CitedDocument]:
    ids = dict.fromkeys(evidence.doc_id for evidence in claim.evidence)
    return [documents[doc_id] for doc_id in ids if doc_id in documents and documents[doc_id].tier is not SourceTier.C]


def _has_two_sources(documents: Sequence[CitedDocument]) -> bool:
    return any(are_independent(one, other) for one, other in combinations(documents, 2))


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return math.fsum(numbers) / len(numbers)
