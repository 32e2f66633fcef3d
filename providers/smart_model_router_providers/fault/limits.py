"""Rate limits that really count."""

from __future__ import annotations

import math

from smart_model_router_providers.fault.effects import Headers, Limit
from smart_model_router_providers.fault.rate_limit_headers import MANNERS, Said

# Rounding must not refuse a call that comes at the very instant it was told to.
CLOSE_ENOUGH_SECONDS = 1e-9


class Bucket:
    """A token bucket of `limit` a `window` that holds at most `burst`, full at first and refilled all the time."""

    def __init__(self, limit: float, window: float, burst: float, now: float) -> None:
        self.limit = limit
        self._burst = burst
        self._rate = limit / window
        self._level = burst
        self._at = now

    def left(self, now: float) -> float:
        """The amount that could be taken at once."""
        return min(self._burst, self._level + (now - self._at) * self._rate)

    def wait(self, cost: float, now: float) -> float:
        """Seconds until `cost` fits; 0 when it does."""
        return max(0.0, (min(cost, self._burst) - self.left(now)) / self._rate)

    def take(self, cost: float, now: float) -> None:
        """Take it; the caller has asked `wait` first."""
        self._level = self.left(now) - min(cost, self._burst)
        self._at = now

    def reset(self, now: float) -> float:
        """Seconds until it is full again."""
        return (self._burst - self.left(now)) / self._rate


class Window:
    """A count of `limit` that starts again at `ends` and every `window` seconds after it."""

    def __init__(self, limit: float, window: float, ends: float) -> None:
        self.limit = limit
        self._window = window
        self._ends = ends
        self._used = 0.0

    def _turn(self, now: float) -> None:
        late = now - self._ends + CLOSE_ENOUGH_SECONDS
        if late >= 0:
            self._ends += self._window * (1 + math.floor(late / self._window))
            self._used = 0.0

    def left(self, now: float) -> float:
        """The amount that could be taken at once."""
        self._turn(now)
        return self.limit - self._used

    def wait(self, cost: float, now: float) -> float:
        """Seconds until `cost` fits; 0 when it does."""
        return 0.0 if min(cost, self.limit) <= self.left(now) else self._ends - now

    def take(self, cost: float, now: float) -> None:
        """Take it; the caller has asked `wait` first."""
        self._turn(now)
        self._used += min(cost, self.limit)

    def reset(self, now: float) -> float:
        """Seconds until the count starts again."""
        self._turn(now)
        return self._ends - now


Meter = Bucket | Window


class Limiter:
    """The counts of one API key under one limit. `started` is monotonic, `wall` the same instant in epoch seconds."""

    def __init__(self, limit: Limit, started: float, wall: float) -> None:
        self._manner = MANNERS[limit.style]
        first = limit.window - wall % limit.window if self._manner.by_the_clock else limit.window
        self._meters: dict[str, Meter] = {
            name: Window(most, limit.window, started + first)
            if limit.kind == "window"
            else Bucket(most, limit.window, limit.burst or most, started)
            for name, most in (("requests", limit.rpm), ("tokens", limit.tpm))
            if most is not None
        }
        self._window = limit.window

    def admit(self, tokens: int, now: float) -> float:
        """Count one call of so many tokens and return 0, or count nothing and return the seconds to wait."""
        costs = {"requests": 1, "tokens": tokens}
        wait = max(meter.wait(costs[name], now) for name, meter in self._meters.items())
        if wait > CLOSE_ENOUGH_SECONDS:
            return wait
        for name, meter in self._meters.items():
            meter.take(costs[name], now)
        return 0.0

    def headers(self, now: float, wall: float) -> Headers:
        """The headers of every answer about these limits; `wall` is epoch seconds."""
        return self._told(now, wall) if self._manner.on_answers else ()

    def refusal(self, wait: float, now: float, wall: float) -> Headers:
        """The headers and the text of a 429."""
        told = self._told(now, wall) if self._manner.on_refusals else ()
        return (*self._manner.retry(wait), *told)

    def _told(self, now: float, wall: float) -> Headers:
        tell, window = self._manner.tell, self._window
        return tuple(h for name, meter in self._meters.items() for h in tell(Said(name, meter, window, now, wall)))
