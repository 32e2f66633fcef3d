"""The kind of value that an everyday question asks for, and the values of that kind in a statement."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from smart_model_router_research.deep.matching import WORD, alternatives, stem_of
from smart_model_router_research.deep.questions import STOP, VERSION_OF
from smart_model_router_research.deep.values import (
    AREA_UNITS,
    DATE,
    NUMBER_WORDS,
    SIZE_UNITS,
    TIME_UNITS,
    FoundValue,
    unit_behind,
)


class AskedKind(StrEnum):
    """The kinds of value. Those of `WHOLE` are answered by a sentence as a whole."""

    COUNT = "count"
    NUMBER = "number"
    DURATION = "duration"
    SIZE = "size"
    MONEY = "money"
    FREQUENCY = "frequency"
    RATE = "rate"
    INSTANT = "instant"
    RELEASE = "release"
    BEING = "being"
    """A person or an organisation."""
    ADDRESS = "address"
    PLACE = "place"
    NAME = "name"
    """A command, an option, a file, a program, or whatever else has a name."""
    REASON = "reason"
    YES_NO = "yes_no"
    SENTENCE = "sentence"


WHOLE = frozenset([AskedKind.REASON, AskedKind.YES_NO, AskedKind.SENTENCE])


@dataclass(frozen=True, slots=True)
class AskedValue:
    """A kind of value that is asked for, and the noun that names it ("how many workers", "which port"), if any.

    Of a place it is the word that leads there, where the question ends with it ("where is it sent to").
    """

    kind: AskedKind
    noun: str = ""


_NUMBERED = (
    "port level percentage size limit number amount timeout time-out distance temperature threshold depth width height "
    "length maximum minimum percent capacity id identifier code value priority resolution runlevel frequency"
)
_NAMED = (
    "file command option function variable header flag script setting parameter program tool package library directory "
    "folder key keyword channel class method module encoding format algorithm agency organisation organization company "
    "country city language system systems licence license protocol type operator statement table column field service "
    "database server browser compiler editor filter mode extension argument attribute macro signal symbol character "
    "error exception"
)
_AMOUNTS = {
    "long": AskedKind.DURATION,
    "soon": AskedKind.DURATION,
    "quickly": AskedKind.DURATION,
    "old": AskedKind.DURATION,
    "often": AskedKind.FREQUENCY,
    "frequently": AskedKind.FREQUENCY,
    "big": AskedKind.SIZE,
    "large": AskedKind.SIZE,
    "small": AskedKind.SIZE,
    "fast": AskedKind.RATE,
}
_TEXT_LENGTH = re.compile(
    r"how long\b.*\b(?:names?|passwords?|strings?|keys?|lines?|messages?|ids?|paths?|texts?)\b", re.IGNORECASE
)
_TEXT_UNITS = "characters letters bytes digits octets lines words"
_PLAIN_LENGTH = re.compile(
    r"\b(?:name|password|string|key|line|queue|message|word|list|path|text|sentence)s?\b", re.IGNORECASE
)


def _one_of(words: str) -> str:
    return "|".join(map(re.escape, words.split()))


_ADDRESSES = r"(?:address|url|link|web ?site|home ?page|newsgroup)\b"
_READERS: tuple[tuple[re.Pattern[str], AskedKind], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"\bhow much (?=.*\b(?:costs?|money|pay|price|charged?|fee)\b)", AskedKind.MONEY),
        (r"\b(?:what|which)\b.*\bcosts?\b|\b(?:price|cost|fee) (?:of|for)\b", AskedKind.MONEY),
        (r"\bhow much (?=.*\b(?:memory|ram|disk|space|storage|bandwidth)\b)", AskedKind.SIZE),
        (
            (
                r"\b(?:which|what) (?:(?!(?:year|date|day|month) )\w+ ){0,2}(?:version|release)\b"
                r"(?! (?:date|day|year)\b)"
                r"|\bsince (?:which|what) version\b"
            ),
            AskedKind.RELEASE,
        ),
        (
            (
                r"\b(?:which|what) (?:\w+ ){0,2}(?:year|date|day|month|weekday|time of day)\b"
                r"|(?:^|[.,:] )(?:since )?when\b|\bwhen (?:did|was|were|is|will|does|do|has|have)\b"
            ),
            AskedKind.INSTANT,
        ),
        (
            r"(?:^|[.,:] )(?:by |to |from |for |with )?(?:who|whom|whose)\b|\bwho (?:is|was|has|had|did)\b",
            AskedKind.BEING,
        ),
        (rf"\b(?:which|what) (?:[\w-]+ ){{0,2}}{_ADDRESSES}", AskedKind.ADDRESS),
        (rf"\bwhat(?:'s| is| are) (?:the |its )?(?:[\w-]+ ){{0,2}}{_ADDRESSES} (?:of|for|to)\b", AskedKind.ADDRESS),
        (rf"\b(?:where|is there)\b.*\b{_ADDRESSES}", AskedKind.ADDRESS),
        (rf"\b(?:which|what) (?:[\w-]+ ){{0,2}}?(?P<noun>{_one_of(_NUMBERED)})\b", AskedKind.NUMBER),
        (rf"\bwhat(?:'s| is| are| was) the (?:[\w-]+ ){{0,3}}?(?P<noun>{_one_of(_NUMBERED)})\b", AskedKind.NUMBER),
        (r"(?:^|[.,:] )(?:from |to )?where\b", AskedKind.PLACE),
        (rf"\b(?:which|what) (?:[\w-]+ ){{0,2}}?(?P<noun>{_one_of(_NAMED)})s?\b", AskedKind.NAME),
        (r"(?:^|[.,:] )why\b|\bwhat is the reason\b", AskedKind.REASON),
        (
            r"(?:^|[.,:] )(?:is|are|was|were|does|do|did|can|could|has|have|should|must|will|may)\b",
            AskedKind.YES_NO,
        ),
    )
)
_NO_NOUN_OF = frozenset([AskedKind.INSTANT, AskedKind.RELEASE, AskedKind.MONEY, AskedKind.BEING, AskedKind.PLACE])
"""Kinds that need no noun to stand near: their values say what they are."""
_HOW = re.compile(
    r"\bhow (?P<how>many|much|far|high|deep|wide|tall|close|accurate|strong|heavy|"
    rf"{'|'.join(_AMOUNTS)})\b(?: more| of the \d+| of the| an?)?\b ?(?P<noun>[\w-]+(?: [\w-]+)?)?",
    re.IGNORECASE,
)
_NUMBER_OF = re.compile(r"^(?:\w+ ){0,4}?number of (?:\w+ (?=\w+s ))?(?P<noun>[\w-]+)", re.IGNORECASE)
_NOUN = re.compile(
    r"\b(?:which|what)(?: (?:one|two|three|four|five|other|different|kinds? of))? (?P<noun>[a-z-]{3,})\b"
)
_NO_NOUN = frozenset(
    "does was has is did are was were can could should would will has have had happens must may".split()
)


_TOWARD = re.compile(r"\b(to|from)$")
"""The end of "Where is it sent to?", whose places "to" leads to."""


def asked_value(text: str) -> AskedValue:
    """Return what a question asks for."""
    text = " ".join(text.split()).rstrip("?!. ")
    if (how := _HOW.search(text)) is not None:
        return _amount(how, text)
    if (counted := _NUMBER_OF.match(text)) is not None:
        return AskedValue(AskedKind.COUNT, counted["noun"].lower())
    for pattern, kind in _READERS:
        if (match := pattern.search(text)) is not None:
            if kind is AskedKind.RELEASE and (of_what := VERSION_OF.search(text)) is not None:
                return AskedValue(kind, of_what[1])
            if kind is AskedKind.PLACE and (toward := _TOWARD.search(text)) is not None:
                return AskedValue(kind, toward[1])
            if kind in _NO_NOUN_OF:
                return AskedValue(kind)
            noun = (match.groupdict().get("noun") or _noun_of(text)).lower()
            plural = _PLURAL.search(text.lower()) if kind is AskedKind.NAME else None
            if plural is not None and plural["noun"].rstrip("s") != noun.rstrip("s"):  # "which column types"
                return AskedValue(AskedKind.SENTENCE, plural["noun"])
            if kind is AskedKind.NAME and (several := _KINDS_OF.search(text.lower())) is not None:
                return AskedValue(AskedKind.SENTENCE, several["noun"])
            if kind is AskedKind.NAME and match[0].endswith("s") and not noun.endswith("s"):
                noun += "s"
                return AskedValue(AskedKind.SENTENCE, noun)
            return AskedValue(kind, noun)
    return AskedValue(AskedKind.SENTENCE, _noun_of(text))


_LASTS = re.compile(
    r"\b(?:take|takes|last|lasts|keep|kept|wait|waits|stay|stays|valid|stored|cached|retained|remain|live)\b"
)
"""Verbs of what lasts, and is no text."""


def _amount(how: re.Match[str], text: str) -> AskedValue:
    word, noun = how["how"].lower(), (how["noun"] or "").lower()
    first = noun.partition(" ")[0]
    if word == "many":
        if first.rstrip("s") in TIME_UNITS:
            return AskedValue(AskedKind.DURATION, "")
        if first in SIZE_UNITS:
            return AskedValue(AskedKind.SIZE, noun)
        second = noun.partition(" ")[2]
        is_second = second.endswith("s") and not first.endswith("s") and second not in _NO_NOUN
        return AskedValue(AskedKind.COUNT, noun if is_second else first)
    if word == "much":
        found = next((kind for pattern, kind in _READERS[:3] if pattern.search(text)), AskedKind.NUMBER)
        return AskedValue(found)
    kind = _AMOUNTS.get(word, AskedKind.NUMBER)
    if kind is AskedKind.DURATION and _TEXT_LENGTH.match(text) and not _LASTS.search(text):
        return AskedValue(AskedKind.COUNT, _TEXT_UNITS)
    return AskedValue(AskedKind.NUMBER if kind is AskedKind.DURATION and _PLAIN_LENGTH.search(text) else kind)


_KINDS_OF = re.compile(
    r"\b(?:which|what) (?:kinds|types|sorts|forms) of (?:[\w-]+ ){0,2}?(?P<noun>[a-z-]{2,}[a-rt-z]s)\b"
)
_PLURAL = re.compile(
    r"\b(?:which|what) (?:(?!kinds? of)[\w-]+ ){0,2}?(?P<noun>[a-z-]{2,}[a-rt-z]s) (?:are|were|can|do|does|did|have"
    r"|has|will|is|was|got|may|must|could|should)\b"
)
"""The noun of a question for several things: "Which external transports are implemented?"."""


def _noun_of(text: str) -> str:
    match = _PLURAL.search(text.lower()) or _NOUN.search(text.lower())
    return match["noun"] if match is not None and match["noun"] not in _NO_NOUN else ""


_DIGITS = r"(?<![\w.,/=#-])[$€£]?[-+~]?\d(?:[\d,.'\u202f]*\d)?(?![\w/]|\.\d)"
_COUNTED = re.compile(
    rf"{_DIGITS}(?: (?:thousand|million|billion))?|\b(?:{'|'.join(NUMBER_WORDS)})\b(?!-)", re.IGNORECASE
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_QUANTITY = rf"(?:\d[\d.,]*[ -]?|(?:{'|'.join(NUMBER_WORDS)}|an?|half an?)[ -])"
_CODE = (
    r"(?<!\S)\.[a-z]\w{1,5}\b|(?<![\w.])(?:--?[a-zA-Z][\w-]*|~?/[\w.<>-]+(?:/[\w.<>-]*)*|\$\w+|#\w+|[A-Za-z]\w*(?:(?:\.|::|->|/|_|-)\w+)+(?:\(\))?"
    r"|\w+_\w*|[A-Za-z]\w*\(\d?\)|[a-z]+[A-Z]\w*|[A-Z]{2,}[\w-]*|[A-Za-z]\w*\d\w*|\^\w)"
    r"|[`'\"\u201c\u2018][^`'\"\u201c\u201d\u2019]{1,60}[`'\"\u201d\u2019]"
)
_ADDRESS = r"(?:https?|ftp)://[^\s<>]+|[\w.+-]+@[\w-]+\.[\w.-]+|\bwww\.[^\s<>]+"
_PROPER = (
    r"(?:[A-Z]\.|[A-Z][\w'\u2019-]+)(?: (?:(?:van|von|de|der|la|bin|al|da|di|del) )?(?:[A-Z]\.|[A-Z][\w'\u2019-]+))*"
)
_NO_PLACES = (
    "(?:thousands?|hundreds|end|past|future|case|form|way|sense|order|general|particular|addition|fact|this|that|these"
    "|those|it|time|all|some|any|most|least|many|first|last|same|other|which|order|use|turn|least|once|any|\\d)\\b"
)
"""Words behind "in", "at" or "on" that name no place."""
_FINDERS: Mapping[AskedKind, re.Pattern[str]] = {
    AskedKind.NUMBER: re.compile(
        rf"{_DIGITS}|\d[\d.,]*(?= ?(?:[kKMGT]?i?B|ms|s|bits?|bytes?|%)\b)|\b(?:micro|nano|milli)seconds\b"
        rf"|\b(?:{'|'.join(NUMBER_WORDS)}) (?:characters?|letters?|digits?|bytes?|bits?|octets?|lines?|words?)\b"
    ),
    AskedKind.DURATION: re.compile(
        rf"\b(?:{_QUANTITY}(?:{'|'.join(sorted(TIME_UNITS, key=len, reverse=True))})s?\b)"
        r"|\b(?:forever|indefinitely|permanently|nanoseconds|microseconds|milliseconds)\b",
        re.IGNORECASE,
    ),
    AskedKind.SIZE: re.compile(
        rf"{_QUANTITY}(?:{'|'.join(sorted(map(re.escape, SIZE_UNITS | AREA_UNITS), key=len, reverse=True))})(?!\w)",
        re.IGNORECASE,
    ),
    AskedKind.MONEY: re.compile(r"[$€£]\s?\d[\d.,]*|\d[\d.,]*\s?(?:USD|EUR|GBP|dollars?|euros?|pounds?|cents?)\b"),
    AskedKind.FREQUENCY: re.compile(
        r"\b(?:every|each|per|daily|weekly|monthly|hourly|yearly|nightly|annually|quarterly|once|twice|\w+ times)\b"
        r"(?: [\w-]+){0,2}",
        re.IGNORECASE,
    ),
    AskedKind.RATE: re.compile(r"\d[\d.,]*\s?[^\s\d]+/\w+|\d[\d.,]* [\w-]+ (?:per|an?) \w+|\d[\d.,]*\s?%|\w+ times"),
    AskedKind.INSTANT: re.compile(
        rf"{DATE}|\b(?:19|20)\d\d\b|\b\d{{1,2}}:\d\d\b|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b|\b(?:midnight|noon)\b"
    ),
    AskedKind.RELEASE: re.compile(r"(?<![\w./])[vV]?\d+(?:\.\d+)+[\w-]*|\b(?:[vV]ersion|[rR]elease)s? \d+(?:\.\d+)*"),
    AskedKind.ADDRESS: re.compile(_ADDRESS),
    AskedKind.PLACE: re.compile(
        rf"{_ADDRESS}|~?/[\w.<>-]+(?:/[\w.<>-]*)*|[`\"\u201c][^`\"\u201c\u201d]{{1,60}}[`\"\u201d]"
        rf"|\b(?:in|on|at|under|inside|into|below|behind|beside) "
        rf"(?!\d|(?:(?:the|an?|your) )?{_NO_PLACES})(?:(?:the|an?|your) )?(?:[\w/`\"-]+ )?[\w/`\".-]*[\w/`\"-]"
    ),
    AskedKind.REASON: re.compile(
        r"\b(?:because|since|so that|due to|in order (?:to|that)|therefore|thus|otherwise|reasons?|avoids?|prevents?"
        r"|as (?:it|they|this|these|the))\b",
        re.IGNORECASE,
    ),
}
_CODES = re.compile(_CODE)
_PROPERS = re.compile(_PROPER)
_SCALES = frozenset("million billion trillion thousand hundred dozen".split())
_NOUN_WITHIN = 4
"""Words behind a number that may name what is counted."""


def values_of(asked: AskedValue, text: str, common: Iterable[str] = frozenset()) -> list[FoundValue]:
    """Return the values of a kind in a text, in their order. `common` are words, in lower case, that are no names."""
    if asked.kind in (AskedKind.SENTENCE, AskedKind.YES_NO):
        return [FoundValue(text, 0, len(text))]
    if asked.kind is AskedKind.COUNT:
        found = [match for match in _COUNTED.finditer(text) if _counts(asked.noun, match, text)]
    elif asked.kind is AskedKind.BEING:
        found = [match for match in _PROPERS.finditer(text) if _is_being(match, text, common)]
    elif asked.kind is AskedKind.PLACE and asked.noun:
        led = re.finditer(rf"\b{asked.noun} (?:the |an? |your )?[\w.@/-]+(?: [A-Z][\w-]*)*", text)
        found = [match for match in led if not re.search(r"\b(?:not|never)\b[^.;,]*$", text[: match.start()])]
        found += _FINDERS[AskedKind.PLACE].finditer(text)
    elif asked.kind is AskedKind.NAME:
        found = [*_CODES.finditer(text), *(each for each in _PROPERS.finditer(text) if _is_name(each[0], common))]
    else:
        found = list(_FINDERS[asked.kind].finditer(text))
    if asked.kind in (AskedKind.NUMBER, AskedKind.COUNT):
        found = [match for match in found if not _YEAR.fullmatch(match[0]) and not _is_reference(match, text)]
    if asked.kind is AskedKind.INSTANT:  # 1000 pages are no year
        found = [match for match in found if not (match[0].isdigit() and unit_behind(text, match.end()))]
    if asked.kind is AskedKind.NUMBER and asked.noun:  # "7 runlevels" names no runlevel
        found = [match for match in found if not text[match.end() :].startswith(f" {asked.noun}s")]
    return [FoundValue(match[0], *match.span()) for match in found]


_REFERS = re.compile(
    r"(?:\b(?:section|chapter|table|figure|example|appendix|page|rfc|bug|step|note|version|release|see)s?|[\[#(])\W?$",
    re.IGNORECASE,
)
"""The words before the number of a place, a release or a note, which counts nothing."""


def _is_reference(match: re.Match[str], text: str) -> bool:
    before, behind = text[max(0, match.start() - 12) : match.start()], text[match.end() : match.end() + 1]
    return _REFERS.search(before) is not None and (before[-1:] not in "[(" or behind in ")]")


def _is_being(match: re.Match[str], text: str, common: Iterable[str]) -> bool:
    """Return whether capitalised words can name a person: two or more, or one within a sentence; no abbreviation."""
    words = [word for word in match[0].split() if _is_name(word, common) and not word.isupper()]
    starts = not text[: match.start()].strip("*_`\"'( ") or text[: match.start()].rstrip()[-1:] in ".!?:"
    return len(words) > 1 or (len(words) == 1 and not starts)


def _is_name(words: str, common: Iterable[str]) -> bool:
    return any(word.casefold().rstrip("s") not in common and word.casefold() not in common for word in words.split())


_NUMBER_IS = re.compile(
    r"\bnumber of (?P<what>(?:[\w-]+ ){1,4}?)(?:is|are|defaults to)"
    r"(?: (?:limited|restricted|set) to(?: [A-Z][A-Z_]+,? which is (?:set to|limited to)?)?)? $"
)
"""The words before the number in "the number of open files is limited to MAX_FILES, which is set to 10"."""
_INSIDE = re.compile(r"(?P<before>[\w-]+(?: [\w-]+)?) \((?:[a-z]+ ){0,3}$")
"""The words before a number in parentheses: "messages (usually 10)"."""


def _counts(noun: str, number: re.Match[str], text: str) -> bool:
    """Return whether what is counted stands right behind a number."""
    if _YEAR.fullmatch(number[0]) or text[number.end() :].startswith(" or more"):
        return False
    behind = re.split(r"[.;:()]\s", text[number.end() : number.end() + 60])[0]
    words = [stem_of(word.lower()) for word in WORD.findall(behind)]
    of = words[:1] == ["of"] or words[:2] == ["out", "of"]
    is_one = number[0].lower() == "one"
    if is_one and not re.search(r"\b(?:only|exactly|just|has|have|is|of) $", text[: number.start()]):
        return False
    width = 1 if is_one or noun == _TEXT_UNITS else _NOUN_WITHIN
    others = frozenset().union(*(alternatives(stem_of(word)) for word in noun.split() if word not in STOP))
    if (told := _NUMBER_IS.search(text[: number.start()])) is not None:
        return any(stem_of(word.lower()) in others for word in WORD.findall(told["what"]))
    if (inside := _INSIDE.search(text[: number.start()])) is not None and text[number.end() :][:1] in (")", ","):
        return any(stem_of(word.lower()) in others for word in WORD.findall(inside["before"]))
    if noun in ("percent", "percentage") and text[number.end() :].lstrip().startswith("%"):
        return text.count("%") == 1
    if (unit := unit_behind(text, number.end())) and unit not in _SCALES and stem_of(unit.lower()) not in others:
        return False  # 85 euros for each plot are no plots
    return any(word in others for word in words[: width + 2 * of])
