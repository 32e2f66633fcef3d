"""The retry budget: what the whole router may spend on asking the same target again, and on hedges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from smart_model_router.core.checked_options import CountOrZero, Interval, Options, Ratio

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
