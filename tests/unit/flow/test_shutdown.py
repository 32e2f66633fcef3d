"""Closing a router: everybody who waits is told at once, and no part of it keeps the rest open for long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from smart_model_router import GuardLimits, RouterUnavailable, StreamInterrupted
from smart_model_router.domain.events import AttemptFinished
from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, StreamEvent
from smart_model_router.domain.ports import ProviderCall, ProviderStream
from smart_model_router.flow.shutdown import CLOSE_SECONDS
from smart_model_router.testing import FakeProvider, FakeReply, chunk
from tests.world import BLACK_HOLE, BODY, DOWN, HandMade, World, limited, now, served_by, timers, virtual, world

CUT = Failure(FailureClass.TRUNCATED, "cut")
ENDLESS = FakeReply(pieces=("x",) * 10_000, gap=1.0)


class Clingy(FakeProvider):
    """A provider that does not close."""

    async def aclose(self) -> None:
        """Hang until cancelled."""
        await asyncio.Event().wait()


class HangingStreams(HandMade):
    """A provider whose streams do not close."""

    async def open_stream(self, call: ProviderCall) -> ProviderStream | Failure:
        """Answer with one of them."""
        opened = await super().open_stream(call)

        async def hang() -> None:
            await asyncio.Event().wait()

        vars(opened)["aclose"] = hang
        return opened


class Locked:
    """A ports.StatsStore that cannot write what is left."""

    def observe(self, observation: AttemptFinished) -> None:
        """Nothing is kept."""

    async def aclose(self) -> None:
        """Hang until cancelled."""
        await asyncio.Event().wait()


class Diary:
    """A ports.StatsStore that keeps what it is told until it is closed."""

    def __init__(self) -> None:
        self.classes: list[FailureClass | None] = []
        self.closed = False

    def observe(self, observation: AttemptFinished) -> None:
        """Keep it."""
        assert not self.closed
        self.classes.append(observation.failure_class)

    async def aclose(self) -> None:
        """Take no more."""
        self.closed = True


async def closed_under(w: World, *asked: Coroutine[Any, Any, object], after: float = 1.0) -> list[BaseException]:
    """Close the router under these; what each ended with, all at the same instant."""
    tasks = [asyncio.ensure_future(one) for one in asked]
    await asyncio.sleep(after)
    began, ends = now(), list[float]()
    for task in tasks:
        task.add_done_callback(lambda _: ends.append(now()))
    await w.router.aclose()
    got = await asyncio.gather(*tasks, return_exceptions=True)
    assert ends == [began] * len(tasks)
    w.assert_idle()
    return [error for error in got if isinstance(error, BaseException)]


@virtual
async def test_whoever_waits_for_a_slot_is_told_at_once() -> None:
    """One call under way and twenty in the waiting room: all of them end in the instant of closing, oldest first."""
    w = world(["a/big"], kinds={"a": {"bulkhead": 1}})
    w.providers["a"].set(BLACK_HOLE)
    order: list[int] = []

    async def ask(number: int) -> None:
        try:
            await w.router.chat(BODY)
        finally:
            order.append(number)

    errors = await closed_under(w, *(ask(number) for number in range(21)))
    assert [type(error) for error in errors] == [RouterUnavailable] * 21
    assert {str(error) for error in errors} == {"the router was closed"}
    assert [number for number in order if number] == list(range(1, 21))
    assert w.calls("a") == 1


@virtual
async def test_whoever_backs_off_is_told_at_once() -> None:
    """A request between two tries waits for nothing any more, and makes no second call."""
    w = world(["a/big"])
    w.providers["a"].set([DOWN] * 20)
    asked = [asyncio.ensure_future(w.router.chat(BODY)) for _ in range(5)]
    await asyncio.sleep(0.05)
    assert 5 <= w.calls("a") < 10
    sent = w.calls("a")
    began = now()
    await w.router.aclose()
    errors = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(error) for error in errors] == [RouterUnavailable] * 5
    assert (now(), w.calls("a")) == (began, sent)
    w.assert_idle()


@virtual
async def test_whoever_waits_for_a_limit_is_told_at_once() -> None:
    """A wait by law, with nobody else to ask."""
    w = world(["a/big"])
    w.providers["a"].set(limited(30.0))
    errors = await closed_under(w, w.router.chat(BODY))
    assert isinstance(errors[0], RouterUnavailable)


@virtual
async def test_a_stream_that_is_read_and_one_that_is_not_end_at_once() -> None:
    """Both are interrupted, their connections closed, whoever asks for the next chunk and when."""
    w = world(["a/big"])
    w.providers["a"].set(ENDLESS)
    read, unread = w.router.stream_chat(BODY), w.router.stream_chat(BODY)
    await anext(unread)
    await anext(unread)

    async def drain() -> None:
        async for _ in read:
            pass

    (error,) = await closed_under(w, drain(), after=2.5)
    assert isinstance(error, StreamInterrupted)
    with pytest.raises(StreamInterrupted, match="the router was closed") as caught:
        await anext(unread)
    assert error.reason == caught.value.reason == "closed"
    assert [event.failure_class for event in w.sink.of(AttemptFinished)] == [FailureClass.CANCELLED] * 2


@virtual
async def test_a_hedge_and_its_rival_end_with_the_router() -> None:
    """Two calls of one request, both silent."""
    w = world(["a/big", "b/big"])
    for provider in w.providers.values():
        provider.set(BLACK_HOLE)
    errors = await closed_under(w, w.router.chat(BODY), after=31.0)
    assert w.calls("a") == w.calls("b") == 1
    assert isinstance(errors[0], RouterUnavailable)


@pytest.mark.parametrize("after", range(8))
@pytest.mark.parametrize("others", [[], ["b/big"]])
@virtual
async def test_a_stream_whose_head_has_just_come_ends_with_the_router(others: list[str], after: int) -> None:
    """The task that got the head has ended, and its caller has not gone on: no timer is set then."""
    loop = asyncio.get_running_loop()

    def close_in(turns: int) -> None:
        if turns:
            loop.call_soon(close_in, turns - 1)
        else:
            w.state.leave()

    def begin() -> AsyncIterator[StreamEvent]:
        loop.call_soon(close_in, after)
        return endless()

    w = world(["a/big", *others], replies={"a": HandMade(begin)})
    began, stream = now(), w.router.stream_chat(BODY)
    with pytest.raises(StreamInterrupted) as told:
        async for _ in stream:
            pass
    assert (told.value.reason, now()) == ("closed", began)
    w.assert_idle()


async def endless() -> AsyncIterator[StreamEvent]:
    """A piece at once, and one each second."""
    while True:
        yield chunk({"content": "x"})
        await asyncio.sleep(1.0)


@virtual
async def test_a_guard_that_waits_is_told_and_a_new_one_refused() -> None:
    """The block that holds the resource goes on; nobody else gets in."""
    w = world(["a/big"])
    entered = asyncio.Event()

    async def hold() -> None:
        async with w.router.guard("search", GuardLimits(slots=1)):
            entered.set()
            await asyncio.sleep(60.0)

    async def wait() -> None:
        async with w.router.guard("search"):
            raise AssertionError

    holder, waiter = asyncio.ensure_future(hold()), asyncio.ensure_future(wait())
    late = w.router.guard("search")
    await entered.wait()
    await asyncio.sleep(1.0)
    began = now()
    await w.router.aclose()
    with pytest.raises(RouterUnavailable, match="the router was closed"):
        await waiter
    assert now() == began
    with pytest.raises(RouterUnavailable, match="this router is closed"):
        w.router.guard("search")
    with pytest.raises(RouterUnavailable, match="the router was closed"):
        async with late:
            raise AssertionError
    await holder
    w.assert_idle()


@virtual
async def test_nothing_that_hangs_keeps_the_rest_open(caplog: pytest.LogCaptureFixture) -> None:
    """A provider that hangs and a store that is locked are left behind, side by side; the others are closed at once."""
    w = world(["a/big", "b/big"], replies={"a": Clingy()})
    w.state.store = Locked()
    began = now()
    closing = asyncio.ensure_future(w.router.aclose())
    await asyncio.sleep(0.0)
    await asyncio.sleep(0.0)
    await asyncio.sleep(0.0)
    assert w.providers["b"].closed
    await closing
    assert now() - began <= 6.0
    told = [record.getMessage() for record in caplog.records]
    assert told == [f"{what} did not close within {CLOSE_SECONDS:g} s" for what in ("provider a", "the store")]
    await asyncio.sleep(0.0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@virtual
async def test_a_store_hears_of_the_calls_that_closing_ends() -> None:
    """It is closed after the providers are."""
    w = world(["a/big"])
    w.providers["a"].set(BLACK_HOLE)
    w.state.store = diary = Diary()
    await closed_under(w, w.router.chat(BODY), w.router.chat(BODY))
    assert diary.classes == [FailureClass.CANCELLED] * 2
    assert diary.closed


@virtual
async def test_a_caller_that_will_not_wait_for_the_end_may_go() -> None:
    """Cancelled while it closes: the cancellation passes, and what hangs is cancelled with it."""
    w = world(["a/big"])
    w.state.store = Locked()
    tasks = asyncio.all_tasks()
    closing = asyncio.ensure_future(w.router.aclose())
    await asyncio.sleep(1.0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await asyncio.sleep(0.1)
    assert asyncio.all_tasks() == tasks


@virtual
async def test_a_connection_that_does_not_close_is_left_behind() -> None:
    """The slot is free at once; whoever closes the stream waits for the connection for 5 s at most."""

    async def endless() -> AsyncIterator[StreamEvent]:
        while True:
            yield chunk({"content": "x"})

    w = world(["a/big"], replies={"a": HangingStreams(endless)})
    stream = w.router.stream_chat(BODY)
    await anext(stream)
    began = now()
    stream.abandon()
    assert w.gate("a/big").in_flight == 0
    await stream.aclose()
    assert now() - began == CLOSE_SECONDS


@virtual
async def test_a_closed_router_has_no_timer() -> None:
    """Nothing of it rings later."""
    w = world(["a/big"], kinds={"a": {"bulkhead": 1}})
    w.providers["a"].set(ENDLESS)
    stream = w.router.stream_chat(BODY)
    await anext(stream)
    await closed_under(w, w.router.chat(BODY), w.router.chat(BODY))
    assert not timers()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("leaves", [False, True])
@virtual
async def test_a_second_call_leaves_no_timer(leaves: bool, stream: bool) -> None:
    """Beside a silent one, whether it answers or its caller leaves before."""
    w = world(["a/big", "b/big"])
    w.providers["a"].set(BLACK_HOLE)
    w.providers["b"].set(FakeReply(seconds=5.0))
    ask = asyncio.ensure_future(served_by(w, stream=stream))
    await asyncio.sleep(33.0)
    assert w.calls("b") == 1
    if leaves:
        ask.cancel()
    await asyncio.gather(ask, return_exceptions=True)
    await w.verdicts()
    assert not w.state.ticking
    assert not timers()
    w.assert_idle()


@pytest.mark.parametrize("stream", [False, True])
@virtual
async def test_a_call_to_its_verdict_after_another_call_leaves_no_timer(stream: bool) -> None:
    """The failed call, to a target that is known, was timed by the request's own timer; the next has another."""
    w = world(["a/big", "b/big"])
    assert [await served_by(w, stream=stream) for _ in range(30)] == ["a/big"] * 30
    w.providers["a"].set(replace(DOWN, seconds=1.0))
    assert await served_by(w, stream=stream) == "b/big"
    assert not w.state.ticking
    assert not timers()
    w.assert_idle()


@pytest.mark.parametrize("policy", ["none", "buffered", "hold_back(500)", "restart", "continue"])
@pytest.mark.parametrize("cut", [None, CUT])
@virtual
async def test_the_end_of_a_stream_leaves_no_timer(policy: str, cut: Failure | None) -> None:
    """Also of events that the policy held back until then, and of a stream that broke off."""
    w = world(["a/big", "b/big"])
    w.providers["a"].set(FakeReply(pieces=("one ", "two ", "three"), gap=1.0, cut=cut))
    stream = w.router.stream_chat(BODY, recovery=policy)
    with suppress(StreamInterrupted):
        async for _ in stream:
            assert w.state.ticking
    assert not w.state.ticking
    assert not timers()
    w.assert_idle()


@virtual
async def test_a_read_under_way_sets_no_timer_once_another_task_has_left() -> None:
    """Its provider goes on sending events of which nothing is delivered, and does not close either."""

    async def garbage() -> AsyncIterator[StreamEvent]:
        yield chunk({"content": "x"})
        while True:
            await asyncio.sleep(1.0)
            yield StreamEvent(EventKind.MALFORMED, b"data: {\n\n")

    skip = {"routing": {"malformed_events": "skip"}}
    w = world(["a/big"], replies={"a": HangingStreams(garbage)}, config=skip)
    stream = w.router.stream_chat(BODY, recovery="none")
    await anext(stream)
    reading = asyncio.ensure_future(anext(stream, None))
    await asyncio.sleep(2.5)
    assert w.state.ticking
    stream.abandon()
    await asyncio.sleep(1.0)
    assert not w.state.ticking
    await stream.aclose()
    assert await reading is None
    assert not timers()
    assert w.gate("a/big").in_flight == 0


@virtual
async def test_a_router_that_was_replaced_ends_only_its_own_waiters() -> None:
    """After a reload two routers share a waiting room: those of the new one wait on."""
    w, other = world(["a/big"], kinds={"a": {"bulkhead": 1}}), world(["a/big"], kinds={"a": {"bulkhead": 1}})
    for one in (w, other):
        one.providers["a"].set(FakeReply(seconds=5.0))
    first = asyncio.ensure_future(w.router.chat(BODY))
    await asyncio.sleep(0.0)
    waiting = asyncio.ensure_future(w.router.chat(BODY))
    await asyncio.sleep(1.0)
    other.router.continue_from(w.router)
    fresh = asyncio.ensure_future(other.router.chat(BODY))
    await asyncio.sleep(1.0)
    assert other.state.wait_queue.waiting == 2
    await w.router.aclose()
    errors = await asyncio.gather(first, waiting, return_exceptions=True)
    assert [type(error) for error in errors] == [RouterUnavailable] * 2
    assert (await fresh).report.target == "a/big"
