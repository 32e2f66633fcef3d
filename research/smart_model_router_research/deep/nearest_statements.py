"""Statements by how near the words of a question stand to them, of those with a value of the kind asked for."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from smart_model_router_research.deep.asked_values import WHOLE, AskedKind, AskedValue, values_of
from smart_model_router_research.deep.asked_words import AskedWord, compounds_of
from smart_model_router_research.deep.found_answers import ReadDocument
from smart_model_router_research.deep.matching import WORD, placed_stems, stem_of
from smart_model_router_research.deep.naming import is_named_in
from smart_model_router_research.deep.statement_stems import senses_of
from smart_model_router_research.deep.statements import Statement, StatementKind
from smart_model_router_research.deep.values import NUMBER_WORDS, FoundValue

OWN_BONUS, VALUE_BONUS, UNSURE_COST = 0.3, 0.1, 0.06
LENGTH_COST, FREE_LENGTH = 0.05, 8
MOST_RANKED = 60
NOUN_SHARE = 0.7
MOST_BONUS = VALUE_BONUS * (1 + NOUN_SHARE)
LEAST_NEAR = 0.3
"""A statement with less of a question's words near is not looked at."""
LEAST_OF_BEST = 0.8
"""The least share of the best score, of a statement that a name or a value keeps from being the answer."""
BESIDE = 4
"""Characters between a value and the noun that is asked for, where they stand side by side."""
CLOSE = 40
"""Characters between a value and a word that is close to it."""
MAX_ANSWER = 400
"""Characters of a statement: in a longer one the words of a question stand too far apart to tell."""
_LIMITS = re.compile(
    r"how (?:many|much|long|large|big|old|deep|wide|far)\b.*\b(?:can|could|may)\b|\bmaximum\b|\bat most\b",
    re.IGNORECASE,
)
"""Questions for a limit."""
_LIMIT = re.compile(
    r"\b(?:max\w*|limit\w*|at most|up to|no more than|largest|upper|exceed\w*|no longer than|within)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class RankedStatement:
    """A statement with the worth of each word of the question near it. Shares are by weight, 0 to 1."""

    document: ReadDocument
    at: int
    score: float
    near: float
    own: float
    worths: dict[str, float]
    values: tuple[str, ...] = ()
    is_beside_noun: bool = False
    """A value stands right beside the noun that is asked for."""

    @property
    def statement(self) -> Statement:
        """The statement."""
        return self.document.statements[self.at]


def ranked(
    question: str, asked: AskedValue, words: Sequence[AskedWord], documents: Sequence[ReadDocument]
) -> list[RankedStatement]:
    """Return the statements that can answer, by the weight of the question's words near them, the best first."""
    total = sum(word.weight for word in words) or 1.0
    found = [one for document in documents for one in _near(document, words, total)]
    found.sort(key=lambda one: (-one.score, one.document.path, one.at))
    lower = question.lower()
    is_named = asked.kind in (AskedKind.BEING, AskedKind.NAME)
    common = frozenset[str]().union(*(document.by_stem.lower for document in documents if is_named))
    compounds = [*compounds_of(question), *(word.text for word in words if word.is_of_document)]
    limits = _LIMITS.search(question) is not None
    kept: list[RankedStatement] = []
    best = 0.0
    for one in found:
        if len(kept) >= MOST_RANKED or one.score + MOST_BONUS < LEAST_OF_BEST * best:
            break
        if not all(_is_named(name, one) for name in compounds):
            continue
        if limits and not _LIMIT.search(" ".join((one.statement.text, *one.statement.scope, one.statement.lead_in))):
            continue
        values = [] if _is_repeated(one) else _values(one.statement, asked, lower, common)
        if values:
            close = 0.0 if asked.kind in WHOLE else _closeness(values, one.statement.text, words)
            is_beside = _is_beside(asked.noun, values, one.statement.text)
            close += NOUN_SHARE * is_beside
            said = tuple(dict.fromkeys(value.text for value in values))
            score = one.score + VALUE_BONUS * close - UNSURE_COST * bool(_UNSURE.search(one.statement.text))
            kept.append(RankedStatement(one.document, one.at, score, one.near, one.own, one.worths, said, is_beside))
            best = max(best, score)
    kept.sort(key=lambda one: -one.score)
    return kept


def near_statements(document: ReadDocument, words: Sequence[AskedWord]) -> list[RankedStatement]:
    """Return the statements of a document that the words of a question stand near, without regard to their values."""
    return list(_near(document, words, sum(word.weight for word in words) or 1.0))


def chosen_statement(question: str, asked: AskedValue, document: ReadDocument, at: int) -> RankedStatement | None:
    """Return a statement that something else than nearness has chosen, as a whole where no value of the kind is read.

    None where it can have none: an amount without a number, a time without a day, a month, a year or an hour.
    """
    text = document.statements[at].text
    values = _values(document.statements[at], asked, question.lower(), frozenset())
    said = tuple(dict.fromkeys(value.text for value in values))
    needed = _TIMES if asked.kind is AskedKind.INSTANT else _AMOUNTS if asked.kind in _MEASURED else None
    if not said and (len(text) > MAX_ANSWER or text.rstrip().endswith("?") or (needed and not needed.search(text))):
        return None
    return RankedStatement(document, at, 1.0, 1.0, 1.0, {}, said or (" ".join(text.split()),))


_MEASURED = frozenset(
    [AskedKind.COUNT, AskedKind.NUMBER, AskedKind.DURATION, AskedKind.SIZE, AskedKind.MONEY, AskedKind.RATE]
)
_AMOUNTS = re.compile(rf"\d|\b(?:{'|'.join(NUMBER_WORDS)}|a|an|no|half|once|twice)\b", re.IGNORECASE)
_TIMES = re.compile(
    r"\d|\b(?:jan(?:uary)?|feb(?:ruary)?|march|april|may|june|july|august|sept(?:ember)?|october|november|december|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|spring|summer|autumn|winter|noon|midnight|daily|weekly|monthly|"
    r"yearly|mornings?|evenings?|nights?)\b",
    re.IGNORECASE,
)


_UNSURE = re.compile(
    r"\b(?:planned|proposed|future|hypothetical|would|might|for example|for instance|e\.g\.|such as|suppose|assume)\b",
    re.IGNORECASE,
)
"""Statements of what may be, or of an example."""


def _is_beside(noun: str, values: Sequence[FoundValue], text: str) -> bool:
    """Return whether the noun that is asked for stands right beside a value: "the DELETE command"."""
    stem = stem_of(noun) if noun else ""
    places = [place for place in placed_stems(text) if place.stem == stem] if stem else []
    return any(
        0 <= place.start - value.end <= BESIDE or 0 <= value.start - place.end <= BESIDE
        for place in places
        for value in values
    )


def _is_repeated(one: RankedStatement) -> bool:
    """Return whether the sentences of a labelled statement follow, each by itself."""
    behind = one.document.statements[one.at + 1 : one.at + 2]
    return one.statement.kind is StatementKind.LABELLED and any(each.start == one.statement.start for each in behind)


def _is_named(name: str, one: RankedStatement) -> bool:
    """Return whether a statement, or what it stands under, has a compound name as a whole."""
    statement = one.statement
    above = (*statement.scope, statement.term, statement.lead_in, statement.before, *one.document.names)
    return is_named_in(name, statement.text) or any(is_named_in(name, each) for each in above if each)


def _closeness(values: Sequence[FoundValue], text: str, words: Sequence[AskedWord]) -> float:
    """Return the share of a question's words in a text that stand close to the value that has most of them close."""
    weights = {form: word.weight for word in words for form in senses_of(word.stem)}
    places = [place for place in placed_stems(text) if place.stem in weights]
    total = sum(weights[place.stem] for place in places)
    best = 0.0
    for value in values:
        near = [
            weights[place.stem]
            for place in places
            if max(place.start - value.end, value.start - place.end) <= CLOSE
            and not value.start <= place.start < value.end
        ]
        best = max(best, sum(near))
    return best / total if total else 0.0


def _near(document: ReadDocument, words: Sequence[AskedWord], total: float) -> Iterator[RankedStatement]:
    near: dict[int, dict[str, float]] = {}
    own: dict[int, float] = {}
    names = {word.stem: document.by_stem.names_worth(word.stem, is_name=word.is_name) for word in words}
    weights = {word.stem: word.weight for word in words}
    for word in words:
        places, within = document.by_stem.worths(word.stem, word.joined, is_name=word.is_name)
        for at, worth in places.items():
            near.setdefault(at, {})[word.stem] = worth
        for at in within:
            own[at] = own.get(at, 0.0) + word.weight
    of_names = sum(weights[stem] * worth for stem, worth in names.items())
    for at, found in near.items():
        if (sum(weights[stem] * worth for stem, worth in found.items()) + of_names) / total < LEAST_NEAR:
            continue
        worths = {stem: max(found.get(stem, 0.0), worth) for stem, worth in names.items()}
        share = sum(weights[stem] * worth for stem, worth in worths.items()) / total
        said = own.get(at, 0.0) / total
        length = max(FREE_LENGTH, len(document.statements[at].text.split()))
        score = share + OWN_BONUS * said - LENGTH_COST * math.log(length / FREE_LENGTH)
        yield RankedStatement(document, at, score, share, said, worths)


def _values(statement: Statement, asked: AskedValue, question: str, common: frozenset[str]) -> list[FoundValue]:
    """Return the values of the kind asked for that are not the question's own."""
    text = statement.text
    if len(text) > MAX_ANSWER or text.rstrip().endswith(("?", ":") if asked.kind in WHOLE else "?"):
        return []
    if len(text.split()) < 2 and statement.kind is not StatementKind.LABELLED:
        return []
    found = values_of(asked, text, common)
    return found if asked.kind in WHOLE else [value for value in found if not _is_asked(value.text, question)]


_WHERE = re.compile(r"^(?:in|on|at|under|inside|into|below|behind|beside|to|from) (?:the |an? |your )?")


def _is_asked(value: str, question: str) -> bool:
    """Return whether a value is one that the question names itself, or is made of its words."""
    if _WHERE.sub("", value.lower()).strip("$-/`\"'()") in question:
        return True
    words = [word.lower() for word in WORD.findall(value.replace("_", " "))]
    return len(words) > 1 and sum(word in _words_in(question) for word in words) >= len(words) * 0.6


@lru_cache(maxsize=64)
def _words_in(question: str) -> frozenset[str]:
    return frozenset(WORD.findall(question))
