"""Azure's headers: OpenAI's names, with a window length, and -1 or 0 where nothing is metered.

Source: Azure OpenAI and Foundry answers; x-rate-limit-reset-tokens (an extra dash) on a 429 is a wait, see waits.py.
GitHub Models runs on Azure and has the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router_providers.signals.fields import whole
from smart_model_router_providers.signals.openai import NAMES, read_named

if TYPE_CHECKING:
    from smart_model_router.domain.outcome import BucketReading
    from smart_model_router_providers.signals.fields import Fields


def read(fields: Fields) -> list[BucketReading]:
    """Every bucket that is metered."""
    windows = {name: fields.duration(f"x-ratelimit-renewalperiod-{name}") for name in NAMES}
    buckets = read_named(fields, {name: window for name, window in windows.items() if window})
    return [bucket for bucket in buckets if not _unmetered(fields, bucket.name)]


def _unmetered(fields: Fields, name: str) -> bool:
    """A limit that is no limit makes the other figures of its bucket sentinels too."""
    limit = fields.headers.get(f"x-ratelimit-limit-{name.replace('_', '-')}")
    return limit is not None and whole(limit, least=1) is None
