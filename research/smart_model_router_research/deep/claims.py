"""Claims, their evidence, and the graph that ties them to questions and documents. Values are JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from smart_model_router_scoring.options import ConfigError


class ClaimKind(StrEnum):
    """The kinds of statement."""

    FACT = "fact"
    NUMBER = "number"
    DATE = "date"
    INFERENCE = "inference"
    """Computed from other claims, see `inferences.py`."""


class ClaimStatus(StrEnum):
    """The result of the checks of a claim."""

    SUPPORTED = "supported"
    PARTIAL = "partial"
    UNSUPPORTED = "unsupported"
    CONTRADICTED = "contradicted"
    SUPERSEDED = "superseded"
    """A newer value of an equal or better source stands against it."""


class SourceTier(StrEnum):
    """The trust in a source: `A` official or primary, `B` reputable, `C` never cited."""

    A = "A"
    B = "B"
    C = "C"

    def is_at_least(self, other: SourceTier) -> bool:
        """Return whether it is as good or better."""
        return self.value <= other.value


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedEvidence:
    """A quote that vouches for a claim; `span` are the characters of the document that it stands at."""

    doc_id: str
    quote: str
    span: tuple[int, int]
    method: str = "quoted"
    """The way in which the claim follows: `quoted` verbatim, or `edited` by licensed edits."""
    score: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchClaim:
    """One atomic statement. What it says of an `entity` can be compared: `attribute`, `value` with its `unit`.

    `other` is the second entity of a symmetric attribute (the neighbour of a border). `as_of` is the value's own date,
    or that of its corpus, ISO 8601; "" where neither is known. `tier` is that of its best document. An inference has an
    `operation`, the claims that it is computed from (`premises`, ids) and the set that was looked at (`scope`, words).
    `chosen_by` is the target whose model found its sentence to answer the question, "" where code did; `agreed_by` what
    found the same: `code`, or a target of another provider. A choice without that is shown, and counts nowhere.
    """

    id: str
    text: str
    question_id: str = ""
    kind: ClaimKind = ClaimKind.FACT
    critical: bool = False
    entity: str = ""
    attribute: str = ""
    other: str = ""
    value: str = ""
    unit: str = ""
    as_of: str = ""
    tier: SourceTier = SourceTier.B
    evidence: tuple[QuotedEvidence, ...] = ()
    status: ClaimStatus = ClaimStatus.UNSUPPORTED
    reasons: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    operation: str = ""
    premises: tuple[str, ...] = ()
    scope: str = ""
    round: int = 1
    chosen_by: str = ""
    agreed_by: str = ""

    @property
    def is_counted(self) -> bool:
        """False for a claim that one model alone takes for an answer."""
        return not self.chosen_by or bool(self.agreed_by)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubQuestion:
    """A sub-question of the topic. `priority` 1 counts most, 3 least; others raise ConfigError."""

    id: str
    text: str
    kind: str = "open"
    priority: int = 2
    critical: bool = False

    def __post_init__(self) -> None:
        if self.priority not in (1, 2, 3):
            raise ConfigError("priority", self.priority, "1, 2 or 3")

    @property
    def weight(self) -> int:
        """Return what it counts in coverage: 3, 2 or 1."""
        return 4 - self.priority


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedDocument:
    """The facts about a document that metrics need.

    `origin` is the same for near-duplicates. `alone_suffices` says that its corpus vouches for each document by itself
    (`independence: document`). `published` is a date, ISO 8601; it counts with a confidence of `high` or `medium`.
    """

    id: str
    title: str = ""
    tier: SourceTier = SourceTier.B
    domain: str = ""
    publisher: str = ""
    origin: str = ""
    alone_suffices: bool = False
    published: str = ""
    date_confidence: str = "unknown"


class Relation(StrEnum):
    """The relations of two claims, in the order in which they are looked for."""

    UNRELATED = "unrelated"
    """They are about two matters, or no numbers or names can be compared."""
    AGREES = "agrees"
    RECONCILED = "reconciled"
    """A qualifier in a source makes the numbers agree."""
    SUPERSEDED = "superseded"
    """The newer one, of an equal or better source, counts."""
    RESOLVED = "resolved"
    """The one of the better source counts; both are shown."""
    UNRESOLVED = "unresolved"
    """Nothing decides between them: both are shown with their sources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Two claims (ids) that differ about one matter, in the `round` that found it; shown whichever round is selected.

    `relation` is reconciled, superseded, resolved or unresolved; `kept` is the claim that counts, "" for both.
    """

    one: str
    other: str
    relation: Relation
    kept: str = ""
    note: str = ""
    round: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimGraph:
    """Everything that metrics are computed from."""

    questions: tuple[SubQuestion, ...] = ()
    claims: tuple[ResearchClaim, ...] = ()
    documents: Mapping[str, CitedDocument] = field(default_factory=dict)
    contradictions: tuple[Contradiction, ...] = ()

    @property
    def unresolved(self) -> tuple[Contradiction, ...]:
        """The contradictions that nothing decided."""
        return tuple(each for each in self.contradictions if each.relation is Relation.UNRESOLVED)


def are_independent(one: CitedDocument, other: CitedDocument) -> bool:
    """Return whether two documents are two sources: neither copies of each other, nor of one domain or publisher.

    Documents of corpora that vouch for each document by itself are, when they are two. Where neither domains nor
    publishers of both are known, nothing says that they are two.
    """
    if one.id == other.id or (one.origin and one.origin == other.origin):
        return False
    if one.alone_suffices and other.alone_suffices:
        return True
    pairs = [(one.domain, other.domain), (one.publisher.casefold(), other.publisher.casefold())]
    known = [pair for pair in pairs if all(pair)]
    return bool(known) and all(mine != its for mine, its in known)
