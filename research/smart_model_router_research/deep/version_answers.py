"""Answers to "in which version": from notes on versions, headings of changelogs, and sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence

from smart_model_router_research.deep.found_answers import FoundAnswer, ReadDocument
from smart_model_router_research.deep.labelled_answers import answer_by_label, answer_by_row
from smart_model_router_research.deep.matching import any_in, stems_of
from smart_model_router_research.deep.naming import is_head, is_named_in
from smart_model_router_research.deep.questions import QuestionPattern
from smart_model_router_research.deep.sentence_answers import LEAST_OPEN_COVERAGE
from smart_model_router_research.deep.statements import Statement, StatementKind
from smart_model_router_research.deep.typed_values import nearest_value
from smart_model_router_research.deep.values import dates_in, versions_in
from smart_model_router_research.deep.vouching import Vouching, entity_of

_VERBS = {
    "added": stems_of("added new introduced available appeared since add introduce appear"),
    "changed": stems_of("changed change altered modified"),
    "deprecated": stems_of("deprecated deprecate obsolete"),
    "removed": stems_of("removed remove dropped deleted"),
}


def _verb_of(pattern: QuestionPattern) -> str:
    stems = {term.stem for term in pattern.terms}
    return next((verb for verb, words in reversed(_VERBS.items()) if words & stems), "")


def answer_by_version(
    statement: Statement, pattern: QuestionPattern, document: ReadDocument, match: Vouching, topics: frozenset[str]
) -> FoundAnswer | None:
    """Return the version of a note, of a heading of a changelog, or of a sentence."""
    verb = _verb_of(pattern)
    entity = entity_of(statement, pattern, document)
    score = 2 * match.coverage + match.nearness
    if statement.kind is StatementKind.VERSION:
        return _of_note(statement, pattern, document, match, topics)
    is_labelled = statement.kind is StatementKind.LABELLED
    labelled = answer_by_label(statement, pattern, document, match) if is_labelled else None
    heads = [words for words in reversed(statement.scope) if not _CHAPTER.match(words)]
    heading = next((found for words in heads if (found := _RELEASE.match(words))), None)
    if heading is not None and match.coverage >= LEAST_OPEN_COVERAGE:
        if _is_of_other_deed(statement, pattern):
            return None
        value, attribute = heading[1], f"{verb or 'changed'} in version"
    elif labelled is not None:
        return labelled
    elif statement.kind is StatementKind.ROW:
        return answer_by_row(statement, pattern, document, match)
    else:
        text = statement.text
        known = [version for version in versions_in(text) if _IS_VERSION.search(text[: version.start][-30:])]
        nearest = nearest_value(known, text, pattern) if verb or match.hits else None
        if nearest is None or match.coverage < LEAST_OPEN_COVERAGE:
            return None
        value, attribute, score = nearest.text, f"{verb or 'said'} in version", score - 0.2
    return FoundAnswer(
        document=document, statement=statement, value=value, score=score, entity=entity, attribute=attribute
    )


_SECTIONS = {
    "added": stems_of("added new introduced available appeared since add introduce appear support can may could"),
    "changed": stems_of("changed change altered modified"),
    "deprecated": stems_of("deprecated deprecate obsolete"),
    "removed": stems_of("removed remove dropped drop deleted delete"),
    "fixed": stems_of("fixed fix mended mend solved solve repaired repair corrected correct bug"),
}
"""The sections of changelogs, with the words of questions for what they list."""


def _is_of_other_deed(statement: Statement, pattern: QuestionPattern) -> bool:
    """Return whether a statement stands in the section of a changelog that lists what is not asked for."""
    section = next((words.casefold() for words in reversed(statement.scope) if words.casefold() in _SECTIONS), "")
    asked = {name for name, words in _SECTIONS.items() if words & stems_of(pattern.text)}
    return bool(section) and bool(asked) and section not in asked


_ASKS_DATE = re.compile(
    r"(?i:when|(?:on )?(?:what|which) (?:date|day)) (?:was|did|is) (?:the )?(?P<name>[A-Z][\w-]* )?"
    r"(?:(?:[Vv]ersion|[Rr]elease) )?v?(?P<version>\d+(?:\.\d+)+[\w.-]*) "
    r"(?:first )?(?:released|published|issued|out|come out|appear)"
)
DATE_OF_RELEASE = "date of release"


def asks_date_of_release(question: str) -> bool:
    """Return whether a question asks when a release that it names by its version came out."""
    return _ASKS_DATE.fullmatch(" ".join(question.split()).rstrip("?!. ")) is not None


def dates_of_release(question: str, documents: Sequence[ReadDocument]) -> list[FoundAnswer]:
    """Return the dates in headings of changelogs of the release that a question is about: "## 2.2.0 - 2025-06-12".

    What the question names beside the version has to be the name of a document. None where two dates are given.
    """
    asked = _ASKS_DATE.fullmatch(" ".join(question.split()).rstrip("?!. "))
    if asked is None:
        return []
    name = (asked["name"] or "").strip()
    if name and not any(is_named_in(name, each) for document in documents for each in document.names):
        return []
    found: dict[str, FoundAnswer] = {}
    for document in documents:
        for statement in document.statements:
            dated = _date_above(statement, asked["version"])
            if dated:
                found.setdefault(dated, _dated(statement, document, dated, asked["version"]))
    return list(found.values()) if len(found) == 1 else []


def _date_above(statement: Statement, version: str) -> str:
    """Return the one date in the heading of a release that a statement stands under; "" for none."""
    for words in statement.scope:
        released = _RELEASE.match(words)
        dates = list(dates_in(words[released.end(1) :])) if released is not None and released[1] == version else []
        if len(dates) == 1:
            return dates[0].text
    return ""


def _dated(statement: Statement, document: ReadDocument, dated: str, version: str) -> FoundAnswer:
    return FoundAnswer(
        document=document,
        statement=statement,
        value=dated,
        item=dated,
        score=1.0,
        entity=version,
        attribute=DATE_OF_RELEASE,
        names_term=True,
    )


def is_below_release(text: str, version: str) -> bool:
    """Return whether a claim begins with headings of which one is that of a release."""
    return any((found := _RELEASE.match(part)) and found[1] == version for part in text.split(" > ")[:-1])


def _of_note(
    statement: Statement, pattern: QuestionPattern, document: ReadDocument, match: Vouching, topics: frozenset[str]
) -> FoundAnswer | None:
    """Return the version of a note: one that says what the question says, or one on the thing itself."""
    verb = _verb_of(pattern)
    said = {"new": "added", "introduced": "added", "available": "added"}.get(statement.label, statement.label)
    above = (*document.names, *statement.scope)
    inside = [entity for entity in pattern.entities if is_named_in(entity, statement.text)]
    owned = [each for each in pattern.entities if any(is_head(each, head, above) for head in above)]
    if any(each not in inside and each not in owned and each.casefold() not in topics for each in pattern.entities):
        return None
    words = stems_of(statement.text)
    verbs = frozenset().union(*_VERBS.values())
    telling = [term for term in pattern.terms if term.weight >= 0.6 and term.stem not in verbs]
    is_told = bool(inside) or any(any_in(term.others, words) for term in telling)
    if is_told:
        if verb and said != verb and not words & _VERBS[verb]:
            return None
    elif not _is_on(statement, pattern, document) or telling or (verb or "added") != said:
        return None
    note = set(re.findall(r"\w+", statement.text.partition(statement.value)[2].lower()))
    asked = set(re.findall(r"\w+", pattern.text.lower()))
    alike = len(note & asked) / len(note | asked) if note else 0.0
    score = 2 * match.coverage + match.nearness + (0.5 if said == verb else 0)
    score += 2 * alike if is_told else -0.3 * bool(note)
    if not inside and statement.scope and any(is_head(each, statement.scope[-1], above) for each in pattern.entities):
        score += 0.5
    return FoundAnswer(
        document=document,
        statement=statement,
        value=statement.value,
        score=score,
        entity=entity_of(statement, pattern, document),
        attribute=f"{said} in version" + (f": {' '.join(sorted(inside))}" if inside else ""),
    )


def _is_on(statement: Statement, pattern: QuestionPattern, document: ReadDocument) -> bool:
    """Return whether a note stands right under what the question names, and not under a part of it."""
    heads = statement.scope[-1:] or document.names[:1]
    above = (*document.names, *statement.scope)
    return not pattern.entities or any(is_head(each, head, above) for each in pattern.entities for head in heads)


_IS_VERSION = re.compile(
    r"\b(?:versions?|releases?|since|as of|v|python)\W*(?:[\w.]+\W+){0,2}$|\b[A-Z][\w+#]+ $", re.IGNORECASE
)


_RELEASE = re.compile(
    r"(?!(?:chapter|section|appendix|part|figure|table|step|example) )(?:[\w.-]+ )?(?:version |release |v)?"
    r"\[?(\d+(?:\.\d+)+(?:[.-]?\w+)*)\]?(?:\s|$|[(\u2013-])",
    re.IGNORECASE,
)
_CHAPTER = re.compile(r"\d+(?:\.\d+)+\.? [A-Z](?!\w+ \d)")
"""The beginning of a numbered heading, "14.2 Rules": no release, which a date, a word for it or nothing follows."""
