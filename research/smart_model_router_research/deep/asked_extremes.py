"""Questions for extremes and comparisons, read for the set that is looked at and the attribute that is compared."""

from __future__ import annotations

import re
from dataclasses import replace

from smart_model_router_research.deep.matching import WORD
from smart_model_router_research.deep.questions import (
    MEASURES,
    QuestionPattern,
    read_question,
)
from smart_model_router_research.deep.values import dimension_of, numbers_in


def name_and_number(item: str) -> tuple[str, str]:
    """Return the name and the number of an item of a list: "Syria 899 km", "899 km (Syria)"."""
    plain = re.sub(r"\([^()]*\)", " ", item)
    number = next(numbers_in(plain), None)
    if number is None:
        return " ".join(plain.split()), ""
    name = " ".join((plain[: number.start] or plain[number.end :]).split()).strip(" :-,\u2013")
    return name, number.text


def without_superlative(pattern: QuestionPattern) -> QuestionPattern:
    """Return the question for what the extreme is of: "the longest border" without "longest"."""
    word = next((w for w in WORD.findall(pattern.text.lower()) if w == pattern.measure), "")
    text = re.sub(rf"\b(?:the |its |their )?{word}\b", "", pattern.text, flags=re.IGNORECASE)
    return replace(read_question(text), superlative=None)


_SET = re.compile(
    r"(?:which|what) (?:one )?of (?P<set>.+?) (?:is|are|was|has|have|had) (?:the )?(?P<word>\w+)(?: (?P<what>.*))?$|"
    r"(?:which|what) (?P<noun>[a-z-]+) (?:that|which) (?P<clause>.+?) (?:is|are|has"
    r"|have) (?:the )?(?P<word2>\w+)(?: (?P<what2>.*))?$|"
    r"(?:which|what) (?:is|are|was) the (?P<word3>\w+) (?P<noun3>[a-z-]+) (?:that|which) (?P<clause3>.+?)"
    r"(?P<what3> (?:by|in terms of) .+)?$",
    re.IGNORECASE,
)


def set_and_measure(pattern: QuestionPattern) -> tuple[str, str]:
    """Return set and measure of "Which of SET is the largest by MEASURE"; blank ones where no set is described."""
    match = _SET.match(pattern.text)
    if match is None:
        return "", ""
    noun, clause = match["noun"] or match["noun3"], match["clause"] or match["clause3"]
    described = match["set"] or f"{noun} {clause}"
    described = re.sub(r"^(?:the |all )", "", described)
    described = re.sub(r"^([\w-]+) (?:that|which|who) ", r"\1 ", described)
    what = (match["what"] or match["what2"] or match["what3"] or "").strip()
    measure = re.sub(r"^(?:by|in terms of|in|measured by|of all by) (?:its |the |their )?", "", what)
    return described, measure or MEASURES.get(pattern.measure, "area")


_MEASURE = re.compile(
    r"\b(?:by|in terms of|difference (?:in|between the)|compare the|more|fewer|less|larger|higher|longer|bigger|smaller"
    r"|lower|greater)\s+([a-z][a-z ]+?)(?:\s+(?:of|than|between|is|and|or|,)|\s*$|\s{2,}|,)"
)
_MEASURED_BY = {
    **dict.fromkeys(("larger", "bigger", "smaller"), "area"),
    **dict.fromkeys(("longer", "shorter"), "length"),
    **dict.fromkeys(("higher", "taller"), "height"),
    **dict.fromkeys(("older", "younger"), "age"),
    "deeper": "depth",
    "heavier": "mass",
}


def compared_measure(pattern: QuestionPattern) -> str:
    """Return the attribute that two things are compared by."""
    text = pattern.text
    for name in pattern.rivals:
        text = text.replace(name, " ")
    explicit = _MEASURE.search(text)
    if explicit and explicit[1] not in ("than", "or", "of"):
        return explicit[1].strip()
    return next((_MEASURED_BY[word] for word in WORD.findall(text.lower()) if word in _MEASURED_BY), "")


_OF_LENGTHS = frozenset("longest shortest farthest nearest".split())


def can_compare(pattern: QuestionPattern, number: str) -> bool:
    """Return whether a superlative fits a number: the largest country is not that of the longest border."""
    found = next(numbers_in(number), None)
    is_length = found is not None and dimension_of(found.unit) == "length"
    return not is_length or pattern.measure in _OF_LENGTHS or pattern.measure in MEASURES
