"""Hedging: a late head is asked for twice, one answer comes, and whoever lost has nothing left of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from smart_model_router import AllTargetsFailed, DeadlineExceeded, InvalidRequest, StreamInterrupted
from smart_model_router.domain.events import AttemptFinished, RequestFinished
from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, StreamEvent
from smart_model_router.testing import FakeProvider, FakeReply, chunk
from tests.world import BODY, DOWN, HandMade, World, failing, now, served_by, swallow, timers, virtual, world

SILENT = FakeReply(seconds=float("inf"))


async def trained(*ladder: list[str], requests: int = 20, **sections: Any) -> World:
    """Hedge with a target `a/big` whose first content usually comes after a second; so many requests have paid."""
    resilience = {"hedging": {"enabled": True}, **sections.pop("resilience", {})}
    w = world(*(ladder or (["a/big", "b/big"],)), config={"resilience": resilience, "routing": {"strategy": "ordered"}})
    w.providers["a"].set(FakeReply(seconds=1.0))
    for _ in range(requests):
        assert await served_by(w, stream=True) == "a/big"
    w.sink.events.clear()
    return w


def told(w: World) -> list[tuple[str, bool, FailureClass | None]]:
    """Each attempt: who, whether as a hedge, what came of it."""
    return [(event.target, event.hedge, event.failure_class) for event in w.sink.of(AttemptFinished)]


@virtual
async def test_a_late_head_is_answered_by_another_provider() -> None:
    """After the target's p95 of a second the hedge goes out, its head wins, and report and events say so."""
    w = await trained()
    w.providers["a"].set(SILENT)
    began = now()
    stream = w.router.stream_chat(BODY)
    await anext(stream)
    assert now() - began == pytest.approx(1.0, abs=0.03)
    assert [chunk async for chunk in stream]
    assert told(w) == [("a/big", False, FailureClass.CANCELLED), ("b/big", True, None)]
    assert [(a.target, a.hedge, a.message) for a in stream.report.attempts] == [
        ("a/big", False, "another target answered"),
        ("b/big", True, ""),
    ]
    assert stream.report.to_dict()["attempts"][1]["hedge"] is True
    assert (stream.report.target, stream.report.complete) == ("b/big", True)
    assert w.sink.of(RequestFinished)[0].outcome == "fallback"
    w.assert_idle()


@virtual
async def test_the_first_call_may_still_win() -> None:
    """Its head comes before the hedge's: it is its answer, and the hedge is given back without a verdict."""
    w = await trained()
    w.providers["a"].set(FakeReply(seconds=1.5))
    w.providers["b"].set(FakeReply(seconds=3.0))
    assert await served_by(w, stream=True) == "a/big"
    assert told(w) == [("b/big", True, FailureClass.CANCELLED), ("a/big", False, None)]
    assert w.sink.of(RequestFinished)[0].outcome == "ok"
    await asyncio.sleep(0)
    w.assert_idle()


@virtual
async def test_who_is_in_time_is_not_hedged() -> None:
    """Half a second is no reason to pay twice."""
    w = await trained()
    w.providers["a"].set(FakeReply(seconds=0.5))
    assert await served_by(w, stream=True) == "a/big"
    assert w.calls("b") == 0


@virtual
async def test_both_heads_at_once() -> None:
    """Two heads in one turn of the loop: the first asked wins, the other is given back before anybody is told."""
    w, both = await trained(), asyncio.Event()

    async def events() -> AsyncIterator[StreamEvent]:
        await both.wait()
        yield chunk({"content": "fine"})
        yield chunk({}, finish="stop")
        yield StreamEvent(EventKind.END, b"data: [DONE]\n\n")

    closed: list[str] = []
    a, b = (HandMade(events, lambda name=name: closed.append(name)) for name in "ab")  # type: ignore[misc]
    w.state.providers = {"a": a, "b": b}
    reading = asyncio.ensure_future(served_by(w, stream=True))
    await asyncio.sleep(2.0)
    assert (a.in_flight, b.in_flight) == (1, 1)
    both.set()
    assert await reading == "a/big"
    assert told(w) == [("b/big", True, FailureClass.CANCELLED), ("a/big", False, None)]
    await asyncio.sleep(0)
    assert sorted(closed) == ["a", "b"]
    w.assert_idle()


@virtual
async def test_a_loser_that_was_silent_beyond_patience_has_timed_out() -> None:
    """The hedge takes seven seconds: five of silence are more than anybody need bear."""
    w = await trained()
    w.providers["a"].set(SILENT)
    w.providers["b"].set(FakeReply(seconds=7.0))
    assert await served_by(w, stream=True) == "b/big"
    assert told(w)[0] == ("a/big", False, FailureClass.TIMEOUT)


@virtual
async def test_hedges_stay_within_their_budget() -> None:
    """Twenty requests paid for one hedge: the second late head waits for its own target."""
    w = await trained()
    w.providers["a"].set(FakeReply(seconds=4.0))
    served = [await served_by(w, stream=True) for _ in range(3)]
    assert served == ["b/big", "a/big", "a/big"]
    assert w.calls("b") == 1


@virtual
async def test_a_hedge_is_paid_for_like_a_retry() -> None:
    """I9: when the retry budget is spent nothing is hedged, and the hedge budget keeps what it has."""
    w = await trained()
    while w.state.budget.try_spend():
        pass
    w.providers["a"].set(FakeReply(seconds=4.0))
    assert await served_by(w, stream=True) == "a/big"
    assert w.state.hedges is not None
    assert w.state.hedges.affordable
    assert w.calls("b") == 0


@pytest.mark.parametrize(
    ("options", "stream"), [({}, False), ({"recovery": "buffered"}, True), ({"avoid": ["b"]}, True)]
)
@virtual
async def test_what_is_never_hedged(options: dict[str, Any], stream: bool) -> None:
    """Whole answers, streams whose beginning a policy of recovery delays, and where there is no other target."""
    w = await trained()
    w.providers["a"].set(FakeReply(seconds=4.0))
    assert await served_by(w, stream=stream, **options) == "a/big"
    assert w.calls("b") == 0


@virtual
async def test_nothing_is_hedged_unless_it_is_asked_for() -> None:
    """The default."""
    w = await trained(resilience={"hedging": {"enabled": False}})
    w.providers["a"].set(FakeReply(seconds=4.0))
    assert await served_by(w, stream=True) == "a/big"
    assert w.calls("b") == 0


@virtual
async def test_another_model_of_the_same_provider_is_no_hedge() -> None:
    """What is slow there is probably slow for both; nor is a lower tier the same answer sooner."""
    w = await trained(["a/big", "a/alt"], ["b/small"])
    w.providers["a"].set(FakeReply(seconds=4.0))
    assert await served_by(w, stream=True) == "a/big"
    assert told(w) == [("a/big", False, None)]


@virtual
async def test_a_hedge_takes_no_probe() -> None:
    """The other target comes due for its probe meanwhile: it has nothing to prove at a waiting caller's cost."""
    w = await trained()
    w.providers["b"].set(failing(FailureClass.TIMEOUT))
    await asyncio.gather(*(served_by(w, stream=True, avoid=["a"], timeout=0.1) for _ in range(5)))
    due = w.gate("b/big").breakers["stream"].open_until
    assert due is not None
    await asyncio.sleep(due - 0.5 - now())
    calls = w.calls("b")
    w.providers["a"].set(FakeReply(seconds=4.0))
    assert await served_by(w, stream=True) == "a/big"
    assert w.gate("b/big").due_since(now(), stream=True) == due
    assert w.calls("b") == calls


@virtual
async def test_a_hedge_takes_no_paced_call() -> None:
    """The other target rests: while a first call is under way it is left alone."""
    w = await trained()
    w.providers["b"].set(failing(FailureClass.TIMEOUT))
    await asyncio.gather(*(served_by(w, stream=True, avoid=["a"], timeout=0.1) for _ in range(2)))
    assert w.gate("b/big").cooldown.advice(now()) is not None
    calls = w.calls("b")
    w.providers["a"].set(FakeReply(seconds=4.0))
    assert await served_by(w, stream=True) == "a/big"
    assert w.calls("b") == calls


@pytest.mark.parametrize("after", [0.5, 1.0, 1.02, 1.5, 2.0, 2.5])
@virtual
async def test_a_caller_may_leave_in_every_state(after: float) -> None:
    """Before the head is late, as the hedge goes out, while both are awaited, as a head comes, while it is read."""
    w = await trained()
    w.providers["a"].set(SILENT)
    w.providers["b"].set(FakeReply(seconds=1.0, gap=1.0))
    reading = asyncio.ensure_future(served_by(w, stream=True))
    await asyncio.sleep(after)
    await swallow(reading)
    await asyncio.sleep(0)
    assert {failure_class for _, _, failure_class in told(w)} == {FailureClass.CANCELLED}
    assert w.sink.of(RequestFinished)[0].outcome == "cancelled"
    w.assert_idle()


@virtual
async def test_the_deadline_ends_both() -> None:
    """Neither answers in time: an error that names both, at the deadline."""
    w = await trained()
    w.providers["a"].set(SILENT)
    w.providers["b"].set(SILENT)
    began = now()
    with pytest.raises(DeadlineExceeded) as caught:
        await anext(w.router.stream_chat(BODY, timeout=3.0))
    assert now() - began <= 3.0 + 1e-6
    assert {attempt.target for attempt in caught.value.attempts} == {"a/big", "b/big"}
    w.assert_idle()


@virtual
async def test_a_hedge_that_fails_leaves_the_first_call_alone() -> None:
    """Its failure counts, and the first call goes on."""
    w = await trained()
    w.providers["a"].set(FakeReply(seconds=2.0))
    w.providers["b"].set(DOWN)
    assert await served_by(w, stream=True) == "a/big"
    assert told(w) == [("b/big", True, FailureClass.SERVER_ERROR), ("a/big", False, None)]


@virtual
async def test_a_first_call_that_fails_leaves_it_to_the_hedge() -> None:
    """Nobody else is asked while the hedge may answer."""
    w = await trained(["a/big", "b/big", "c/big"])
    w.providers["a"].set(FakeReply(seconds=2.0, failure=Failure(FailureClass.SERVER_ERROR)))
    w.providers["b"].set(FakeReply(seconds=3.0))
    assert await served_by(w, stream=True) == "b/big"
    assert told(w) == [("a/big", False, FailureClass.SERVER_ERROR), ("b/big", True, None)]
    assert w.calls("c") == 0


@virtual
async def test_when_both_fail_the_walk_goes_on() -> None:
    """Both count as attempts, and the next target answers."""
    w = await trained(["a/big", "b/big", "c/big"])
    w.providers["a"].set(FakeReply(seconds=2.0, failure=Failure(FailureClass.TIMEOUT)))
    w.providers["b"].set(FakeReply(seconds=3.0, failure=Failure(FailureClass.TIMEOUT)))
    assert await served_by(w, stream=True) == "c/big"
    assert [target for target, _, _ in told(w)] == ["a/big", "b/big", "c/big"]
    w.assert_idle()


@virtual
async def test_a_hedge_costs_one_attempt() -> None:
    """With two attempts in all, both spent on the race, a third target is not asked; with one nothing is hedged."""
    w = await trained(["a/big", "b/big", "c/big"])
    w.providers["a"].set(FakeReply(seconds=2.0, failure=Failure(FailureClass.TIMEOUT)))
    w.providers["b"].set(FakeReply(seconds=3.0, failure=Failure(FailureClass.TIMEOUT)))
    object.__setattr__(w.state.routing, "attempts", 2)
    with pytest.raises(AllTargetsFailed):
        await anext(w.router.stream_chat(BODY))
    assert w.calls("c") == 0
    lone = await trained()
    lone.providers["a"].set(FakeReply(seconds=2.0))
    object.__setattr__(lone.state.routing, "attempts", 1)
    assert await served_by(lone, stream=True) == "a/big"
    assert lone.calls("b") == 0


@virtual
async def test_the_callers_own_mistake_ends_the_race() -> None:
    """A 400 of the first target is the answer; the hedge is given back."""
    w = await trained()
    bad = failing(FailureClass.INVALID_REQUEST, 400).failure
    w.providers["a"].set(FakeReply(seconds=2.0, failure=bad))
    w.providers["b"].set(SILENT)
    with pytest.raises(InvalidRequest):
        await anext(w.router.stream_chat(BODY))
    await asyncio.sleep(0)
    assert told(w) == [
        ("a/big", False, FailureClass.INVALID_REQUEST),
        ("b/big", True, FailureClass.CANCELLED),
    ]
    w.assert_idle()


@virtual
async def test_a_winner_that_is_cut_leaves_no_timer() -> None:
    """The hedge kept its own time: that ends with its stream, however it ends."""
    w = await trained()
    w.providers["a"].set(SILENT)
    w.providers["b"].set(FakeReply(pieces=("one",), cut=Failure(FailureClass.TRUNCATED, "cut")))
    with pytest.raises(StreamInterrupted):
        assert [chunk async for chunk in w.router.stream_chat(BODY, recovery="none")]
    await asyncio.sleep(0.0)  # the loser stops its timer when its cancelled task runs
    assert not w.state.ticking
    assert not timers()


@virtual
async def test_a_winner_that_is_cut_is_continued_within_its_time() -> None:
    """The race is over: what the loser still gives back does not stop the clock of the call that continues."""
    w = await trained()
    w.providers["a"].set(SILENT)
    w.providers["b"].set(FakeReply(pieces=("one",), cut=Failure(FailureClass.TRUNCATED, "cut")))
    began = now()
    with pytest.raises(StreamInterrupted):
        assert [chunk async for chunk in w.router.stream_chat(BODY)]
    assert now() - began <= 62.0
    assert not timers()


class Stubborn(FakeProvider):
    """Opens its stream although it was cancelled."""

    async def open_stream(self, call: Any) -> Any:
        try:
            return await super().open_stream(call)
        except asyncio.CancelledError:
            self.set(FakeReply())
            return await super().open_stream(call)


@virtual
async def test_a_loser_that_will_not_go_is_closed_all_the_same() -> None:
    """A provider that answers in spite of being cancelled keeps no connection open."""
    w = await trained()
    stubborn = Stubborn(SILENT)
    w.state.providers = {**w.state.providers, "a": stubborn}
    assert await served_by(w, stream=True) == "b/big"
    await asyncio.sleep(1.0)
    assert stubborn.in_flight == 0
    assert not w.state.loose
    w.assert_idle()
