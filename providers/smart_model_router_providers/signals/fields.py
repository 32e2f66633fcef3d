"""Header fields, durations and dates of an answer: nonsense is left out and counted. Nothing here raises."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeVar

from smart_model_router.domain.outcome import BucketReading

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NUMBER = re.compile(r"\d{1,15}(?:\.\d{0,15})?|\.\d{1,15}", re.ASCII)
_PART = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)(ns|us|µs|ms|s|m|h|d)", re.ASCII)
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST_TEXT = 64
_EARLIEST_EPOCH = 1e9
"""2001. A smaller number of seconds is a duration."""


def seconds(text: str) -> float | None:
    """`1.5`, `7.66s`, `120ms`, `6m0s`, `1h2m3s` (Go's durations; a bare number is seconds)."""
    text = text.strip()
    if not text or len(text) > _LONGEST_TEXT:
        return None
    if _NUMBER.fullmatch(text):
        return float(text)
    total, at = 0.0, 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            return None
        total += float(part[1]) * _UNITS[part[2]]
        at = part.end()
    return total if math.isfinite(total) else None


def until(text: str, date_header: str | None) -> float | None:
    """Seconds from the response's own Date to the instant `text` (HTTP-date or RFC 3339); a past one is 0.

    The local clock is not asked: it may be hours off, and two dates by one clock differ rightly anyway. None
    without a readable Date.
    """
    instant = _instant(text)
    now = _instant(date_header or "")
    return max(0.0, (instant - now).total_seconds()) if instant is not None and now is not None else None


def until_epoch(text: str, date_header: str | None) -> float | None:
    """Seconds from the response's own Date to `text`, an instant in seconds or milliseconds since the epoch.

    A number too small to be an instant of this century is what it looks like: seconds.
    """
    number = seconds(text) if _NUMBER.fullmatch(text.strip()) else None
    if number is None or number < _EARLIEST_EPOCH:
        return number
    now = _instant(date_header or "")
    epoch = number / 1000.0 if number >= _EARLIEST_EPOCH * 1000 else number
    return None if now is None else max(0.0, epoch - now.timestamp())


def until_next_minute(date_header: str | None) -> float | None:
    """Seconds from the response's own Date to the next full minute of the clock; None without a readable Date."""
    now = _instant(date_header or "")
    return None if now is None else 60.0 - now.second


def _instant(text: str) -> datetime | None:
    text = text.strip()
    if not text or len(text) > _LONGEST_TEXT:
        return None
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            found = parse(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return None


_T = TypeVar("_T")
_MOST_DIGITS = 15

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0


class Fields:
    """The headers of one answer (lower-case names). `rejected` counts the fields that were there and made no sense."""

    __slots__ = ("headers", "rejected")

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.headers = headers
        self.rejected = 0

    @property
    def date(self) -> str | None:
        """The answer's own clock."""
        return self.headers.get("date")

    def whole(self, name: str, *, least: int = 0) -> int | None:
        """A whole number of at least `least`."""
        return self._read(name, lambda text: whole(text, least=least))

    def duration(self, name: str) -> float | None:
        """A duration (see durations.seconds)."""
        return self._read(name, seconds)

    def instant(self, name: str) -> float | None:
        """Seconds to a date, by the answer's own clock; a past one is 0."""
        return self._read(name, lambda text: until(text, self.date))

    def duration_or_instant(self, name: str) -> float | None:
        """A duration, or seconds to a date (RFC 9110, Retry-After)."""

        def read(text: str) -> float | None:
            found = seconds(text)
            return until(text, self.date) if found is None else found

        return self._read(name, read)

    def epoch(self, name: str) -> float | None:
        """Seconds to an instant in seconds or milliseconds since the epoch."""
        return self._read(name, lambda text: until_epoch(text, self.date))

    def share(self, name: str) -> float | None:
        """A number from 0 up, 1 being all of it."""
        return self._read(name, seconds)

    def bucket(
        self,
        name: str,
        *,
        limit: str,
        remaining: str,
        reset: str,
        read_reset: Callable[[str], float | None],
        window_seconds: float | None = None,
    ) -> list[BucketReading]:
        """The bucket three header names speak of; none when they are absent, or when no figure in them is usable."""
        if limit not in self.headers and remaining not in self.headers and reset not in self.headers:
            return []
        full_in = read_reset(reset)
        if full_in is not None and full_in > DAY:  # no window is longer: it is in another unit, or made up
            full_in = None
            self.rejected += 1
        found = BucketReading(name, self.whole(limit, least=1), self.whole(remaining), full_in, window_seconds)
        unusable = found.limit is None and found.remaining is None
        only_reset = limit not in self.headers and remaining not in self.headers and found.reset_seconds is not None
        return [] if unusable and not only_reset else [found]

    def _read(self, name: str, read: Callable[[str], _T | None]) -> _T | None:
        text = self.headers.get(name)
        if text is None:
            return None
        value = read(text)
        self.rejected += value is None
        return value


def whole(text: str, *, least: int = 0) -> int | None:
    """A whole number of at least `least`, written in ASCII digits; None for anything else."""
    text = text.strip()
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        return None
    number = int(text)
    return number if number >= least else None
