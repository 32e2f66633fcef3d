"""The replies of models, form by form. They hold ids and words; addresses, titles, dates and scores are not theirs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from smart_model_router_scoring.options import ConfigError, check_number

MOST_ASPECTS, MOST_BRANCHES, MOST_QUERIES, MOST_CLAIMS, MOST_SENTENCES = 12, 6, 6, 8, 8
_LONGEST = 500
"""Characters of a question, a query or a hypothesis."""


def _check_words(name: str, value: str, most: int = _LONGEST) -> None:
    if not any(character.isalnum() for character in value) or len(value) > most:
        raise ConfigError(name, value, f"a text with words, at most {most} characters,")


def _check_many(name: str, values: tuple[object, ...], most: int) -> None:
    if len(values) > most:
        raise ConfigError(name, len(values), f"at most {most}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aspect:
    """A question that an answer to an open question consists of. `part_of` is the id of that question."""

    part_of: str
    text: str

    def __post_init__(self) -> None:
        _check_words("text", self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeReply:
    """The parts of open questions."""

    aspects: tuple[Aspect, ...]

    def __post_init__(self) -> None:
        _check_many("aspects", self.aspects, MOST_ASPECTS)


class Purpose(StrEnum):
    """The purposes of a search."""

    CONFIRM = "confirm"
    DISCONFIRM = "disconfirm"
    BACKGROUND = "background"


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchQuery:
    """A text to search for, for one question."""

    question: str
    text: str
    purpose: Purpose

    def __post_init__(self) -> None:
        _check_words("text", self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A way to answer: a hypothesis, its searches, and its scores, each from 0 to 1."""

    hypothesis: str
    queries: tuple[BranchQuery, ...]
    evidence: float
    novelty: float
    cost: float

    def __post_init__(self) -> None:
        _check_words("hypothesis", self.hypothesis)
        _check_many("queries", self.queries, MOST_QUERIES)
        for name in ("evidence", "novelty", "cost"):
            check_number(name, getattr(self, name), 0, 1)

    @property
    def worth(self) -> float:
        """The score by which branches are kept."""
        return self.evidence + self.novelty - self.cost


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeReply:
    """The branches of one depth of the tree."""

    branches: tuple[Branch, ...]

    def __post_init__(self) -> None:
        _check_many("branches", self.branches, MOST_BRANCHES)


class Act(StrEnum):
    """The actions of a reader."""

    THINK = "think"
    SEARCH = "search"
    READ = "read"
    FINISH = "finish"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderReply:
    """One thought and one action. `argument` is the text to search for, or the id of the document to read."""

    thought: str
    action: Act
    argument: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftedClaim:
    """A claim: the id of the source, a quote of it, and one sentence that says what the quote says."""

    source: str
    quote: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalystReply:
    """The claims that answer a question; none where the sources do not."""

    claims: tuple[DraftedClaim, ...]

    def __post_init__(self) -> None:
        _check_many("claims", self.claims, MOST_CLAIMS)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierReply:
    """The id of the one statement that answers a question; "" where none does."""

    answered_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSentence:
    """A sentence, and the ids of the claims that it says."""

    text: str
    claims: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterReply:
    """The sentences of a summary."""

    summary: tuple[WrittenSentence, ...]

    def __post_init__(self) -> None:
        _check_many("summary", self.summary, MOST_SENTENCES)
