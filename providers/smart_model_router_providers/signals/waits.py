"""Reads the Wait(seconds, scope) of a refusal from its headers, details and text, the most reliable source first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from smart_model_router.domain.outcome import Scope, Wait
from smart_model_router.wires.values import is_object, items, mapping, text
from smart_model_router_providers.signals.families import DAY, HOUR, Fields, seconds, until, until_next_minute

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.domain.outcome import BucketReading, LimitReading

_DURATION = r"((?:\d{1,9}(?:\.\d{1,12})?(?:ms|h|m|s))+|\d{1,9}(?:\.\d{1,12})?)"
_WORDS = re.compile(
    # OpenAI, Groq "Please try again in 1m30s"; Azure "Please retry after 45 seconds"; Gemini "Please retry in
    # 12.9s"; GitHub Models "Please wait 5631 seconds"; others "retry_after": 3 inside a text.
    rf"(?:try again in|retry after|retry in|please wait|retry_after\W{{1,3}})\s*{_DURATION}\s?"
    r"(milliseconds?|seconds?|minutes?|hours?)?",
    re.IGNORECASE | re.ASCII,
)
_WORD_UNITS = {"milli": 1e-3, "second": 1.0, "minute": 60.0, "hour": 3600.0}
_REGAIN = re.compile(r"regain access on (\d{4}-\d\d-\d\d)(?: at (\d\d:\d\d)(?: UTC)?)?", re.ASCII)

_SCOPES: tuple[tuple[re.Pattern[str], Scope], ...] = (
    (re.compile(r"Concurrent", re.IGNORECASE), "concurrency"),  # GitHub Models: UserConcurrentRequests
    (re.compile(r"per[ _-]?day|by[ _-]?day|\bTPD\b|\bRPD\b|daily", re.IGNORECASE), "day"),
    (re.compile(r"per[ _-]?hour|by[ _-]?hour|\bTPH\b|\bRPH\b|hourly", re.IGNORECASE), "hour"),
)

_MOST_HEADERS = 50


def wait_of_details(error: Mapping[str, object]) -> tuple[float | None, int]:
    """Seconds from google.rpc.RetryInfo or a field `retry_after`, and how many such fields made no sense."""
    said = [mapping(detail).get("retryDelay") for detail in items(error.get("details"))]  # "12s"
    said += [place.get("retry_after") for place in (error, mapping(error.get("metadata")))]
    rejected = 0
    for raw in said:
        if raw is None:
            continue
        value = seconds(str(raw)) if isinstance(raw, (int, float, str)) and not isinstance(raw, bool) else None
        if value is not None:
            return value, rejected
        rejected += 1
    return None, rejected


def wait_of_words(message: str, date: str | None) -> float | None:
    """Seconds that a message names; `date` is the answer's own clock."""
    regain = _REGAIN.search(message)  # Anthropic, API usage limits
    if regain is not None:
        return until(f"{regain[1]}T{regain[2] or '00:00'}:00+00:00", date)
    words = _WORDS.search(message)
    if words is None:
        return None
    value = seconds(words[1])
    unit = (words[2] or "").lower()
    factor = next((f for name, f in _WORD_UNITS.items() if unit.startswith(name)), 1.0)
    return None if value is None else value * factor


def scope_of(kind_of_limit: str, error: Mapping[str, object], message: str) -> Scope | None:
    """The limit that the refusal names: by the limit's own name first, then quota ids, then the text."""
    for words in (kind_of_limit, " ".join(_violated_quotas(error)), message):
        for pattern, scope in _SCOPES:
            if pattern.search(words):
                return scope
    return None


def violates_day_quota(error: Mapping[str, object]) -> bool:
    """True when a day's quota is among the violated ones. RetryInfo may then still speak of the minute's."""
    return any("perday" in quota.lower() for quota in _violated_quotas(error))


def headers_inside(error: Mapping[str, object]) -> dict[str, str]:
    """The headers of a provider behind the provider (OpenRouter: metadata.headers), with lower-case names."""
    inner = mapping(error.get("metadata")).get("headers")
    if not is_object(inner) or len(inner) > _MOST_HEADERS:
        return {}
    return {name.lower(): value for name, value in inner.items() if isinstance(value, str)}


def _violated_quotas(error: Mapping[str, object]) -> list[str]:
    """The quota ids of google.rpc.QuotaFailure."""
    return [
        text(mapping(violation).get("quotaId"))
        for detail in items(error.get("details"))
        for violation in items(mapping(detail).get("violations"))
    ]


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
