"""Adaptive throttling: stop sending what a provider would only turn away (Google SRE book, chapter 21)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from smart_model_router.core.checked_options import CountOrZero, Interval, Options, Ratio, Unit


def rejection_probability(requests: float, accepts: float, k: float = 2.0) -> float:
    """max(0, (requests - k x accepts) / (requests + 1)), as the SRE book has it."""
    return max(0.0, (requests - k * accepts) / (requests + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleConfig(Options):
    """`k` requests are sent for each one accepted before any is refused; `cells` one-second cells are remembered.

    Below `minimum_requests` known outcomes nothing is refused; the probability never exceeds `max_probability`.
    """

    k: Annotated[float, Interval(ge=1, le=100)] = 2.0
    cells: Annotated[int, Unit("count"), Interval(ge=1, le=3600)] = 120
    minimum_requests: CountOrZero = 20
    max_probability: Ratio = 0.9


@dataclass(frozen=True, slots=True)
class ThrottleSnapshot:
    """What a throttle has counted, as of the last time it was asked."""

    requests: int
    accepts: int


class AdaptiveThrottle:
    """One per provider. Counts calls whose outcome is known and its own refusals; a call in flight is neither."""

    __slots__ = ("_accepts", "_accepts_in", "_config", "_requests", "_requests_in", "_second")

    def __init__(self, config: ThrottleConfig | None = None) -> None:
        self._config = config or ThrottleConfig()
        self._second: int | None = None
        self.reset()

    def reset(self) -> None:
        """Forget everything: a breaker of the provider closed."""
        self._requests_in = [0] * self._config.cells
        self._accepts_in = [0] * self._config.cells
        self._requests = 0
        self._accepts = 0

    def probability(self, now: float) -> float:
        """The chance in [0, 1] that a call is refused at `now`."""
        if self._requests == 0:
            return 0.0
        self._advance(now)
        if self._requests < self._config.minimum_requests:
            return 0.0
        likely = rejection_probability(self._requests, self._accepts, self._config.k)
        return min(self._config.max_probability, likely)

    def try_pass(self, now: float, roll: float) -> bool:
        """Toss: False refuses the call, and counts the refusal as a request. `roll` in [0, 1)."""
        if roll >= self.probability(now):
            return True
        self.record(False, now)
        return False

    def snapshot(self) -> ThrottleSnapshot:
        """The counters, for checkers."""
        return ThrottleSnapshot(self._requests, self._accepts)

    @property
    def empty(self) -> bool:
        """Whether nothing is known (since the last reset)."""
        return self._requests == 0

    def record(self, accepted: bool, now: float) -> None:
        """The outcome of a call that was sent; a call refused here counts as one not accepted."""
        cell = self._advance(now) % self._config.cells
        self._requests_in[cell] += 1
        self._accepts_in[cell] += accepted
        self._requests += 1
        self._accepts += accepted

    def _advance(self, now: float) -> int:
        second = int(now)
        if self._second == second:
            return second
        if self._second is None:
            self._second = second
        cells = self._config.cells
        for step in range(self._second + 1, min(second, self._second + cells) + 1):
            cell = step % cells
            self._requests -= self._requests_in[cell]
            self._accepts -= self._accepts_in[cell]
            self._requests_in[cell] = self._accepts_in[cell] = 0
        self._second = max(self._second, second)
        return self._second
