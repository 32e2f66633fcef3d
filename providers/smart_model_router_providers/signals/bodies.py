"""The wait in the body of a refusal: in its details, its fields, its text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from smart_model_router.wires.values import is_object, items, mapping, text
from smart_model_router_providers.signals.durations import seconds, until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.domain.outcome import Scope

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
