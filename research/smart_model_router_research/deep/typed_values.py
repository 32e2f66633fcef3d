"""The part of a value that is of the kind asked for: a number of the right dimension, a date, a default."""

from __future__ import annotations

import re
from collections.abc import Sequence

from smart_model_router_research.deep.matching import any_in, placed_stems, stems_of
from smart_model_router_research.deep.questions import QuestionPattern, Wanted
from smart_model_router_research.deep.values import (
    DIMENSIONS,
    FoundValue,
    dates_in,
    dimension_of,
    items_of,
    numbers_in,
    versions_in,
)


def typed_value(value: str, pattern: QuestionPattern, label: str) -> FoundValue | None:
    """Return the part of a label's value that is of the kind asked for; None where there is none."""
    text = value.strip()
    if not text or text.lower() in ("na", "n/a", "none", "-", "\u2014", "unknown", "tbd"):
        return None
    wanted = pattern.wanted
    if wanted is Wanted.NUMBER:
        counts = pattern.text.lower().startswith("how many")
        found = [number for number in numbers_in(text, words=counts) if fits_question(number, pattern)]
        found.sort(key=lambda number: not dimension_of(number.unit) if not counts else 0)
        if needs_unit(pattern):
            found = [
                number for number in found if number.unit or number.text == text or TEXT_UNIT.match(text, number.end)
            ]
        if not found or (label and not _has_noun(text, found[0], label, pattern)):
            return None
        return found[0]
    if wanted is Wanted.DATE:
        return next(dates_in(text), None)
    if wanted is Wanted.VERSION:
        return next(versions_in(text), None)
    if wanted is Wanted.LIST:
        return FoundValue("; ".join(items_of(text)), 0, len(text))
    if wanted is Wanted.YES_NO:
        answer = re.match(r"(yes|no|true|false)\b", text, re.IGNORECASE)
        return FoundValue(answer[1].lower(), *answer.span()) if answer else None
    if (
        "default" in {term.stem for term in pattern.terms}
        and (default := default_in(text)) is not None
        and "default" not in stems_of(label)
    ):
        return default
    if text.count(". ") or "; " in text or len(text) > 160:
        cut = re.search(r"; |\.\s", text)
        if cut is not None and cut.start() >= 2 and not pattern.asked_noun.endswith("s"):
            return FoundValue(text[: cut.start()].strip(), 0, cut.start())
    return FoundValue(text.rstrip("."), 0, len(text))


def fits_question(number: FoundValue, pattern: QuestionPattern) -> bool:
    """Return whether a number can answer "how many", "how long" and the like."""
    if number.text.strip("(") in pattern.numbers:
        return False
    asked = re.match(r"how (\w+)", pattern.text, re.IGNORECASE)
    dimension = dimension_of(number.unit)
    if asked is None:
        return "percent" not in pattern.text or dimension == "other"
    if asked[1].lower() in DIMENSIONS:
        return not dimension or dimension in DIMENSIONS[asked[1].lower()]
    if asked[1].lower() == "many":
        is_noun = bool(pattern.asked_noun) and number.unit.rstrip("s") == pattern.asked_noun.rstrip("s")
        return is_noun or (dimension in ("", "other") and not number.text.endswith("%"))
    return True


TEXT_UNIT = re.compile(r"[- ](?:characters?|letters?|digits?|bytes?|bits?|octets?|lines?|words?|pages?)\b")
"""A unit of texts, behind a number."""
_MEASURED = re.compile(r"how (?:long|far|high|tall|deep|wide|broad|heavy|old|hot|cold|fast|often)\b", re.IGNORECASE)


def needs_unit(pattern: QuestionPattern) -> bool:
    """Return whether a number in a sentence answers only with a unit: "how deep", "how long"."""
    return _MEASURED.match(pattern.text) is not None


def _has_noun(text: str, number: FoundValue, label: str, pattern: QuestionPattern) -> bool:
    """Return whether what "how many" counts stands in the label or beside the number."""
    if not pattern.text.lower().startswith("how many") or not pattern.asked_noun:
        return True
    noun = next((term for term in pattern.terms if term.stem in stems_of(pattern.asked_noun)), None)
    return (
        noun is None
        or any_in(noun.others, stems_of(label))
        or any_in(noun.others, stems_of(text[number.end : number.end + 40]))
    )


def item_at(value: str, typed: FoundValue) -> str:
    """Return the item of a listed value that a part of it stands in; the value itself where it is short."""
    if len(value) <= 200:
        return value
    for item in items_of(value):
        if typed.text in item:
            return item
    return value[:200]


_DEFAULTS = (
    re.compile(
        r"\bdefault (?!value\b)(?:[\w-]+ ){1,3}(?:(?:of|for) [^,;:.]{1,40}? )?(?:is|are) (?P<v>.+)", re.IGNORECASE
    ),
    re.compile(r"\bdefaults? (?:value )?(?:(?:is|are|was|to|of)\b|:|=)\s*(?P<v>.+)", re.IGNORECASE),
    re.compile(r"\bdefaults?(?: value)?(?:[:=]| is\b| to\b)\s*(?P<v>.+)", re.IGNORECASE),
    re.compile(r"\((?:the )?default[:=]? (?:is |to )?(?P<v>[^()]+)\)", re.IGNORECASE),
    re.compile(r"\[(?:default[:=]? )?(?P<v>[^\[\]]+)\]", re.IGNORECASE),
    re.compile(r"(?P<v>[`\"']?[\w./:-]+[`\"']?(?: \w+)?) (?:is the|\(the|\(|are the)\s?default\b", re.IGNORECASE),
    re.compile(r"(?P<v>[`\"']?[\w./:-]+[`\"']?(?: [a-z]+)?) by default\b", re.IGNORECASE),
)


def default_in(text: str) -> FoundValue | None:
    """Return the value that a text gives as a default."""
    for regex in _DEFAULTS:
        if (match := regex.search(text)) is not None and "default" in match[0].lower():
            cut = re.split(r"[;,)\]](?:\s|$)|\.(?:\s|$)| (?:if|when|unless|which|and|but|for|on|in)\b", match["v"])[
                0
            ].strip()
            if cut:
                return FoundValue(cut.strip("`\"'* "), match.start("v"), match.start("v") + len(cut))
    return None


def nearest_value(values: Sequence[FoundValue], text: str, pattern: QuestionPattern) -> FoundValue | None:
    """Return the value nearest to a telling word of the question, rather behind it than before."""
    if len(values) < 2:
        return values[0] if values else None
    wanted = {stem for term in pattern.terms if term.weight >= 0.6 for stem in term.others}
    if pattern.wanted is Wanted.PERSON and pattern.terms:
        wanted = set(pattern.terms[0].others)
    places = [
        (stem.start, stem.end)
        for stem in placed_stems(text)
        if stem.stem in wanted and not any(value.start <= stem.start < value.end for value in values)
    ]
    if not places:
        return None

    def distance(value: FoundValue) -> float:
        return min(value.start - end if value.start >= end else (start - value.end) * 1.5 + 1 for start, end in places)

    ordered = sorted(values, key=distance)
    return None if distance(ordered[0]) == distance(ordered[1]) else ordered[0]
