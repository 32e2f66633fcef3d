"""Durations and dates as providers write them -> seconds >= 0, or None for nonsense. Nothing here raises."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

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
