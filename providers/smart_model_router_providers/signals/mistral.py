"""Mistral's headers: x-ratelimit-{limit,remaining}-{req,tokens}-minute, per model and minute of the wall clock.

Source: answers of api.mistral.ai. There is no reset and no retry-after: the minute ends at :00 of the answer's Date.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router_providers.signals.durations import until_next_minute
from smart_model_router_providers.signals.fields import MINUTE

if TYPE_CHECKING:
    from smart_model_router.domain.outcome import BucketReading
    from smart_model_router_providers.signals.fields import Fields

_NAMES = {"requests": "req", "tokens": "tokens"}


def read(fields: Fields) -> list[BucketReading]:
    """Requests and tokens of the minute."""
    found: list[BucketReading] = []
    for name, theirs in _NAMES.items():
        found += fields.bucket(
            name,
            limit=f"x-ratelimit-limit-{theirs}-minute",
            remaining=f"x-ratelimit-remaining-{theirs}-minute",
            reset="",
            read_reset=lambda _: until_next_minute(fields.date),
            window_seconds=MINUTE,
        )
    return found
