"""The extent to which each question was looked for, as a whole, in part or not at all, and the obstacles to more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from smart_model_router_research.deep.claims import ClaimGraph, ClaimStatus, SubQuestion


class Extent(StrEnum):
    """The extents to which a question was looked for, the least first."""

    NONE = "none"
    PART = "part"
    WHOLE = "whole"


class Obstacle(StrEnum):
    """The reasons for which a question was not looked for as a whole."""

    SEARCHES = "budget.searches"
    DOCUMENTS = "budget.fetches"
    TIME = "budget.seconds"
    SOURCE = "source_failed"
    PAGES = "pages_unread"
    PRIVATE = "private_words"
    PLAN = "plan_failed"
    RETRIEVAL = "retrieval_failed"
    ANALYST = "analyst_failed"
    NO_ANALYST = "no_analyst"
    VERIFICATION = "verification_failed"


OBSTACLES: Mapping[Obstacle, tuple[str, str]] = MappingProxyType(
    {
        Obstacle.SEARCHES: ("budget.searches was used up", "Raise budget.searches"),
        Obstacle.DOCUMENTS: ("budget.fetches was used up", "Raise budget.fetches"),
        Obstacle.TIME: ("the time for searches was over", "Raise budget.seconds"),
        Obstacle.SOURCE: ("a source could not be searched", "Ask again when all sources can be searched"),
        Obstacle.PAGES: ("no page that a search found could be read", "Name a page to read, or another back-end"),
        Obstacle.PRIVATE: (
            "a query to the web had words of your documents",
            "Name in the question what is looked for",
        ),
        Obstacle.PLAN: ("its searches were not planned", "Ask again"),
        Obstacle.RETRIEVAL: ("its searches did not finish", "Ask again"),
        Obstacle.ANALYST: ("its analyst did not finish", "Ask again"),
        Obstacle.NO_ANALYST: ("no analyst is for questions of its kind", "Name an analyst with the lens any"),
        Obstacle.VERIFICATION: ("what was found could not be verified", "Ask again"),
    }
)
"""Each obstacle in words, and what removes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionLookup:
    """The extent to which a question was looked for, in one round or in all, and the obstacles to more."""

    question_id: str
    extent: Extent
    obstacles: tuple[Obstacle, ...] = ()


class Openness(StrEnum):
    """The ways in which a question has no answer."""

    DISPUTED = "disputed"
    JUDGED = "judged_by_a_model"
    NOT_FOUND = "not_found"
    IN_PART = "looked_for_in_part"
    NOT_LOOKED_FOR = "not_looked_for"


HEADINGS: Mapping[Openness, str] = MappingProxyType(
    {
        Openness.DISPUTED: "The sources disagree",
        Openness.JUDGED: "Answered by one model's choice alone",
        Openness.NOT_FOUND: "Not found in these sources",
        Openness.IN_PART: "Looked for in part, and not found",
        Openness.NOT_LOOKED_FOR: "Not looked for",
    }
)
_BY_EXTENT = {
    Extent.WHOLE: Openness.NOT_FOUND,
    Extent.PART: Openness.IN_PART,
    Extent.NONE: Openness.NOT_LOOKED_FOR,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion:
    """A question without an answer, how it stands, and what stood in the way of looking for it as a whole."""

    question_id: str
    text: str
    openness: Openness
    obstacles: tuple[Obstacle, ...] = ()

    @property
    def why(self) -> str:
        """The obstacles in words; "" where there are none."""
        return "; ".join(OBSTACLES[each][0] for each in self.obstacles)

    @property
    def sentence(self) -> str:
        """The question and how it stands, in one line."""
        return f"{HEADINGS[self.openness]}: {self.text}{f' ({self.why})' if self.why else ''}"

    @property
    def next_action(self) -> str:
        """The action that would find more, in one line."""
        removed = dict.fromkeys(OBSTACLES[each][1] for each in self.obstacles)
        further = "Add a second provider" if self.openness is Openness.JUDGED else "Name further sources"
        return f"{'; '.join(removed) or further}: {self.text}"


def open_question(question: SubQuestion, graph: ClaimGraph, lookups: Mapping[str, QuestionLookup]) -> OpenQuestion:
    """Return how a question without an answer stands. One that no round looked for was never planned."""
    if any(claim.question_id == question.id and claim.status is ClaimStatus.CONTRADICTED for claim in graph.claims):
        return OpenQuestion(question_id=question.id, text=question.text, openness=Openness.DISPUTED)
    mine = [claim for claim in graph.claims if claim.question_id == question.id and not claim.is_counted]
    if any(claim.status is ClaimStatus.SUPPORTED for claim in mine):
        return OpenQuestion(question_id=question.id, text=question.text, openness=Openness.JUDGED)
    nothing = QuestionLookup(question_id=question.id, extent=Extent.NONE, obstacles=(Obstacle.PLAN,))
    found = lookups.get(question.id, nothing)
    return OpenQuestion(
        question_id=question.id, text=question.text, openness=_BY_EXTENT[found.extent], obstacles=found.obstacles
    )


def furthest(rounds: Iterable[Sequence[QuestionLookup]]) -> dict[str, QuestionLookup]:
    """Return for each question the round that looked for it furthest, of several such rounds the first."""
    found: dict[str, QuestionLookup] = {}
    ranks = list(Extent)
    for each in (lookup for lookups in rounds for lookup in lookups):
        known = found.get(each.question_id)
        if known is None or ranks.index(each.extent) > ranks.index(known.extent):
            found[each.question_id] = each
    return found


def read_by(
    retrieved: Sequence[QuestionLookup], analysts: Sequence[Sequence[str] | None], *, is_verified: bool
) -> tuple[QuestionLookup, ...]:
    """Return how far a round looked for the questions that it searched for.

    `analysts` are the ids of the questions that each of them looked for, None for one that did not finish.
    """
    return tuple(_read(each, analysts, is_verified=is_verified) for each in retrieved)


def _read(lookup: QuestionLookup, analysts: Sequence[Sequence[str] | None], *, is_verified: bool) -> QuestionLookup:
    if not any(lookup.question_id in (ids or ()) for ids in analysts):
        obstacle = Obstacle.ANALYST if None in analysts else Obstacle.NO_ANALYST
        return QuestionLookup(
            question_id=lookup.question_id, extent=Extent.NONE, obstacles=(*lookup.obstacles, obstacle)
        )
    if not is_verified and lookup.extent is not Extent.NONE:
        return QuestionLookup(
            question_id=lookup.question_id,
            extent=Extent.PART,
            obstacles=(*lookup.obstacles, Obstacle.VERIFICATION),
        )
    return lookup
