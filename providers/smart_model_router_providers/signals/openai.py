"""OpenAI's headers: x-ratelimit-{limit,remaining,reset}-{requests,tokens,project-tokens}; reset is until full.

Source: OpenAI, "Rate limits", "Rate limits in headers".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.domain.outcome import BucketReading
    from smart_model_router_providers.signals.fields import Fields

NAMES = ("requests", "tokens", "project-tokens")


def read(fields: Fields) -> list[BucketReading]:
    """Every bucket the answer speaks of."""
    return read_named(fields, {})


def read_named(fields: Fields, windows: Mapping[str, float]) -> list[BucketReading]:
    """The same names, used by others as well: `windows` are the seconds of those that are not a minute's."""
    found: list[BucketReading] = []
    for name in NAMES:
        found += fields.bucket(
            name.replace("-", "_"),
            limit=f"x-ratelimit-limit-{name}",
            remaining=f"x-ratelimit-remaining-{name}",
            reset=f"x-ratelimit-reset-{name}",
            read_reset=fields.duration,
            window_seconds=windows.get(name),
        )
    return found
