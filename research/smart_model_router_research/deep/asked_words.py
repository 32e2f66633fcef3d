"""The words of an everyday question: how much each tells, and those that a statement has to speak of."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from smart_model_router_research.deep.asked_values import AskedKind, asked_value
from smart_model_router_research.deep.found_answers import ReadDocument
from smart_model_router_research.deep.matching import WORD, stem_of
from smart_model_router_research.deep.questions import SLIGHT, STOP
from smart_model_router_research.deep.statement_stems import senses_of

WELL_KNOWN = 0.3
"""A word that is so common in the documents need not be near: they are about it."""
EVERYWHERE = 0.12
"""The same for what a question asks of, where that is written in lower case."""
SLIGHT_WEIGHT = 0.3
UNKNOWN = 0.7
"""The most that a word weighs that the documents have in no form: it may be the question's own way to say it."""
_EMPTY = frozenset(
    "very quite tells happens happen happened wants wanted needing too just really actually ever more other others "
    "another anything something anyone one".split()
)


@dataclass(frozen=True, slots=True)
class AskedWord:
    """A word of a question: its stem, its weight, and whether it has to stand near.

    It has to where it names something, is what the question asks of, or the deed whose doer is asked for.
    """

    stem: str
    weight: float
    text: str = ""
    is_name: bool = False
    is_needed: bool = False
    joined: tuple[str, ...] = ()
    """The stems that it makes with its neighbours where these are written as one word: "path names", "pathnames"."""
    is_of_document: bool = False
    """It is the whole name of a document."""


def words_of(question: str, documents: Sequence[ReadDocument]) -> list[AskedWord]:
    """Return the telling words of a question, each with how rare it is in the documents: about 0 to 1."""
    total = sum(len(document.statements) for document in documents) + 2
    plain = re.sub(r"(?<=\w)['\u2019]s\b", "", question)
    of_documents = _names_of_documents(plain, documents)
    names = _named(plain) | of_documents
    subject = _subject(plain)
    parts = frozenset(part for compound in _COMPOUND.findall(plain) for part in WORD.findall(compound.lower()))
    done = _DEED.match(plain)
    deed = done["deed"].lower() if done is not None else ""
    found: dict[str, AskedWord] = {}
    amount = re.search(r"\bhow (\w+)", plain.lower())
    joined = _joined(plain)
    kind = asked_value(question).kind
    of_kind = _OF_KIND.get(kind, frozenset())
    possible = POSSIBLE.search(plain) if kind is AskedKind.RELEASE else None
    if possible is not None:
        joined[possible["verb"].lower()] = BEGUN
    for word in WORD.findall(plain):
        lower = word.lower()
        if (lower in STOP and lower != "not") or lower in _EMPTY or (amount is not None and lower == amount[1]):
            continue
        if lower in of_kind:
            continue
        stem = stem_of(lower)
        often = sum(document.by_stem.frequency(stem) for document in documents)
        rarity = math.log(total / (often + 0.5)) / math.log(total)
        is_known = often or any(True for document in documents for _ in document.by_stem.forms_of(stem))
        weight = max(0.1, rarity if is_known else min(rarity, UNKNOWN)) * (SLIGHT_WEIGHT if lower in SLIGHT else 1.0)
        well_known = WELL_KNOWN if total >= MANY_STATEMENTS else -1.0
        is_name = lower in names and rarity > well_known
        is_subject_needed = rarity > (EVERYWHERE if word.islower() else well_known)
        is_needed = (
            is_name
            or (lower in parts and rarity > well_known)
            or lower == deed
            or (lower == subject and is_subject_needed)
        )
        known = found.get(stem)
        if known is None or is_needed:
            more = joined.get(lower, ())
            found[stem] = AskedWord(stem, weight, word, is_name, is_needed, more, lower in of_documents)
    return list(found.values())


_OF_KIND = {
    AskedKind.RELEASE: frozenset("version versions release releases since".split()),
    AskedKind.INSTANT: frozenset("date day month year".split()),
}
"""The words of a question that a value of its kind says by itself."""
POSSIBLE = re.compile(r"\b(?:can|could|may) (?:(?:i|you|we|one)|(?:[\w-]+ ){1,4}be) (?P<verb>[a-z]+)\b", re.IGNORECASE)
BEGUN = tuple(stem_of(word) for word in "support supported added introduced available new".split())
"""The verbs of a release from which on one can do something."""
_NAME = re.compile(r"[A-Z][\w]*|\w*\d\w*")
_INITIAL = re.compile(r"\b[A-Z]\.$")
_COMPOUND = re.compile(r"\w+(?:[-_./:]\w+)+")
_DEED = re.compile(r"(?:by )?(?:who|whom|which \w+) (?P<deed>\w{3,}(?:ed|t|e|d|n|s|w))\b", re.IGNORECASE)
"""The verb of a question for a person, which a statement has to have."""
_IS_NAME = re.compile(r"[_./:\d]|[A-Z]")
"""A compound that is a name, and not two words with a hyphen."""
_ASKS_OF = re.compile(
    r"\b(?:do|does|did|is|are|was|were|has|have|had|can|could|will|would|should|may|must) "
    r"(?:(?:the|an?|one|its?|my|your|each|every|all|any) )*(?P<subject>[\w-]+)"
)


def _named(question: str) -> frozenset[str]:
    """Return the words of a question that name something: capitalised, not as the first of a sentence, or numbers."""
    found: set[str] = set()
    for match in _NAME.finditer(question):
        before = question[: match.start()].rstrip()
        begins = not before or (before[-1] in ".?!:" and not _INITIAL.search(before))
        if not begins or match[0][1:] != match[0][1:].lower():
            found.update(word.lower() for word in WORD.findall(match[0]))
    for compound in _COMPOUND.findall(question):
        if _IS_NAME.search(compound):
            found.update(word.lower() for word in WORD.findall(compound))
    return frozenset(found - STOP)


_LEAST_NAME = 5


def _names_of_documents(question: str, documents: Sequence[ReadDocument]) -> frozenset[str]:
    """Return the words of a question in small letters that are the whole name of a document, and no everyday words."""
    known = {name.lower() for document in documents for name in document.names}
    words = {word for word in WORD.findall(question) if word.islower() and len(word) >= _LEAST_NAME and word in known}
    return frozenset(word for word in words if senses_of(stem_of(word)) == {stem_of(word)} and word not in SLIGHT)


def _joined(question: str) -> dict[str, tuple[str, ...]]:
    """Return the stems that words make with their neighbours, for each word in lower case."""
    found: dict[str, tuple[str, ...]] = {}
    words = question.lower().split(" ")
    for one, other in pairwise(words):
        if one.isalpha() and other.isalpha() and one not in STOP and other not in STOP:
            stem = stem_of(one + other)
            found[one] = (*found.get(one, ()), stem)
            found[other] = (*found.get(other, ()), stem)
    return found


def _subject(question: str) -> str:
    """Return the first word, in lower case, of what a question asks of; "" for a pronoun and for none."""
    match = _ASKS_OF.search(question.lower())
    words = WORD.findall(match["subject"]) if match is not None else []
    word = words[0] if words else ""
    return "" if word in STOP or word in SLIGHT or word in _EMPTY or word.endswith("ly") else word


def compounds_of(question: str) -> list[str]:
    """Return the names that are made of several words without a space: shared_buffers, DNS-over-HTTPS."""
    return [name for name in _COMPOUND.findall(question) if _IS_NAME.search(name)]


MANY_STATEMENTS = 300
"""Statements below which no name counts as well known: of two towns in five notes each is named often."""


def are_many(documents: Sequence[ReadDocument]) -> bool:
    """Return whether the statements of documents are hundreds."""
    return sum(len(document.statements) for document in documents) >= MANY_STATEMENTS
