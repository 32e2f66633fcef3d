"""Readers of streams that do not read: their time is bounded, whether or not anybody asks for the next chunk."""

from __future__ import annotations

import asyncio
import gc
import math
from collections.abc import AsyncIterator
from typing import Any, get_args

import pytest

from smart_model_router import ConfigurationError, StreamInterrupted
from smart_model_router.core.breaker import BreakerState, Permit
from smart_model_router.domain.errors import Interruption
from smart_model_router.domain.events import AttemptFinished, RequestFinished
from smart_model_router.domain.outcome import Failure, FailureClass, StreamEvent
from smart_model_router.flow.router_stream import RouterStream
from smart_model_router.http_api.api_errors import problem_of
from smart_model_router.testing import FakeReply, chunk
from tests.unit.flow.test_pieces import DONE, ONE, STOP, THREE, TWO, InPieces
from tests.world import BODY, HandMade, World, now, served_by, swallow, timers, virtual, world

ENDLESS = FakeReply(pieces=("x",) * 10_000, gap=1.0)
IDLE = {"resilience": {"timeouts": {"reader_idle": "10s"}}}


def classes(w: World) -> list[FailureClass | None]:
    """What came of every attempt, in order."""
    return [event.failure_class for event in w.sink.of(AttemptFinished)]


def outcomes(w: World) -> list[tuple[str, str]]:
    """What came of every request, in order."""
    return [(event.outcome, event.error) for event in w.sink.of(RequestFinished)]


async def begun(w: World, chunks: int = 2) -> RouterStream:
    """A stream of which so many chunks were read."""
    stream = w.router.stream_chat(BODY)
    for _ in range(chunks):
        await anext(stream)
    return stream


@pytest.mark.parametrize(("config", "seconds"), [({}, 60.0), (IDLE, 10.0)], ids=["default", "configured"])
@virtual
async def test_a_reader_that_does_not_read_gives_everything_back(config: dict[str, Any], seconds: float) -> None:
    """At `reader_idle` the slot is free and the provider's connection closed, without anybody asking for a chunk."""
    w = world(["a/big"], config=config, kinds={"a": {"rpm": 60, "tpm": 100_000}})
    w.providers["a"].set(ENDLESS)
    stream = await begun(w)
    await asyncio.sleep(seconds - 0.1)
    assert w.gate("a/big").in_flight == 1
    await asyncio.sleep(1.0)
    w.assert_idle()
    assert classes(w) == [FailureClass.CANCELLED]
    assert outcomes(w) == [("cancelled", "StreamInterrupted")]
    with pytest.raises(StreamInterrupted, match="read nothing for") as caught:
        await anext(stream)
    assert caught.value.reason == "reader_idle"
    assert caught.value.text == "x"
    assert caught.value.report is stream.report
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    await stream.aclose()
    assert len(w.sink.of(RequestFinished)) == 1


@virtual
async def test_nobody_is_blamed_for_a_reader_that_does_not_read() -> None:
    """Ten readers stall in a row: the breaker is closed, nothing rests, and the target serves on."""
    w = world(["a/big"], config=IDLE)
    w.providers["a"].set(ENDLESS)
    stalled = [await begun(w) for _ in range(10)]
    await asyncio.sleep(11.0)
    w.providers["a"].set(FakeReply())
    assert await served_by(w) == "a/big"
    assert classes(w) == [FailureClass.CANCELLED] * 10 + [None]
    for stream in stalled:
        with pytest.raises(StreamInterrupted):
            await anext(stream)
    w.assert_idle()


@virtual
async def test_a_slow_reader_that_reads_is_left_alone() -> None:
    """One chunk just before each `reader_idle` is enough, also of chunks that came together."""
    w = world(["a/big"], replies={"a": InPieces(ONE + TWO, THREE, STOP + DONE)}, config=IDLE)
    stream, texts = w.router.stream_chat(BODY), []
    async for data in stream:
        texts.append(data["choices"][0]["delta"].get("content"))
        await asyncio.sleep(9.0)
    assert texts == ["one", "two", "three", None]
    assert stream.report.complete
    w.assert_idle()


@virtual
async def test_what_had_come_is_read_before_the_error() -> None:
    """Chunks that wait in the router are not lost with the reader's place."""
    w = world(["a/big"], replies={"a": InPieces(ONE + TWO, 3600.0)}, config=IDLE)
    stream = await begun(w, 1)
    await asyncio.sleep(11.0)
    w.assert_idle()
    assert (await anext(stream))["choices"][0]["delta"]["content"] == "two"
    with pytest.raises(StreamInterrupted) as caught:
        await anext(stream)
    assert caught.value.text == stream.text == "onetwo"


@virtual
async def test_a_reader_with_the_whole_answer_before_it_may_take_its_time() -> None:
    """All has come: the slot is given back at `reader_idle`, and the reader finds the rest whenever it reads."""
    w = world(["a/big"], replies={"a": InPieces(ONE + TWO + STOP + DONE)}, config=IDLE)
    stream = await begun(w, 1)
    await asyncio.sleep(11.0)
    w.assert_idle()
    assert classes(w) == [None]
    assert [data["choices"][0]["delta"].get("content") async for data in stream] == ["two", None]
    assert stream.report.complete
    assert outcomes(w) == [("ok", "")]


@virtual
async def test_an_answer_that_lacks_only_its_terminator_is_complete() -> None:
    """The finish reason was read: nothing is missing, and the translated stream has its last events, too."""

    async def events() -> AsyncIterator[StreamEvent]:
        yield chunk({"content": "all"})
        yield chunk({}, finish="stop")
        await asyncio.Event().wait()

    w = world(["a/big"], replies={"a": HandMade(events)}, config=IDLE)
    stream = w.router.stream_messages({**BODY, "max_tokens": 9})
    kinds = [(await anext(stream))["type"] for _ in range(4)]
    await asyncio.sleep(11.0)
    w.assert_idle()
    kinds += [data["type"] async for data in stream]
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert stream.report.complete
    assert classes(w) == [None]


@virtual
async def test_who_comes_back_in_the_last_moment_has_what_had_come() -> None:
    """What has arrived is taken for a reader whose time is over, for a moment; whoever asks meanwhile waits."""
    w = world(["a/big"], replies={"a": InPieces(ONE, 0.1, TWO, 0.05, STOP + DONE)}, config=IDLE)
    stream = await begun(w, 1)
    await asyncio.sleep(10.05)
    assert [data["choices"][0]["delta"].get("content") async for data in stream] == ["two", None]
    assert stream.report.complete
    w.assert_idle()


@virtual
async def test_who_leaves_in_the_last_moment_leaves_nothing() -> None:
    """Closed while what had come is taken: one verdict, no task, no timer."""
    w = world(["a/big"], config=IDLE)
    w.providers["a"].set(ENDLESS)
    tasks = asyncio.all_tasks()
    stream = await begun(w)
    await asyncio.sleep(10.1)
    await stream.aclose()
    assert outcomes(w) == [("cancelled", "")]
    w.assert_idle()
    await asyncio.sleep(0.1)
    assert asyncio.all_tasks() == tasks
    assert not timers()
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


@virtual
async def test_a_cut_that_nobody_heard_is_the_providers() -> None:
    """The provider's error had come before the reader's time was over: it is told, and counts."""
    cut = Failure(FailureClass.TRUNCATED, "cut")
    w = world(["a/big"], config=IDLE)
    w.providers["a"].set(FakeReply(pieces=("x",), cut=cut))
    stream = await begun(w)
    await asyncio.sleep(11.0)
    assert classes(w) == [FailureClass.TRUNCATED]
    with pytest.raises(StreamInterrupted, match="TRUNCATED") as caught:
        await anext(stream)
    assert caught.value.reason == "cut"
    w.assert_idle()


@virtual
async def test_a_stream_closed_after_its_end_has_nothing_left() -> None:
    """What waited for the reader goes with the stream: iterating afterwards ends at once."""
    w = world(["a/big"], replies={"a": InPieces(ONE + TWO, 3600.0)}, config=IDLE)
    stream = await begun(w, 1)
    await asyncio.sleep(11.0)
    await stream.aclose()
    assert stream.text == "one"
    assert [data async for data in stream] == []


@virtual
async def test_stream_max_ends_a_stream_that_nobody_reads() -> None:
    """`stream_max` runs by timer as well: a patient `reader_idle` does not make a stream longer."""
    w = world(["a/big"], config={"resilience": {"timeouts": {"stream_max": "20s", "reader_idle": "1h"}}})
    w.providers["a"].set(ENDLESS)
    stream = await begun(w)
    await asyncio.sleep(20.1)
    w.assert_idle()
    assert outcomes(w) == [("failed", "StreamInterrupted")]
    with pytest.raises(StreamInterrupted, match="longer than 20 s") as caught:
        await anext(stream)
    assert caught.value.reason == "stream_max"
    assert classes(w) == [FailureClass.CANCELLED]


@virtual
async def test_the_provider_has_its_own_time() -> None:
    """A reader that waits for a silent provider is no reader that does not read: `idle` ends that."""
    w = world(["a/big"], config=IDLE)
    w.providers["a"].set(FakeReply(pieces=("x",), stalls=True))
    stream = w.router.stream_chat(BODY, recovery="none")
    while not stream.text:
        await anext(stream)
    reader = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(30.0)  # it reads pings: somebody is there
    assert not reader.done()
    assert w.gate("a/big").in_flight == 1
    with pytest.raises(StreamInterrupted) as caught:
        await reader
    assert caught.value.reason == "cut"
    assert classes(w) == [FailureClass.TIMEOUT]


@virtual
async def test_a_probe_that_brought_content_has_its_verdict_all_the_same() -> None:
    """Readers that stall must not keep a recovered target out."""
    w = world(["a/big", "b/big"], config=IDLE)
    breaker = w.gate("a/big").breakers["stream"]
    for _ in range(5):
        permit = breaker.try_acquire(now())
        assert isinstance(permit, Permit)
        breaker.record(permit, "failure", now())
    await asyncio.sleep(40.0)
    w.providers["a"].set(ENDLESS)
    stream = await begun(w)
    assert stream.report.target == "a/big"
    await asyncio.sleep(11.0)
    assert breaker.state(now()) is BreakerState.CLOSED
    w.assert_idle()
    await stream.aclose()


@virtual
async def test_a_recovered_stream_is_not_recovered_from_its_reader() -> None:
    """Whatever the policy: no other target is asked for a reader that does not read."""
    w = world(["a/big", "b/big"], config=IDLE)
    w.providers["a"].set(ENDLESS)
    stream = w.router.stream_chat(BODY, recovery="restart", accept_restart=True)
    await anext(stream)
    await anext(stream)
    await asyncio.sleep(11.0)
    w.assert_idle()
    with pytest.raises(StreamInterrupted):
        await anext(stream)
    assert w.calls("b") == 0


@virtual
async def test_a_stream_that_was_dropped_is_given_back_at_once() -> None:
    """The timer keeps nothing alive: whoever lets go of the stream need not wait for it."""
    w = world(["a/big"])
    w.providers["a"].set(ENDLESS)
    stream = await begun(w)
    del stream
    gc.collect()
    await asyncio.sleep(0.0)
    await asyncio.sleep(0.0)
    w.assert_idle()
    assert not timers()


@virtual
async def test_a_stream_that_ended_leaves_no_timer() -> None:
    """Read to its end, left or cut: nothing of it rings later."""
    w = world(["a/big"])
    assert await served_by(w, stream=True) == "a/big"
    assert not timers()
    w.providers["a"].set(ENDLESS)
    stream = await begun(w)
    await stream.aclose()
    assert not timers()


@virtual
async def test_a_task_cancelled_while_it_reads_leaves_no_timer() -> None:
    """Cancellation in the middle of a chunk."""
    w = world(["a/big"])
    w.providers["a"].set(ENDLESS)
    stream = await begun(w)
    reader = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0.5)
    await swallow(reader)
    assert not timers()
    w.assert_idle()


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "soon", True, [], "0s", 86_401])
def test_a_reader_idle_that_is_none_is_refused_with_its_key(value: object) -> None:
    """Key, value and range are named."""
    with pytest.raises(ConfigurationError, match=r"resilience\.timeouts\.reader_idle: .*(above 0|duration)") as caught:
        world(["a/big"], config={"resilience": {"timeouts": {"reader_idle": value}}})
    assert caught.value.key == "resilience.timeouts.reader_idle"
    assert "86400" in caught.value.expected


def test_every_reason_has_a_code_of_its_own() -> None:
    """A client of the gateway can tell its own slowness from a provider's cut."""
    told = [problem_of(StreamInterrupted("x", reason=reason)).kind.code for reason in get_args(Interruption)]
    assert told == ["stream_interrupted", "stream_max", "reader_idle", "closed"]
