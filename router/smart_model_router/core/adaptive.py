"""An adaptive concurrency limit: less when the provider slows down or turns calls away, more while it bears them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from smart_model_router.core.options import Count, Interval, Options, Unit

_SHORT, _LONG = 0.2, 0.01
"""Weights of a new sample in the pace of now, and in the usual one: some ten calls, and some hundred."""
_LEAST_GRADIENT = 0.5
_SMOOTHING = 0.2
_FADING = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveConfig(Options):
    """Whether and how the limits of bulkheads follow their providers, between `minimum` and the configured slots.

    `tolerance` is how many times the usual seconds per output token are borne before the limit falls; `decrease` is
    what is left of it after a 429 or 529.
    """

    enabled: bool = False
    minimum: Count = 1
    tolerance: Annotated[float, Interval(ge=1, le=100)] = 1.5
    decrease: Annotated[float, Unit("ratio"), Interval(ge=0.1, le=0.99)] = 0.9


class AdaptiveLimit:
    """A limit in [minimum, most], beginning at `most`. Pure: instants are arguments. Not thread-safe.

    The gradient is that of Netflix's concurrency-limits (Gradient2): the usual pace over the present one, here in
    seconds per output token, as answers differ in length. Growth and the answer to a refusal are AIMD: one more for
    each round of calls that were borne, a share less for each round in which one was turned away.
    """

    __slots__ = ("_config", "_cut_at", "_limit", "_long", "_most", "_short")

    def __init__(self, most: int, config: AdaptiveConfig) -> None:
        self._config = config
        self._most = most
        self._limit = float(most)
        self._short: float | None = None
        self._long = 0.0
        self._cut_at = -math.inf

    @property
    def limit(self) -> int:
        """How many calls may be in flight."""
        return int(self._limit)

    def resize(self, most: int) -> None:
        """The owner allows another number. Who was at the old one goes to the new one."""
        at_most = self._limit >= self._most
        self._most = most
        self._limit = float(most) if at_most else self._bounded(self._limit)

    def succeeded(self, pace: float | None, in_flight: int) -> None:
        """A call was answered at so many seconds per output token (None: unknown), itself still among `in_flight`.

        With fewer than half of the limit in flight nothing is learned about it: callers want no more.
        """
        gradient = 1.0 if pace is None else self._gradient(pace)
        if 2 * in_flight < self.limit:
            return
        if gradient < 1.0:
            self._limit = self._bounded(self._limit * (1.0 - _SMOOTHING * (1.0 - gradient)))
        else:
            self._limit = self._bounded(self._limit + 1.0 / self._limit)

    def refused(self, admitted_at: float, now: float) -> None:
        """The provider had no room for a call. Those admitted before the last cut say nothing new."""
        if admitted_at >= self._cut_at:
            self._cut_at = now
            self._limit = self._bounded(self._limit * self._config.decrease)

    def _gradient(self, pace: float) -> float:
        """The usual pace over that of now, tolerance included, at least 0.5; from 1 on it is no slower than usual."""
        if self._short is None:
            self._short = self._long = pace
        self._short += _SHORT * (pace - self._short)
        self._long += _LONG * (pace - self._long)
        if self._long > 2 * self._short:  # recovered from a long bad time: what was usual then is no measure now
            self._long *= _FADING
        if self._short <= 0.0:
            return 1.0
        return max(_LEAST_GRADIENT, self._config.tolerance * self._long / self._short)

    def _bounded(self, limit: float) -> float:
        return float(min(self._most, max(min(self._config.minimum, self._most), limit)))
