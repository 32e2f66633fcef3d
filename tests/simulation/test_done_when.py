"""The flow as a whole, in virtual time: one test for each thing issue 2 promises of a failing fleet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import pytest

from smart_model_router.core.breaker import BreakerState
from smart_model_router.domain.errors import AllTargetsFailed
from smart_model_router.domain.events import BreakerChanged, OfflineChanged, SheddingChanged
from smart_model_router.domain.outcome import Failure, FailureClass
from smart_model_router.testing import FakeReply, run_virtual
from tests.world import (
    BLACK_HOLE,
    BODY,
    DOWN,
    UNREACHABLE,
    World,
    failing,
    limited,
    now,
    served_by,
    steady,
    swallow,
    virtual,
    world,
)

CUT = FakeReply(cut=Failure(FailureClass.TRUNCATED, "cut"), pieces=("one", "two"))


def share(served: list[str | None], target: str) -> float:
    """The share of the answers that a target gave."""
    return served.count(target) / len(served)


async def trip(world: World, provider: str, target: str, *, stream: bool = False) -> None:
    """Fail a target's calls until its breaker opens, one wave of five at once."""
    world.providers[provider].set(FakeReply(seconds=0.1, failure=Failure(FailureClass.SERVER_ERROR, "500")))
    await asyncio.gather(*(served_by(world, stream=stream) for _ in range(5)))
    kind = "stream" if stream else "whole"
    assert world.gate(target).breakers[kind].state(now()) is BreakerState.OPEN  # type: ignore[index]


# One at a time ----------------------------------------------------------------------------------------


@virtual
async def test_twenty_requests_at_the_expiry_of_a_cooldown_send_exactly_one() -> None:
    """A target that returns from a cooldown gets one call; the other nineteen are not sent to find out."""
    w = world(["a/big"], ["b/small"])
    w.providers["a"].set(DOWN)
    await served_by(w)
    cooling = w.gate("a/big").refusal(_no_cost(), now())
    assert cooling is not None
    assert cooling.reason == "cooldown"
    assert cooling.retry_at is not None
    await asyncio.sleep(cooling.retry_at - now())
    w.providers["a"].set(FakeReply(seconds=4.0))
    before = w.calls("a")
    asks = [asyncio.ensure_future(served_by(w)) for _ in range(20)]
    await asyncio.sleep(1.0)
    assert w.calls("a") - before == 1
    await asyncio.gather(*asks)
    w.assert_idle()


@virtual
async def test_fifty_concurrent_requests_at_an_expired_breaker_admit_one_probe() -> None:
    """The breaker's open time is over and fifty come at once: one probes, forty-nine are served elsewhere."""
    w = world(["a/big"], ["b/small"])
    await trip(w, "a", "a/big")
    until = w.gate("a/big").breakers["whole"].open_until
    assert until is not None
    await asyncio.sleep(until - now())
    w.providers["a"].set(FakeReply(seconds=10.0))
    w.providers["a"].max_in_flight = 0
    before = w.calls("a")
    asks = [asyncio.ensure_future(served_by(w)) for _ in range(50)]
    await asyncio.sleep(5.0)
    assert w.calls("a") - before == 1
    assert sorted(set(await asyncio.gather(*asks)), key=str) == ["a/big", "b/small"]
    assert w.providers["a"].max_in_flight == 1
    w.assert_idle()


@virtual
async def test_a_stale_success_from_before_the_trip_changes_nothing() -> None:
    """A call that began while the breaker was closed and succeeds while it is open does not close it."""
    w = world(["a/big"])
    w.providers["a"].set(FakeReply(seconds=5.0))
    stale = asyncio.ensure_future(served_by(w))
    await asyncio.sleep(0.1)
    await trip(w, "a", "a/big")
    until = w.gate("a/big").breakers["whole"].open_until
    assert await stale == "a/big"
    assert w.gate("a/big").breakers["whole"].open_until == until
    assert w.gate("a/big").breakers["whole"].state(now()) is BreakerState.OPEN


@virtual
async def test_a_probe_runs_on_for_its_verdict_when_its_caller_leaves() -> None:
    """The caller of a probe leaves: the probe goes on without it, nobody sends a second one, and it closes the breaker.

    Then everything it held is given back.
    """
    w = world(["a/big"], ["b/small"])
    await trip(w, "a", "a/big")
    await asyncio.sleep(40.0)
    w.providers["a"].set(FakeReply(seconds=3.0))
    before = w.calls("a")
    probe = asyncio.ensure_future(served_by(w))
    await asyncio.sleep(1.0)
    await swallow(probe)
    assert w.gate("a/big").breakers["whole"].state(now()) is BreakerState.HALF_OPEN
    assert await served_by(w) == "b/small"
    await w.verdicts()
    assert w.calls("a") - before == 1
    assert w.gate("a/big").breakers["whole"].state(now()) is BreakerState.CLOSED
    w.assert_idle()
    assert await served_by(w) == "a/big"


@virtual
async def test_a_probe_cancelled_after_its_patience_in_silence_has_failed() -> None:
    """A black hole is not shielded by callers who give up: the probe counts, the breaker reopens for longer."""
    w = world(["a/big"])
    await trip(w, "a", "a/big")
    await asyncio.sleep(40.0)
    w.providers["a"].set(BLACK_HOLE)
    probe = asyncio.ensure_future(served_by(w))
    await asyncio.sleep(31.0)
    await swallow(probe)
    w.assert_idle()
    assert w.gate("a/big").breakers["whole"].state(now()) is BreakerState.OPEN
    assert w.sink.of(BreakerChanged)[-1].reason == "probe_failed"


@virtual
async def test_five_impatient_callers_do_not_open_a_healthy_breaker() -> None:
    """Answers take two seconds, five callers leave after one: nobody's fault."""
    w = world(["a/big"])
    w.providers["a"].set(FakeReply(seconds=2.0))
    asks = [asyncio.ensure_future(served_by(w)) for _ in range(5)]
    await asyncio.sleep(1.0)
    await swallow(*asks)
    assert not w.sink.of(BreakerChanged)
    assert await served_by(w) == "a/big"
    w.assert_idle()


# Clocks, limits, saturation ---------------------------------------------------------------------------


def test_a_wall_clock_that_jumps_an_hour_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same history, with and without the wall clock stepping: to the event."""

    def history(step: float) -> list[object]:
        async def scenario() -> list[object]:
            w = world(["a/big"], ["b/small"])
            w.providers["a"].set([DOWN] * 6 + [FakeReply(seconds=0.2)])
            monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0)
            served: list[object] = list(await steady(w, 30.0))
            wall = 1_800_000_000.0 + step
            monkeypatch.setattr(time, "time", lambda: wall)
            served += await steady(w, 60.0)
            return [*served, *w.sink.events]

        return run_virtual(scenario())

    assert history(0.0) == history(3600.0) == history(-3600.0)


@virtual
async def test_429s_never_open_a_breaker() -> None:
    """A hundred rate limits are waits, not failures."""
    w = world(["a/big"], ["b/small"])
    w.providers["a"].set(limited(0.05))
    for _ in range(100):
        await served_by(w)
        await asyncio.sleep(0.1)
    assert w.calls("a") > 50
    assert not w.sink.of(BreakerChanged)


@virtual
async def test_a_saturated_provider_never_fails_a_request_another_could_serve() -> None:
    """All slots of the first are taken: the next requests are the second's, at once."""
    w = world(["a/big", "b/big"], kinds={"a": {"bulkhead": 2}})
    w.providers["a"].set(FakeReply(seconds=30.0))
    began = now()
    asks = [asyncio.ensure_future(served_by(w)) for _ in range(10)]
    await asyncio.sleep(0.5)
    assert [ask.result() for ask in asks if ask.done()] == ["b/big"] * 8
    assert sorted(await asyncio.gather(*asks), key=str) == ["a/big"] * 2 + ["b/big"] * 8
    assert now() - began == pytest.approx(30.0)
    w.assert_idle()


@virtual
async def test_an_untried_target_does_not_outrank_a_proven_one() -> None:
    """A target nobody has tried waits behind one that answers, whatever the written order."""
    w = world(["fresh/big", "b/big"])
    for _ in range(5):
        assert await served_by(w, avoid=["fresh"]) == "b/big"
    assert await served_by(w) == "b/big"
    assert w.calls("fresh") == 0


# Recovery ---------------------------------------------------------------------------------------------

PROBE_INTERVAL = 31.0
OUTAGES: Mapping[str, tuple[FakeReply, float, float]] = {
    # what is wrong, for how long it is, how long after the outage the primary may at most stay away
    "breaker": (FakeReply(seconds=0.4, failure=Failure(FailureClass.SERVER_ERROR, "500")), 20.0, PROBE_INTERVAL),
    "cooldown": (DOWN, 5.0, PROBE_INTERVAL),
    "transport": (UNREACHABLE, 20.0, PROBE_INTERVAL),
    "black hole": (BLACK_HOLE, 20.0, 2 * PROBE_INTERVAL),
    "retry-after 300": (limited(300.0), 5.0, 296.0),
    "429 without a hint": (limited(None), 5.0, PROBE_INTERVAL),
    "wall": (failing(FailureClass.QUOTA, 429), 5.0, 120.0),
    "off": (failing(FailureClass.AUTH, 401), 5.0, 11.0),
    "latency": (FakeReply(seconds=9.0, pieces=("slow",)), 60.0, PROBE_INTERVAL),
}


@pytest.mark.parametrize("stream", [False, True], ids=["chat", "streams"])
@pytest.mark.parametrize("name", OUTAGES)
@virtual
async def test_a_recovered_primary_carries_its_share_again(name: str, stream: bool) -> None:
    """Whatever took it out: one probe interval after its recovery the primary serves nine of ten again (I14)."""
    wrong, outage, interval = OUTAGES[name]
    healthy = FakeReply(seconds=0.3)
    w = world(["a/big", "b/big"], config={"resilience": {"cooldown": {"quota": "120s"}}})
    for provider in w.providers.values():
        provider.set(healthy)
    await served_by(w, stream=stream)
    await served_by(w, stream=stream, avoid=["a"])
    before = await steady(w, 30.0, stream=stream)
    assert share(before, "a/big") > 0.9
    w.providers["a"].set(wrong)
    during = await steady(w, outage, stream=stream)
    assert None not in during
    assert share(during, "b/big") > 0.3
    w.providers["a"].set(healthy)
    meanwhile = await steady(w, interval + 10.0, every=0.5, stream=stream)
    assert None not in meanwhile
    after = await steady(w, 60.0, stream=stream)
    assert share(after, "a/big") > 0.9
    w.assert_idle()


FIRST_CALLS = {
    "silent": BLACK_HOLE,
    "down": DOWN,
    "unreachable": UNREACHABLE,
    "overloaded": failing(FailureClass.OVERLOADED, 529),
    "loading": failing(FailureClass.WARMING, 503),
    "limited": limited(3.0),
    "empty": failing(FailureClass.EMPTY),
    "cut": CUT,
    "too slow for one caller": FakeReply(seconds=20.0),
}


@pytest.mark.parametrize("stream", [False, True], ids=["chat", "streams"])
@pytest.mark.parametrize("name", FIRST_CALLS)
@virtual
async def test_a_primary_whose_very_first_call_failed_gets_its_share(name: str, stream: bool) -> None:
    """A bad start is no life sentence: it never succeeded, another one did, and it is asked all the same."""
    w = world(["a/big", "b/big"])
    w.providers["a"].set([FIRST_CALLS[name], FakeReply(seconds=0.3)])
    w.providers["b"].set(FakeReply(seconds=0.3))
    await served_by(w, stream=stream, timeout=15.0)
    served = await steady(w, 120.0, stream=stream)
    assert share(served[-60:], "a/big") > 0.9
    w.assert_idle()


@virtual
async def test_fifty_agents_starting_at_once_are_all_admitted() -> None:
    """Fifty calls of twenty seconds begin together: nothing throttles what has no outcome yet."""
    w = world(["a/big"], kinds={"a": {"bulkhead": 50}})
    w.providers["a"].set(FakeReply(seconds=20.0))
    began = now()
    served = await asyncio.gather(*(served_by(w) for _ in range(50)))
    assert served == ["a/big"] * 50
    assert now() - began == pytest.approx(20.0)
    w.assert_idle()


@virtual
async def test_one_dead_provider_of_two_never_sheds() -> None:
    """Half of the fleet is not more than half: requests that may be shed are served all along."""
    w = world(["a/big", "b/big"])
    w.providers["a"].set(DOWN)
    await trip(w, "a", "a/big")
    served = [await served_by(w, criticality="sheddable") for _ in range(100)]
    assert served == ["b/big"] * 100
    assert not w.sink.of(SheddingChanged)


@virtual
async def test_shedding_ends_when_the_fleet_has_recovered() -> None:
    """All providers open: what can be shed is; a while after their open time it is served again."""
    w = world(["a/big", "b/big"])
    down = FakeReply(seconds=0.1, failure=Failure(FailureClass.SERVER_ERROR, "500"))
    w.providers["a"].set(down)
    w.providers["b"].set(down)
    await asyncio.gather(*(served_by(w, timeout=0.9) for _ in range(6)))
    assert await served_by(w, criticality="sheddable") is None
    assert w.router.system_health().shedding
    for provider in w.providers.values():
        provider.set(FakeReply())
    served = await steady(w, 60.0)
    assert served[-1] is not None
    assert await served_by(w, criticality="sheddable") is not None
    assert not w.router.system_health().shedding


# Dead, cut, limited, gone -----------------------------------------------------------------------------


@virtual
async def test_a_dead_primary_is_reached_at_most_three_times_in_twenty_requests() -> None:
    """Twenty requests one after the other, the primary always down: it is asked three times at most."""
    w = world(["a/big", "b/big"])
    w.providers["a"].set(DOWN)
    served = [await served_by(w) for _ in range(20)]
    assert served == ["b/big"] * 20
    assert w.calls("a") <= 3


@virtual
async def test_a_provider_that_cuts_every_stream_is_reached_at_most_three_times() -> None:
    """Ten streams while another provider is free: after a few cuts nobody is sent there any more."""
    w = world(["a/big", "b/big"])
    w.providers["a"].set(CUT)
    served = [await served_by(w, stream=True) for _ in range(10)]
    assert w.calls("a") <= 3
    assert served[3:] == ["b/big"] * 7
    w.assert_idle()


@pytest.mark.parametrize("seconds", [0.05, 0.25, 1.5, 3.0, 20.0])
@virtual
async def test_a_retry_after_is_honoured(seconds: float) -> None:
    """The next call comes when the provider said, not before and at most a tenth later."""
    w = world(["a/big"])
    w.providers["a"].set([limited(seconds), FakeReply()])
    assert await served_by(w) == "a/big"
    first, second = w.providers["a"].arrivals
    assert seconds - 1e-9 <= second - first <= seconds * 1.1


@virtual
async def test_a_total_outage_serves_the_first_request_too() -> None:
    """Everything remote is down from the beginning: the last resort answers, and every answer says so."""
    w = world(["a/big", "b/big"], ["a/small"], last_resort=["l/local"], kinds={"l": {"kind": "scripted"}})
    w.providers["a"].set(UNREACHABLE)
    w.providers["b"].set(UNREACHABLE)
    for _ in range(10):
        reply = await w.router.chat(BODY)
        assert reply.report.target == "l/local"
        assert reply.report.degraded
        assert reply.report.last_resort
    w.assert_idle()


@virtual
async def test_when_everything_remote_is_unreachable_at_once_it_is_us() -> None:
    """The router is offline: one call a second looks whether that has changed; the first success ends it."""
    w = world(["a/big", "b/big"], last_resort=["l/local"], kinds={"l": {"kind": "scripted"}})
    w.providers["a"].set(UNREACHABLE)
    w.providers["b"].set(UNREACHABLE)
    await steady(w, 10.0)
    assert w.router.system_health().offline
    before = w.calls("a") + w.calls("b")
    served = await steady(w, 20.0)
    assert served == ["l/local"] * 40
    assert w.calls("a") + w.calls("b") - before <= 21
    w.providers["a"].set(FakeReply())
    w.providers["b"].set(FakeReply())
    recovered = await steady(w, 10.0)
    assert recovered[-1] in ("a/big", "b/big")
    assert [event.offline for event in w.sink.of(OfflineChanged)] == [True, False]
    w.assert_idle()


@virtual
async def test_total_failure_names_every_attempt_and_refusal() -> None:
    """Nobody could: the error says who was asked, what came of it, who was not asked and why.

    It says to the instant when the first of them may be asked again.
    """
    w = world(["a/big", "b/big"])
    w.providers["a"].set(DOWN)
    w.providers["b"].set(limited(300.0))
    with pytest.raises(AllTargetsFailed) as caught:
        await w.router.chat(BODY, timeout=10.0)
    assert {attempt.target for attempt in caught.value.attempts} == {"a/big", "b/big"}
    assert {(refusal.target, refusal.reason) for refusal in caught.value.refusals} >= {("b/big", "wait")}
    w.assert_idle()
    gate, retry_after = w.gate("a/big"), caught.value.retry_after
    assert retry_after is not None
    assert gate.refusal(_no_cost(), now() + 0.9 * retry_after, pacing="eager") is not None
    assert gate.refusal(_no_cost(), now() + retry_after, pacing="eager") is None


def _no_cost() -> Any:
    from smart_model_router.core.ratelimit import Cost

    return Cost(0, 0)
