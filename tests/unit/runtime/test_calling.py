"""One call to one target: how long it may last, whose fault its end is, what is written down about it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from smart_model_router.events import AttemptFinished
from smart_model_router.outcome import FailureClass, Usage
from smart_model_router.testing import FakeReply
from tests.world import BLACK_HOLE, BODY, World, failing, now, served_by, steady, swallow, virtual, world


def classes(w: World) -> list[FailureClass | None]:
    """What came of every attempt, in order."""
    return [event.failure_class for event in w.sink.of(AttemptFinished)]


def with_targets(*mentions: Any, **more: Any) -> dict[str, Any]:
    """A configuration whose one tier has these mentions."""
    return {"models": {"smart": {"tiers": [{"targets": list(mentions)}], "last_resort": []}}, **more}


async def seconds_until_left(w: World, **options: Any) -> float:
    """How long the first attempt of a request at a black hole lasts."""
    began = now()
    await served_by(w, **options)
    return w.sink.of(AttemptFinished)[0].at - began


@pytest.mark.parametrize(
    ("mention", "options", "seconds"),
    [
        ("a/1", {}, 180.0),
        ({"target": "a/1", "reasoning": True}, {}, 480.0),
        ({"target": "a/1", "timeout": "7s"}, {}, 7.0),
        ("a/1", {"stream": True}, 30.0),
        ({"target": "a/1", "reasoning": True}, {"stream": True}, 120.0),
        ("a/1", {"timeout": 100.0}, 80.0),
        ("a/1", {"timeout": 10.0, "stream": True}, 8.0),
    ],
)
@virtual
async def test_a_call_has_its_limit_while_another_candidate_is_left(
    mention: Any, options: dict[str, Any], seconds: float
) -> None:
    """The kind's own timeout, the target's, or four fifths of what remains."""
    w = world(["a/1", "b/1"], config=with_targets(mention, "b/1"))
    w.providers["a"].set(BLACK_HOLE)
    assert await seconds_until_left(w, **options) == pytest.approx(seconds)


@pytest.mark.parametrize(("options", "seconds"), [({}, 600.0), ({"timeout": 300.0}, 300.0), ({"stream": True}, 30.0)])
@virtual
async def test_the_last_candidate_has_all_the_time_there_is(options: dict[str, Any], seconds: float) -> None:
    """Nobody else is left: a whole answer may take what remains; a silent head is still a silent head."""
    w = world(["a/1"])
    w.providers["a"].set(BLACK_HOLE)
    assert await seconds_until_left(w, **options) == pytest.approx(seconds)


@virtual
async def test_a_slow_but_steady_target_gets_twice_its_p99() -> None:
    """Answers of 100 s have been seen: a timeout of 150 s would cut the slowest of them."""
    w = world(["a/1", "b/1"], config={"resilience": {"timeouts": {"attempt": "150s"}}})
    w.providers["a"].set([FakeReply(seconds=100.0), BLACK_HOLE])
    assert await served_by(w) == "a/1"
    began = now()
    assert await served_by(w) == "b/1"
    assert now() - began == pytest.approx(200.0, rel=0.02)


@pytest.mark.parametrize(
    ("stream", "after", "expected"),
    [
        (True, 4.9, FailureClass.CANCELLED),
        (True, 5.1, FailureClass.TIMEOUT),
        (False, 29.9, FailureClass.CANCELLED),
        (False, 30.1, FailureClass.TIMEOUT),
    ],
)
@virtual
async def test_patience_decides_whose_fault_a_leaving_caller_is(
    stream: bool, after: float, expected: FailureClass
) -> None:
    """Unknown targets: 5 silent seconds of a stream, 30 of a whole answer."""
    w = world(["a/1"])
    w.providers["a"].set(BLACK_HOLE)
    ask = asyncio.ensure_future(served_by(w, stream=stream))
    await asyncio.sleep(after)
    await swallow(ask)
    assert classes(w) == [expected]
    w.assert_idle()


@virtual
async def test_patience_is_learned() -> None:
    """A target whose answers take 60 s is not blamed after 40."""
    w = world(["a/1"])
    w.providers["a"].set(FakeReply(seconds=60.0))
    await steady(w, 5.0, every=1.0)
    w.providers["a"].set(BLACK_HOLE)
    ask = asyncio.ensure_future(served_by(w))
    await asyncio.sleep(40.0)
    await swallow(ask)
    assert classes(w)[-1] is FailureClass.CANCELLED


@virtual
async def test_a_deadline_shorter_than_patience_blames_nobody() -> None:
    """A caller in a hurry is no evidence against the target; its breaker sees nothing."""
    w = world(["a/1"])
    w.providers["a"].set(FakeReply(seconds=10.0))
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
