"""Answers from sentences: what is said to be the thing asked for, or the value of its kind that stands nearest."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from smart_model_router_research.deep.clauses import expansion_of, is_by_whole_sentence, said_of
from smart_model_router_research.deep.found_answers import FoundAnswer, ReadDocument
from smart_model_router_research.deep.matching import WORD, any_in, placed_stems, stem_of, stems_of
from smart_model_router_research.deep.naming import bare, head_of, is_head
from smart_model_router_research.deep.questions import QuestionPattern, Wanted
from smart_model_router_research.deep.statements import Statement, StatementKind
from smart_model_router_research.deep.typed_values import (
    TEXT_UNIT,
    default_in,
    fits_question,
    nearest_value,
    needs_unit,
)
from smart_model_router_research.deep.values import FoundValue, dates_in, numbers_in, persons_in
from smart_model_router_research.deep.vouching import Vouching, asked_stems, entity_of

LEAST_OPEN_COVERAGE = 0.85
"""The share of the words of a question that a sentence which is an answer as a whole has to vouch for."""
LEAST_YES_NO_COVERAGE = 0.95
MAX_SENTENCE = 1_000
PERSON_WORDS = 4
"""The words that may stand between a person and what the person did."""


_ASKS_NOW = re.compile(r"(?:who|what|which|where)(?: [\w-]+)? (?:is|are)\b", re.IGNORECASE)
_ASKS_STILL = re.compile(
    r"\b(?:these days|nowadays|currently|now|today|at present|at the moment|still)\W*$", re.IGNORECASE
)
_NOT_NOW = re.compile(r"(?!.*\b(?:is|are|has|have|now|still)\b).*\b(?:was|were)\b", re.IGNORECASE | re.DOTALL)
_PAST = re.compile(r"\b(?:was|were)\b.*\b(?:until|till|formerly|previously)\b|\bformer\b", re.IGNORECASE)
"""Statements about what is over: they do not answer what is."""


def is_over(question: str, text: str) -> bool:
    """Return whether a question asks what is so, and a text says what was."""
    asks_now = _ASKS_NOW.match(question) is not None and _PAST.search(text) is not None
    return asks_now or (_ASKS_STILL.search(question) is not None and _NOT_NOW.match(text) is not None)


class _Said(NamedTuple):
    """The value that a sentence gives, and how much more or less that is worth than a value of the kind asked for."""

    value: str
    bonus: float = 0.0
    unit: str = ""
    is_entity: bool = False


def answer_by_sentence(
    statement: Statement, pattern: QuestionPattern, document: ReadDocument, match: Vouching
) -> FoundAnswer | None:
    """Return the answer in a sentence: the value of the kind asked for, nearest to the words of the question."""
    if statement.text.rstrip().endswith(("?", ":")) or len(statement.text) > MAX_SENTENCE:
        return None
    if is_over(pattern.text, statement.text):
        return None
    said = _said(statement, pattern, document, match)
    if said is None:
        return None
    density = len(match.hits) / max(4, len(statement.text.split()))
    return FoundAnswer(
        document=document,
        statement=statement,
        value=said.value,
        unit=said.unit,
        score=2 * match.coverage + match.nearness + said.bonus + density,
        entity=said.value if said.is_entity else entity_of(statement, pattern, document),
        attribute=_attribute(pattern),
        is_entity=said.is_entity,
    )


def _said(statement: Statement, pattern: QuestionPattern, document: ReadDocument, match: Vouching) -> _Said | None:
    text, wanted = statement.text, pattern.wanted
    if wanted in (Wanted.FACT, Wanted.NUMBER) and any(term.stem == "default" for term in pattern.terms):
        default = default_in(text)
        if default is None or (wanted is Wanted.NUMBER and not next(numbers_in(default.text, words=True), None)):
            return None
        return _Said(default.text, 0.4)
    if wanted in _FINDERS:
        fitting = [value for value in _FINDERS[wanted](text, pattern) if _may_answer(value, pattern)]
        if wanted is Wanted.PERSON:
            fitting = [value for value in fitting if _is_beside_verb(value, text, pattern)]
        value = nearest_value(fitting, text, pattern) if match.hits else None
        return _Said(value.text, unit=value.unit) if value is not None else None
    if wanted is Wanted.YES_NO:
        if match.coverage < LEAST_YES_NO_COVERAGE or not match.hits:
            return None
        return _Said(" ".join(text.split()))
    return _stated(statement, pattern, document, match)


def _stated(statement: Statement, pattern: QuestionPattern, document: ReadDocument, match: Vouching) -> _Said | None:
    """Return what a sentence says of the thing asked for, the thing that it says it of, or the sentence as a whole."""
    text, wanted = statement.text, pattern.wanted
    head = statement.scope[-1] if statement.scope else ""
    if wanted is Wanted.DEFINITION and (name := expansion_of(pattern, text)):
        return _Said(name, 0.5)
    if wanted is not Wanted.OPEN and (said := said_of(text, pattern, match)) is not None:
        return _Said(said, 0.3)
    is_open = match.coverage >= LEAST_OPEN_COVERAGE
    if wanted is Wanted.FACT and pattern.asked_noun and head and is_open and not match.is_about:
        name = bare(statement.term) if len(statement.term.split()) <= 6 else head_of(statement.term)
        name = head_of(statement.term) if "(" in name or not name else name
        name = name or (head_of(head) if _is_identifier(head_of(head)) else "")
        if name and not stems_of(name) <= asked_stems(pattern):
            return _Said(name, 0.1, is_entity=True)
    is_prose = statement.kind in (StatementKind.SENTENCE, StatementKind.ITEM)
    if (
        wanted is Wanted.DEFINITION
        and is_prose
        and pattern.entities
        and head
        and is_head(pattern.entities[0], head, document.names)
    ):
        return _Said(" ".join(text.split()), 0.3 / (1 + statement.nth))
    if not is_by_whole_sentence(pattern, text):
        return None
    if is_open and len(match.hits) + len(pattern.entities) >= 3:
        return _Said(" ".join(text.split()), -0.3)
    return None


def _attribute(pattern: QuestionPattern) -> str:
    stems = {term.stem for term in pattern.terms}
    return " ".join(word for word in WORD.findall(pattern.text) if stem_of(word.lower()) in stems)


def _is_identifier(word: str) -> bool:
    return bool(re.search(r"[_()-]|[a-z][A-Z]|\w\.[a-z]", word)) or word.islower()


def _numbers(text: str, pattern: QuestionPattern) -> Iterator[FoundValue]:
    counts = pattern.text.lower().startswith("how many")
    for number in numbers_in(text, words=counts or needs_unit(pattern)):
        if not fits_question(number, pattern) or re.fullmatch(r"(?:1[5-9]|20)\d\d", number.text):
            continue
        if needs_unit(pattern) and not number.unit and not TEXT_UNIT.match(text, number.end):
            continue  # a number of a chapter or of a page measures nothing
        width = 1 if number.text.lower() == "one" else 4
        behind = stems_of(" ".join(re.split(r"[.;:]", text[number.end :])[0].split()[:width]))
        noun = [term for term in pattern.terms if term.stem in stems_of(pattern.asked_noun)]
        if counts and noun and not any_in(noun[0].others, behind):
            continue
        yield number


_WHO_DOES = re.compile(r"who (?P<verb>(?!is\b|was\b)[a-z]+) (?:the |our |an? )?(?P<object>.+?)\W*", re.IGNORECASE)
_GROUP = r"(?P<name>(?:[\w&-]+ ){1,3}(?:team|group|squad|department|committee|division|guild|crew|board))"
_GROUP_DOES = re.compile(rf"(?:The|Our) {_GROUP} (?P<adverbs>(?:(?:now|also|currently|has|have) )*)")
_BY_GROUP = re.compile(rf" by (?:the|our) {_GROUP}(?!\w)")
_OVER = re.compile(r"\b(?:was|were) $")
_BEHIND = r"(?=\W*$|[,;:]| (?:since|as|and|or|in|on|at|for|from|with|until|because|but)\b)"


def _doers(text: str, pattern: QuestionPattern) -> Iterator[FoundValue]:
    """Yield the persons of a text, and a group with a common name that does what is asked: "The data team owns X"."""
    yield from persons_in(text)
    asked = _WHO_DOES.fullmatch(pattern.text)
    if asked is None or not pattern.terms:
        return
    is_now, thing = asked["verb"].endswith("s"), re.escape(asked["object"])
    done = re.compile(rf"(?:the |our )?{thing} (?:is|are|was|were|ha(?:s|ve) been) (?:(?:now|also) )?", re.IGNORECASE)
    to_thing = re.compile(rf" (?:the |our )?{thing}{_BEHIND}", re.IGNORECASE)
    for place in placed_stems(text):
        if place.stem not in pattern.terms[0].others:
            continue
        before, group = text[: place.start], None
        if done.fullmatch(before) and not (is_now and _OVER.search(before)):
            group = _BY_GROUP.match(text, place.end)
        elif to_thing.match(text, place.end):
            group = _GROUP_DOES.fullmatch(before)
            if group is not None and is_now and text[: place.end].endswith("ed") and "ha" not in group["adverbs"]:
                group = None  # it did once
        if group is not None:
            yield FoundValue(group["name"], *group.span("name"))


_FINDERS: Mapping[Wanted, Callable[[str, QuestionPattern], Iterator[FoundValue]]] = {
    Wanted.NUMBER: _numbers,
    Wanted.DATE: lambda text, _pattern: dates_in(text),
    Wanted.PERSON: _doers,
}


def _is_beside_verb(value: FoundValue, text: str, pattern: QuestionPattern) -> bool:
    """Return whether a name stands within four words of what the person did."""
    if not pattern.terms:
        return False
    for place in placed_stems(text):
        if place.stem in pattern.terms[0].others:
            between = text[place.end : value.start] if place.end <= value.start else text[value.end : place.start]
            if len(between.split()) <= PERSON_WORDS and not re.search(r"[.;:]\s", between):
                return True
    return False


def _may_answer(value: FoundValue, pattern: QuestionPattern) -> bool:
    """Return whether a value is not a part of the question itself."""
    return value.text not in pattern.numbers and not any(
        value.text in entity or entity in value.text for entity in pattern.entities
    )
