"""Anthropic's headers for subscriptions: anthropic-ratelimit-unified-{5h,7d}-{utilization,reset}.

Source: answers to subscription tokens; reset is in epoch seconds, utilization is a share. There is no figure to count
by, so nothing is known but when a window is used up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router.domain.outcome import BucketReading
from smart_model_router_providers.signals.fields import DAY, HOUR

if TYPE_CHECKING:
    from smart_model_router_providers.signals.fields import Fields

_WINDOWS = {"5h": 5 * HOUR, "7d": 7 * DAY}


def read(fields: Fields) -> list[BucketReading]:
    """The windows the answer speaks of; `remaining` is 0 in one that is used up, else unknown."""
    found: list[BucketReading] = []
    for name, window in _WINDOWS.items():
        used = fields.share(f"anthropic-ratelimit-unified-{name}-utilization")
        reset = fields.epoch(f"anthropic-ratelimit-unified-{name}-reset")
        if used is not None or reset is not None:
            spent = 0 if used is not None and used >= 1 else None
            found.append(BucketReading(f"unified_{name}", None, spent, reset, window))
    return found
