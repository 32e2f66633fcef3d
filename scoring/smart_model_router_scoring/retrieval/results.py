"""The results of a query: passages with scores, and the explanations of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from smart_model_router_scoring.explain import Term
from smart_model_router_scoring.retrieval.index import IndexFacts
from smart_model_router_scoring.retrieval.judged import EvidenceFound

NOTHING_FOUND = "No relevant documents found."


@dataclass(frozen=True, slots=True)
class Passage:
    """The text of a result. `modified` is seconds since 1970; `heading` the path of headings above it."""

    chunk_id: str
    score: float
    path: str
    heading: str
    text: str
    modified: float


@dataclass(frozen=True, slots=True)
class Explained:
    """The explanation of a result: a word for its score, its rank and relevance in each strategy, two computations.

    `term` is that of the score, `order` that of the number by which results are ordered.
    """

    passage: Passage
    interpretation: str
    ranks: Mapping[str, int]
    relevance: Mapping[str, float]
    age_days: float | None
    term: Term
    order: Term


class QueryResults(list[tuple[str, float]]):
    """A list of (chunk id, score), best first, which also knows what a person asks next.

    `passages`, their texts; `explained`, with `explain=True`; `degraded`, the strategies that gave no answer and why;
    `considered`, how many chunks were looked at; `facts`, what they were taken from; `meaning` of the scores.
    `answers` is the confidence that the index answers the question (None on a founding scale, which has no such
    number), `answers_term` its computation, with `explain=True`. Where it is too low there are no results; `nearest`
    are then the passages that would be, for a person to judge. `evidence` is what both numbers were computed from.
    """

    def __init__(
        self,
        pairs: Iterable[tuple[str, float]],
        *,
        passages: Sequence[Passage],
        explained: Sequence[Explained],
        degraded: Mapping[str, str],
        considered: int,
        facts: IndexFacts,
        meaning: str,
        answers: float | None = None,
        answers_term: Term | None = None,
        nearest: Sequence[Passage] = (),
        evidence: EvidenceFound | None = None,
    ) -> None:
        super().__init__(pairs)
        self.passages = tuple(passages)
        self.explained = tuple(explained)
        self.degraded = degraded
        self.considered = considered
        self.facts = facts
        self.meaning = meaning
        self.answers = answers
        self.answers_term = answers_term
        self.nearest = tuple(nearest)
        self.evidence = evidence
