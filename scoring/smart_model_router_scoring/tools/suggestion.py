"""The result of every ranking of tools and capabilities: ids with a number that explains itself."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nsmallest
from typing import TYPE_CHECKING

from smart_model_router_scoring.options import check_count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from smart_model_router_scoring.explain import Term
    from smart_model_router_scoring.notes import Notes


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A tool or capability and how its score came about."""

    id: str
    explanation: Term

    @property
    def raw(self) -> float:
        """The number that ranks; a bonus may lift it above 1."""
        return self.explanation.value

    @property
    def score(self) -> float:
        """The number to report and to hold against a threshold: `raw`, at most 1."""
        return min(self.raw, 1.0)


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Best first; equal scores in the order of their ids. `notes` are the faults found in the data."""

    hits: tuple[Suggestion, ...]
    notes: Notes


def ranked(scores: Mapping[str, float], limit: int | None, explain: Callable[[str], Term], notes: Notes) -> Suggestions:
    """The best `limit` of `scores` (None: all of them). Only what is returned is explained: that is the costly part."""
    if limit is not None:
        check_count("limit", limit, 1)
    best = nsmallest(len(scores) if limit is None else limit, scores, key=lambda name: (-scores[name], name))
    return Suggestions(tuple(Suggestion(name, explain(name)) for name in best), notes)
