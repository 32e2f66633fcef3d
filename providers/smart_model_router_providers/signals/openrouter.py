"""OpenRouter's headers: X-RateLimit-{Limit,Remaining,Reset}, on refusals only; reset is in epoch milliseconds.

Source: OpenRouter docs, "Limits"; the same names are in the error's metadata.headers. Others send them with epoch
seconds or plain seconds, which no instant can be mistaken for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router_providers.signals.fields import DAY, HOUR, MINUTE

if TYPE_CHECKING:
    from smart_model_router.domain.outcome import BucketReading
    from smart_model_router_providers.signals.fields import Fields


def read(fields: Fields) -> list[BucketReading]:
    """The one bucket the answer speaks of: of the minute, or of the day when it ends later than within the hour."""
    reset = fields.epoch("x-ratelimit-reset")
    return fields.bucket(
        "requests",
        limit="x-ratelimit-limit",
        remaining="x-ratelimit-remaining",
        reset="x-ratelimit-reset",
        read_reset=lambda _: reset,
        window_seconds=DAY if reset is not None and reset > HOUR else MINUTE,
    )
