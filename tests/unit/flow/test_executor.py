"""One request's walk: who is asked in which order, how long it waits for whom, and when it gives up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from smart_model_router import (
    AllTargetsFailed,
    ContentBlocked,
    ContextTooLong,
    DeadlineExceeded,
    InvalidRequest,
    Overloaded,
    RouterUnavailable,
    SmartRouterError,
)
from smart_model_router.core.ratelimit import Cost
from smart_model_router.domain.events import AttemptFinished, RequestFinished, RequestShed, WaitFinished
from smart_model_router.domain.outcome import Failure, FailureClass, Usage, Wait
from smart_model_router.domain.ports import TimerHandle
from smart_model_router.testing import FakeDice, FakeProvider, FakeReply, LoopClock
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

LOCAL = {"l": {"kind": "scripted", "bulkhead": 1}}
SLOW_DOWN = FakeReply(seconds=0.1, failure=Failure(FailureClass.SERVER_ERROR, "500"))


def attempted(world: World) -> list[str]:
    """Who was called, in order."""
    return [event.target for event in world.sink.of(AttemptFinished)]


async def trip(world: World, *providers: str) -> None:
    """Open the breaker of every target of some providers: one wave of failures each."""
    for name in providers:
        world.providers[name].set(SLOW_DOWN)
        others = [other for other in world.providers if other != name]
        await asyncio.gather(*(served_by(world, avoid=others, timeout=0.5) for _ in range(5)))


# Waiting ----------------------------------------------------------------------------------------------


@virtual
async def test_a_wait_of_up_to_two_seconds_is_better_than_a_lower_tier() -> None:
    """The asked tier comes due in 1.5 s: wait, and be served there."""
    w = world(["a/big"], ["b/small"])
    w.providers["a"].set([limited(1.5), FakeReply()])
    reply = await w.router.chat(BODY)
    assert reply.report.target == "a/big"
    assert not reply.report.degraded
    assert reply.report.waited_seconds == pytest.approx(1.5)


@virtual
async def test_a_longer_wait_is_worse_than_a_lower_tier() -> None:
    """The asked tier comes due in 2.5 s: a lower one serves at once, and says why."""
    w = world(["a/big"], ["b/small"])
    w.providers["a"].set([limited(2.5), FakeReply()])
    reply = await w.router.chat(BODY)
    assert reply.report.target == "b/small"
    assert (reply.report.requested_tier, reply.report.actual_tier) == ("frontier", "standard")
    assert reply.report.degraded
    assert reply.report.ruled_out == {"a/big": "RATE_LIMITED"}
    assert reply.report.waited_seconds == 0


@virtual
async def test_two_seconds_at_most_are_spent_on_a_full_tier() -> None:
    """All slots of the asked tier are taken and none becomes free: after 2 s the lower tier serves."""
    w = world(["a/big"], ["b/small"], kinds={"a": {"bulkhead": 1}})
    w.providers["a"].set(FakeReply(seconds=30.0))
    first = asyncio.ensure_future(served_by(w))
    await asyncio.sleep(0.1)
    reply = await w.router.chat(BODY)
    assert reply.report.target == "b/small"
    assert reply.report.waited_seconds == pytest.approx(2.0)
    assert await first == "a/big"


@pytest.mark.parametrize(
    ("seconds", "waiting", "served"), [(1.5, 0, "a/big"), (1.5, 1, "b/small"), (5.0, 0, "b/small")]
)
@virtual
async def test_a_full_tier_is_waited_for_only_when_a_slot_is_free_soon(
    seconds: float, waiting: int, served: str
) -> None:
    """(waiters + 1) x service time / limit, against `degrade_after`: longer than that a lower tier serves at once."""
    w = world(["a/big"], ["b/small"], kinds={"a": {"bulkhead": 1}})
    w.providers["a"].set(FakeReply(seconds=seconds))
    for _ in range(5):
        assert await served_by(w) == "a/big"
    first = asyncio.ensure_future(served_by(w))
    await asyncio.sleep(0.1)
    behind = [asyncio.ensure_future(served_by(w, avoid=["b"])) for _ in range(waiting)]
    await asyncio.sleep(0.1)
    began = now()
    reply = await w.router.chat(BODY)
    assert reply.report.target == served
    assert now() - began == pytest.approx(0.0 if served == "b/small" else 2 * seconds - 0.2)
    assert {await first, *await asyncio.gather(*behind)} == {"a/big"}
    w.assert_idle()


@virtual
async def test_a_waiter_that_can_no_longer_be_served_gives_its_place_away() -> None:
    """Answers take 5 s: with 10 s to go a request waits for 4.5 s, and the one behind it has the slot."""
    w = world(["a/big"], kinds={"a": {"bulkhead": 1}})
    w.providers["a"].set(FakeReply(seconds=5.0))
    for _ in range(5):
        assert await served_by(w) == "a/big"
    w.providers["a"].set([FakeReply(seconds=8.0), FakeReply(seconds=5.0)])
    busy = asyncio.ensure_future(served_by(w))
    await asyncio.sleep(0.1)
    began = now()
    late, patient = (asyncio.ensure_future(w.router.chat(BODY, timeout=timeout)) for timeout in (10.0, 20.0))
    with pytest.raises(AllTargetsFailed) as caught:
        await late
    assert now() - began == pytest.approx(10 - 1.1 * 5, abs=0.1)
    assert caught.value.retry_after is not None
    assert caught.value.retry_after > 0
    assert (await patient).report.waited_seconds == pytest.approx(7.9)
    assert await busy == "a/big"
    w.assert_idle()


@virtual
async def test_full_targets_are_told_in_their_order_before_the_one_that_serves() -> None:
    """Each of them once, with its reason; those behind the one that serves are not asked."""
    names = "abcde"
    w = world(
        [f"{name}/m" for name in names],
        config={"routing": {"strategy": "ordered"}},
        kinds={name: {"bulkhead": 1} for name in names},
    )
    for name in names:
        w.providers[name].set(FakeReply(seconds=30.0))
    busy = [asyncio.ensure_future(served_by(w, avoid=set(names) - {name})) for name in "abc"]
    await asyncio.sleep(0.1)
    w.providers["d"].set(FakeReply())
    report = (await w.router.chat(BODY)).report
    assert report.target == "d/m"
    assert [(told.target, told.reason) for told in report.refusals] == [(f"{n}/m", "bulkhead") for n in "abc"]
    assert report.ruled_out == {f"{name}/m": "bulkhead" for name in "abc"}
    assert await asyncio.gather(*busy) == ["a/m", "b/m", "c/m"]
    w.assert_idle()


@virtual
async def test_a_silent_call_orders_no_targets_while_no_other_provider_has_a_slot() -> None:
    """A thousand silent calls of a full fleet would each order all of its targets."""
    w = world(["a/m", "b/m"], kinds={"a": {"bulkhead": 1}, "b": {"bulkhead": 1}})
    for name in "ab":
        w.providers[name].set(FakeReply(seconds=50.0))
    busy = [asyncio.ensure_future(served_by(w)) for _ in range(2)]
    await asyncio.sleep(0.1)
    with patch.object(w.state, "view", wraps=w.state.view) as view:
        assert sorted(filter(None, await asyncio.gather(*busy))) == ["a/m", "b/m"]
    assert view.call_count == 0
    w.assert_idle()


@virtual
async def test_refusals_without_a_time_are_one_object_in_all_reports() -> None:
    """A thousand requests before a thousand full targets would keep a million of them for the garbage collector."""
    w = world(["a/big"], kinds={"a": {"bulkhead": 1}})
    w.providers["a"].set(FakeReply(seconds=1.0))
    replies = await asyncio.gather(*(w.router.chat(BODY) for _ in range(3)))
    (second,), (third,) = (reply.report.refusals for reply in replies if reply.report.refusals)
    assert (second.target, second.reason, second.retry_after) == ("a/big", "bulkhead", None)
    assert second is third
    w.assert_idle()


@virtual
async def test_an_event_of_unknown_time_is_not_waited_for_while_a_lower_tier_is_free() -> None:
    """A probe under way, then a slow start: the lower tier serves at once."""
    w = world(["a/big"], ["b/small"])
    await trip(w, "a")
    await asyncio.sleep(6.0)
    w.providers["a"].set(FakeReply(seconds=4.0))
    probe = asyncio.ensure_future(w.router.chat(BODY))
    await asyncio.sleep(1.0)
    during = await w.router.chat(BODY)
    assert (during.report.target, during.report.waited_seconds) == ("b/small", 0.0)
    assert during.report.ruled_out == {"a/big": "half_open"}
    assert (await probe).report.target == "a/big"
    begun = asyncio.ensure_future(w.router.chat(BODY))
    await asyncio.sleep(0.1)
    after = await w.router.chat(BODY)
    assert (after.report.target, after.report.waited_seconds) == ("b/small", 0.0)
    assert after.report.ruled_out == {"a/big": "slow_start"}
    assert (await begun).report.target == "a/big"
    w.assert_idle()


@virtual
async def test_a_slot_that_becomes_free_wakes_its_waiter_at_once() -> None:
    """By the event, not by polling: to the millisecond."""
    w = world(["a/big"], kinds={"a": {"bulkhead": 1}})
    w.providers["a"].set(FakeReply(seconds=1.2345))
    first = asyncio.ensure_future(served_by(w))
    await asyncio.sleep(0.1)
    reply = await w.router.chat(BODY)
    assert reply.report.waited_seconds == pytest.approx(1.1345, abs=1e-6)
    assert w.sink.of(WaitFinished)[0].woken_by == "a/big"
    await first
    w.assert_idle()


@virtual
async def test_waiters_are_served_in_the_order_they_came_and_newcomers_stand_behind() -> None:
    """One slot, ten requests a tenth of a second apart: first come, first served."""
    w = world(["a/big"], kinds={"a": {"bulkhead": 1}})
    w.providers["a"].set(FakeReply(seconds=1.0))
    order: list[int] = []

    async def ask(number: int) -> None:
        await served_by(w)
        order.append(number)

    tasks = []
    for number in range(10):
        tasks.append(asyncio.ensure_future(ask(number)))
        await asyncio.sleep(0.37)
    await asyncio.gather(*tasks)
    assert order == list(range(10))
    assert w.providers["a"].max_in_flight == 1
    w.assert_idle()


@virtual
async def test_waits_for_a_rate_are_exact() -> None:
    """Sixty a minute, the burst used up: the next ones are sent exactly one second apart."""
    w = world(["a/big"], kinds={"a": {"rpm": 60}})
    await asyncio.gather(*(served_by(w) for _ in range(60)))
    began = now()
    await asyncio.gather(*(served_by(w) for _ in range(5)))
    sent = [round(at - began, 3) for at in w.providers["a"].arrivals[60:]]
    assert sent == [1.0, 2.0, 3.0, 4.0, 5.0]
    w.assert_idle()


@virtual
async def test_each_gate_is_waited_for_at_its_own_price() -> None:
    """A full target without limits and one short of tokens: the wait is for an event or an instant, and never spins."""
    mentions: list[Any] = ["a/big", {"target": "b/big", "tpm": 3000}]
    w = world(
        ["a/big", "b/big"],
        kinds={"a": {"bulkhead": 1}},
        config={"models": {"smart": {"tiers": [{"targets": mentions}], "last_resort": []}}},
    )
    w.providers["a"].set(FakeReply(seconds=30.0, usage=Usage(1, 1)))
    w.providers["b"].set(FakeReply(usage=Usage(1000, 1500)))
    first = asyncio.ensure_future(served_by(w))
    await asyncio.sleep(0.1)
    assert await served_by(w) == "b/big"
    reply = await w.router.chat(BODY)
    assert reply.report.target == "b/big"
    assert len(w.sink.of(WaitFinished)) <= 3
    await first
    w.assert_idle()


@virtual
async def test_a_slot_with_a_slot_free_is_not_waited_for() -> None:
    """Two targets, one full: the other one serves at once."""
    w = world(["a/big", "b/big"], kinds={"a": {"bulkhead": 1}})
    w.providers["a"].set(FakeReply(seconds=30.0))
    first = asyncio.ensure_future(served_by(w))
    await asyncio.sleep(0.1)
    reply = await w.router.chat(BODY)
    assert (reply.report.target, reply.report.waited_seconds) == ("b/big", 0.0)
    await first


@virtual
async def test_the_waits_of_a_request_add_up_to_max_wait() -> None:
    """A provider that says 'in 25 s' again and again: a third wait would be longer than the 60 s that are allowed."""
    w = world(["a/big"], config={"routing": {"max_wait": "60s"}})
    w.providers["a"].set(limited(25.0))
    with pytest.raises(AllTargetsFailed) as caught:
        await w.router.chat(BODY)
    assert caught.value.report is not None
    assert caught.value.report.waited_seconds == pytest.approx(50.0)
    assert w.calls("a") == 3


@virtual
async def test_without_max_wait_a_request_waits_until_its_deadline() -> None:
    """'In 25 s' again and again: 600 s by default, and the last answer comes too late."""
    w = world(["a/big"])
    w.providers["a"].set(limited(25.0))
    began = now()
    with pytest.raises(DeadlineExceeded):
        await w.router.chat(BODY)
    assert now() - began == pytest.approx(600.0)
    w.providers["a"].set([limited(300.0), FakeReply()])
    assert await served_by(w) == "a/big"
    assert now() - began >= 900.0
    w.assert_idle()


@pytest.mark.parametrize(
    ("routing", "options", "seconds"),
    [({}, {}, 601.0), ({}, {"timeout": 50.0}, 51.0), ({"max_wait": "60s"}, {}, 61.0)],
    ids=["total", "timeout", "max_wait"],
)
@virtual
async def test_who_could_only_wait_too_long_fails_at_once(routing: Any, options: Any, seconds: float) -> None:
    """The only target comes due after the deadline or `max_wait`: no waiting, and a retry at `retry_after` is sent."""
    w = world(["a/big"], config={"routing": routing})
    w.providers["a"].set([limited(seconds), FakeReply()])
    began = now()
    with pytest.raises(AllTargetsFailed) as caught:
        await w.router.chat(BODY, **options)
    assert now() == began
    assert caught.value.retry_after == pytest.approx(seconds)
    await asyncio.sleep(seconds)
    reply = await w.router.chat(BODY, **options)
    assert (reply.report.target, reply.report.waited_seconds) == ("a/big", 0.0)


@pytest.mark.parametrize("criticality", ["sheddable_plus", "sheddable"])
@pytest.mark.parametrize(
    ("routing", "busy", "served", "waited"),
    [
        ({}, 9.0, "a/big", 8.9),
        ({}, 30.0, None, 10.0),
        ({"sheddable_wait": "3s"}, 9.0, None, 3.0),
        ({"sheddable_wait": 0}, 9.0, None, 0.0),
        ({"max_wait": "2s"}, 9.0, None, 2.0),
    ],
)
@virtual
async def test_sheddable_requests_wait_for_a_bounded_time(
    criticality: str, routing: Any, busy: float, served: str | None, waited: float
) -> None:
    """`sheddable_wait` (10 s) for a slot, and no longer than `max_wait`; 0 is no wait at all."""
    w = world(["a/big"], kinds={"a": {"bulkhead": 1}}, config={"routing": routing})
    w.providers["a"].set([FakeReply(seconds=busy), FakeReply()])
    first = asyncio.ensure_future(served_by(w))
    await asyncio.sleep(0.1)
    began = now()
    assert await served_by(w, criticality=criticality) == served
    assert now() - began == pytest.approx(waited)
    await first
    w.assert_idle()


@virtual
async def test_who_is_older_by_five_seconds_counts_as_the_next_higher_class() -> None:
    """One slot: a class goes before the next lower one, but not before what came 5 s earlier (10 s: two classes)."""
    w = world(["a/big"], kinds={"a": {"bulkhead": 1}})
    w.providers["a"].set([FakeReply(seconds=9.0), *[FakeReply(seconds=0.1)] * 9])
    order: list[str] = []

    async def ask(name: str, criticality: Any) -> None:
        await w.router.chat(BODY, criticality=criticality)
        order.append(name)

    asks = []
    for name, criticality, pause in (
        ("first", "critical", 1.0),
        ("batch", "sheddable", 2.0),
        ("plus", "sheddable_plus", 2.5),
        ("soon", "critical", 3.0),
        ("late", "critical", 0.2),
        ("urgent", "critical_plus", 0.0),
    ):
        asks.append(asyncio.ensure_future(ask(name, criticality)))
        await asyncio.sleep(pause)
    await asyncio.gather(*asks)
    assert order == ["first", "urgent", "soon", "plus", "late", "batch"]
    w.assert_idle()


@virtual
async def test_critical_requests_wait_up_to_twenty_seconds_before_the_last_resort() -> None:
    """Due in 15 s: waited for. Due in 25 s: the last resort, at once."""
    w = world(["a/big"], last_resort=["l/x"], kinds=LOCAL)
    w.providers["a"].set([limited(15.0), FakeReply(), limited(25.0)])
    first = await w.router.chat(BODY)
    assert first.report.target == "a/big"
    assert first.report.waited_seconds == pytest.approx(15.0)
    second = await w.router.chat(BODY)
    assert (second.report.target, second.report.waited_seconds) == ("l/x", 0.0)


@virtual
async def test_twenty_seconds_in_a_full_tier_then_the_last_resort() -> None:
    """Nobody leaves the full provider: the last resort answers when the request is 20 s old."""
    w = world(["a/big"], last_resort=["l/x"], kinds={**LOCAL, "a": {"bulkhead": 1}})
    w.providers["a"].set(FakeReply(seconds=100.0))
    first = asyncio.ensure_future(served_by(w))
    await asyncio.sleep(0.1)
    reply = await w.router.chat(BODY)
    assert reply.report.target == "l/x"
    assert reply.report.waited_seconds == pytest.approx(20.0)
    await first
    w.assert_idle()


@virtual
async def test_the_last_resort_is_queued_for_by_criticality_and_no_longer_than_max_wait() -> None:
    """One slot, answers of 25 s: critical_plus goes before critical, and who cannot come within 60 s is told so."""
    w = world(["a/big"], last_resort=["l/x"], kinds=LOCAL, config={"routing": {"max_wait": "60s"}})
    w.providers["a"].set(limited(300.0))
    w.providers["l"].set(FakeReply(seconds=25.0))
    done: list[tuple[str, float]] = []

    async def ask(name: str, criticality: Any) -> None:
        try:
            await w.router.chat(BODY, criticality=criticality)
        except RouterUnavailable:
            name += " not"
        done.append((name, round(now() - began, 3)))

    began = now()
    people = [("first", "critical"), ("second", "critical"), ("third", "critical"), ("urgent", "critical_plus")]
    await asyncio.gather(*(ask(name, criticality) for name, criticality in people))
    assert done == [("first", 25.0), ("urgent", 50.0), ("third not", 60.0), ("second", 75.0)]
    w.assert_idle()


@virtual
async def test_a_request_in_the_last_resorts_queue_takes_a_remote_that_comes_back() -> None:
    """Waiting for the one local slot does not make blind: the primary returns and serves."""
    w = world(["a/big"], last_resort=["l/x"], kinds=LOCAL)
    w.providers["a"].set([limited(30.0), FakeReply()])
    w.providers["l"].set(FakeReply(seconds=100.0))
    first = asyncio.ensure_future(served_by(w))
    await asyncio.sleep(0.1)
    reply = await w.router.chat(BODY)
    assert reply.report.target == "a/big"
    assert reply.report.waited_seconds == pytest.approx(29.9)
    assert await first == "l/x"
    w.assert_idle()


@virtual
async def test_a_full_waiting_room_turns_away() -> None:
    """No place to wait: the request fails at once instead of piling up."""
    w = world(["a/big"], kinds={"a": {"bulkhead": 1}}, config={"routing": {"max_waiting": 1}})
    w.providers["a"].set(FakeReply(seconds=5.0))
    tasks = [asyncio.ensure_future(served_by(w)) for _ in range(3)]
    await asyncio.sleep(0.1)
    assert tasks[2].done()
    assert await asyncio.gather(*tasks) == ["a/big", "a/big", None]
    w.assert_idle()


async def turned_away(*ladder: list[str], busy: float, **options: Any) -> tuple[World, asyncio.Future[str | None]]:
    """A fleet whose `a/big` answered one of its newest 20 calls, and the call in flight there for `busy` seconds."""
    w = world(*ladder, config={"routing": {"strategy": "ordered"}}, **options)
    gate, at = w.gate("a/big"), now()
    gate.evidence.succeeded(at, at, stream=False)
    for _ in range(19):
        gate.evidence.failed(at, at, stream=False, patience=30.0)
    for _ in range(100):
        gate.count(False, at)
    w.providers["a"].set([FakeReply(seconds=busy), FakeReply(seconds=5.0)])
    w.state.dice = FakeDice(0.99)
    call = asyncio.ensure_future(served_by(w, avoid=[name for name in w.providers if name != "a"]))
    await asyncio.sleep(0.1)
    return w, call


@virtual
async def test_a_toss_that_was_lost_is_repeated_about_a_second_later() -> None:
    """A lone target below a fifth: beside the one call in flight others are tossed, wait, and lose no request."""
    w, call = await turned_away(["a/big"], busy=3.0)
    throttle = w.gate("a/big").throttle
    w.state.dice = FakeDice(0.5, 0.0)
    began, counted = now(), throttle._requests
    reply = await w.router.chat(BODY)
    assert reply.report.target == "a/big"
    assert {refusal.reason for refusal in reply.report.refusals} == {"throttle"}
    assert 2.9 <= w.providers["a"].arrivals[-1] - began <= 2.9 + 1.5
    assert throttle._requests - counted <= 2 * 7 + 1  # each half second as if another were free, and as none is
    assert await call == "a/big"
    w.assert_idle()


@virtual
async def test_who_is_woken_is_not_tossed_again_before_the_second_is_over() -> None:
    """A waiter that another gate wakes asks everybody again: the throttle's no still stands, and is no second toss."""
    w, call = await turned_away(["a/big", "b/big"], busy=30.0, kinds={"b": {"bulkhead": 1}})
    w.providers["b"].set(FakeReply(seconds=0.5))
    busy = asyncio.ensure_future(served_by(w, avoid=["a"]))
    await asyncio.sleep(0.1)
    throttle = w.gate("a/big").throttle
    w.state.dice = FakeDice(0.0)
    began, counted = now(), throttle._requests
    assert await served_by(w) == "b/big"
    assert w.providers["b"].arrivals[-1] - began == pytest.approx(0.4)
    assert throttle._requests - counted == 1
    assert [await busy, await call] == ["b/big", "a/big"]
    w.assert_idle()


@virtual
async def test_a_toss_that_was_lost_ends_with_the_throttle_s_reason() -> None:
    """The throttle forgets while a request waits for its next toss: the target is free, and no other one is probed."""
    w, call = await turned_away(["a/big", "b/big"], busy=30.0)
    await trip(w, "b")
    await asyncio.sleep(0.4)
    before, due = w.calls("b"), w.gate("b/big").refusal(Cost(0, 0), now(), pacing="eager")
    w.state.dice = FakeDice(0.0)
    ask = asyncio.ensure_future(served_by(w))
    await asyncio.sleep(0.1)
    w.gate("a/big").reset_throttle()
    assert await ask == "a/big"
    assert due is not None
    assert w.providers["a"].arrivals[-1] == due.retry_at  # when it was woken for the probe
    assert w.calls("b") == before
    assert await call == "a/big"
    w.assert_idle()


@virtual
async def test_who_waits_for_time_alone_holds_up_nobody_at_a_gate() -> None:
    """A waiter whose turn the throttle tossed away pauses a second; the next one at that gate goes at once."""
    w, call = await turned_away(["a/big"], busy=30.0, kinds={"a": {"bulkhead": 2}})
    w.state.dice = FakeDice(0.99)
    asks = [asyncio.ensure_future(served_by(w)) for _ in range(3)]
    await asyncio.sleep(4.5)
    w.state.dice = FakeDice(0.5, 0.0, 0.0, 0.0, 0.99)
    began = now()
    assert await asyncio.gather(*asks) == ["a/big"] * 3
    assert [at - began for at in w.providers["a"].arrivals[-3:]] == pytest.approx([-4.5, 0.5, 5.5])
    assert await call == "a/big"
    w.assert_idle()


# Probes -----------------------------------------------------------------------------------------------


@virtual
async def test_failed_probes_use_up_no_attempt() -> None:
    """A lone target is down for a minute: a request with more time probes it more than six times, and is served."""
    w = world(["a/big"])
    await trip(w, "a")
    asyncio.get_running_loop().call_later(60.0, w.providers["a"].set, FakeReply())
    began, before = now(), w.calls("a")
    assert await served_by(w, timeout=100.0) == "a/big"
    assert w.calls("a") - before > 7
    assert 60.0 < now() - began < 66.5  # back-off is at most 5 s, and a fifth of jitter
    w.assert_idle()


@virtual
async def test_probes_with_an_empty_answer_use_up_attempts() -> None:
    """It is billed: a lone target that answers with nothing is not asked until the deadline."""
    w = world(["a/big"])
    await trip(w, "a")
    w.providers["a"].set(FakeReply(failure=Failure(FailureClass.EMPTY)))
    before = w.calls("a")
    with pytest.raises(AllTargetsFailed):
        await w.router.chat(BODY, timeout=600.0)
    assert w.calls("a") - before == 6
    w.assert_idle()


@virtual
async def test_a_probe_s_turn_is_left_for_a_target_whose_wall_has_ended() -> None:
    """Walls are not waited for. Once one has ended, that target is free: no request is spent on a probe elsewhere."""
    w = world(["a/big"], ["b/small"])
    await trip(w, "a")
    quota = FakeReply(failure=Failure(FailureClass.QUOTA, "402", status=402, wait=Wait(12.0)))
    w.providers["b"].set([quota, FakeReply()])
    assert await served_by(w, avoid=["a"], timeout=1.0) is None
    ends = now() + 12.0
    assert await served_by(w, timeout=60.0) == "b/small"
    assert ends - 5.5 < w.providers["a"].arrivals[-1] < ends
    assert ends <= w.providers["b"].arrivals[-1] < ends + 5.5
    w.assert_idle()


@virtual
@pytest.mark.parametrize(("timeout", "served", "seconds"), [(59.0, "b/big", 29.5), (61.0, "a/big", 29.9)])
async def test_a_silent_probe_holds_its_request_for_half_of_its_time_at_most(
    timeout: float, served: str, seconds: float
) -> None:
    """Patience is 30 s: with less than twice that left the request goes on elsewhere, and the probe without it."""
    w = world(["b/big", "a/big"])
    await trip(w, "a")
    await asyncio.sleep(40.0)
    w.providers["a"].set(FakeReply(seconds=29.9))
    began = now()
    assert await served_by(w, timeout=timeout) == served
    assert now() - began == pytest.approx(seconds)
    await w.verdicts()
    assert w.gate("a/big").breakers["whole"].is_closed
    w.assert_idle()


@virtual
@pytest.mark.parametrize(("waiting", "held"), [(0, True), (1, False)])
async def test_a_silent_probe_that_others_wait_for_is_left_after_patience(waiting: int, held: bool) -> None:
    """Nobody else is free: a lone caller may wait on, but what was sent too early does not hold up everyone."""
    w = world(["a/big"])
    await trip(w, "a")
    asks = [asyncio.ensure_future(served_by(w)) for _ in range(1 + waiting)]
    w.providers["a"].set([BLACK_HOLE, FakeReply()])
    breaker = w.gate("a/big").breakers["whole"]
    await asyncio.sleep(2.0)
    began = w.providers["a"].arrivals[-1]
    await asyncio.sleep(began + 29.9 - now())
    assert breaker.probe_in_flight
    await asyncio.sleep(0.2)
    assert breaker.probe_in_flight is held
    await swallow(*asks)
    await w.verdicts()
    w.assert_idle()


@virtual
async def test_the_probe_that_brings_a_target_back_is_the_first_it_is_judged_by() -> None:
    """Its own pace counts, that of calls which were sent before it does not."""
    w = world(["a/big"])
    w.providers["a"].set(FakeReply(seconds=50.0))
    late = asyncio.ensure_future(served_by(w))
    await asyncio.sleep(0.1)
    await trip(w, "a")
    w.providers["a"].set(FakeReply(seconds=2.0))
    assert await served_by(w) == "a/big"
    assert w.state.book.snapshot("a/big", now()).latency_ema == pytest.approx(2.0)
    assert await late == "a/big"
    assert w.state.book.snapshot("a/big", now()).latency_ema == pytest.approx(2.0)
    w.assert_idle()


# Second looks -----------------------------------------------------------------------------------------


async def slowed(**options: Any) -> World:
    """A primary that lost its place: it answers, but its heads take nine seconds, just less than patience."""
    w = world(["a/big", "b/big"], config={"resilience": {"patience": {"minimum": "10s"}}}, **options)
    for name in "ab":
        w.providers[name].set(FakeReply(seconds=0.3))
        await served_by(w, stream=True, avoid=[other for other in "ab" if other != name])
    w.providers["a"].set(FakeReply(seconds=9.0))
    await steady(w, 30.0, stream=True)
    w.providers["a"].arrivals.clear()
    return w


@virtual
async def test_a_target_that_is_only_slow_is_looked_at_by_one_request_now_and_then() -> None:
    """Half a minute after it lost its place, then less and less often: never by two at once."""
    w = await slowed()
    await steady(w, 160.0, stream=True)
    first, second, third = w.providers["a"].arrivals
    assert second - first == pytest.approx(45.0, abs=1.0)
    assert third - second == pytest.approx(67.5, abs=1.0)
    w.assert_idle()


@virtual
async def test_a_look_that_finds_it_quick_again_gives_it_its_place_back() -> None:
    """The first quick head, and all who come after it are served there."""
    w = await slowed()
    w.providers["a"].set(FakeReply(seconds=0.3))
    await steady(w, 32.0, stream=True)
    served = await steady(w, 20.0, stream=True)
    assert set(served) == {"a/big"}
    w.assert_idle()


@virtual
@pytest.mark.parametrize(
    "options",
    [{"session": "s"}, {"timeout": 9.0}],
    ids=["a conversation stays where it is", "no time for a second try"],
)
async def test_who_does_not_look(options: dict[str, Any]) -> None:
    """A look may cost its request time, or its cache."""
    w = await slowed()
    for _ in range(60):
        assert await served_by(w, stream=True, **options) == "b/big"
        await asyncio.sleep(1.0)
    assert not w.providers["a"].arrivals


# Attempts ---------------------------------------------------------------------------------------------


@virtual
async def test_a_single_transient_failure_is_retried_once_on_the_same_target() -> None:
    """A blip costs one quick, jittered retry and no fallback."""
    w = world(["a/big", "b/big"])
    w.providers["a"].set([DOWN, FakeReply()])
    began = now()
    reply = await w.router.chat(BODY)
    assert reply.report.target == "a/big"
    assert [a.failure_class for a in reply.report.attempts] == [FailureClass.SERVER_ERROR, None]
    assert now() - began < 0.25
    assert w.sink.of(RequestFinished)[0].outcome == "fallback"


@virtual
async def test_a_provider_s_word_against_a_retry_is_kept() -> None:
    """A 5xx that says not to ask again costs one call; the request goes on elsewhere."""
    w = world(["a/big", "b/big"])
    w.providers["a"].set(FakeReply(failure=Failure(FailureClass.SERVER_ERROR, "500", status=500, not_again=True)))
    assert await served_by(w) == "b/big"
    assert w.calls("a") == 1


@pytest.mark.parametrize("failure_class", [FailureClass.TIMEOUT, FailureClass.OVERLOADED, FailureClass.AUTH])
@virtual
async def test_what_the_table_does_not_retry_goes_to_the_next(failure_class: FailureClass) -> None:
    """No second call to the same target."""
    w = world(["a/big", "b/big"])
    w.providers["a"].set(failing(failure_class))
    assert await served_by(w) == "b/big"
    assert attempted(w) == ["a/big", "b/big"]


@virtual
async def test_without_budget_there_is_no_retry_on_the_same_target() -> None:
    """The retry budget pays for same-target retries; falling back costs nothing."""
    w = world(["a/big", "b/big"], config={"resilience": {"retry_budget": {"start": 0, "ratio": 0.01}}})
    w.providers["a"].set([DOWN, FakeReply()])
    assert await served_by(w) == "b/big"
    assert attempted(w) == ["a/big", "b/big"]


@virtual
async def test_a_quick_retry_needs_a_closed_breaker() -> None:
    """The failure that opens the breaker is not followed by another call to the same target."""
    at_once = {"consecutive_failures": 1, "odds": 2, "odds_per_call": 1}
    w = world(["a/big"], ["b/small"], config={"resilience": {"breaker": at_once}})
    w.providers["a"].set(DOWN)
    assert await served_by(w) == "b/small"
    assert attempted(w) == ["a/big", "b/small"]


@virtual
async def test_a_tier_has_three_attempts_while_a_lower_one_is_free() -> None:
    """Four dead targets above a healthy one: three attempts, then the lower tier."""
    w = world(["a/1", "b/1", "c/1", "d/1"], ["e/1"])
    for name in "abcd":
        w.providers[name].set(failing(FailureClass.TIMEOUT))
    assert await served_by(w) == "e/1"
    assert len(attempted(w)) == 4


@virtual
async def test_six_attempts_and_one_for_the_last_resort() -> None:
    """Eight dead targets: six are asked, then the last resort once."""
    names = "abcdefgh"
    w = world([f"{name}/1" for name in names], last_resort=["l/x"], kinds=LOCAL)
    for name in names:
        w.providers[name].set(failing(FailureClass.TIMEOUT))
    w.providers["l"].set(DOWN)
    assert await served_by(w) is None
    assert len(attempted(w)) == 7
    assert attempted(w)[-1] == "l/x"
    w.assert_idle()


@virtual
async def test_answers_that_say_later_do_not_use_up_the_attempts_of_a_request_that_waits() -> None:
    """Ten short 429s in a row, then an answer: the request waits them out."""
    w = world(["a/big"])
    w.providers["a"].set([limited(1.0)] * 10 + [FakeReply()])
    reply = await w.router.chat(BODY)
    assert reply.report.target == "a/big"
    assert len(reply.report.attempts) == 11
    assert reply.report.waited_seconds == pytest.approx(10.0)


@virtual
async def test_an_ill_target_is_asked_again_before_the_last_resort() -> None:
    """Better a target that may recover within seconds than the smallest model: it is paced, not left."""
    w = world(["a/big"], last_resort=["l/x"], kinds=LOCAL)
    w.providers["a"].set([DOWN, DOWN, FakeReply()])
    reply = await w.router.chat(BODY)
    assert reply.report.target == "a/big"
    assert [attempt.failure_class for attempt in reply.report.attempts] == [FailureClass.SERVER_ERROR] * 2 + [None]
    assert 0 < reply.report.waited_seconds < 20.0
    assert w.calls("l") == 0


@virtual
async def test_a_target_that_is_down_leaves_it_to_the_last_resort_at_once() -> None:
    """OPEN is gone, not ill: the last resort answers, and the target is asked when its open time is over."""
    w = world(["a/big"], last_resort=["l/x"], kinds=LOCAL)
    w.providers["a"].set(SLOW_DOWN)
    await asyncio.gather(*(served_by(w) for _ in range(5)))
    calls = w.calls("a")
    reply = await w.router.chat(BODY)
    assert (reply.report.target, reply.report.waited_seconds) == ("l/x", 0.0)
    assert w.calls("a") == calls


@virtual
async def test_a_failure_of_a_domain_is_followed_by_another_domain() -> None:
    """A server error at one region of a cloud: the next is not its neighbour, although that is written first."""
    kinds = {"a": {"failure_domain": "x"}, "b": {"failure_domain": "x"}, "c": {"failure_domain": "y"}}
    w = world(["a/1", "b/1", "c/1"], kinds=kinds)
    w.providers["a"].set(failing(FailureClass.TIMEOUT))
    assert await served_by(w) == "c/1"


@virtual
async def test_other_keys_of_an_overloaded_provider_come_last() -> None:
    """529 is capacity across all callers: the second key gains nothing."""
    w = world(["a/1", "b/1"], kinds={"a": {"api_key": ["k1", "k2"]}})
    w.providers["a"].set(failing(FailureClass.OVERLOADED, 529))
    assert await served_by(w) == "b/1"
    assert attempted(w) in (["a/1", "b/1"], ["a/1#2", "b/1"])


@virtual
async def test_a_session_stays_with_its_target_among_equals() -> None:
    """The same session, the same target; many sessions use every one of them."""
    w = world(["a/1", "b/1", "c/1"])
    for name in "abc":
        await served_by(w, avoid=[other for other in "abc" if other != name])
    homes = {f"s{n}": await served_by(w, session=f"s{n}") for n in range(20)}
    assert set(homes.values()) == {"a/1", "b/1", "c/1"}
    again = {name: await served_by(w, session=name) for name in homes}
    assert again == homes


# Operations beside answering ---------------------------------------------------------------------------


class Compacting(FakeProvider):
    """A server of Responses with /responses/compact."""

    operations = frozenset({"compact"})


ASKED = {"model": "smart", "input": "hello"}
NOT_SENT = FakeReply(failure=Failure(FailureClass.TRANSPORT, "connection refused", unsent=True))


@virtual
async def test_a_compaction_says_nothing_of_the_pace_of_answers() -> None:
    """It may take as long as it takes; neither its success nor its failures enter the statistics of answers."""
    w = world(["a/big"], replies={"a": Compacting()}, kinds={"a": {"wires": ["responses"]}})
    w.providers["a"].set(FakeReply(seconds=0.5))
    for _ in range(30):
        await w.router.responses(ASKED)
    before = w.router.targets()
    w.providers["a"].set(FakeReply(seconds=50.0))
    compacted = await w.router.answer("responses", ASKED, {}, operation="compact")
    assert [attempt.seconds for attempt in compacted.report.attempts] == [pytest.approx(50.0)]
    for reply in (BLACK_HOLE, SLOW_DOWN, failing(FailureClass.AUTH, 401), failing(FailureClass.OVERLOADED, 503)):
        w.providers["a"].set(reply)
        for _ in range(5):
            with pytest.raises(RouterUnavailable):
                await w.router.answer("responses", ASKED, {"timeout": 5.0}, operation="compact")
    assert [one.latency_seconds for one in w.router.targets()] == [one.latency_seconds for one in before]
    assert [one.refusal for one in w.router.targets()] == [None]
    w.providers["a"].set(FakeReply())
    assert (await w.router.responses(ASKED)).report.target == "a/big"
    w.assert_idle()


@pytest.mark.parametrize("reply", [limited(30.0), NOT_SENT, failing(FailureClass.QUOTA, 402)])
@virtual
async def test_a_compaction_tells_what_holds_for_every_call(reply: FakeReply) -> None:
    """A rate limit, an empty account and connections that are never made rest the target for answers as well."""
    w = world(["a/big"], replies={"a": Compacting(reply)}, kinds={"a": {"wires": ["responses"]}})
    for _ in range(8):
        with pytest.raises(RouterUnavailable):
            await w.router.answer("responses", ASKED, {"timeout": 1.0}, operation="compact")
    assert w.router.targets()[0].refusal is not None


# What a client is told --------------------------------------------------------------------------------


def _rate_used_up() -> World:
    return world(["a/big"], kinds={"a": {"rpm": 1}}, config={"routing": {"max_wait": 0}})


def _slot_taken() -> World:
    return world(["a/big"], kinds={"a": {"bulkhead": 1}}, config={"routing": {"max_wait": 0}})


@pytest.mark.parametrize(
    ("make", "reply", "timeout"),
    [
        (lambda: world(["a/big"]), limited(700.0), 600.0),
        (lambda: world(["a/big"]), limited(None), 3.0),
        (lambda: world(["a/big"]), failing(FailureClass.OVERLOADED, 529), 3.0),
        (lambda: world(["a/big"]), failing(FailureClass.WARMING, 503), 3.0),
        (lambda: world(["a/big"]), failing(FailureClass.QUOTA, 429), 3.0),
        (lambda: world(["a/big"]), failing(FailureClass.AUTH, 401), 3.0),
        (lambda: world(["a/big"]), failing(FailureClass.MODEL_GONE, 404), 3.0),
        (lambda: world(["a/big"]), SLOW_DOWN, 3.0),
        (lambda: world(["a/big"]), BLACK_HOLE, 3.0),
        (_rate_used_up, FakeReply(), 3.0),
        (_slot_taken, FakeReply(seconds=0.5), 3.0),
    ],
    ids=["hint", "429", "529", "warming", "quota", "auth", "gone", "500", "silent", "rate", "slot"],
)
@virtual
async def test_an_error_says_when_to_come_again(make: Any, reply: FakeReply, timeout: float) -> None:
    """`retry_after` is never 0 and never absent while anything comes due: a retry at that time is sent or waits."""
    w = make()
    w.providers["a"].set(reply)
    results = await asyncio.gather(*(w.router.chat(BODY, timeout=timeout) for _ in range(2)), return_exceptions=True)
    error = results[1]
    assert isinstance(error, RouterUnavailable)
    assert error.retry_after is not None
    assert error.retry_after > 0
    w.providers["a"].set(FakeReply())
    await asyncio.sleep(error.retry_after)
    assert await served_by(w, timeout=31.0) == "a/big"


@virtual
async def test_a_shed_request_that_comes_again_when_told_is_served() -> None:
    """The least remaining open time and the calm after it: then nothing is shed any more."""
    w = world(["a/1", "b/1", "c/1"])
    await trip(w, "a", "b")
    assert await served_by(w) == "c/1"
    for name in "ab":
        w.providers[name].set(FakeReply())
    with pytest.raises(Overloaded) as caught:
        await w.router.chat(BODY, criticality="sheddable")
    assert caught.value.retry_after is not None
    await asyncio.sleep(caught.value.retry_after)
    assert await served_by(w, criticality="sheddable") is not None


@virtual
async def test_what_no_time_will_change_has_no_time() -> None:
    """The operator's word ends by the operator's word."""
    w = world(["a/big"])
    w.router.isolate("a/big")
    with pytest.raises(AllTargetsFailed) as caught:
        await w.router.chat(BODY)
    assert caught.value.retry_after is None


# The request's own fault ------------------------------------------------------------------------------


@virtual
async def test_the_callers_own_400_comes_back_unchanged_at_once() -> None:
    """From the plan's first target: its status and body, nobody else is asked, nobody is blamed."""
    w = world(["a/big", "b/big"], last_resort=["l/x"], kinds=LOCAL)
    w.providers["a"].set(failing(FailureClass.INVALID_REQUEST, 400, b'{"error":"no such tool"}'))
    with pytest.raises(InvalidRequest) as caught:
        await w.router.chat(BODY)
    assert (caught.value.status, caught.value.body) == (400, b'{"error":"no such tool"}')
    assert caught.value.report is not None
    assert attempted(w) == ["a/big"]
    assert w.state.book.snapshot("a/big", now()).outcomes == 0


@virtual
async def test_a_fallbacks_400_is_not_the_callers() -> None:
    """The primary is down, the second does not understand the request: the third answers."""
    w = world(["a/big", "b/big", "c/big"])
    w.providers["a"].set(failing(FailureClass.TIMEOUT))
    w.providers["b"].set(failing(FailureClass.INVALID_REQUEST, 400))
    reply = await w.router.chat(BODY)
    assert reply.report.target == "c/big"
    assert [a.failure_class for a in reply.report.attempts][1] is FailureClass.REJECTED_BY_FALLBACK


@virtual
async def test_two_fallback_400s_end_it_without_the_last_resort() -> None:
    """What two do not understand the smallest model would only answer wrongly."""
    w = world(["a/1", "b/1", "c/1", "d/1"], last_resort=["l/x"], kinds=LOCAL)
    w.providers["a"].set(failing(FailureClass.TIMEOUT))
    for name in "bcd":
        w.providers[name].set(failing(FailureClass.INVALID_REQUEST, 400))
    with pytest.raises(AllTargetsFailed):
        await w.router.chat(BODY)
    assert attempted(w) == ["a/1", "b/1", "c/1"]


@virtual
async def test_a_prompt_that_is_too_long_goes_only_to_larger_contexts() -> None:
    """The smaller one is not asked, the larger one serves."""
    mentions = [
        {"target": "a/1", "context_tokens": 8000},
        {"target": "b/1", "context_tokens": 8000},
        {"target": "c/1", "context_tokens": 200_000},
    ]
    w = world(["a/1", "b/1", "c/1"], config={"models": {"smart": {"tiers": [{"targets": mentions}]}}})
    w.providers["a"].set(failing(FailureClass.CONTEXT_LENGTH, 400))
    assert await served_by(w) == "c/1"
    assert attempted(w) == ["a/1", "c/1"]
    w.providers["c"].set(failing(FailureClass.CONTEXT_LENGTH, 400))
    with pytest.raises(ContextTooLong):
        await w.router.chat(BODY)


@virtual
async def test_a_content_filter_is_final_unless_the_policy_says_otherwise() -> None:
    """Not asked elsewhere by default; with `content_filter_fallback` the next may answer."""
    strict = world(["a/1", "b/1"])
    strict.providers["a"].set(failing(FailureClass.CONTENT_FILTERED, 400))
    with pytest.raises(ContentBlocked):
        await strict.router.chat(BODY)
    assert strict.calls("b") == 0
    lenient = world(["a/1", "b/1"], config={"routing": {"content_filter_fallback": True}})
    lenient.providers["a"].set(failing(FailureClass.CONTENT_FILTERED, 400))
    assert await served_by(lenient) == "b/1"


# Shedding ---------------------------------------------------------------------------------------------


@virtual
async def test_above_half_of_the_fleet_open_sheddable_requests_are_shed() -> None:
    """Overloaded with the least remaining time; critical ones are served by who is left."""
    w = world(["a/1", "b/1", "c/1"])
    await trip(w, "a", "b")
    assert await served_by(w) == "c/1"
    with pytest.raises(Overloaded) as caught:
        await w.router.chat(BODY, criticality="sheddable_plus")
    assert caught.value.retry_after is not None
    assert 10.0 <= caught.value.retry_after <= 10.5  # open for 5 s, and calm for 5 s after that
    assert {refusal.reason for refusal in caught.value.refusals} == {"shed"}
    assert len(w.sink.of(RequestShed)) == 1
    assert w.sink.of(RequestFinished)[-1].outcome == "rejected_local"
    assert await served_by(w) == "c/1"


@virtual
async def test_a_request_that_is_shed_probes_where_no_target_serves() -> None:
    """It is told the back-off of the probe and the calm; a second later it is the probe, and is shed if that fails."""
    w = world(["a/1", "b/1", "c/1"])
    await trip(w, "a", "b")
    with pytest.raises(Overloaded) as caught:
        await w.router.chat(BODY, criticality="sheddable")
    assert caught.value.retry_after is not None
    assert 5.0 < caught.value.retry_after <= 6.0
    await asyncio.sleep(1.0)
    w.providers["b"].set(FakeReply())
    before = w.calls("c")
    with pytest.raises(Overloaded) as caught:
        await w.router.chat(BODY, avoid=["b"], criticality="sheddable")
    assert caught.value.report is not None
    assert [(attempt.target, attempt.probe) for attempt in caught.value.report.attempts] == [("a/1", True)]
    assert await served_by(w, criticality="sheddable") == "b/1"
    assert w.calls("c") == before


@virtual
async def test_a_request_that_is_shed_finds_out_whether_the_network_is_back() -> None:
    """Offline, and only sheddable requests: one a second is sent, the others are told when the next one is."""
    w = world(["a/1"], ["b/1"])
    for provider in w.providers.values():
        provider.set(UNREACHABLE)
    await asyncio.gather(*(served_by(w, timeout=0.5) for _ in range(12)))
    assert w.router.system_health().offline
    before = sum(w.calls(name) for name in "ab")
    for _ in range(20):
        with pytest.raises(Overloaded) as caught:
            await w.router.chat(BODY, criticality="sheddable")
        assert caught.value.retry_after is not None
        assert 5.0 < caught.value.retry_after <= 6.0
        await asyncio.sleep(0.25)
    assert 4 <= sum(w.calls(name) for name in "ab") - before <= 6
    for provider in w.providers.values():
        provider.set(FakeReply())
    await asyncio.sleep(1.0)
    assert await served_by(w, criticality="sheddable") is not None


@virtual
async def test_a_sheddable_request_that_waits_when_shedding_begins_is_ended() -> None:
    """It is not kept waiting for what it will not be given: Overloaded at once, and critical waiters stay."""
    w = world(["a/1", "b/1", "c/1"], kinds={"c": {"bulkhead": 1}})
    w.providers["c"].set(FakeReply(seconds=9.0))
    busy = asyncio.ensure_future(served_by(w, avoid=["a", "b"]))
    await asyncio.sleep(0.1)
    sheddable = asyncio.ensure_future(w.router.chat(BODY, avoid=["a", "b"], criticality="sheddable"))
    critical = asyncio.ensure_future(w.router.chat(BODY, avoid=["a", "b"]))
    await asyncio.sleep(0.1)
    began = now()
    await trip(w, "a", "b")
    with pytest.raises(Overloaded) as caught:
        await sheddable
    assert caught.value.report is not None
    assert caught.value.report.waited_seconds <= now() - began + 0.1
    assert caught.value.retry_after is not None
    assert caught.value.retry_after > 5.0
    assert (await critical).report.target == await busy == "c/1"
    w.assert_idle()


@virtual
async def test_who_asks_long_after_the_outage_is_not_shed() -> None:
    """The breakers came due while nobody asked: the calm began then, not with the first who asks."""
    w = world(["c/1", "a/1", "b/1"])
    await trip(w, "a", "b")
    await asyncio.sleep(33.0 + 5.0)
    assert await served_by(w, criticality="sheddable") is not None
    assert not w.sink.of(RequestShed)


@virtual
async def test_shed_requests_may_be_given_to_the_last_resort() -> None:
    """With `shed_to_last_resort` they are answered there, and nobody else is asked for them."""
    w = world(
        ["a/1", "b/1", "c/1"], last_resort=["l/x"], kinds=LOCAL, config={"routing": {"shed_to_last_resort": True}}
    )
    await trip(w, "a", "b")
    assert await served_by(w, criticality="sheddable") == "l/x"
    assert w.calls("c") == 0


# Deadlines and cancellation ---------------------------------------------------------------------------


@virtual
async def test_every_request_ends_by_its_deadline() -> None:
    """Nobody answers: DeadlineExceeded at the deadline, naming the attempt; that runs on until patience."""
    w = world(["a/big"])
    w.providers["a"].set(FakeReply(seconds=float("inf")))
    began = now()
    with pytest.raises(DeadlineExceeded) as caught:
        await w.router.chat(BODY, timeout=7.0)
    assert now() - began == pytest.approx(7.0)
    assert [a.target for a in caught.value.attempts] == ["a/big"]
    await w.verdicts()
    assert now() - began == pytest.approx(30.0)
    w.assert_idle()


@virtual
async def test_a_timer_that_fires_a_little_early_is_a_deadline_all_the_same() -> None:
    """Some loops count in milliseconds: the request still ends with DeadlineExceeded, not because nobody is left."""
    w = world(["a/big"])
    w.providers["a"].set(BLACK_HOLE)

    class Early(LoopClock):
        def call_at(self, when: float, callback: Callable[[], object]) -> TimerHandle:
            early = when - 0.0009
            return super().call_at(early if early > self.now() else when, callback)

    w.state.clock = Early()
    with pytest.raises(DeadlineExceeded):
        await w.router.chat(BODY, timeout=7.0)
    await w.verdicts()


@virtual
async def test_a_fifth_of_the_time_is_left_for_another_candidate() -> None:
    """A silent target whose pace is known is left at four fifths of what remains: the next one has time to answer."""
    w = world(["a/big", "b/big"], config={"routing": {"strategy": "ordered"}})
    w.providers["a"].set(FakeReply(seconds=6.0))
    await asyncio.gather(*(served_by(w) for _ in range(20)))
    w.providers["a"].set(BLACK_HOLE)
    w.providers["b"].set(FakeReply(seconds=1.5))
    began = now()
    assert await served_by(w, timeout=10.0) == "b/big"
    assert now() - began == pytest.approx(9.5)
    w.assert_idle()


@virtual
async def test_the_total_is_the_deadline_of_who_names_none() -> None:
    """600 s by default, whatever the attempts' own timeouts are."""
    w = world(["a/big"])
    w.providers["a"].set(FakeReply(seconds=float("inf")))
    began = now()
    with pytest.raises(SmartRouterError):
        await w.router.chat(BODY)
    assert now() - began == pytest.approx(600.0)


@virtual
async def test_a_target_with_its_own_timeout_is_left_at_it() -> None:
    """`timeout` of a target replaces the default while another candidate is left."""
    mentions = [{"target": "a/1", "timeout": "3s"}, "b/1"]
    w = world(["a/1", "b/1"], config={"models": {"smart": {"tiers": [{"targets": mentions}]}}})
    w.providers["a"].set(FakeReply(seconds=float("inf")))
    began = now()
    assert await served_by(w) == "b/1"
    assert now() - began == pytest.approx(3.0)


def _full() -> World:
    w = world(["a/big"], kinds={"a": {"bulkhead": 1, "rpm": 600, "tpm": 100_000}})
    w.providers["a"].set(FakeReply(seconds=100.0))
    return w


def _backing_off() -> World:
    w = world(["a/big"])
    w.state.dice = FakeDice(0.9)
    w.providers["a"].set(DOWN)
    return w


def _last_resort_queue() -> World:
    w = world(["a/big"], last_resort=["l/x"], kinds=LOCAL)
    w.providers["a"].set(limited(300.0))
    w.providers["l"].set(FakeReply(seconds=100.0))
    return w


def _paused() -> World:
    w = world(["a/big"])
    w.providers["a"].set(failing(FailureClass.WARMING, 503))
    return w


async def known(w: World, *, stream: bool = False) -> None:
    """Make the pace of every target known, then have its providers answer as before."""
    for name, provider in w.providers.items():
        answer, provider._reply = provider._reply, lambda _: FakeReply()
        avoid = [other for other in w.providers if other != name]
        assert {await served_by(w, stream=stream, avoid=avoid) for _ in range(20)} != {None}
        provider._reply = answer
    w.sink.events.clear()


@pytest.mark.parametrize(
    ("make", "requests", "after"),
    [(_full, 1, 1.0), (_full, 3, 1.0), (_backing_off, 1, 0.1), (_last_resort_queue, 3, 1.0), (_paused, 1, 0.5)],
    ids=["reading", "waiting", "back-off", "last-resort queue", "pause"],
)
@virtual
async def test_cancellation_in_any_state_keeps_nothing(make: Any, requests: int, after: float) -> None:
    """No slot, permit, token, place in a queue or task is left of who was cancelled."""
    w = make()
    await known(w)
    tasks = asyncio.all_tasks()
    asks = [asyncio.ensure_future(w.router.chat(BODY)) for _ in range(requests)]
    await asyncio.sleep(after)
    assert not any(ask.done() for ask in asks)
    await swallow(*asks)
    assert all(ask.cancelled() for ask in asks)
    w.assert_idle()
    assert asyncio.all_tasks() == tasks
    assert {event.outcome for event in w.sink.of(RequestFinished)} == {"cancelled"}


@virtual
async def test_a_cancelled_waiter_lets_the_next_one_through() -> None:
    """The head of the queue leaves: the slot that becomes free goes to the one behind."""
    w = world(["a/big"], kinds={"a": {"bulkhead": 1}})
    w.providers["a"].set(FakeReply(seconds=5.0))
    first, second, third = (asyncio.ensure_future(served_by(w)) for _ in range(3))
    await asyncio.sleep(1.0)
    await swallow(second)
    assert [await first, await third] == ["a/big", "a/big"]
    w.assert_idle()


# Bugs of others ---------------------------------------------------------------------------------------


@virtual
async def test_a_provider_that_raises_is_a_failure_and_never_a_leak() -> None:
    """Its bug is a failure of its target; another one answers."""
    w = world(["a/big", "b/big"])
    w.providers["a"].set(FakeReply(bug=ZeroDivisionError("bug")))
    reply = await w.router.chat(BODY)
    assert reply.report.target == "b/big"
    assert "ZeroDivisionError" in reply.report.attempts[0].message
    w.assert_idle()


@virtual
async def test_a_429_about_concurrency_means_fewer_at_once() -> None:
    """No wait, but a smaller bulkhead: what is sent from then on is one less than was in flight."""
    w = world(["a/big"])
    healthy = FakeReply(seconds=10.0)
    too_many = FakeReply(failure=Failure(FailureClass.RATE_LIMITED, "429", wait=Wait(0.0, "concurrency")))
    w.providers["a"].set(lambda _: too_many if w.providers["a"].in_flight > 3 else healthy)
    asks = [asyncio.ensure_future(served_by(w)) for _ in range(6)]
    await asyncio.sleep(1.0)
    assert w.gate("a/big").provider.bulkhead.limit == 3
    w.providers["a"].max_in_flight = 0
    assert await asyncio.gather(*asks) == ["a/big"] * 6
    assert w.providers["a"].max_in_flight == 3
    w.assert_idle()


@virtual
async def test_a_provider_with_too_many_calls_at_once_does_not_use_up_a_request() -> None:
    """`Retry-After: 0` for concurrency, again and again: one attempt, and the free target answers."""
    w = world(["a/big", "b/big"])
    w.providers["a"].set(FakeReply(failure=Failure(FailureClass.RATE_LIMITED, "429", wait=Wait(0.0, "concurrency"))))
    assert await served_by(w) == "b/big"
    assert w.calls("a") == 1
    w.assert_idle()


@virtual
async def test_an_unreachable_provider_is_not_asked_by_its_other_targets() -> None:
    """Transport faults count on the provider: five at one target spare the others, while another provider is free."""
    w = world(["a/1", "b/1"], ["a/2", "b/2"], config={"routing": {"strategy": "ordered"}})
    w.providers["a"].set(FakeReply(seconds=0.1, failure=Failure(FailureClass.TRANSPORT, "refused")))
    await asyncio.gather(*(served_by(w, avoid=["a/2", "b"], timeout=0.3) for _ in range(5)))
    before = w.calls("a")
    reply = await w.router.chat(BODY, tier="standard")
    assert reply.report.target == "b/2"
    assert [(refusal.target, refusal.reason) for refusal in reply.report.refusals] == [("a/2", "open")]
    assert w.calls("a") == before


@virtual
async def test_an_unreachable_provider_with_nobody_beside_it_is_probed_by_back_off() -> None:
    """Transport faults open the provider; its other target is asked after 1, 2, 4 s and so on, one call at a time."""
    w = world(["a/1"], ["a/2"])
    w.providers["a"].set(FakeReply(seconds=0.1, failure=Failure(FailureClass.TRANSPORT, "refused")))
    await asyncio.gather(*(served_by(w, avoid=["a/2"], timeout=0.3) for _ in range(5)))
    before, w.providers["a"].max_in_flight = w.calls("a"), 0
    with pytest.raises(RouterUnavailable) as caught:
        await w.router.chat(BODY, tier="standard", timeout=10.0)
    assert {refusal.reason for refusal in caught.value.refusals} == {"open"}
    assert w.calls("a") - before == 3
    assert w.providers["a"].max_in_flight == 1
    w.assert_idle()
