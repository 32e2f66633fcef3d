"""Anthropic's headers: anthropic-ratelimit-{requests,tokens,input-tokens,output-tokens}-{limit,remaining,reset}.

Source: Anthropic docs, "Rate limits", "Response headers"; reset is RFC 3339, until full, and may lie before Date.
Subscriptions have another family beside it (anthropic_unified.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router_providers.signals import anthropic_unified

if TYPE_CHECKING:
    from smart_model_router.domain.outcome import BucketReading
    from smart_model_router_providers.signals.fields import Fields

_NAMES = ("requests", "tokens", "input-tokens", "output-tokens")


def read(fields: Fields) -> list[BucketReading]:
    """Every bucket the answer speaks of."""
    found: list[BucketReading] = []
    for name in _NAMES:
        found += fields.bucket(
            name.replace("-", "_"),
            limit=f"anthropic-ratelimit-{name}-limit",
            remaining=f"anthropic-ratelimit-{name}-remaining",
            reset=f"anthropic-ratelimit-{name}-reset",
            read_reset=fields.instant,
        )
    return found + anthropic_unified.read(fields)
