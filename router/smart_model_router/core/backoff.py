"""Back-off between two calls to the same target: full jitter."""

from __future__ import annotations

from dataclasses import dataclass

from smart_model_router.core.checked_options import Options, Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class BackoffConfig(Options):
    """The n-th pause is drawn from [0, min(cap, base x 2^n)) seconds."""

    base: Seconds = 0.25
    cap: Seconds = 8.0


def full_jitter(config: BackoffConfig, retry: int, roll: float) -> float:
    """Seconds to pause before retry number `retry` (from 0); `roll` in [0, 1)."""
    ceiling = config.cap if retry > 32 else min(config.cap, config.base * 2.0**retry)
    return roll * ceiling
