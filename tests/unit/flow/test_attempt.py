"""One call to one target: how long it may last, whose fault its end is, what is written down about it."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from smart_model_router import DeadlineExceeded
from smart_model_router.domain.events import AttemptFinished
from smart_model_router.domain.outcome import FailureClass, Usage
from smart_model_router.testing import FakeReply
from tests.world import BLACK_HOLE, BODY, World, failing, now, served_by, swallow, virtual, world


def classes(w: World) -> list[FailureClass | None]:
    """What came of every attempt, in order."""
    return [event.failure_class for event in w.sink.of(AttemptFinished)]


def with_targets(*mentions: Any, **more: Any) -> dict[str, Any]:
    """A configuration whose one tier has these mentions."""
    return {"models": {"smart": {"tiers": [{"targets": list(mentions)}], "last_resort": []}}, **more}


async def known(w: World, seconds: float, *, stream: bool = False) -> None:
    """Make the pace of `a/1` known: 20 answers (streams: heads) of so many seconds."""
    w.providers["a"].set(FakeReply(seconds=seconds))
    avoid = [name for name in w.providers if name != "a"]
    assert {
        await task for task in [asyncio.ensure_future(served_by(w, stream=stream, avoid=avoid)) for _ in range(20)]
    } == {"a/1"}
    w.sink.events.clear()


async def seconds_until_left(w: World, **options: Any) -> float:
    """How long the first attempt of a request at a black hole lasts."""
    w.providers["a"].set(BLACK_HOLE)
    began = now()
    await served_by(w, **options)
    return w.sink.of(AttemptFinished)[0].at - began


@pytest.mark.parametrize(
    ("mention", "usual", "options", "seconds"),
    [
        ("a/1", 2.0, {}, 5.0),
        ("a/1", 6.0, {}, 12.0),
        ("a/1", 29.0, {"timeout": 100.0}, 58.0),
        ("a/1", 29.0, {"timeout": 50.0}, 40.0),
        ("a/1", 29.0, {"timeout": 35.0}, 32.0),
        ({"target": "a/1", "timeout": "7s"}, 2.0, {}, 5.0),
        ("a/1", 2.0, {"stream": True}, 30.0),
        ({"target": "a/1", "timeout": "7s"}, 2.0, {"stream": True}, 7.0),
        ({"target": "a/1", "reasoning": True}, 2.0, {"stream": True}, 120.0),
        ("a/1", 2.0, {"timeout": 10.0, "stream": True}, 8.0),
    ],
)
@virtual
async def test_a_call_has_its_limit_while_another_candidate_is_left(
    mention: Any, usual: float, options: dict[str, Any], seconds: float
) -> None:
    """Twice its p99 or its patience; streams their own timeout; or four fifths of what remains, not before patience."""
    w = world(["a/1", "b/1"], config=with_targets(mention, "b/1", routing={"strategy": "ordered"}))
    await known(w, usual, stream="stream" in options)
    assert await seconds_until_left(w, **options) == pytest.approx(seconds, rel=0.02)


@pytest.mark.parametrize(
    ("mention", "options", "patience"),
    [
        ("a/1", {}, 30.0),
        ({"target": "a/1", "reasoning": True}, {}, 30.0),
        ("a/1", {"stream": True}, 5.0),
    ],
)
@pytest.mark.parametrize(("first", "second", "served"), [(1.5, 2.0, "a/1"), (2.0, 1.5, "b/1")])
@virtual
async def test_a_silent_call_to_a_little_known_target_is_not_cut_off_but_joined(
    mention: Any, options: dict[str, Any], patience: float, first: float, second: float, served: str
) -> None:
    """Nobody knows slow from dead: at patience the next free target is called beside it, and the first answer wins."""
    w = world(["a/1", "b/1"], config=with_targets(mention, "b/1", routing={"strategy": "ordered"}))
    w.providers["a"].set(FakeReply(seconds=patience + first))
    w.providers["b"].set(FakeReply(seconds=second))
    began = now()
    assert await served_by(w, **options) == served
    assert w.providers["b"].arrivals == [pytest.approx(began + patience)]
    assert now() - began == pytest.approx(patience + 1.5)
    await w.verdicts()
    w.assert_idle()


@virtual
async def test_a_silent_call_that_nobody_can_join_goes_on() -> None:
    """The other target is full: what was asked first may still answer."""
    w = world(
        ["a/1", "b/1"], config=with_targets("a/1", "b/1", routing={"strategy": "ordered"}), kinds={"b": {"bulkhead": 1}}
    )
    for name, seconds in (("a", 50.0), ("b", 90.0)):
        w.providers[name].set(FakeReply(seconds=seconds))
    busy = asyncio.ensure_future(served_by(w, avoid=["a"]))
    await asyncio.sleep(0.1)
    assert await served_by(w) == "a/1"
    assert await busy == "b/1"
    w.assert_idle()


@virtual
async def test_a_silent_call_is_joined_once_and_the_deadline_ends_both() -> None:
    """Two black holes of unknown pace: two calls, both named, none left."""
    w = world(["a/1", "b/1", "c/1"])
    for name in "abc":
        w.providers[name].set(BLACK_HOLE)
    began = now()
    with pytest.raises(DeadlineExceeded) as caught:
        await w.router.chat(BODY, timeout=45.0)
    assert now() - began == pytest.approx(45.0)
    assert len({attempt.target for attempt in caught.value.attempts}) == 2
    await w.verdicts()
    w.assert_idle()


@pytest.mark.parametrize(
    ("options", "attempts", "seconds"),
    [
        ({}, 6, 180.0),
        ({"timeout": 300.0}, 6, 180.0),
        ({"stream": True}, 6, 30.0),
        ({}, 1, 600.0),
        ({"timeout": 300.0}, 1, 300.0),
    ],
)
@virtual
async def test_only_the_last_attempt_has_all_the_time_there_is(
    options: dict[str, Any], attempts: int, seconds: float
) -> None:
    """Nobody else is left: a call ends at its own timeout, or one hang would eat the deadline; the last one may."""
    w = world(["a/1"], config={"routing": {"attempts": attempts}})
    assert await seconds_until_left(w, **options) == pytest.approx(seconds)


@virtual
async def test_a_slow_but_steady_target_gets_twice_its_p99() -> None:
    """Answers of 100 s are usual: a timeout of 150 s would cut the slowest of them."""
    w = world(["a/1", "b/1"], config={"resilience": {"timeouts": {"attempt": "150s"}}})
    await known(w, 100.0)
    w.providers["a"].set(BLACK_HOLE)
    began = now()
    assert await served_by(w, session="stays with a") == "b/1"
    assert now() - began == pytest.approx(200.0, rel=0.02)


@pytest.mark.parametrize(
    ("stream", "after", "expected"),
    [
        (True, 10.5, FailureClass.CANCELLED),
        (True, 11.5, FailureClass.TIMEOUT),
        (False, 10.5, FailureClass.CANCELLED),
        (False, 11.5, FailureClass.TIMEOUT),
    ],
)
@virtual
async def test_patience_decides_whose_fault_a_leaving_caller_is(
    stream: bool, after: float, expected: FailureClass
) -> None:
    """Answers (heads) take 10 s: 11 silent seconds are the target's fault, fewer are nobody's."""
    w = world(["a/1"])
    await known(w, 10.0, stream=stream)
    w.providers["a"].set(BLACK_HOLE)
    ask = asyncio.ensure_future(served_by(w, stream=stream))
    await asyncio.sleep(after)
    await swallow(ask)
    assert classes(w) == [expected]
    w.assert_idle()


@pytest.mark.parametrize(("stream", "patience"), [(True, 5.0), (False, 30.0)])
@virtual
async def test_an_unknown_target_is_silent_after_the_configured_patience(stream: bool, patience: float) -> None:
    """5 silent seconds of a stream, 30 of a whole answer: whoever leaves later leaves a timeout."""
    w = world(["a/1"])
    w.providers["a"].set(BLACK_HOLE)
    ask = asyncio.ensure_future(served_by(w, stream=stream))
    await asyncio.sleep(patience + 0.1)
    await swallow(ask)
    assert classes(w) == [FailureClass.TIMEOUT]
    w.assert_idle()


@virtual
async def test_patience_is_learned() -> None:
    """A target whose answers take 60 s is not blamed after 40."""
    w = world(["a/1"])
    await known(w, 60.0)
    w.providers["a"].set(BLACK_HOLE)
    ask = asyncio.ensure_future(served_by(w))
    await asyncio.sleep(40.0)
    await swallow(ask)
    assert classes(w) == [FailureClass.CANCELLED]
    w.assert_idle()


@virtual
async def test_a_deadline_shorter_than_patience_blames_nobody() -> None:
    """A caller in a hurry is no evidence against a target of known pace; its breaker sees nothing."""
    w = world(["a/1"])
    await known(w, 1.0)
    w.providers["a"].set(FakeReply(seconds=4.0))
    for _ in range(10):
        assert await served_by(w, timeout=2.0) is None
    assert classes(w) == [FailureClass.CANCELLED] * 10
    w.providers["a"].set(FakeReply())
    assert await served_by(w) == "a/1"


@virtual
async def test_an_attempt_is_written_down_once_with_its_facts() -> None:
    """Seconds, tokens, the target and the request it was for."""
    w = world(["a/1"])
    w.providers["a"].set(FakeReply(seconds=1.5, usage=Usage(100, 50)))
    reply = await w.router.chat(BODY)
    (event,) = w.sink.of(AttemptFinished)
    assert (event.target, event.provider, event.model, event.stream) == ("a/1", "a", "1", False)
    assert (event.usage, event.failure_class) == (Usage(100, 50), None)
    assert event.seconds == pytest.approx(1.5)
    assert event.request_id == reply.report.request_id
    assert reply.report.usage == Usage(100, 50)
    assert reply.report.attempts[0].seconds == pytest.approx(1.5)


@virtual
async def test_real_usage_settles_the_token_bucket() -> None:
    """An estimate of a thousand tokens that cost sixty gives the rest back at once."""
    w = world(["a/1"], kinds={"a": {"tpm": 1200}})
    w.providers["a"].set(FakeReply(usage=Usage(50, 10)))
    began = now()
    for _ in range(2):
        assert await served_by(w) == "a/1"
    assert now() == began


@virtual
async def test_a_slow_call_counts_when_that_is_asked_for() -> None:
    """`slow_call`: successes slower than that open the breaker like failures."""
    w = world(["a/1"], config={"resilience": {"breaker": {"slow_call": "2s"}}})
    w.providers["a"].set(FakeReply(seconds=3.0))
    for _ in range(5):
        assert await served_by(w) == "a/1"
    assert w.gate("a/1").breakers["whole"].open_until is not None


@virtual
async def test_a_400_after_a_failure_is_not_written_down_as_the_callers() -> None:
    """The books say what this request saw: REJECTED_BY_FALLBACK."""
    w = world(["a/1", "b/1", "c/1"])
    w.providers["a"].set(failing(FailureClass.TIMEOUT))
    w.providers["b"].set(failing(FailureClass.INVALID_REQUEST, 400))
    assert await served_by(w) == "c/1"
    assert classes(w) == [FailureClass.TIMEOUT, FailureClass.REJECTED_BY_FALLBACK, None]


@virtual
async def test_the_model_sent_is_the_targets_own() -> None:
    """The caller's body goes out as it came, but for the model's name."""
    w = world(["a/some-model"])
    await w.router.chat({**BODY, "temperature": 0.1, "unknown_field": {"x": [1]}})
    (call,) = w.providers["a"].calls
    assert call.payload == (
        b'{"model":"some-model","messages":[{"role":"user","content":"hello"}],'
        b'"temperature":0.1,"unknown_field":{"x":[1]}}'
    )
    assert (call.model, call.dialect, call.stream, call.credential) == ("some-model", "chat", False, 0)


@virtual
async def test_a_request_leaves_nothing_to_the_garbage_collector() -> None:
    """Its parts know each other without a cycle: what is collected later costs other requests their time."""
    w = world(["a/big"], ["b/small"])
    for _ in range(25):
        await w.router.chat(BODY)
    gc.collect()
    gc.disable()
    try:
        await w.router.chat(BODY)
        assert gc.collect() == 0
    finally:
        gc.enable()
