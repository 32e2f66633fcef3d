"""Rate limits that really count, and the headers in which each provider family tells of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Protocol

from smart_model_router_providers.fault.effects import Headers, Limit, LimitStyle

_DAY = 86_400.0


class Counter(Protocol):
    """A limit that counts (limits.py)."""

    limit: float

    def left(self, now: float) -> float:
        """The amount that could be taken at once."""
        ...

    def reset(self, now: float) -> float:
        """Seconds until it is full again."""
        ...


@dataclass(frozen=True, slots=True)
class Said:
    """One limit at one instant: its name (requests or tokens), its window in seconds, both clocks."""

    name: str
    counter: Counter
    window: float
    now: float
    wall: float

    @property
    def limit(self) -> str:
        """The whole of it."""
        return str(int(self.counter.limit))

    @property
    def left(self) -> str:
        """The remaining amount, in whole units."""
        return str(max(0, int(self.counter.left(self.now))))

    @property
    def reset(self) -> float:
        """Seconds until it is full."""
        return self.counter.reset(self.now)


@dataclass(frozen=True, slots=True)
class Manner:
    """The headers of one family: for each limit (`tell`), on which answers, and the form of a refusal's wait.

    `by_the_clock`: its windows begin when the minute (hour, day) of the wall clock does.
    """

    tell: Callable[[Said], Headers]
    retry: Callable[[float], Headers]
    on_answers: bool = True
    on_refusals: bool = True
    by_the_clock: bool = False


def go_duration(seconds: float) -> str:
    """Seconds as Go prints a duration, OpenAI's way to say a reset: `120ms`, `8.64s`, `6m0s`, `1h2m3s`."""
    millis = math.ceil(seconds * 1000)
    if millis < 1000:
        return f"{millis}ms"
    minutes, rest = divmod(millis, 60_000)
    hours, minutes = divmod(minutes, 60)
    head = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{head}{rest / 1000:g}s"


def _openai(said: Said) -> Headers:
    return (
        (f"x-ratelimit-limit-{said.name}", said.limit),
        (f"x-ratelimit-remaining-{said.name}", said.left),
        (f"x-ratelimit-reset-{said.name}", go_duration(said.reset)),
    )


def _azure(said: Said) -> Headers:
    return (
        (f"x-ratelimit-limit-{said.name}", said.limit),
        (f"x-ratelimit-remaining-{said.name}", said.left),
        (f"x-ratelimit-reset-{said.name}", str(math.ceil(said.reset))),
        (f"x-ratelimit-renewalperiod-{said.name}", f"{said.window:g}"),
    )


def _groq(said: Said) -> Headers:
    """Requests are counted by the day and by nothing else; a limit of the minute is not told."""
    return () if said.name == "requests" and said.window != _DAY else _openai(said)


def _anthropic(said: Said) -> Headers:
    reset = datetime.fromtimestamp(math.ceil(said.wall + said.reset), UTC)
    return (
        (f"anthropic-ratelimit-{said.name}-limit", said.limit),
        (f"anthropic-ratelimit-{said.name}-remaining", said.left),
        (f"anthropic-ratelimit-{said.name}-reset", reset.strftime("%Y-%m-%dT%H:%M:%SZ")),
    )


def _mistral(said: Said) -> Headers:
    name = "req" if said.name == "requests" else said.name
    return ((f"x-ratelimit-limit-{name}-minute", said.limit), (f"x-ratelimit-remaining-{name}-minute", said.left))


def _cerebras(said: Said) -> Headers:
    window = "day" if said.window == _DAY else "minute"
    return (
        (f"x-ratelimit-limit-{said.name}-{window}", said.limit),
        (f"x-ratelimit-remaining-{said.name}-{window}", said.left),
        (f"x-ratelimit-reset-{said.name}-{window}", str(said.reset)),
    )


def _openrouter(said: Said) -> Headers:
    return (
        ("x-ratelimit-limit", said.limit),
        ("x-ratelimit-remaining", said.left),
        ("x-ratelimit-reset", str(math.ceil((said.wall + said.reset) * 1000))),
    )


def _ietf(said: Said) -> Headers:
    return (
        ("ratelimit-policy", f'"{said.name}";q={said.limit};w={said.window:.0f}'),
        ("ratelimit", f'"{said.name}";r={said.left};t={math.ceil(said.reset)}'),
    )


def _nothing(said: Said) -> Headers:  # noqa: ARG001  one shape for the table
    return ()


def _whole_seconds(wait: float) -> Headers:
    # Rounded up, as the providers send it: a caller that obeys is never early.
    return (("retry-after", str(math.ceil(wait))),)


def _milliseconds(wait: float) -> Headers:
    return (*_whole_seconds(wait), ("retry-after-ms", str(math.ceil(wait * 1000))))


def _time_remaining(wait: float) -> Headers:
    return (*_whole_seconds(wait), ("x-ratelimit-timeremaining", str(math.ceil(wait))))


def _no_word(wait: float) -> Headers:  # noqa: ARG001  one shape for the table
    return ()


MANNERS: Mapping[LimitStyle, Manner] = MappingProxyType(
    {
        "openai": Manner(_openai, _milliseconds),
        "azure": Manner(_azure, _milliseconds),
        "github": Manner(_azure, _time_remaining),
        "groq": Manner(_groq, _whole_seconds),
        "anthropic": Manner(_anthropic, _whole_seconds),
        "mistral": Manner(_mistral, _no_word, by_the_clock=True),
        "cerebras": Manner(_cerebras, _no_word, on_refusals=False),
        "openrouter": Manner(_openrouter, _no_word, on_answers=False),
        "ietf": Manner(_ietf, _whole_seconds),
        "plain": Manner(_nothing, _whole_seconds),
        "none": Manner(_nothing, _no_word),
    }
)
"""The provider whose headers a limit sends; plain: only Retry-After on a 429, none: not even that."""


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
