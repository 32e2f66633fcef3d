"""Days as pages write them: ISO 8601, RFC 2822, names of months; an instant is the day that it is in UTC."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum

from smart_model_router_scoring.decay import epoch_seconds

EARLIEST_YEAR = 1000
PLACEHOLDERS = frozenset({date(1970, 1, 1), date(1969, 12, 31)})
"""The first second of Unix, in the zones around Greenwich: programs write it where they know no date."""
_MONTH_NAMES = (
    "january jan januar janvier janv enero ene gennaio gen|february feb februar février févr febrero febbraio|"
    "march mar märz mär mars marzo|april apr avril avr abril abr aprile|may mai mayo maggio|"
    "june jun juni juin junio giugno giu|july jul juli juillet juil julio luglio lug|"
    "august aug août agosto ago|september sep sept septembre septiembre settembre set|"
    "october oct oktober okt octobre octubre ottobre ott|november nov novembre noviembre|"
    "december dec dezember dez décembre déc diciembre dic dicembre"
)
MONTHS = {name: number for number, names in enumerate(_MONTH_NAMES.split("|"), start=1) for name in names.split()}
"""The number of a month by its name or abbreviation in English, German, French, Spanish and Italian."""


class Grain(StrEnum):
    """The length of time that a written date names."""

    DAY = "day"
    MONTH = "month"
    YEAR = "year"


@dataclass(frozen=True, slots=True)
class WrittenDay:
    """A date as it was written: a month counts as its 15th, a year as its 1 July."""

    day: date
    grain: Grain


_NAME = rf"(?P<month>{'|'.join(sorted(map(re.escape, MONTHS), key=len, reverse=True))})\.?"
_YEAR = r"(?P<year>[12][0-9]{3})(?![0-9])"
_DAY = r"(?P<day>[0-3]?[0-9])"
_WEEKDAY = r"(?:[^\W\d_]{2,12}\.?,?\s{1,3})?"
WRITTEN_DATE = "|".join(
    (
        r"(?P<iso>[12][0-9]{3}[-/.][01]?[0-9][-/.][0-3]?[0-9])(?![0-9])",
        r"(?P<dotted>[0-3]?[0-9]\.\s?[01]?[0-9]\.\s?[12][0-9]{3})(?![0-9])",
        r"(?P<slashed>[0-3]?[0-9]/[0-3]?[0-9]/[12][0-9]{3})(?![0-9])",
        rf"{_WEEKDAY}{_DAY}(?:st|nd|rd|th|er|\.)?[\s-](?:of\s|de\s)?{_NAME}[\s,-]{{1,3}}(?:de[l]?\s)?{_YEAR}",
        rf"{_WEEKDAY}{_NAME}\s{_DAY}(?:st|nd|rd|th)?,?\s{_YEAR}".replace("P<", "P<us_"),
        rf"{_NAME},?\s(?:de\s)?{_YEAR}".replace("P<", "P<vague_"),
        r"(?P<iso_month>[12][0-9]{3}-[01][0-9])(?![0-9-])",
    )
)
"""The source of a regular expression for a date in a text, ignoring case; see `day_of_match`. No year stands alone."""
_WRITTEN = re.compile(WRITTEN_DATE, re.IGNORECASE)
_ISO_START = re.compile(r"([12][0-9]{3})[-/.]([01]?[0-9])[-/.]([0-3]?[0-9])(?![0-9])")
_BARE_YEAR = re.compile(r"[12][0-9]{3}")
_ZONE = re.compile(r"\s+(?:UTC|GMT|Z|([+-][0-9]{2}:?[0-9]{2}))\s*$")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST = 80
_EIGHT_DIGITS = 10_000_000


def written_day(value: object) -> WrittenDay | None:
    """Return the day that a field of a page or a header names; None for what names none, or one that cannot be.

    A number is seconds or milliseconds since 1970; one of eight digits may be a day as well, and is none. A naive time
    is UTC.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if not isinstance(value, str) and _EIGHT_DIGITS <= value < 10 * _EIGHT_DIGITS:
        return None
    seconds = epoch_seconds(_ZONE.sub(_as_offset, value[:_LONGEST]) if isinstance(value, str) else value)
    if seconds is not None:
        return _checked(_day_of_seconds(seconds), Grain.DAY)
    if not isinstance(value, str):
        return None
    text = " ".join(value[:_LONGEST].split())
    if _BARE_YEAR.fullmatch(text):
        return year_of(int(text))
    start = _ISO_START.match(text)
    if start is not None:
        return _of_numbers(start[1], start[2], start[3])
    if ":" in text and (day := _of_header(text)) is not None:
        return day
    found = _WRITTEN.match(text)
    return day_of_match(found) if found is not None else None


def day_of_match(found: re.Match[str]) -> WrittenDay | None:
    """Return the day that a match of WRITTEN_DATE names; None where it is none, or may be either of two."""
    parts = found.groupdict()
    if parts["iso"]:
        year, month, day = re.split(r"[-/.]", parts["iso"])
        return _of_numbers(year, month, day)
    if parts["dotted"]:
        day, month, year = (part.strip() for part in parts["dotted"].split("."))
        return _of_numbers(year, month, day)
    if parts["slashed"]:
        return _of_slashed(*parts["slashed"].split("/"))
    if parts["month"]:
        return _of_numbers(parts["year"], _month(parts["month"]), parts["day"])
    if parts["us_month"]:
        return _of_numbers(parts["us_year"], _month(parts["us_month"]), parts["us_day"])
    if parts["vague_month"]:
        return month_of(int(parts["vague_year"]), _month(parts["vague_month"]))
    return month_of(*map(int, parts["iso_month"].split("-")))


def month_of(year: int, month: int) -> WrittenDay | None:
    """Return the 15th of a month; None for one that cannot be."""
    return _of_numbers(year, month, 15, Grain.MONTH)


def year_of(year: int) -> WrittenDay | None:
    """Return the 1 July of a year; None for one that cannot be."""
    return _of_numbers(year, 7, 1, Grain.YEAR)


def _as_offset(zone: re.Match[str]) -> str:
    return zone[1] or "+00:00"


def _month(name: str) -> int:
    return MONTHS[name.lower()]


def _of_slashed(first: str, second: str, year: str) -> WrittenDay | None:
    """Return the day of `25/12/2024` or `12/25/2024`; None for `03/04/2024`, which is two days in two countries."""
    if int(first) > 12 or first == second:
        return _of_numbers(year, second, first)
    return _of_numbers(year, first, second) if int(second) > 12 else None


def _of_numbers(year: int | str, month: int | str, day: int | str, grain: Grain = Grain.DAY) -> WrittenDay | None:
    try:
        return _checked(date(int(year), int(month), int(day)), grain)
    except (ValueError, OverflowError):
        return None


def _of_header(text: str) -> WrittenDay | None:
    """Return the day of `Tue, 05 Mar 2024 23:30:00 -0500`."""
    try:
        found = parsedate_to_datetime(text)
        aware = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
        return _checked(aware.astimezone(UTC).date(), Grain.DAY)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _day_of_seconds(seconds: float) -> date | None:
    try:
        return (_EPOCH + timedelta(seconds=seconds)).date()
    except OverflowError:
        return None


def _checked(day: date | None, grain: Grain) -> WrittenDay | None:
    if day is None or day.year < EARLIEST_YEAR or day in PLACEHOLDERS:
        return None
    return WrittenDay(day, grain)
