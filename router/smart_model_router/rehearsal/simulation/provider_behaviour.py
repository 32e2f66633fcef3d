"""The providers of a simulation: how each behaves, and when that changes. One seed gives one history."""

from __future__ import annotations

import asyncio
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Protocol

from smart_model_router.domain.outcome import BucketReading, Failure, FailureClass, LimitReading, Scope, Usage, Wait
from smart_model_router.domain.ports import ProviderCall
from smart_model_router.testing import FakeProvider, FakeReply

_PROMPT_TOKENS = 20
_TOKENS = 40
"""Tokens of an ordinary answer."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A provider's load when a call arrives: calls in flight with it, calls taken in the last second."""

    call: ProviderCall
    now: float
    in_flight: int
    taken: int
    dice: Random


class Condition(Protocol):
    """The behaviour of a provider during the spell."""

    def reply(self, moment: Moment) -> FakeReply:
        """Return the result of the call that has just arrived."""
        ...


@dataclass(frozen=True, slots=True)
class Healthy:
    """Answers `_TOKENS` tokens in about `seconds`, longer answers in proportion, one in twenty half as fast."""

    seconds: float = 1.0

    def reply(self, moment: Moment) -> FakeReply:
        """A good answer; a stream's first content comes after a quarter of `seconds`."""
        dice = moment.dice
        tokens = round(_TOKENS * dice.uniform(0.5, 2.0))
        pace = dice.uniform(0.8, 1.2) * (2.0 if dice.random() < 0.05 else 1.0)
        whole = self.seconds * pace * tokens / _TOKENS
        head = min(whole, self.seconds * pace / 4) if moment.call.stream else whole
        return FakeReply(seconds=head, gap=(whole - head) / 2, usage=Usage(_PROMPT_TOKENS, tokens))


@dataclass(frozen=True, slots=True)
class Dozing:
    """Answers well, but a share of the calls lies untouched for `seconds` first."""

    share: float
    seconds: float

    def reply(self, moment: Moment) -> FakeReply:
        """A good answer, by bad luck a late one."""
        late = self.seconds if moment.dice.random() < self.share else 0.0
        well = Healthy().reply(moment)
        return replace(well, seconds=well.seconds + late)


@dataclass(frozen=True, slots=True)
class Failing:
    """A share of the calls fails after `seconds`; the rest is answered well. `hint` is a wait in seconds."""

    failure_class: FailureClass = FailureClass.SERVER_ERROR
    share: float = 1.0
    seconds: float = 0.2
    hint: float | None = None
    scope: Scope = "minute"

    def reply(self, moment: Moment) -> FakeReply:
        """The failure, or by luck an answer."""
        if moment.dice.random() >= self.share:
            return Healthy().reply(moment)
        wait = None if self.hint is None else Wait(self.hint, self.scope)
        wide = self.failure_class is FailureClass.AUTH
        failure = Failure(self.failure_class, "simulated", wait=wait, credential_wide=wide)
        return FakeReply(seconds=self.seconds * moment.dice.uniform(0.5, 1.5), failure=failure)


@dataclass(slots=True)
class EverySecond:
    """Every second call fails at once, the others are answered at once."""

    failure_class: FailureClass
    _calls: int = 0

    def reply(self, moment: Moment) -> FakeReply:
        """A failure, an answer, a failure."""
        self._calls += 1
        return (Failing(self.failure_class, seconds=0.001) if self._calls % 2 else Healthy(0.001)).reply(moment)


@dataclass(frozen=True, slots=True)
class BlackHole:
    """Takes every call and never answers."""

    def reply(self, moment: Moment) -> FakeReply:  # noqa: ARG002 - the same for every call
        """Silence."""
        return FakeReply(seconds=math.inf)


@dataclass(frozen=True, slots=True)
class Buggy:
    """Raises, which no provider may."""

    def reply(self, moment: Moment) -> FakeReply:  # noqa: ARG002 - as above
        """A bug."""
        return FakeReply(seconds=0.1, bug=RuntimeError("a bug of the provider"))


@dataclass(frozen=True, slots=True)
class SlowLoris:
    """Opens every stream at once, then sends pings and, after `pieces`, no more content. Whole answers never come."""

    pieces: int = 0

    def reply(self, moment: Moment) -> FakeReply:
        """A live connection without progress."""
        if not moment.call.stream:
            return FakeReply(seconds=math.inf)
        return FakeReply(seconds=0.1, pieces=("drip",) * self.pieces, gap=1.0, stalls=True)


@dataclass(frozen=True, slots=True)
class Cutting:
    """Cuts every stream after two pieces, and every whole answer in the middle."""

    def reply(self, moment: Moment) -> FakeReply:
        """Half an answer."""
        cut = Failure(FailureClass.TRUNCATED, "cut")
        if not moment.call.stream:
            return FakeReply(seconds=0.5, failure=cut)
        return FakeReply(seconds=0.2, gap=moment.dice.uniform(0.0, 0.3), cut=cut)


@dataclass(frozen=True, slots=True)
class Limited:
    """Takes `per_second` calls a second and turns the rest away; `hint` is its Retry-After in seconds."""

    per_second: int
    hint: float | None = None
    seconds: float = 0.5
    failure_class: FailureClass = FailureClass.RATE_LIMITED

    def reply(self, moment: Moment) -> FakeReply:
        """A refusal above the rate."""
        if moment.taken < self.per_second:
            return Healthy(self.seconds).reply(moment)
        return Failing(self.failure_class, seconds=0.02, hint=self.hint).reply(moment)


@dataclass(slots=True)
class Metered:
    """Takes `rpm` calls a minute out of a bucket, and says in every answer what is left in it."""

    rpm: int
    seconds: float = 0.5
    _level: float = math.inf
    _at: float = 0.0

    def reply(self, moment: Moment) -> FakeReply:
        """An answer with its headers, or a 429 with the seconds until the next call fits in."""
        rate = self.rpm / 60.0
        self._level = min(self.rpm, self._level + (moment.now - self._at) * rate)
        self._at = moment.now
        fits = self._level >= 1.0
        self._level -= fits
        left = math.floor(self._level)
        reading = LimitReading((BucketReading("requests", self.rpm, left, (self.rpm - self._level) / rate),))
        if fits:
            return replace(Healthy(self.seconds).reply(moment), reading=reading)
        wait = Wait((1.0 - self._level) / rate)
        return FakeReply(seconds=0.02, failure=Failure(FailureClass.RATE_LIMITED, wait=wait, reading=reading))


@dataclass(frozen=True, slots=True)
class Congested:
    """Slows down with the calls in flight and turns away those beyond `capacity`."""

    capacity: int
    seconds: float = 1.0

    def reply(self, moment: Moment) -> FakeReply:
        """Overloaded beyond the capacity, slower towards it."""
        load = moment.in_flight / self.capacity
        if load > 1.0:
            return Failing(FailureClass.OVERLOADED).reply(moment)
        return Healthy(self.seconds * (1.0 + load)).reply(moment)


@dataclass(frozen=True, slots=True)
class Spell:
    """From `start` to `end`, in seconds from the beginning, `provider` is in `condition`."""

    provider: str
    start: float
    end: float
    condition: Condition


class SimulatedProvider(FakeProvider):
    """A provider whose condition follows its spells (the last one that covers the moment), and is `usual` between."""

    def __init__(self, usual: Condition, spells: Sequence[Spell], began: float, dice: Random) -> None:
        super().__init__(self._behave)
        self._usual = usual
        self._spells = tuple(spells)
        self._began = began
        self._dice = dice
        self._taken: list[float] = []

    def condition(self, now: float) -> Condition:
        """The behaviour at the instant `now`."""
        elapsed = now - self._began
        covering = [s.condition for s in self._spells if s.start <= elapsed < s.end]
        return covering[-1] if covering else self._usual

    def _behave(self, call: ProviderCall) -> FakeReply:
        now = asyncio.get_running_loop().time()
        taken = len(self._taken) - bisect_left(self._taken, now - 1.0)
        reply = self.condition(now).reply(Moment(call, now, self.in_flight, taken, self._dice))
        if reply.failure is None:
            self._taken.append(now)
        return reply
