"""Hedging: when a stream's head is so late that asking a second target is worth a call."""

from __future__ import annotations

from dataclasses import dataclass

from smart_model_router.core.budget import RetryBudgetConfig
from smart_model_router.core.checked_options import Options, Ratio
from smart_model_router.domain.outcome import Snapshot

LEAST_OUTCOMES = 20
"""Of fewer calls the 95th percentile is only the slowest one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HedgeConfig(Options):
    """Whether streams are hedged, and at most for which `ratio` of the requests."""

    enabled: bool = False
    ratio: Ratio = 0.05

    @property
    def budget(self) -> RetryBudgetConfig:
        """What all hedges are paid from: nothing in advance, and no more saved up than twenty."""
        return RetryBudgetConfig(ratio=self.ratio, start=0, maximum=20)


def hedge_after(snapshot: Snapshot) -> float | None:
    """Seconds of silence after which a stream from this target is late: its p95 TTFT. None: too little is known."""
    return snapshot.ttft_p95 if snapshot.outcomes >= LEAST_OUTCOMES else None
