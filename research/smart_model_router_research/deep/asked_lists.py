"""Questions for several things, answered by the list below the one line that speaks of them: "The modes are:"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from smart_model_router_research.deep.asked_exactly import says_nothing_else
from smart_model_router_research.deep.asked_words import AskedWord, words_of
from smart_model_router_research.deep.fitting import is_said
from smart_model_router_research.deep.found_answers import FoundAnswer, ReadDocument
from smart_model_router_research.deep.matching import stem_of
from smart_model_router_research.deep.naming import bare
from smart_model_router_research.deep.nearest_statements import RankedStatement, near_statements
from smart_model_router_research.deep.statements import Statement, StatementKind

LEAST_ITEMS, MOST_ITEMS = 2, 24
LEAST_NEAR, LEAST_OF_NOUN = 0.75, 0.6
"""The least share of a question's words near the line above a list, and the least worth of the noun there."""
MARGIN = 0.05
"""The distance to the next list from which one is the nearest alone."""
_KINDS = "(?:kinds|types|sorts|forms)"
_PLURAL = r"(?!(?:does|has|was|is|uses) )(?P<noun>[a-z-]{2,}[a-rt-z]s)"
_ASKS_SEVERAL = (
    re.compile(
        rf"(?:which|what)(?: (?:two|three|four|five|six|seven))?(?: {_KINDS} of)?(?: [\w-]+){{0,2}}? {_PLURAL} "
        r"(?:are|were|can|could|do|does|did|have|has|had|will|may|must|should|come|exist|is)\b",
        re.IGNORECASE,
    ),
    re.compile(
        rf"(?:(?:which|what) (?:are|were)|list|name|enumerate)(?: (?:all|some|of|the|me|two|three|four|five|six))+"
        rf"(?: [\w-]+){{0,2}}? {_PLURAL}\b",
        re.IGNORECASE,
    ),
)
_ARE_THE = re.compile(r"^(?:which|what) (?:are|were) (?:(?:all|of|the) )*", re.IGNORECASE)
_OTHER = re.compile(r"\b(?:other|else|besides|apart from|except|not)\b", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
_BOUNDED = re.compile(
    r"\b(?:no longer|not yet|unsupported|deprecated|removed|dropped|discontinued|obsolete|former|formerly|planned"
    r"|future|experimental|beta|preview|coming soon)\b|^[^.:]*(?:\b(?:only|except|unless|if|until|optional)\b|\()",
    re.IGNORECASE,
)
"""Items that are not so as the others are: by any of their words, or by those of their head."""
_RUN_IN = re.compile(r"(?:\*\*|__|`)(?P<name>[^*`_\n]{1,80}?)[.:]?(?:\*\*|__|`)")
"""The marked words at the beginning of an item."""


@dataclass(frozen=True)
class _List:
    items: tuple[Statement, ...]
    line: RankedStatement
    """The line that leads to it."""


def asked_several(question: str) -> str:
    """Return the noun, in the plural, of a question for several things; "" for any other question."""
    match = next((found for form in _ASKS_SEVERAL if (found := form.match(question)) is not None), None)
    return match["noun"].lower() if match is not None and not _OTHER.search(question) else ""


def listed_answers(question: str, documents: Sequence[ReadDocument]) -> list[FoundAnswer]:
    """Return the items of the list whose line says what is asked, each as an answer; none where several lists do."""
    noun = asked_several(question)
    if not noun:
        return []
    words = words_of(question, documents)
    stem = stem_of(noun)
    lists = [
        one
        for document in documents
        for one in _lists(document, words)
        if _is_near(one.line, words, stem) and _is_whole(one, question)
    ]
    told = _ARE_THE.sub("all ", question)  # the line has no value that stands beside its owner
    lists = [one for one in lists if is_said(told, _answer(one.line.statement, one), words)]
    lists.sort(key=lambda one: -one.line.score)
    if not lists or (len(lists) > 1 and lists[0].line.score - lists[1].line.score < MARGIN):
        return []
    return [_answer(item, lists[0]) for item in lists[0].items]


def _lists(document: ReadDocument, words: Sequence[AskedWord]) -> Iterator[_List]:
    """Yield the lists of a document with the statements that lead to them, as far as a question's words are near."""
    near = {one.at: one for one in near_statements(document, words)}
    statements = document.statements
    for lead_in, group in groupby(enumerate(statements), key=lambda each: each[1].lead_in):
        within = list(group)
        items = tuple(each for _, each in within if each.kind in (StatementKind.ITEM, StatementKind.LABELLED))
        line = near.get(within[0][0] - 1)
        if lead_in and line is not None and LEAST_ITEMS <= len(items) <= MOST_ITEMS and _leads(line.statement):
            yield _List(items, line)


def _leads(statement: Statement) -> bool:
    return statement.text.rstrip().endswith(":")


def _is_whole(one: _List, question: str) -> bool:
    """Return whether a list has all that is asked for, and nothing else.

    Its line says nothing that the question does not, no item is bounded, and each stands for the first time.
    """
    line, document = one.line.statement.text, one.line.document
    joins = [re.search(r"\b(?:and|or)\b", text.lower()) is not None for text in (line, question)]
    return (
        says_nothing_else(line, question, document)
        and set(_DIGITS.findall(line)) <= set(_DIGITS.findall(question))
        and joins in ([False, False], [True, True])
        and not any(_BOUNDED.search(item.text) for item in one.items)
        and all(document.stored.text.find(item.text) == item.start for item in one.items)
    )


def _is_near(line: RankedStatement, words: Sequence[AskedWord], noun: str) -> bool:
    """Return whether a line speaks of what is asked for, and of all that has to be near."""
    return (
        line.near >= LEAST_NEAR
        and line.worths.get(noun, 1.0) >= LEAST_OF_NOUN
        and all(line.worths[word.stem] >= LEAST_OF_NOUN for word in words if word.is_needed)
    )


def _answer(statement: Statement, one: _List) -> FoundAnswer:
    named = _RUN_IN.match(statement.text)
    value = named["name"] if named is not None else statement.label or " ".join(statement.text.split())
    return FoundAnswer(
        document=one.line.document,
        statement=statement,
        value=value,
        item=value,
        score=one.line.score,
        entity=bare(one.line.document.names[0]) if one.line.document.names else "",
        attribute="item",
        names_term=True,
    )
