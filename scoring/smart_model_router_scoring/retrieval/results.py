"""The results of a query: (chunk id, score) pairs, with their explanations and facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from smart_model_router_scoring.calibration import interpret
from smart_model_router_scoring.explain import Term
from smart_model_router_scoring.fusion import Hit
from smart_model_router_scoring.retrieval.index import IndexFacts

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
    """Why a result has its score: a word for it, its rank and relevance in each strategy, and the computation."""

    passage: Passage
    interpretation: str
    ranks: Mapping[str, int]
    relevance: Mapping[str, float]
    age_days: float | None
    term: Term


class QueryResults(list[tuple[str, float]]):
    """A list of (chunk id, score), best first, which also knows what a person asks next.

    `passages`, their texts; `explained`, with `explain=True`; `degraded`, the strategies that gave no answer and why;
    `considered`, how many chunks were looked at; `facts`, what they were taken from; `meaning` of the scores.
    """

    def __init__(
        self,
        hits: Sequence[Hit[str]],
        *,
        passages: Sequence[Passage],
        explained: Sequence[Explained],
        degraded: Mapping[str, str],
        considered: int,
        facts: IndexFacts,
        meaning: str,
    ) -> None:
        super().__init__((hit.id, hit.score) for hit in hits)
        self.passages = tuple(passages)
        self.explained = tuple(explained)
        self.degraded = degraded
        self.considered = considered
        self.facts = facts
        self.meaning = meaning


def explained(hit: Hit[str], passage: Passage, relevance: Mapping[str, float]) -> Explained:
    """The explanation of one hit."""
    return Explained(passage, interpret(hit.score), dict(hit.ranks), relevance, hit.age_days, hit.explain())
