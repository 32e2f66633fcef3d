"""The effects of faults, as values: one frozen dataclass each. steps.py plays them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from smart_model_router_providers.fault.parsed_request import Reply

if TYPE_CHECKING:
    from random import Random

LimitKind = Literal["continuous", "window"]
LimitStyle = Literal[
    "openai", "azure", "github", "groq", "anthropic", "mistral", "cerebras", "openrouter", "ietf", "plain", "none"
]
Nothing = Literal["content", "choices", "body"]
Body = str | bytes | Mapping[str, Any]
Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Latency:
    """A distribution of seconds. `uniform` and `lognormal` of faults.py make one; a plain number is fixed.

    uniform: from `low` to `high`. lognormal: median `low`, spread of the logarithm `high`.
    """

    kind: Literal["fixed", "uniform", "lognormal"]
    low: float
    high: float = 0.0

    def draw(self, chance: Random) -> float:
        """Return one draw, in seconds."""
        if self.kind == "uniform":
            return chance.uniform(self.low, self.high)
        if self.kind == "lognormal":
            return self.low * math.exp(self.high * chance.gauss(0.0, 1.0))
        return self.low


Seconds = float | Latency


@dataclass(frozen=True, slots=True)
class Status:
    """A whole HTTP answer of any status. Without a body it is the dialect's own error."""

    code: int
    headers: Headers = ()
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Delay:
    """Waiting before the head, before the first content, and between the events of a stream."""

    first: Latency | None = None
    token: Latency | None = None
    each: Latency | None = None


@dataclass(frozen=True, slots=True)
class Stall:
    """Silence after some content; for ever without `seconds`."""

    after: int
    comments: bool | Literal["pings"]
    every: float
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection ends in the middle of the answer."""

    after: int
    at_byte: int | None
    reset: bool


@dataclass(frozen=True, slots=True)
class BadJson:
    """One event of a stream (or the body) that is not JSON."""

    after: int


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """An error in the dialect's own words inside a stream that began with 200."""

    after: int | None
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Empty:
    """An answer that says nothing."""

    what: Nothing


@dataclass(frozen=True, slots=True)
class Limit:
    """A rate limit that really counts, for each API key."""

    rpm: float | None
    tpm: float | None
    kind: LimitKind
    window: float
    style: LimitStyle
    burst: float | None = None


@dataclass(frozen=True, slots=True)
class Concurrency:
    """A limit on the calls in flight, for each API key."""

    calls: int
    headers: Headers


class Plain(StrEnum):
    """The effects that need no figures."""

    NO_TERMINATOR = "no_terminator"
    JSON_INSTEAD_OF_STREAM = "json_instead_of_stream"
    RESET = "reset"
    HANG = "hang"
    HEADERS_ONLY = "headers_only"
    DOWN = "down"


Fate = Status | Stall | Cut | BadJson | ErrorEvent | Empty | Plain
"""The effect that takes the place of the good answer."""

Effect = Fate | Delay | Limit | Concurrency | Reply
