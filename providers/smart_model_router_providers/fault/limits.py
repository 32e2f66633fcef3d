"""Rate limits that really count, and the headers in which each provider family says so."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType

from smart_model_router_providers.fault.effects import Headers, Limit, LimitStyle

# Rounding must not turn a caller away who comes back at the very instant it was told.
CLOSE_ENOUGH_SECONDS = 1e-9


class Bucket:
    """A token bucket of `limit` a `window`, full at first and refilled all the time."""

    def __init__(self, limit: float, window: float, now: float) -> None:
        self.limit = limit
        self._rate = limit / window
        self._level = limit
        self._at = now

    def left(self, now: float) -> float:
        """What could be taken at once."""
        return min(self.limit, self._level + (now - self._at) * self._rate)

    def wait(self, cost: float, now: float) -> float:
        """Seconds until `cost` fits; 0 when it does."""
        return max(0.0, (min(cost, self.limit) - self.left(now)) / self._rate)

    def take(self, cost: float, now: float) -> None:
        """Take it; the caller has asked `wait` first."""
        self._level = self.left(now) - min(cost, self.limit)
        self._at = now

    def reset(self, now: float) -> float:
        """Seconds until it is full again."""
        return (self.limit - self.left(now)) / self._rate


class Window:
    """A count of `limit` that starts again every `window` seconds."""

    def __init__(self, limit: float, window: float, now: float) -> None:
        self.limit = limit
        self._window = window
        self._ends = now + window
        self._used = 0.0

    def _turn(self, now: float) -> None:
        if now >= self._ends:
            self._ends += self._window * (1 + math.floor((now - self._ends) / self._window))
            self._used = 0.0

    def left(self, now: float) -> float:
        """What could be taken at once."""
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
    """The counts of one API key under one limit."""

    def __init__(self, limit: Limit, started: float) -> None:
        kind = Bucket if limit.kind == "continuous" else Window
        given = {"requests": limit.rpm, "tokens": limit.tpm}
        self._meters = {name: kind(most, limit.window, started) for name, most in given.items() if most is not None}
        self._style: LimitStyle = limit.style

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
        """What every answer says of these limits; `wall` is epoch seconds."""
        told = _TELLERS[self._style]
        return tuple(header for name, meter in self._meters.items() for header in told(name, meter, now, wall))

    def refusal(self, wait: float, now: float, wall: float) -> Headers:
        """What a 429 says."""
        # Whole seconds rounded up, as the providers send it: a caller that obeys is never early.
        retry = () if self._style == "none" else (("retry-after", str(math.ceil(wait))),)
        exact = (("retry-after-ms", str(math.ceil(wait * 1000))),) if self._style == "openai" else ()
        return (*retry, *exact, *self.headers(now, wall))


def _openai(name: str, meter: Meter, now: float, wall: float) -> Headers:  # noqa: ARG001  one shape for the table
    return (
        (f"x-ratelimit-limit-{name}", str(int(meter.limit))),
        (f"x-ratelimit-remaining-{name}", str(int(meter.left(now)))),
        (f"x-ratelimit-reset-{name}", go_duration(meter.reset(now))),
    )


def _anthropic(name: str, meter: Meter, now: float, wall: float) -> Headers:
    reset = datetime.fromtimestamp(math.ceil(wall + meter.reset(now)), UTC)
    return (
        (f"anthropic-ratelimit-{name}-limit", str(int(meter.limit))),
        (f"anthropic-ratelimit-{name}-remaining", str(int(meter.left(now)))),
        (f"anthropic-ratelimit-{name}-reset", reset.strftime("%Y-%m-%dT%H:%M:%SZ")),
    )


def _silent(name: str, meter: Meter, now: float, wall: float) -> Headers:  # noqa: ARG001  one shape for the table
    return ()


_TELLERS: Mapping[LimitStyle, Callable[[str, Meter, float, float], Headers]] = MappingProxyType(
    {"openai": _openai, "anthropic": _anthropic, "plain": _silent, "none": _silent}
)


def go_duration(seconds: float) -> str:
    """Seconds as Go prints a duration, OpenAI's way to say a reset: `120ms`, `8.64s`, `6m0s`, `1h2m3s`."""
    millis = math.ceil(seconds * 1000)
    if millis < 1000:
        return f"{millis}ms"
    minutes, rest = divmod(millis, 60_000)
    hours, minutes = divmod(minutes, 60)
    head = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{head}{rest / 1000:g}s"
