"""Rate-limit buckets from headers: one reader a header family, named by the catalog."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from smart_model_router.outcome import NO_READING, BucketReading, LimitReading
from smart_model_router_providers.catalog import KINDS, HeaderFamily
from smart_model_router_providers.signals.durations import seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_DAY = 86400.0
_NAMES = ("requests", "tokens", "project-tokens")


def _read_openai(headers: Mapping[str, str], requests_window: float | None = None) -> LimitReading:
    """x-ratelimit-{limit,remaining,reset}-{requests,tokens,project-tokens}; reset is the time until full."""
    buckets: list[BucketReading] = []
    rejected = 0
    for name in _NAMES:
        raw_limit = headers.get(f"x-ratelimit-limit-{name}")
        raw_remaining = headers.get(f"x-ratelimit-remaining-{name}")
        raw_reset = headers.get(f"x-ratelimit-reset-{name}")
        if raw_limit is None and raw_remaining is None and raw_reset is None:
            continue
        limit, remaining = _whole(raw_limit), _whole(raw_remaining)
        reset = None if raw_reset is None else seconds(raw_reset)
        window = headers.get(f"x-ratelimit-renewalperiod-{name}")  # Azure, GitHub
        window_seconds = requests_window if name == "requests" else None
        if window is not None:
            window_seconds = seconds(window)
        read = ((raw_limit, limit), (raw_remaining, remaining), (raw_reset, reset), (window, window_seconds))
        rejected += sum(raw is not None and value is None for raw, value in read)
        if limit is not None or remaining is not None or (raw_limit is None and raw_remaining is None):
            buckets.append(BucketReading(name.replace("-", "_"), limit, remaining, reset, window_seconds))
    return LimitReading(tuple(buckets), rejected) if buckets or rejected else NO_READING


def _whole(text: str | None) -> int | None:
    # Azure's sentinel -1 means "not metered here" and is refused with the rest.
    text = text.strip() if text is not None else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 15 else None


def _read_none(headers: Mapping[str, str]) -> LimitReading:  # noqa: ARG001 - the shape of a family's reader
    return NO_READING


FAMILIES: Mapping[HeaderFamily, Callable[[Mapping[str, str]], LimitReading]] = MappingProxyType(
    {
        "openai": _read_openai,
        # Groq docs, "Rate Limits": x-ratelimit-*-requests is always requests per day.
        "groq": partial(_read_openai, requests_window=_DAY),
        "none": _read_none,
    }
)


def read_limits(kind: str, headers: Mapping[str, str]) -> LimitReading:
    """What an answer's headers (names in lower case) say of the buckets of a provider of this kind."""
    row = KINDS.get(kind)
    return FAMILIES[row.header_family](headers) if row is not None else NO_READING
