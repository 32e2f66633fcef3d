"""Times as they come (datetime, epoch seconds, ISO 8601 text) become seconds; what is no time becomes None."""

from __future__ import annotations

from datetime import UTC, datetime

from smart_model_router_scoring.options import is_number

DAY_SECONDS = 86_400.0


def epoch_seconds(time: object) -> float | None:
    """Seconds since 1970 of a datetime, a number of such seconds, or ISO 8601 text; None for everything else.

    A naive datetime, or text without an offset, is UTC.
    """
    if isinstance(time, str):
        return _of_text(time.strip())
    if isinstance(time, datetime):
        return _of_datetime(time)
    if is_number(time):
        return float(time)
    return None


def age_days(time: object, now: datetime) -> float | None:
    """Days from `time` to `now`, at least 0 (a time to come counts as now); None when `time` is no time."""
    at = epoch_seconds(time)
    present = _of_datetime(now)
    return None if at is None else max((present - at) / DAY_SECONDS, 0.0)


def is_future(time: object, now: datetime) -> bool:
    """True when `time` is a time, and after `now`."""
    at = epoch_seconds(time)
    return at is not None and at > _of_datetime(now)


def _of_text(text: str) -> float | None:
    try:
        return _of_datetime(datetime.fromisoformat(text))
    except ValueError:
        return None


def _of_datetime(time: datetime) -> float:
    # Not `timestamp()`: arithmetic on aware datetimes is exact, and the platform's calendar is not asked.
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (aware - _EPOCH).total_seconds()


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
