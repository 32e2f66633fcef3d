"""The words of a question that a statement, and what it stands under, vouch for: whole names, and nothing left out."""

from __future__ import annotations

import re
from dataclasses import dataclass

from smart_model_router_research.deep.found_answers import ReadDocument
from smart_model_router_research.deep.matching import any_in, stems_of
from smart_model_router_research.deep.naming import bare, is_head, is_named_in
from smart_model_router_research.deep.questions import QuestionPattern, Wanted
from smart_model_router_research.deep.statements import Statement, StatementKind

_OF_TOPICS = (Wanted.VERSION, Wanted.FACT, Wanted.LIST)
"""Kinds of answer whose statements need not name what all documents are about."""
BEFORE = 0.7
"""The worth of a word that only the first sentence of the paragraph has."""


@dataclass(frozen=True)
class Vouching:
    """The words of a question that a statement vouches for, as a share and one by one."""

    coverage: float
    nearness: float
    """The worst match of an entity, 0 to 1."""
    hits: tuple[str, ...]
    """The stems of the question that the statement itself has."""
    is_about: bool
    """The entities are what it stands under, and not words of its own."""
    inner: tuple[str, ...] = ()
    """The entities that only its own words name."""


def vouching_of(
    statement: Statement, pattern: QuestionPattern, document: ReadDocument, topics: frozenset[str]
) -> Vouching | None:
    """Return how far a statement vouches for a question; None where a name or number is missing."""
    nearness, about = 1.0, bool(pattern.entities)
    topics = topics if pattern.wanted in _OF_TOPICS else frozenset()
    inner: list[str] = []
    for entity in pattern.entities:
        for near, is_scope, name in _vouchers(entity, statement, document, topics):
            if not near:
                return None
            nearness = min(nearness, near)
            about = about and is_scope
            if not is_scope:
                inner.append(name)
    scope = " ".join((statement.label, *statement.scope))
    if any(
        not re.search(rf"(?<![\w.,]){re.escape(n)}(?![\w]|[.,]\d)", f"{statement.text} {scope}")
        for n in pattern.numbers
    ):
        return None
    coverage, hits = _coverage(statement, pattern, document)
    needed = [term for term in pattern.terms if term.weight >= 1]
    if needed and not any(term.stem in hits for term in needed) and statement.kind is not StatementKind.VERSION:
        return None
    told = 1.0 if not needed and pattern.wanted is Wanted.DEFINITION else coverage
    return Vouching(told, nearness, hits, about, tuple(inner))


def _coverage(statement: Statement, pattern: QuestionPattern, document: ReadDocument) -> tuple[float, tuple[str, ...]]:
    """Return the share of the words of a question that are vouched for, and those that the statement itself has."""
    covered, hits = 0.0, []
    for term in pattern.terms:
        if any_in(term.others, statement.own):
            covered += term.weight
            hits.append(term.stem)
        elif any_in(term.others, statement.around) or any_in(term.others, document.stems):
            covered += term.weight
        elif statement.before and any_in(term.others, statement.said_before):
            covered += term.weight * BEFORE
    return covered / (sum(term.weight for term in pattern.terms) or 1.0), tuple(hits)


def _vouchers(
    entity: str, statement: Statement, document: ReadDocument, topics: frozenset[str]
) -> list[tuple[float, bool, str]]:
    """Return how well an entity is named, or each of the entities that "and" joins where the whole is not."""
    near, is_scope = _vouches(entity, statement, document, topics)
    parts = split_entity(entity)
    if near or len(parts) < 2:
        return [(near, is_scope, entity)]
    return [(*_vouches(part, statement, document, topics), part) for part in parts]


def _vouches(entity: str, statement: Statement, document: ReadDocument, topics: frozenset[str]) -> tuple[float, bool]:
    """Return how well a statement, or what it stands under, names an entity, and whether it is what it stands under."""
    scope = statement.scope
    for depth in range(len(scope) - 1, -1, -1):
        if is_head(entity, scope[depth], (*document.names, *scope[:depth])):
            return (1.0 if entity in scope[depth] else 0.9), True
    if any(is_head(entity, name) for name in document.names):
        return 1.0, True
    if is_named_in(entity, statement.text):
        return 0.9, False
    if any(is_named_in(entity, heading) for heading in (*scope, *document.names)):
        return 0.7, True
    if statement.lead_in and is_named_in(entity, statement.lead_in):
        return 0.7, True
    if statement.before and points_back(statement.text) and is_subject(entity, statement.before):
        return 0.6, True
    return (0.5, True) if entity.casefold() in topics else (0.0, False)


def is_subject(entity: str, sentence: str) -> bool:
    """Return whether a sentence begins with an entity: then "it" behind it is that."""
    return re.match(rf"(?:the |an? )?{re.escape(entity)}(?!\w)", sentence.lstrip("*_`\"' "), re.IGNORECASE) is not None


def split_entity(entity: str) -> list[str]:
    """Return the entities that "and" or a comma joins."""
    return [part.removeprefix("the ") for part in re.split(r",? and |, ", entity) if part]


POINTS = re.compile(r"(?:it|its|they|their|he|his|she|her|this|these|the)\b", re.IGNORECASE)
_PRONOUN = re.compile(r"(?:it|its|they|their|he|his|she|her)\b", re.IGNORECASE)
_NAME_INSIDE = re.compile(r"(?<=\s)[A-Z]\w")


def points_back(sentence: str) -> bool:
    """Return whether a sentence speaks of what the sentence before it is about.

    It begins with a pronoun, or with "the" or "this" and names nothing itself: "The battery of the Kite" is the Kite's.
    """
    if _PRONOUN.match(sentence):
        return True
    return POINTS.match(sentence) is not None and _NAME_INSIDE.search(sentence) is None


def asked_stems(pattern: QuestionPattern) -> frozenset[str]:
    """Return all stems that the question's words may be vouched for by, those of names included."""
    found = {stem for term in pattern.terms for stem in term.others}
    return frozenset(found | stems_of(" ".join((*pattern.entities, *pattern.numbers))))


EMPTY_IN_LABELS = stems_of(
    "the of a an in for per on from with and by total overall name value all number is are list as to us"
)


_WHOLE = stems_of("total overall all")


def specificity_of(label: str, asked: frozenset[str]) -> float:
    """Return the share of a label's words that the question has."""
    stems = stems_of(label)
    telling = stems - EMPTY_IN_LABELS or stems
    share = len(telling & asked) / len(telling) if telling else 0.0
    return share + (0.04 if stems & _WHOLE and telling != stems and share else 0.0)


def entity_of(statement: Statement, pattern: QuestionPattern, document: ReadDocument) -> str:
    """Return what a statement is about: what the question names, where it stands above it, else the title."""
    for heading in (*reversed(statement.scope), *document.names):
        for entity in pattern.entities:
            if is_head(entity, heading):
                return bare(heading) if " " in entity or entity[:1].isupper() else entity
    return pattern.entities[0] if pattern.entities else bare((*document.names, "")[0])
