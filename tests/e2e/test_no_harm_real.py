"""After the storm, over real sockets and in real time, on shipped defaults: shares are asserted, not instants."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from statistics import median
from typing import Any

import pytest

from smart_model_router import SmartModelRouter
from smart_model_router.domain.errors import RouterUnavailable
from smart_model_router.domain.events import BreakerChanged
from smart_model_router.domain.report import RouteReport
from smart_model_router.testing import RecordingSink
from smart_model_router_providers.fault import Fault, FaultServer, lognormal
from tests.media_files import data_url, png

pytestmark = pytest.mark.asyncio

BODY = {"model": "smart", "messages": [{"role": "user", "content": "What is the capital of France?"}]}
PICTURE = {"type": "image_url", "image_url": {"url": data_url("image/png", png(3000, 2000, 1_000_000))}}
BODIES = (
    BODY,
    {"model": "smart", "messages": [{"role": "user", "content": [PICTURE]}]},
    {"model": "smart", "messages": [{"role": "user", "content": "What is in this book? " * 10_000}]},
)
"""A question, a picture of a megabyte, and a prompt of 220,000 characters."""
LOADING = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
SPREAD = 0.5
TWO_SECONDS_MEAN = lognormal(2.0 * 0.8825, SPREAD)  # the mean of a lognormal is its median x exp(spread^2 / 2)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request and its end. `at` is seconds since the scripts began; `target` is None when it was not served."""

    at: float
    seconds: float
    target: str | None
    report: RouteReport | None


@dataclass(slots=True)
class GateRegistry:
    """A router on shipped defaults over fault servers named a, b, c, ...; `began` is when their scripts began."""

    router: SmartModelRouter
    servers: Mapping[str, FaultServer]
    sink: RecordingSink
    began: float = field(default_factory=time.monotonic)

    def opened(self) -> dict[str, float]:
        """The targets and providers whose breakers opened, and until when (monotonic) at last."""
        opened = [event for event in self.sink.of(BreakerChanged) if event.to_state == "open"]
        return {event.owner: event.open_until or 0.0 for event in opened}

    async def ask(self, *, timeout: float | None, body: Mapping[str, Any] = BODY) -> Asked:
        """Send one request now and return its end."""
        began = time.monotonic()
        try:
            report: RouteReport | None = (await self.router.chat(body, timeout=timeout)).report
        except RouterUnavailable as error:
            return Asked(began - self.began, time.monotonic() - began, None, error.report)
        target = None if report is None else report.target
        return Asked(began - self.began, time.monotonic() - began, target, report)

    async def at_once(self, count: int, *, timeout: float | None = 30.0) -> list[Asked]:
        """Send so many requests together; all their ends."""
        return list(await asyncio.gather(*(self.ask(timeout=timeout) for _ in range(count))))

    async def play(self, arrivals: Iterable[float], *, timeout: float) -> list[Asked]:
        """Send a request at each of these instants, seconds since the scripts began; all their ends."""

        async def arrive(at: float) -> Asked:
            await asyncio.sleep(max(0.0, self.began + at - time.monotonic()))
            return await self.ask(timeout=timeout)

        return list(await asyncio.gather(*(arrive(at) for at in arrivals)))


@asynccontextmanager
async def fleet(
    ladder: Sequence[Sequence[str]], slots: int | None = None, **scripts: Sequence[Fault]
) -> AsyncGenerator[GateRegistry]:
    """One server for each script, and a router whose model has this ladder of targets."""
    servers = {name: FaultServer(list(script), text="Paris.") for name, script in scripts.items()}
    for server in servers.values():
        await server.start()
    providers: dict[str, dict[str, Any]] = {
        name: {"kind": "openai_compatible", "base_url": server.base_url, "api_key": f"key-{name}"}
        | ({} if slots is None else {"bulkhead": slots})
        for name, server in servers.items()
    }
    smart = {"tiers": [{"targets": list(targets)} for targets in ladder], "last_resort": []}
    tree = {"version": 1, "providers": providers, "models": {"smart": smart}}
    sink = RecordingSink()
    try:
        async with SmartModelRouter.from_config(tree, seed=1, sinks=[sink]) as router:
            for name, server in servers.items():
                server.set(list(scripts[name]))
            yield GateRegistry(router, servers, sink)
    finally:
        for server in servers.values():
            await server.aclose()


def spaced(rate: float, end: float) -> list[float]:
    """Arrivals until `end`, evenly spaced."""
    return [(number + 0.3719) / rate for number in range(round(rate * end))]


def poisson(rate: float, end: float) -> list[float]:
    """Arrivals until `end`, `rate` a second on average."""
    dice, at, found = Random(1), 0.0, list[float]()
    while (at := at + dice.expovariate(rate)) < end:
        found.append(at)
    return found


def share_served(asked: Iterable[Asked], start: float = 0.0) -> float:
    """The share of the requests arriving from `start` on that was served."""
    judged = [one.target is not None for one in asked if one.at >= start]
    return sum(judged) / len(judged)


def limited(seconds: int, **when: Any) -> Fault:
    """A 429 with this Retry-After."""
    return Fault.status(429, headers={"retry-after": str(seconds)}, **when)


@pytest.mark.alone
async def test_a_429_costs_impatient_callers_its_retry_after() -> None:
    """429 with Retry-After 4, once or for half a second, then health; 10/s with timeout=3: 95 % served 5 s after it."""

    async def served_after(refusal: Fault, end: float) -> float:
        async with fleet([["a/x"]], a=[refusal, Fault.delay(first=0.3)]) as world:
            asked = await world.play(spaced(10.0, 11.0), timeout=3.0)
        return share_served(asked, end + 5.0)

    once, half_a_second = limited(4, times=1), limited(4, stop=0.5)
    shares = await asyncio.gather(served_after(once, 0.0), served_after(half_a_second, 0.5))
    assert min(shares) >= 0.95


async def test_a_burst_that_is_told_to_wait_is_served() -> None:
    """Twenty at once are told Retry-After 3: with the default deadline all of them are served in the end."""
    async with fleet([["a/x"]], a=[limited(3, stop=3.0)]) as world:
        asked = await world.at_once(20, timeout=None)
    served = share_served(asked)
    assert served == 1.0


async def test_a_picture_and_a_long_prompt_count_as_any_request() -> None:
    """They are told Retry-After 2, wait as others do, and are sent again: all served, three calls each at most."""
    async with fleet([["a/x"], ["b/x"]], a=[limited(2, stop=1.0)], b=[limited(2, stop=1.0)]) as world:
        asked = await asyncio.gather(*(world.ask(timeout=60.0, body=BODIES[number % 3]) for number in range(12)))
        calls = sum(server.calls() for server in world.servers.values())
        opened = world.opened()
    assert {one.target for one in asked} <= {"a/x", "b/x"}
    assert calls <= 3 * len(asked)
    assert opened == {}


async def test_one_trip_costs_impatient_callers_no_more_than_twenty_seconds() -> None:
    """Dead for 3 s, then well; 5/s with timeout=10: served within 20 s, and then all (D5: 95 % after ten seconds)."""
    async with fleet([["a/x"]], a=[Fault.status(500, stop=3.0), Fault.delay(first=0.1)]) as world:
        asked = await world.play(spaced(5.0, 25.0), timeout=10.0)
    soon, all_of_them = share_served(asked, 13.0), share_served(asked, 23.0)
    assert soon >= 0.95
    assert all_of_them == 1.0


async def test_a_server_that_warms_up_loses_no_request_whose_deadline_lasts() -> None:
    """503 "loading" for 20 s, two requests a second with a deadline of 60 s: every one is served."""
    loading = Fault.status(503, body=LOADING, stop=20.0)
    async with fleet([["a/x"]], a=[loading, Fault.delay(first=0.1)]) as world:
        asked = await world.play(spaced(2.0, 23.0), timeout=60.0)
    served = share_served(asked)
    assert served == 1.0


@pytest.mark.alone
async def test_three_providers_carry_the_load_of_a_fourth_that_dies() -> None:
    """16 calls of 2 s offered to four of eight behind slots of 50, one dies: 99 % served, half soon, one opens."""
    eight = [Fault.concurrency(8, headers={}), Fault.delay(first=TWO_SECONDS_MEAN)]
    async with fleet([["a/x", "b/x", "c/x", "d/x"]], slots=50, a=eight, b=eight, c=eight, d=eight) as world:
        asking = asyncio.ensure_future(world.play(poisson(8.0, 20.0), timeout=60.0))
        await asyncio.sleep(6.0)  # real time: the fleet serves meanwhile, and the death may come at any instant
        world.servers["a"].set([Fault.delay(first=0.05), Fault.status(500)])
        asked = await asking
        opened = set(world.opened())
    served, seconds = share_served(asked), median(one.seconds for one in asked if one.target)
    assert served >= 0.99
    assert seconds <= 10.0, "a call takes two"
    assert opened <= {"a/x"}


async def test_nobody_waits_for_a_probe_beside_a_free_fallback() -> None:
    """Fifty callers when a probe is due, and it hangs: one probes, 49 are served below and wait for nothing."""
    quick = [Fault.delay(first=0.1)]
    async with fleet([["a/x"], ["b/x"]], slots=60, a=quick, b=quick) as world:
        await world.at_once(40)
        world.servers["a"].set([Fault.delay(first=0.1), Fault.status(500)])
        await world.at_once(20)
        due = world.opened()["a/x"] - time.monotonic()
        assert due <= 16.0, "what fails in 100 ms is asked again soon (D7)"
        await asyncio.sleep(due + 0.05)
        world.servers["a"].set([Fault.hang()])
        before = world.servers["a"].calls()
        asked = await world.at_once(50)
        probes = world.servers["a"].calls() - before
    waits = sorted(one.report.waited_seconds for one in asked if one.report is not None)
    assert [one.target for one in asked] == ["b/x"] * 50
    assert probes == 1
    assert waits[:49] == [0.0] * 49
