"""Hits with the scores that are shown: those of fusion, on a founding scale, or those of evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from smart_model_router_scoring.evidence import (
    ATTAINMENT,
    EvidenceModel,
    Features,
    Null,
    PassageEvidence,
)
from smart_model_router_scoring.explain import Term, combined, given
from smart_model_router_scoring.fusion import Hit


@dataclass(frozen=True, slots=True)
class ScoredHit:
    """A hit, its score, and the function that explains the score."""

    hit: Hit[str]
    score: float
    explain: Callable[[], Term]


@dataclass(frozen=True, slots=True)
class EvidenceFound:
    """The features of a question and of the passages of its hits (by chunk id), and what judged them."""

    model: EvidenceModel
    null: Null
    question: Features
    passages: Mapping[str, Features]


@dataclass(frozen=True, slots=True)
class Judged:
    """The hits of one question. `answers` is the confidence that the index answers it; None: not known.

    `nearest` are those that are no results, as that confidence is too low; `evidence` is that of all of them.
    """

    hits: tuple[ScoredHit, ...]
    meaning: str
    answers: float | None = None
    nearest: tuple[ScoredHit, ...] = ()
    explain: Callable[[], Term | None] = lambda: None
    evidence: EvidenceFound | None = None


def by_rank(hits: Sequence[Hit[str]], meaning: str) -> Judged:
    """The hits with the scores of fusion."""
    return Judged(tuple(ScoredHit(hit, hit.score, hit.explain) for hit in hits), meaning)


def by_evidence(
    model: EvidenceModel,
    null: Null,
    features: Features,
    hits: Sequence[tuple[Hit[str], PassageEvidence]],
    min_confidence: float,
) -> Judged:
    """The hits with the relevance that their passages show; only `nearest` ones when `answers` is too low.

    `features` are those of the question.
    """
    answers = model.answers.score(features, null)
    passages = {hit.id: {**passage.features, ATTAINMENT: hit.attainment} for hit, passage in hits}
    evidence = EvidenceFound(model, null, features, passages)
    scored = tuple(_scored(evidence, [hit for hit, _ in hits]))
    shown, nearest = (scored, ()) if answers >= min_confidence else ((), scored)
    explain = partial(model.answers.explain, "answers", features, null)
    return Judged(shown, model.meaning, answers, nearest, explain, evidence)


def _scored(evidence: EvidenceFound, hits: Sequence[Hit[str]]) -> Iterator[ScoredHit]:
    """A hit scores at most what the hit above it does: its place is evidence too, and the better one for order."""
    model, null, above = evidence.model, evidence.null, 1.0
    for hit in hits:
        features = evidence.passages[hit.id]
        above = min(model.relevance.score(features, null), above)
        yield ScoredHit(hit, above, _Relevance(model, null, features, hit, above))


@dataclass(frozen=True, slots=True)
class _Relevance:
    """The explanation of one relevance, made when it is asked for."""

    model: EvidenceModel
    null: Null
    features: Mapping[str, float]
    hit: Hit[str]
    score: float

    def __call__(self) -> Term:
        """The term."""
        share = {ATTAINMENT: self.hit.explain_attainment()}
        own = self.model.relevance.explain("relevance", self.features, self.null, share)
        if own.value <= self.score:
            return own
        return combined("score", "min", [own, given("score of the hit above", self.score)])
