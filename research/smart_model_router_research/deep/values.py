"""Values in a text that can answer a question: numbers with their units, dates, versions and names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class FoundValue(NamedTuple):
    """A value, where it stands, and its unit or scale word."""

    text: str
    start: int
    end: int
    unit: str = ""


_UNITS = {
    "length": "km kilometers kilometres kilometer kilometre m meters metres meter metre cm mm nm miles mile mi "
    "feet foot ft inches inch in yards "
    "lines characters letters light-years pages words",
    "area": "sq_km square_kilometers square_kilometres sq_m sq_mi square_miles square_metres square_meters "
    "hectares acres km2 km² m²",
    "mass": "kg kilograms kilogram g grams gram mg t tonnes tonne tons ton pounds lb lbs ounces oz",
    "time": "years year months month weeks week days day hours hour h minutes minute min seconds second sec s "
    "ms milliseconds "
    "millisecond microseconds nanoseconds decades centuries",
    "speed": "km/h km/s m/s mph knots kph bit/s Mbit/s Gbit/s MB/s GB/s",
    "temperature": "°C °F K degrees celsius kelvin fahrenheit",
    "size": "bytes byte bits bit B kB KB MB GB TB KiB MiB GiB kilobytes megabytes gigabytes",
    "other": "% percent per_cent million billion trillion thousand hundred dozen USD EUR dollars euros Hz kHz "
    "MHz GHz V W kW MW pixels px "
    "votes seats",
}
TIME_UNITS = frozenset(_UNITS["time"].split())
SIZE_UNITS = frozenset(_UNITS["size"].split())
AREA_UNITS = frozenset(unit.replace("_", " ") for unit in _UNITS["area"].split())
_UNIT_WORDS = sorted(
    (unit.replace("_", " ") for units in _UNITS.values() for unit in units.split()), key=len, reverse=True
)
_DIMENSION = {unit.replace("_", " "): name for name, units in _UNITS.items() for unit in units.split()}
DIMENSIONS: dict[str, tuple[str, ...]] = {
    "long": ("length", "time"),
    "far": ("length",),
    "high": ("length",),
    "tall": ("length",),
    "deep": ("length",),
    "wide": ("length",),
    "broad": ("length",),
    "heavy": ("mass",),
    "old": ("time",),
    "large": ("area", "length", "size"),
    "big": ("area", "length", "size"),
    "small": ("area", "length", "size"),
    "fast": ("speed",),
    "hot": ("temperature",),
    "cold": ("temperature",),
    "often": ("time",),
}
"""The dimensions of the answers to "how long" and the like."""
_SCALE = "million|billion|trillion|thousand|hundred"
NUMBER_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen "
    "nineteen twenty thirty forty fifty sixty hundred thousand dozen".split()
)
_NUMBER = re.compile(
    rf"(?<![\w.,/-])(?P<number>(?:US)?[$€£¥]?[-\u2212+~]?[$€£¥]?\d(?:[\d,.'\u202f]*\d)?(?:e[+-]?\d+)?)"
    rf"(?P<scale> (?:{_SCALE})\b)?"
    rf"(?:(?P<gap>[ \u00a0-]?)(?P<unit>(?:{'|'.join(map(re.escape, _UNIT_WORDS))})(?![\w/])))?(?![\w])"
)
_WORD_NUMBER = re.compile(rf"\b(?:{'|'.join(NUMBER_WORDS)})\b", re.IGNORECASE)
_MONTHS = "Jan(?:uary)? Feb(?:ruary)? Mar(?:ch)? Apr(?:il)? May June? July? Aug(?:ust)? Sept?(?:ember)?".split()
_MONTH = rf"(?:{'|'.join(_MONTHS)}|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
DATE = (
    rf"\b(?:{_DAY} {_MONTH},? \d{{4}}|{_MONTH} {_DAY},? \d{{4}}|{_MONTH},? \d{{4}}|\d{{4}}-\d{{2}}-\d{{2}}"
    rf"|{_DAY} {_MONTH}|{_MONTH} {_DAY}|(?:1[0-9]|20)\d{{2}}s?\b(?![.,]?\d|\s?(?:km|m|MB|kg|%))"
    r"|\d{1,2}(?:st|nd|rd|th) century|\d{1,4} (?:BC|BCE|AD|CE))\b"
)
_DATE = re.compile(DATE)
_PRERELEASE = r"(?:[-.]?(?:a|b|rc|alpha|beta|dev|post)[.\d]*)?"
_VERSION = re.compile(
    rf"(?<![\w.])(?:[vV](?:ersion |er\. ?)?)?(\d+(?:\.\d+)+{_PRERELEASE}|(?<=ersion )\d+|(?<=elease )\d+)(?![\w%])"
)
_NAME = r"(?:[A-Z]\.|[A-Z][\w'\u2019-]+)"
_PERSON = re.compile(rf"\b{_NAME}(?: (?:{_NAME}|(?:van|von|de|der|la|bin|al|ben|da|di|del)\b))* {_NAME}(?!\w)")
_NO_NAMES = frozenset(
    "The A An On In At By For With From To As If When This That These It Of And Or But See Note".split()
)


def numbers_in(text: str, *, words: bool = False) -> Iterator[FoundValue]:
    """Yield the numbers of a text with their units; with `words` those that are written out, too."""
    for match in _NUMBER.finditer(text):
        number = match["number"].rstrip(",.'")
        unit = (match["scale"] or "").strip()
        if match["unit"]:
            unit = f"{unit} {match['unit']}".strip()
        yield FoundValue(match[0].strip() if match["unit"] or match["scale"] else number, *match.span(), unit)
    if words:
        for match in _WORD_NUMBER.finditer(text):
            yield FoundValue(match[0], *match.span())


_UNIT_BEHIND = re.compile(rf"[ \u00a0-]?((?:{'|'.join(map(re.escape, _UNIT_WORDS))})(?![\w/]))")


def unit_behind(text: str, end: int) -> str:
    """Return the unit that a number that ends there has; "" where a word or nothing follows."""
    match = _UNIT_BEHIND.match(text, end)
    return match[1] if match is not None else ""


def dimension_of(unit: str) -> str:
    """Return what a unit measures; "" for an unknown one."""
    return _DIMENSION.get(
        unit.split(" ", 1)[-1] if unit.split(" ", maxsplit=1)[0] in _SCALE.split("|") and " " in unit else unit, ""
    )


def dates_in(text: str) -> Iterator[FoundValue]:
    """Yield the dates and years of a text."""
    for match in _DATE.finditer(text):
        yield FoundValue(match[0], *match.span())


def versions_in(text: str) -> Iterator[FoundValue]:
    """Yield the versions of a text."""
    for match in _VERSION.finditer(text):
        yield FoundValue(match[1], *match.span(1))


def persons_in(text: str) -> Iterator[FoundValue]:
    """Yield names of two capitalised words or more."""
    for match in _PERSON.finditer(text):
        words = match[0].split()
        lead = next((at for at, word in enumerate(words) if word not in _NO_NAMES), len(words))
        name = " ".join(words[lead:])
        if len(words) - lead > 1:
            start = match.end() - len(name)
            yield FoundValue(name, start, match.end())


def without_name(item: str, name: str) -> str:
    """Return what an item of a list says beside the name in it: all numbers and remarks about that."""
    return " ".join(item.replace(name, " ").split()) or item


def items_of(value: str) -> list[str]:
    """Return the items of a list in one line: at semicolons where there are any, else at commas; one for no list."""
    value = value.strip().rstrip(".")
    depth, at, found = 0, 0, []
    mark = ";" if ";" in re.sub(r"\([^()]*\)", "", value) else ","
    for place, character in enumerate(value):
        depth += (character in "([") - (character in ")]")
        behind = value[place + 1 : place + 2]
        if character == mark and depth <= 0 and (mark == ";" or not behind.isdigit()):
            found.append(value[at:place].strip())
            at = place + 1
    found.append(value[at:].strip())
    if mark == "," and len(found) > 1:
        found[-1] = re.sub(r"^(?:and|or) ", "", found[-1])
        if len(found) == 1 or " and " in found[-1]:
            found[-1:] = found[-1].split(" and ")
    elif len(found) == 1 and " and " in found[0] and len(found[0]) < 100:
        found = found[0].split(" and ")
    return [item for item in found if item]


_EST = re.compile(r"\((?:[^()]*?\b)?((?:19|20)\d{2})(?: est\.?)?(?:[^()\d][^()]*)?\)")


def year_of(value: str) -> str:
    """Return the year that stands beside a value, "(2024 est.)"; "" without one."""
    found = _EST.search(value)
    return found[1] if found else ""
