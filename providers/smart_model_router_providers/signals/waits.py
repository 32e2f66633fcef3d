"""A provider's word on when to come back -> Wait(seconds, scope), in the order in which it is believed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router.domain.outcome import Scope, Wait
from smart_model_router_providers.signals.bodies import scope_of, violates_day_quota, wait_of_details, wait_of_words
from smart_model_router_providers.signals.durations import until_next_minute
from smart_model_router_providers.signals.fields import DAY, HOUR, Fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.domain.outcome import BucketReading, LimitReading

_LONGEST_TEXT = 4096
_TODAY_IS_OVER_SECONDS = 3600.0
"""A day quota without an honest date: ask again each hour rather than guess the provider's midnight."""

_OWN_FIELDS = ("x-rate-limit-reset-tokens", "x-ratelimit-timeremaining")
"""Waits that one kind alone says so: Azure's alias, GitHub Models."""


def read_wait(
    headers: Mapping[str, str],
    error: Mapping[str, object],
    message: str,
    reading: LimitReading,
    default: Scope,
    *,
    clock_minutes: bool = False,
) -> tuple[Wait | None, int]:
    """The wait a refusal asks for, and how many fields made no sense.

    `headers` have lower-case names; `error` is the error object of the body, `message` its text; `default` is the
    scope when nothing names one. `clock_minutes` says that a rate limit without a word ends with the minute of the
    wall clock. Never raises.
    """
    message = message[:_LONGEST_TEXT]
    fields = Fields(headers)
    rate = default == "minute"
    spent = [bucket for bucket in reading.buckets if bucket.remaining == 0] if rate else []
    named = scope_of(headers.get("x-ratelimit-type", ""), error, message) or _scope_of_windows(spent)
    scope = named or default
    found, rejected = _from_headers(fields), 0
    if found == 0 and rate and named is None and not spent and "retry-after" in headers:
        scope = "concurrency"  # at once, and nothing is used up: it was too many at a time
    if found is None:
        found, rejected = wait_of_details(error)
    if found is None:
        found = wait_of_words(message, fields.date)
    if found is None:
        # What is exhausted decides, not the longest reset. A reset is until full: too long, never too short.
        found = max((bucket.reset_seconds for bucket in spent if bucket.reset_seconds is not None), default=None)
    if found is None and clock_minutes and rate:
        found = until_next_minute(fields.date)
    if scope == "day" and violates_day_quota(error):
        found = max(found or 0.0, _TODAY_IS_OVER_SECONDS)
    if found is not None and named is None and rate:
        scope = _scope_of_length(found) or scope
    return (None if found is None else Wait(found, scope)), rejected + fields.rejected


def _from_headers(fields: Fields) -> float | None:
    milliseconds = fields.duration("retry-after-ms")  # OpenAI, Azure: wins over retry-after
    if milliseconds is not None:
        return milliseconds / 1000.0
    plain = fields.duration_or_instant("retry-after")
    if plain is not None:
        return plain
    own = (fields.duration(name) for name in _OWN_FIELDS)
    return next((value for value in own if value is not None), None)


def _scope_of_length(wait: float) -> Scope | None:
    """The scope of a wait without a named one, by its seconds: no limit of a minute asks for half an hour."""
    if wait >= DAY / 2:
        return "day"
    return "hour" if wait >= HOUR / 2 else None


def _scope_of_windows(spent: list[BucketReading]) -> Scope | None:
    """The scope of the longest window that is used up, when it is longer than a minute."""
    longest = max((bucket.window_seconds or 0.0 for bucket in spent), default=0.0)
    if longest >= DAY:
        return "day"
    return "hour" if longest >= HOUR else None
