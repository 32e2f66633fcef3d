"""A provider's word on when to come back -> Wait(seconds, scope), in the order in which it is believed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from smart_model_router.outcome import Scope, Wait
from smart_model_router.wires.values import items, mapping, text
from smart_model_router_providers.signals.durations import seconds, until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.outcome import LimitReading

_LONGEST_TEXT = 4096
_TODAY_IS_OVER_SECONDS = 3600.0
"""A day quota without an honest date: ask again each hour rather than guess the provider's midnight."""

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


def read_wait(
    headers: Mapping[str, str],
    error: Mapping[str, object],
    message: str,
    reading: LimitReading,
    default: Scope,
) -> tuple[Wait | None, int]:
    """The wait a refusal asks for, and how many fields made no sense.

    `headers` have lower-case names; `error` is the error object of the body, `message` its text; `default` is
    the scope when no word of the provider names one. Never raises.
    """
    message = message[:_LONGEST_TEXT]
    found, rejected = _from_headers(headers)
    scope = _scope(headers, error, message) or default
    if found is None:
        found = _from_details(error)
    if found is None:
        found = _from_text(message, headers.get("date"))
    if found is None and default == "minute":
        # What is exhausted decides, not the longest reset. A reset is until full: too long, never too short.
        spent = [b.reset_seconds for b in reading.buckets if b.remaining == 0 and b.reset_seconds is not None]
        found = max(spent, default=None)
    if scope == "day" and _violates_day_quota(error):
        # Gemini's RetryInfo speaks of the minute quota even when a day quota is violated as well.
        found = max(found or 0.0, _TODAY_IS_OVER_SECONDS)
    return (None if found is None else Wait(found, scope)), rejected


def _from_headers(headers: Mapping[str, str]) -> tuple[float | None, int]:
    rejected = 0
    in_milliseconds = headers.get("retry-after-ms")  # OpenAI, Azure: wins over retry-after
    if in_milliseconds is not None:
        value = seconds(in_milliseconds)
        if value is not None:
            return value / 1000.0, 0
        rejected += 1
    plain = headers.get("retry-after")
    if plain is not None:
        value = seconds(plain)
        if value is None:
            value = until(plain, headers.get("date"))
        if value is not None:
            return value, rejected
        rejected += 1
    for name in ("x-rate-limit-reset-tokens", "x-ratelimit-timeremaining"):  # Azure's alias; GitHub Models
        raw = headers.get(name)
        if raw is not None:
            value = seconds(raw)
            if value is not None:
                return value, rejected
            rejected += 1
    return None, rejected


def _from_details(error: Mapping[str, object]) -> float | None:
    for detail in items(error.get("details")):
        value = seconds(text(mapping(detail).get("retryDelay")))  # google.rpc.RetryInfo: "12s"
        if value is not None:
            return value
    for place in (error, mapping(error.get("metadata"))):
        raw = place.get("retry_after")
        if isinstance(raw, (int, float, str)) and not isinstance(raw, bool):
            return seconds(str(raw))
    return None


def _from_text(message: str, date: str | None) -> float | None:
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


def _scope(headers: Mapping[str, str], error: Mapping[str, object], message: str) -> Scope | None:
    quotas = " ".join(_violated_quotas(error))
    for words in (headers.get("x-ratelimit-type", ""), quotas, message):
        for pattern, scope in _SCOPES:
            if pattern.search(words):
                return scope
    return None


def _violated_quotas(error: Mapping[str, object]) -> list[str]:
    """The quota ids of google.rpc.QuotaFailure."""
    return [
        text(mapping(violation).get("quotaId"))
        for detail in items(error.get("details"))
        for violation in items(mapping(detail).get("violations"))
    ]


def _violates_day_quota(error: Mapping[str, object]) -> bool:
    return any("perday" in quota.lower() for quota in _violated_quotas(error))
