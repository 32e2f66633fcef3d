"""The retry budget, how a retry backs off, when a hedge is sent, and when the router sheds load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from smart_model_router.core.checked_options import CountOrZero, Interval, Options, Ratio, Seconds
from smart_model_router.domain.outcome import Snapshot
from smart_model_router.domain.request import WAITING_CRITICALITIES, Criticality

_EPSILON = 1e-9
"""Ten tenths are a retry, although as floats they add up to a little less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryBudgetConfig(Options):
    """Each request adds `ratio` of a retry; `start` retries are there at first, `maximum` at most."""

    ratio: Ratio = 0.1
    start: CountOrZero = 10
    maximum: Annotated[int, Interval(ge=0, le=1_000_000)] = 100


class RetryBudget:
    """Same-target retries and hedges stay below `ratio` of the requests plus `start` (I9)."""

    __slots__ = ("balance", "config")

    def __init__(self, config: RetryBudgetConfig | None = None) -> None:
        self.config = config or RetryBudgetConfig()
        self.balance = float(min(self.config.start, self.config.maximum))

    def deposit(self) -> None:
        """A request began."""
        self.balance = min(float(self.config.maximum), self.balance + self.config.ratio)

    @property
    def affordable(self) -> bool:
        """Whether one could be paid for."""
        return self.balance >= 1.0 - _EPSILON

    def try_spend(self) -> bool:
        """Pay for one retry, or say no."""
        if not self.affordable:
            return False
        self.balance = max(0.0, self.balance - 1.0)
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class BackoffConfig(Options):
    """The n-th pause is drawn from [0, min(cap, base x 2^n)) seconds."""

    base: Seconds = 0.25
    cap: Seconds = 8.0


def full_jitter(config: BackoffConfig, retry: int, roll: float) -> float:
    """Seconds to pause before retry number `retry` (from 0); `roll` in [0, 1)."""
    ceiling = config.cap if retry > 32 else min(config.cap, config.base * 2.0**retry)
    return roll * ceiling


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SheddingConfig(Options):
    """Shedding starts strictly above `threshold` and stops after `calm` seconds at or below it."""

    threshold: Ratio = 0.5
    calm: Seconds = 5.0


class Shedding:
    """Whether the router sheds. `update` is told the share of OPEN providers, `sheds` answers for one request."""

    __slots__ = ("_calm_since", "_config", "active")

    def __init__(self, config: SheddingConfig | None = None) -> None:
        self._config = config or SheddingConfig()
        self._calm_since: float | None = None
        self.active = False

    @property
    def calm(self) -> float:
        """Seconds at or below the threshold after which it stops."""
        return self._config.calm

    def update(self, open_ratio: float, now: float) -> bool:
        """Take in the share of OPEN providers; True when shedding began or ended."""
        before = self.active
        if open_ratio > self._config.threshold:
            self._calm_since = None
            self.active = True
        elif self.active:
            self._calm_since = now if self._calm_since is None else self._calm_since
            self.active = now - self._calm_since < self._config.calm
        return self.active != before

    def sheds(self, criticality: Criticality) -> bool:
        """Whether a request of this criticality is turned away now."""
        return self.active and criticality not in WAITING_CRITICALITIES
