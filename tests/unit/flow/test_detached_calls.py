"""Calls that run on for their verdict when their caller leaves: what they prove, cost and hold, and when they end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from smart_model_router import DeadlineExceeded, SmartRouterError
from smart_model_router.core.breaker import BreakerState
from smart_model_router.domain.events import AttemptFinished, BreakerChanged, RequestFinished
from smart_model_router.domain.outcome import Failure, FailureClass, Usage
from smart_model_router.domain.ports import ProviderCall
from smart_model_router.testing import FakeProvider, FakeReply
from tests.world import BLACK_HOLE, BODY, World, failing, now, served_by, swallow, virtual, world

SLOW_DOWN = FakeReply(seconds=0.1, failure=Failure(FailureClass.SERVER_ERROR, "500"))
ORDERED = {"routing": {"strategy": "ordered"}}


def kind(w: World, *, stream: bool = False) -> BreakerState:
    """The state of the breaker of `a/big`."""
    return w.gate("a/big").breakers["stream" if stream else "whole"].state(now())


def told(w: World) -> list[tuple[str, FailureClass | None, bool]]:
    """Each ended call: the target, what came of it, whether it was upkeep."""
    return [(event.target, event.failure_class, event.upkeep) for event in w.sink.of(AttemptFinished)]


async def down(*ladder: list[str], stream: bool = False, **options: Any) -> World:
    """A fleet whose `a/big` is OPEN."""
    w = world(*(ladder or (["a/big"],)), config=ORDERED, **options)
    w.providers["a"].set(SLOW_DOWN)
    avoid = [name for name in w.providers if name != "a"]
    await asyncio.gather(*(served_by(w, avoid=avoid, timeout=0.5, stream=stream) for _ in range(5)))
    assert kind(w, stream=stream) is BreakerState.OPEN
    w.sink.events.clear()
    return w


async def known(w: World, *, stream: bool = False) -> None:
    """Make the pace of `a/big` known: 20 answers."""
    for _ in range(20):
        assert await served_by(w, stream=stream) == "a/big"
    await asyncio.sleep(1.0)
    w.sink.events.clear()


# What runs on -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
@virtual
async def test_a_probe_whose_caller_leaves_brings_its_target_back(stream: bool) -> None:
    """The caller is free at once; the probe's success closes the breaker, and nothing of it is held afterwards."""
    w = await down(stream=stream)
    w.providers["a"].set(FakeReply(seconds=4.0))
    ask = asyncio.ensure_future(served_by(w, stream=stream))
    await asyncio.sleep(2.0)
    assert w.gate("a/big").provider.probe_in_flight
    left = now()
    await swallow(ask)
    assert now() == left
    assert w.sink.of(RequestFinished)[-1].outcome == "cancelled"
    assert len(w.state.detached) == 1
    await w.verdicts()
    assert kind(w, stream=stream) is BreakerState.CLOSED
    assert told(w) == [("a/big", None, True)]
    assert w.sink.of(AttemptFinished)[0].probe
    w.assert_idle()


@virtual
async def test_a_probe_that_fails_without_its_caller_reopens_the_breaker() -> None:
    """Its verdict counts as any other: the longer open time is that of a failed probe."""
    w = await down()
    w.providers["a"].set(FakeReply(seconds=4.0, failure=Failure(FailureClass.SERVER_ERROR)))
    ask = asyncio.ensure_future(served_by(w))
    await asyncio.sleep(2.0)
    await swallow(ask)
    await w.verdicts()
    assert kind(w) is BreakerState.OPEN
    assert [event.reason for event in w.sink.of(BreakerChanged)] == ["probe_failed"]
    assert told(w) == [("a/big", FailureClass.SERVER_ERROR, True)]
    w.assert_idle()


@virtual
async def test_a_probe_that_stays_silent_without_its_caller_ends_at_patience() -> None:
    """30 s after it was sent: TIMEOUT, and nothing is held any more."""
    w = await down()
    w.providers["a"].set(BLACK_HOLE)
    with pytest.raises(DeadlineExceeded):
        await w.router.chat(BODY, timeout=3.0)
    sent = w.providers["a"].arrivals[-1]
    await w.verdicts()
    assert now() - sent == pytest.approx(30.0)
    assert told(w) == [("a/big", FailureClass.TIMEOUT, True)]
    assert kind(w) is BreakerState.OPEN
    w.assert_idle()


@virtual
async def test_a_paced_call_whose_caller_leaves_has_its_verdict() -> None:
    """A lone target that rests: one call at a time, which ends the rest whoever waits for it."""
    w = world(["a/big"])
    await known(w)
    w.providers["a"].set(failing(FailureClass.TIMEOUT))
    assert await served_by(w, timeout=0.1) is None
    assert w.gate("a/big").cooldown.advice(now()) is not None
    w.sink.events.clear()
    w.providers["a"].set(FakeReply(seconds=3.0))
    assert await served_by(w, timeout=2.0) is None
    assert len(w.state.detached) == 1
    await w.verdicts()
    assert told(w) == [("a/big", None, True)]
    assert w.gate("a/big").cooldown.advice(now()) is None
    w.assert_idle()


@virtual
async def test_one_call_at_a_time_runs_on_to_a_little_known_target() -> None:
    """Five callers leave at once: one call stays to find out, the others give their slots back and blame nobody."""
    w = world(["a/big"])
    w.providers["a"].set(FakeReply(seconds=10.0))
    asks = [asyncio.ensure_future(served_by(w)) for _ in range(5)]
    await asyncio.sleep(1.0)
    await swallow(*asks)
    assert len(w.state.detached) == w.gate("a/big").in_flight == w.providers["a"].in_flight == 1
    assert told(w) == [("a/big", FailureClass.CANCELLED, False)] * 4
    await w.verdicts()
    assert told(w)[4:] == [("a/big", None, True)]
    assert w.state.book.snapshot("a/big", now()).latency_ema == pytest.approx(10.0)
    w.assert_idle()


@virtual
async def test_callers_in_a_hurry_do_not_shield_a_black_hole() -> None:
    """Every caller leaves after a second: the calls that run on find it out, and the other target serves."""
    w = world(["a/big"], ["b/small"], config=ORDERED)
    w.providers["a"].set(BLACK_HOLE)
    for _ in range(200):
        await served_by(w, timeout=1.0)
    assert await served_by(w, timeout=1.0) == "b/small"
    assert (("a/big", FailureClass.TIMEOUT, True)) in told(w)
    await w.verdicts()
    w.assert_idle()


@pytest.mark.parametrize("stream", [False, True])
@virtual
async def test_no_call_runs_on_to_a_target_whose_pace_is_known(stream: bool) -> None:
    """Nothing is to be found out: who leaves gives everything back at once."""
    w = world(["a/big"])
    await known(w, stream=stream)
    w.providers["a"].set(FakeReply(seconds=4.0))
    ask = asyncio.ensure_future(served_by(w, stream=stream))
    await asyncio.sleep(1.0)
    await swallow(ask)
    assert not w.state.detached
    assert told(w) == [("a/big", FailureClass.CANCELLED, False)]
    w.assert_idle()


@virtual
async def test_a_call_that_was_silent_for_patience_does_not_run_on() -> None:
    """It has its verdict: TIMEOUT when its caller leaves."""
    w = world(["a/big"])
    w.providers["a"].set(BLACK_HOLE)
    ask = asyncio.ensure_future(served_by(w))
    await asyncio.sleep(30.5)
    await swallow(ask)
    assert told(w) == [("a/big", FailureClass.TIMEOUT, False)]
    w.assert_idle()


# Its request, and what it costs -----------------------------------------------------------------------


@virtual
async def test_the_request_goes_on_at_half_of_its_time_and_its_report_says_so() -> None:
    """Another target answers; the call that was left is in the report, its later answer is not."""
    w = await down(["a/big", "b/big"])
    await asyncio.sleep(6.0)
    w.providers["a"].set(FakeReply(seconds=8.0, usage=Usage(1000, 2000)))
    reply = await w.router.chat(BODY, timeout=10.0)
    assert reply.report.target == "b/big"
    left, served = reply.report.attempts
    assert (left.target, left.failure_class, left.probe) == ("a/big", FailureClass.CANCELLED, True)
    assert left.seconds == pytest.approx(5.0)
    assert "runs on for its verdict" in left.message
    written = reply.report.to_json()
    await w.verdicts()
    assert reply.report.to_json() == written
    assert (served.target, reply.report.usage) == ("b/big", Usage(10, 20))
    assert kind(w) is BreakerState.CLOSED
    w.assert_idle()


@virtual
async def test_what_runs_on_is_the_targets_upkeep_in_events_and_metrics() -> None:
    """Tokens and cost are told as ever, and counted a second time as upkeep."""
    w = world(
        ["a/gpt-4o-mini"], kinds={"a": {"kind": "openai", "api_key": "sk-x"}}, config={"telemetry": {"metrics": True}}
    )
    w.providers["a"].set(FakeReply(seconds=5.0, usage=Usage(1_000_000, 0)))
    assert await served_by(w, timeout=1.0) is None
    await w.verdicts()
    (event,) = w.sink.of(AttemptFinished)
    assert (event.upkeep, event.usage, event.request_id) == (
        True,
        Usage(1_000_000, 0),
        w.sink.of(RequestFinished)[0].request_id,
    )
    assert event.cost_usd is not None
    page = w.router.monitor.metrics().decode()
    assert 'smr_upkeep_calls_total{target="a/gpt-4o-mini"} 1' in page
    assert f'smr_upkeep_cost_usd_total{{target="a/gpt-4o-mini"}} {event.cost_usd}' in page
    assert f'smr_cost_usd_total{{target="a/gpt-4o-mini"}} {event.cost_usd}' in page


@virtual
async def test_tokens_of_a_call_that_runs_on_are_settled_by_real_usage() -> None:
    """Its reservation is given back when it has its answer, not when its caller leaves."""
    w = world(["a/big"], kinds={"a": {"tpm": 1_200}})
    w.providers["a"].set([FakeReply(seconds=5.0, usage=Usage(50, 10)), FakeReply(usage=Usage(50, 10))])
    assert await served_by(w, timeout=1.0) is None
    assert w.gate("a/big").limits.free_share(now()) < 0.2
    await w.verdicts()
    assert w.gate("a/big").limits.free_share(now()) > 0.9
    w.assert_idle()


@virtual
async def test_the_first_content_of_a_stream_that_was_left_is_enough() -> None:
    """It has proved its target: its connection is closed, the rest is not read."""
    w = await down(stream=True)
    w.providers["a"].set(FakeReply(seconds=4.0, pieces=("x",) * 100, gap=1.0))
    ask = asyncio.ensure_future(served_by(w, stream=True))
    await asyncio.sleep(2.0)
    await swallow(ask)
    await w.verdicts()
    sent = w.providers["a"].arrivals[-1]
    assert now() - sent == pytest.approx(5.0)
    assert kind(w, stream=True) is BreakerState.CLOSED
    w.assert_idle()


@virtual
async def test_a_probe_whose_reader_leaves_amid_content_has_succeeded() -> None:
    """Another target is free, so ten seconds of content would prove it; the reader has enough after three."""
    w = await down(["a/big"], ["b/big"], stream=True)
    await asyncio.sleep(40.0)
    w.providers["a"].set(FakeReply(pieces=("x",) * 60, gap=0.5))
    async with w.router.stream_chat(BODY) as stream:
        began = now()
        async for _ in stream:
            assert kind(w, stream=True) is BreakerState.HALF_OPEN
            if now() - began >= 3.0:
                break
    assert kind(w, stream=True) is BreakerState.CLOSED
    w.assert_idle()


# Nothing leaks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", range(16))
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("probe", [False, True])
@virtual
async def test_whoever_leaves_as_the_answer_comes_keeps_nothing(step: int, stream: bool, probe: bool) -> None:
    """Cancelled in the very round of the loop in which the answer (the head) arrives, or in one of the next ones."""
    w = await down(stream=stream) if probe else world(["a/big"])
    if probe:
        await asyncio.sleep(6.0)
    w.providers["a"].set(FakeReply(seconds=1.0, pieces=("x",) * 5, gap=0.0))
    ask = asyncio.ensure_future(served_by(w, stream=stream))
    await asyncio.sleep(1.0)
    for _ in range(step):
        await asyncio.sleep(0)
    await swallow(ask)
    await w.verdicts()
    w.assert_idle()


@pytest.mark.parametrize("step", range(16))
@virtual
async def test_whoever_is_cancelled_twice_keeps_nothing(step: int) -> None:
    """As by a timeout inside a timeout: the second time a round of the loop after the first."""
    w = world(["a/big"])
    w.providers["a"].set(FakeReply(seconds=1.0, pieces=("x",) * 5, gap=0.0))
    ask = asyncio.ensure_future(served_by(w, stream=True))
    await asyncio.sleep(1.0)
    for _ in range(step):
        await asyncio.sleep(0)
    ask.cancel()
    await asyncio.sleep(0)
    await swallow(ask)
    await w.verdicts()
    w.assert_idle()


class Stubborn(FakeProvider):
    """Goes on for a minute although it is cancelled."""

    async def call(self, call: ProviderCall) -> Any:
        try:
            return await super().call(call)
        except asyncio.CancelledError:
            await asyncio.sleep(60.0)
            raise


@virtual
async def test_closing_the_router_ends_what_runs_on() -> None:
    """Its verdict is nobody's: the router was closed."""
    w = await down()
    w.providers["a"].set(BLACK_HOLE)
    with pytest.raises(SmartRouterError):
        await w.router.chat(BODY, timeout=2.0)
    began = now()
    await w.router.aclose()
    assert now() == began
    assert told(w) == [("a/big", FailureClass.CANCELLED, True)]
    w.assert_idle()


@virtual
async def test_closing_the_router_waits_five_seconds_at_most_for_what_runs_on() -> None:
    """A provider that will not be cancelled holds up nobody."""
    w = world(["a/big"], replies={"a": Stubborn(BLACK_HOLE)})
    assert await served_by(w, timeout=1.0) is None
    began = now()
    await w.router.aclose()
    assert now() - began == pytest.approx(5.0)
    await w.verdicts()
    w.assert_idle()


@virtual
async def test_whoever_leaves_a_closed_router_leaves_no_call_behind() -> None:
    """A request that was under way when the router closed: its call ends with it."""
    w = world(["a/big"])
    w.providers["a"].set(FakeReply(seconds=10.0))
    ask = asyncio.ensure_future(served_by(w))
    await asyncio.sleep(1.0)
    await w.router.aclose()
    await swallow(ask)
    w.assert_idle()


@virtual
async def test_a_loser_of_two_calls_does_not_run_on() -> None:
    """A silent call to a little-known target and the one beside it: when one answers the other is settled."""
    w = world(["a/big", "b/big"], config=ORDERED)
    w.providers["a"].set(BLACK_HOLE)
    w.providers["b"].set(FakeReply(seconds=1.0))
    assert await served_by(w) == "b/big"
    assert not w.state.detached
    await w.verdicts()
    assert told(w) == [("b/big", None, False), ("a/big", FailureClass.TIMEOUT, False)]
    w.assert_idle()
