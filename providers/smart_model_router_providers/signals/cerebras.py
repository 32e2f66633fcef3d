"""Cerebras's headers: x-ratelimit-{limit,remaining,reset}-{requests,tokens}-{minute,hour,day}; float seconds.

Source: Cerebras docs, "Rate Limits". On a 200 only: what a 429 says nothing of is known from the answers before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router_providers.signals.fields import DAY, HOUR, MINUTE

if TYPE_CHECKING:
    from smart_model_router.domain.outcome import BucketReading
    from smart_model_router_providers.signals.fields import Fields

_WINDOWS = {"minute": MINUTE, "hour": HOUR, "day": DAY}


def read(fields: Fields) -> list[BucketReading]:
    """Requests and tokens of every window the answer speaks of."""
    found: list[BucketReading] = []
    for name in ("requests", "tokens"):
        for window, length in _WINDOWS.items():
            found += fields.bucket(
                name,
                limit=f"x-ratelimit-limit-{name}-{window}",
                remaining=f"x-ratelimit-remaining-{name}-{window}",
                reset=f"x-ratelimit-reset-{name}-{window}",
                read_reset=fields.duration,
                window_seconds=length,
            )
    return found
