"""Providers in trouble, traffic, and the loop without memory, in virtual time: the parts of routing.md 0a's tests."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from smart_model_router.domain.errors import RouterUnavailable
from smart_model_router.domain.outcome import Failure, FailureClass, Success, Wait
from smart_model_router.domain.ports import ProviderCall
from smart_model_router.domain.report import RouteReport
from smart_model_router.testing import START, FakeProvider, FakeReply, run_virtual
from tests.world import World, now, world

ERROR = FakeReply(seconds=0.047, failure=Failure(FailureClass.SERVER_ERROR, "500", status=500))
SILENCE = FakeReply(seconds=math.inf)
UNREACHABLE = FakeReply(seconds=0.043, failure=Failure(FailureClass.TRANSPORT, "connection refused"))
OVERLOADED = FakeReply(seconds=0.02, failure=Failure(FailureClass.OVERLOADED, "529", status=529))
WARMING = FakeReply(seconds=0.013, failure=Failure(FailureClass.WARMING, "loading model", status=503))
# None of these durations is a multiple of a spacing of arrivals: nothing ends at the instant something else begins.
PATIENCE = 5.0
"""Seconds a target whose answers take a second is waited for in silence, once 20 answers are known (section 8)."""
UNKNOWN_PATIENCE = 30.0
"""Seconds a target that never answered is waited for in silence."""


def refused(hint: float | None) -> FakeReply:
    """A 429 after 13 ms, with a Retry-After in seconds or without."""
    wait = None if hint is None else Wait(hint)
    return FakeReply(seconds=0.013, failure=Failure(FailureClass.RATE_LIMITED, "429", status=429, wait=wait))


@dataclass(frozen=True, slots=True)
class Arrival:
    """One call as its provider sees it.

    `elapsed` is seconds since the beginning, `in_flight` includes this call. `dice` are keyed by provider, request
    and attempt: the router and the loop draw the same fate.
    """

    model: str
    elapsed: float
    in_flight: int
    dice: Random


Behaviour = Callable[[Arrival], FakeReply]


def well(seconds: float = 1.0, *, spread: float = 0.0) -> Behaviour:
    """Every call is answered after `seconds` on average; `spread` is the deviation of their logarithm."""

    def behave(arrival: Arrival) -> FakeReply:
        stretch = arrival.dice.lognormvariate(-spread * spread / 2, spread) if spread else 1.0
        return FakeReply(seconds=seconds * stretch)

    return behave


def losing(share: float, failure: FakeReply = ERROR, *, seconds: float = 1.0) -> Behaviour:
    """A share of the calls, drawn by each call's own dice, fails; the others are answered after `seconds`."""
    return lambda arrival: failure if arrival.dice.random() < share else FakeReply(seconds=seconds)


def away(start: float, end: float, failure: FakeReply = ERROR, *, otherwise: Behaviour | None = None) -> Behaviour:
    """Every call that arrives from `start` to `end` fails; before and after, `otherwise` answers (in a second)."""
    usual = otherwise or well()
    return lambda arrival: failure if start <= arrival.elapsed < end else usual(arrival)


def narrow(calls: int, seconds: float, *, spread: float = 0.0) -> Behaviour:
    """At most `calls` at once are answered, after `seconds` on average; a call beyond them is told 529 at once."""
    usual = well(seconds, spread=spread)
    return lambda arrival: OVERLOADED if arrival.in_flight > calls else usual(arrival)


class Provider(FakeProvider):
    """A provider that behaves as its function says; each call draws from dice of its own."""

    def __init__(self, name: str, behaviour: Behaviour, seed: int = 1) -> None:
        super().__init__(self._answer)
        self._name = name
        self._behaviour = behaviour
        self._seed = seed
        self._asked: Counter[str] = Counter()

    def _answer(self, call: ProviderCall) -> FakeReply:
        key = str(call.body["messages"][-1]["content"])
        self._asked[key] += 1
        dice = Random(f"{self._seed}/{self._name}/{key}/{self._asked[key]}")
        return self._behaviour(Arrival(call.model, now() - START, self.in_flight, dice))

    def becomes(self, behaviour: Behaviour) -> None:
        """Behave like this from now on. Calls under way keep their fate."""
        self._behaviour = behaviour

    def between(self, start: float, end: float) -> int:
        """How many calls arrived from `start` to `end`, in seconds since the beginning."""
        return sum(start <= at - START < end for at in self.arrivals)


@dataclass(frozen=True, slots=True)
class WorkloadRequest:
    """One request and its end. `at` is seconds since the beginning; `target` is None when it was not served."""

    at: float
    seconds: float
    target: str | None
    error: RouterUnavailable | None = None
    report: RouteReport | None = None


class Storm:
    """A router on shipped defaults over providers named a, b, c, ...; `ladder` is its tiers of targets like `a/x`."""

    def __init__(
        self,
        *ladder: Sequence[str],
        behaviour: Mapping[str, Behaviour],
        slots: int | None = None,
        last_resort: Sequence[str] = (),
        seed: int = 1,
        providers: Mapping[str, Provider] | None = None,
        **sections: Any,
    ) -> None:
        self.providers = {name: Provider(name, each, seed) for name, each in behaviour.items()} | dict(providers or {})
        kinds: dict[str, dict[str, Any]] = {name: {} if slots is None else {"bulkhead": slots} for name in behaviour}
        for target in last_resort:
            kinds[target.partition("/")[0]] = {"kind": "scripted"}
        self.world: World = world(
            *ladder, last_resort=last_resort, replies=self.providers, kinds=kinds, config=sections, seed=seed
        )

    @property
    def sent(self) -> int:
        """How many calls reached the providers."""
        return sum(len(provider.calls) for provider in self.providers.values())

    async def ask(
        self, number: object, *, timeout: float | None, model: str = "smart", stream: bool = False, **options: Any
    ) -> WorkloadRequest:
        """Send one request now and return its end; `number` keys its draws."""
        at = now()
        body = question(number, model)
        try:
            if stream:
                async with self.world.router.stream_chat(body, timeout=timeout, **options) as chunks:
                    async for _ in chunks:
                        pass
                    report = chunks.report
            else:
                report = (await self.world.router.chat(body, timeout=timeout, **options)).report
        except RouterUnavailable as error:
            return WorkloadRequest(at - START, now() - at, None, error, error.report)
        return WorkloadRequest(at - START, now() - at, report.target, None, report)

    async def play(
        self,
        arrivals: Iterable[float],
        *,
        timeout: float | None = 30.0,
        stream: bool = False,
        named: str = "",
        **options: Any,
    ) -> list[WorkloadRequest]:
        """Send a request at each of these instants (seconds since the beginning); all their ends, by arrival."""

        async def arrive(number: int, at: float) -> WorkloadRequest:
            await asyncio.sleep(START + at - now())
            return await self.ask(f"{named}{number}", timeout=timeout, stream=stream, **options)

        return list(await asyncio.gather(*(arrive(number, at) for number, at in enumerate(arrivals))))


@dataclass(frozen=True, slots=True)
class Run:
    """What became of some traffic, and the calls that it took."""

    asked: list[WorkloadRequest]
    sent: int

    @property
    def served(self) -> float:
        """The share that was served."""
        return share_served(self.asked)

    @property
    def calls_per_served(self) -> float:
        """Calls sent for each request that was served (D2)."""
        return self.sent / max(1, sum(one.target is not None for one in self.asked))

    @property
    def floor(self) -> float:
        """What a router has to serve where this is the loop's run (D1): 1 point and 2 standard errors less."""
        return self.served - 0.01 - 2 * math.sqrt(self.served * (1 - self.served) / len(self.asked))

    @property
    def ceiling(self) -> float:
        """The calls a router may send for each request served where this is the loop's run (D2)."""
        return max(2.0, 1.1 * self.calls_per_served)


def routed(storm: Storm, arrivals: Iterable[float], *, timeout: float | None = 30.0) -> Run:
    """Traffic through a router, in virtual time of its own."""
    asked = run_virtual(storm.play(arrivals, timeout=timeout))
    return Run(asked, storm.sent)


def looped(
    behaviours: Sequence[Behaviour], arrivals: Iterable[float], *, timeout: float = 30.0, attempt: float = 180.0
) -> Run:
    """The same traffic by D1's loop: `for provider in providers`, twice round, without memory. The same draws."""
    providers = [Provider(name, each) for name, each in zip("abcdef", behaviours, strict=False)]

    async def ask(number: int, at: float) -> WorkloadRequest:
        await asyncio.sleep(START + at - now())
        began = now()
        for provider in [*providers, *providers]:
            left = began + timeout - now()
            if left <= 0:
                break
            call = ProviderCall("chat", "x", b"{}", question(number))
            try:
                outcome = await asyncio.wait_for(provider.call(call), min(attempt, left))
            except TimeoutError:
                continue
            if isinstance(outcome, Success):
                return WorkloadRequest(at, now() - began, "served")
        return WorkloadRequest(at, now() - began, None)

    async def play() -> list[WorkloadRequest]:
        return list(await asyncio.gather(*(ask(number, at) for number, at in enumerate(arrivals))))

    return Run(run_virtual(play()), sum(len(provider.calls) for provider in providers))


def question(number: object, model: str = "smart") -> Mapping[str, Any]:
    """A request whose text keys its draws."""
    return {"model": model, "messages": [{"role": "user", "content": f"question {number}"}]}


def poisson(rate: float, end: float, *, start: float = 0.0, seed: int = 1) -> list[float]:
    """Arrivals from `start` to `end`, `rate` a second on average."""
    dice = Random(seed)
    at, found = start + dice.expovariate(rate), []
    while at < end:
        found.append(at)
        at += dice.expovariate(rate)
    return found


def spaced(rate: float, end: float, *, start: float = 0.0) -> list[float]:
    """Arrivals from `start` to `end`, evenly spaced and off every round instant."""
    count = round((end - start) * rate)
    return [start + (number + 0.3719) / rate for number in range(count)]


def share_served(asked: Iterable[WorkloadRequest], start: float = 0.0, end: float = math.inf) -> float:
    """The share of the requests arriving from `start` to `end` that was served."""
    judged = [one for one in asked if start <= one.at < end]
    return sum(one.target is not None for one in judged) / len(judged)


def share_of(target: str, asked: Iterable[WorkloadRequest], start: float = 0.0, end: float = math.inf) -> float:
    """The share of the requests arriving from `start` to `end` that this target served."""
    judged = [one for one in asked if start <= one.at < end]
    return sum(one.target == target for one in judged) / len(judged)


def ladder(count: int) -> list[list[str]]:
    """One target a tier: a/x, b/x, c/x."""
    return [[f"{name}/x"] for name in "abcdef"[:count]]


def slowed(reply: FakeReply, seconds: float) -> FakeReply:
    """The same reply after other seconds."""
    return replace(reply, seconds=seconds)
