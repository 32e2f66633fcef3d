"""Groq's headers: OpenAI's names, but x-ratelimit-*-requests is always requests per DAY.

Source: Groq docs, "Rate Limits": a reset of 86.4 s is the spacing of 1,000 requests a day, not a wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router_providers.signals.fields import DAY
from smart_model_router_providers.signals.openai import read_named

if TYPE_CHECKING:
    from smart_model_router.domain.outcome import BucketReading
    from smart_model_router_providers.signals.fields import Fields


def read(fields: Fields) -> list[BucketReading]:
    """Requests of the day, tokens of the minute."""
    return read_named(fields, {"requests": DAY})
