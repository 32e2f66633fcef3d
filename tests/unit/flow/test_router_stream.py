"""Streams through the router: held, committed, complete or cut, and nothing kept whoever leaves when."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest

from smart_model_router import SmartRouterError, StreamInterrupted
from smart_model_router.core.breaker import BreakerState, Permit
from smart_model_router.domain.events import AttemptFinished, RequestFinished
from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, StreamEvent, Usage
from smart_model_router.flow.router_stream import RouterStream
from smart_model_router.testing import FakeProvider, FakeReply, chunk
from smart_model_router.wires.translate.translation import EventTranslator
from tests.world import BODY, DOWN, HandMade, World, now, served_by, swallow, virtual, world

CUT = Failure(FailureClass.TRUNCATED, "cut")
PING = StreamEvent(EventKind.PING, b": ping\n\n")
DONE = StreamEvent(EventKind.END, b"data: [DONE]\n\n")
GARBAGE = StreamEvent(EventKind.MALFORMED, b"data: {\n\n")


def classes(world: World) -> list[tuple[str, FailureClass | None]]:
    """What came of every attempt, in order."""
    return [(event.target, event.failure_class) for event in world.sink.of(AttemptFinished)]


def texts(chunks: list[Any]) -> str:
    """The text of some chunks."""
    return "".join(c["choices"][0]["delta"].get("content", "") for c in chunks if c["choices"])


async def read(stream: RouterStream) -> list[Any]:
    """Every chunk of a stream."""
    return [data async for data in stream]


async def holed() -> AsyncIterator[StreamEvent]:
    """A stream that has an event which cannot be read."""
    yield chunk({"content": "one "})
    yield GARBAGE
    yield chunk({"content": "two"})
    yield chunk({}, finish="stop")
    yield DONE


# Held -------------------------------------------------------------------------------------------------


@virtual
async def test_a_head_that_fails_is_never_seen() -> None:
    """Role chunk, then an error before any content: another target answers, the caller gets only its chunks."""
    w = world(["a/big", "b/big"])
    w.providers["a"].set(FakeReply(pieces=(), cut=CUT))
    w.providers["b"].set(FakeReply(pieces=("fine",)))
    stream = w.router.stream_chat(BODY)
    assert texts(await read(stream)) == "fine"
    assert stream.report.target == "b/big"
    assert stream.report.complete
    w.assert_idle()


@virtual
async def test_a_silent_head_is_left_for_another_target() -> None:
    """No content after `first_content`, whatever pings come: TIMEOUT, and the next target answers."""
    w = world(["a/big", "b/big"], config={"routing": {"strategy": "ordered"}})
    for _ in range(20):  # its pace is known
        assert await served_by(w, stream=True) == "a/big"
    w.sink.events.clear()
    w.providers["a"].set(FakeReply(pieces=(), stalls=True))
    began = now()
    assert await served_by(w, stream=True) == "b/big"
    assert now() - began == pytest.approx(30.0)
    assert classes(w)[0] == ("a/big", FailureClass.TIMEOUT)
    w.assert_idle()


@virtual
async def test_a_silent_head_of_a_little_known_target_is_joined_by_another() -> None:
    """No content for patience, whatever pings come: the next target is called beside it; the loser timed out."""
    w = world(["a/big", "b/big"])
    w.providers["a"].set(FakeReply(pieces=(), stalls=True))
    began = now()
    assert await served_by(w, stream=True) == "b/big"
    assert now() - began == pytest.approx(5.0)
    assert classes(w)[0] == ("a/big", FailureClass.TIMEOUT)
    await w.verdicts()
    w.assert_idle()


@virtual
async def test_a_stream_without_content_is_empty_and_falls_back() -> None:
    """A complete stream that says nothing is not an answer."""
    w = world(["a/big", "b/big"])
    w.providers["a"].set(FakeReply(pieces=()))
    assert await served_by(w, stream=True) == "b/big"
    assert classes(w)[0] == ("a/big", FailureClass.EMPTY)


@virtual
async def test_an_answer_cut_by_its_length_may_be_empty() -> None:
    """Finish reason length without content, and no terminator: complete, within the finish grace of 5 s."""

    async def events() -> AsyncIterator[StreamEvent]:
        yield chunk({}, finish="length")
        await asyncio.Event().wait()

    w = world(["a/big"], replies={"a": HandMade(events)})
    stream = w.router.stream_chat(BODY)
    began = now()
    assert [c["choices"][0]["finish_reason"] for c in await read(stream)] == ["length"]
    assert now() - began == pytest.approx(5.0)
    assert stream.report.complete
    w.assert_idle()


# Committed --------------------------------------------------------------------------------------------


@virtual
async def test_a_cut_after_content_is_told_with_what_arrived() -> None:
    """Content was delivered: no silent retry, but StreamInterrupted that carries the text and the report."""
    w = world(["a/big", "b/big"])
    w.providers["a"].set(FakeReply(pieces=("one ", "two"), cut=CUT))
    stream = w.router.stream_chat(BODY, recovery="none")
    with pytest.raises(StreamInterrupted) as caught:
        await read(stream)
    assert caught.value.text == stream.text == "one two"
    assert caught.value.report is stream.report
    assert not stream.report.complete
    assert w.calls("b") == 0
    assert classes(w) == [("a/big", FailureClass.TRUNCATED)]
    assert w.sink.of(RequestFinished)[0].outcome == "failed"
    w.assert_idle()


@virtual
async def test_pings_do_not_keep_a_stalled_stream_alive() -> None:
    """Sixty seconds without an event of substance: cut, and counted as TIMEOUT."""
    w = world(["a/big"])
    w.providers["a"].set(FakeReply(pieces=("one",), stalls=True))
    began = now()
    with pytest.raises(StreamInterrupted):
        await read(w.router.stream_chat(BODY, recovery="none"))
    assert now() - began == pytest.approx(60.0)
    assert classes(w) == [("a/big", FailureClass.TIMEOUT)]
    w.assert_idle()


@virtual
async def test_a_stream_may_last_longer_than_any_timeout_but_its_own() -> None:
    """`total` bounds the head only; ten minutes of steady content pass, `stream_max` ends it."""
    w = world(["a/big"], config={"resilience": {"timeouts": {"total": "30s", "stream_max": "20m"}}})
    w.providers["a"].set(FakeReply(pieces=("x",) * 1000, gap=1.0))
    assert len(await read(w.router.stream_chat(BODY))) == 1002
    w.providers["a"].set(FakeReply(pieces=("x",) * 2000, gap=1.0))
    began = now()
    with pytest.raises(StreamInterrupted):
        await read(w.router.stream_chat(BODY))
    assert now() - began == pytest.approx(1200.0)
    w.assert_idle()


@virtual
async def test_a_finish_reason_without_terminator_is_complete_after_the_grace() -> None:
    """The answer is there; only the terminator is missing: finalised 5 s after the finish reason."""

    async def events() -> AsyncIterator[StreamEvent]:
        yield chunk({"content": "all"})
        yield chunk({}, finish="stop")
        await asyncio.Event().wait()

    w = world(["a/big"], replies={"a": HandMade(events)})
    began = now()
    stream = w.router.stream_chat(BODY)
    assert texts(await read(stream)) == "all"
    assert now() - began == pytest.approx(5.0)
    assert stream.report.complete
    w.assert_idle()


@virtual
async def test_an_end_without_finish_reason_is_truncated() -> None:
    """The transport ended and nobody said that the answer was complete."""

    async def events() -> AsyncIterator[StreamEvent]:
        yield chunk({"content": "half"})

    w = world(["a/big"], replies={"a": HandMade(events)})
    with pytest.raises(StreamInterrupted):
        await read(w.router.stream_chat(BODY, recovery="none"))
    assert classes(w) == [("a/big", FailureClass.TRUNCATED)]


@virtual
async def test_an_event_that_cannot_be_read_ends_the_stream() -> None:
    """It may have carried text: MALFORMED, counted in the report and against the target."""
    w = world(["a/big"], replies={"a": HandMade(holed)})
    stream = w.router.stream_chat(BODY, recovery="none")
    with pytest.raises(StreamInterrupted) as caught:
        await read(stream)
    assert caught.value.text == "one "
    assert caught.value.failure is not None
    assert caught.value.failure.failure_class is FailureClass.MALFORMED
    assert (stream.report.malformed_events, stream.report.complete) == (1, False)
    assert classes(w) == [("a/big", FailureClass.MALFORMED)]
    w.assert_idle()


SKIP = {"routing": {"malformed_events": "skip"}}


@virtual
async def test_skip_delivers_the_rest_and_ends_as_a_failed_stream() -> None:
    """Nobody goes on with an answer that has a hole, whatever the policy."""
    for policy in ("none", "continue", "restart"):
        w = world(["a/big", "b/big"], replies={"a": HandMade(holed)}, config=SKIP)
        stream = w.router.stream_chat(BODY, recovery=policy)
        with pytest.raises(StreamInterrupted, match="1 events that could not be read were skipped"):
            await read(stream)
        assert stream.text == "one two"
        assert not stream.report.complete
        assert w.calls("b") == 0
        w.assert_idle()


@pytest.mark.parametrize(
    "more",
    [
        {"tools": [{"type": "function", "function": {"name": "f"}}]},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}},
    ],
)
@virtual
async def test_no_call_and_no_schema_is_skipped_in(more: dict[str, Any]) -> None:
    """Half an argument is a wrong one."""
    w = world(["a/big"], replies={"a": HandMade(holed)}, config=SKIP)
    stream = w.router.stream_chat({**BODY, **more}, recovery="none")
    with pytest.raises(StreamInterrupted):
        await read(stream)
    assert stream.text == "one "


@virtual
async def test_a_stream_that_breaks_after_its_finish_reason_is_complete() -> None:
    """Found: it was continued, and another answer glued on. Under every policy, however it ends there."""

    async def silence() -> AsyncIterator[StreamEvent]:
        async for event in finished():
            yield event
        await asyncio.Event().wait()

    async def cut() -> AsyncIterator[StreamEvent]:
        async for event in finished():
            yield event
        yield StreamEvent(EventKind.ERROR, b"", failure=CUT)

    async def finished() -> AsyncIterator[StreamEvent]:
        yield chunk({"content": "all of it"})
        yield chunk({}, finish="stop")

    for policy in ("none", "continue", "buffered", "hold_back(4)", "restart"):
        for ending in (finished, cut, silence):
            w = world(["a/big", "b/big"], replies={"a": HandMade(ending)})
            stream = w.router.stream_chat(BODY, recovery=policy)
            assert texts(await read(stream)) == stream.text == "all of it"
            assert (stream.report.complete, stream.report.recoveries, len(stream.report.notes)) == (True, [], 1)
            assert w.calls("b") == 0
            assert [event.complete for event in w.sink.of(RequestFinished)] == [True]
            w.assert_idle()


@virtual
async def test_a_replaced_byte_is_not_complete() -> None:
    """The answer is delivered, with the character that stands for it; report and log say so."""

    async def events() -> AsyncIterator[StreamEvent]:
        yield chunk({"content": "caf\ufffd"})._replace(failure=Failure(FailureClass.MALFORMED, "bytes were replaced"))
        yield chunk({}, finish="stop")
        yield DONE

    w = world(["a/big"], replies={"a": HandMade(events)})
    stream = w.router.stream_chat(BODY)
    assert texts(await read(stream)) == "caf\ufffd"
    assert (stream.report.complete, stream.report.notes) == (False, ["bytes were replaced"])
    (told,) = w.sink.of(RequestFinished)
    assert (told.outcome, told.complete, told.notes) == ("ok", False, ("bytes were replaced",))


@virtual
async def test_the_usage_chunk_that_only_we_asked_for_is_hidden() -> None:
    """Usage is in the report either way; the caller sees its chunk only when it asked for it."""
    w = world(["a/big"])
    w.providers["a"].set(FakeReply(usage=Usage(7, 3)))
    stream = w.router.stream_chat(BODY)
    assert all(data["choices"] for data in await read(stream))
    assert stream.report.usage == Usage(7, 3)
    asked = {**BODY, "stream_options": {"include_usage": True}}
    shown = await read(w.router.stream_chat(asked))
    assert [data["usage"]["prompt_tokens"] for data in shown if not data["choices"]] == [7]


# Slow and leaving consumers ---------------------------------------------------------------------------


@virtual
async def test_a_consumer_may_take_its_time() -> None:
    """Somebody who reads a chunk and thinks for minutes, within `reader_idle`, is no stall of the provider."""
    w = world(["a/big"], config={"resilience": {"timeouts": {"reader_idle": "3m"}}})
    w.providers["a"].set(FakeReply(pieces=("one", "two", "three"), gap=1.0))
    stream = w.router.stream_chat(BODY)
    seen = []
    async for data in stream:
        seen.append(data)
        await asyncio.sleep(120.0)
    assert texts(seen) == "onetwothree"
    assert classes(w) == [("a/big", None)]


@virtual
async def test_a_slow_consumer_who_leaves_blames_nobody() -> None:
    """It read a chunk, thought for a minute and left: the provider was not silent, nobody listened."""
    w = world(["a/big"])
    for _ in range(5):
        async for _chunk in w.router.stream_chat(BODY):
            await asyncio.sleep(60.0)
            break
    assert classes(w) == [("a/big", FailureClass.CANCELLED)] * 5
    assert w.gate("a/big").breakers["stream"].state(now()) is BreakerState.CLOSED
    await asyncio.sleep(0)
    w.assert_idle()


@virtual
async def test_a_consumer_who_leaves_a_stalled_stream_does_not_shield_it() -> None:
    """It waited for the next chunk beyond patience: the silence was the provider's."""
    w = world(["a/big"])
    w.providers["a"].set(FakeReply(pieces=("one",), stalls=True))
    ask = asyncio.ensure_future(read(w.router.stream_chat(BODY)))
    await asyncio.sleep(20.0)
    await swallow(ask)
    assert classes(w) == [("a/big", FailureClass.TIMEOUT)]
    w.assert_idle()


@virtual
async def test_leaving_the_loop_early_frees_the_slot_at_once() -> None:
    """No await, no close, no collector: the slot is back when the loop is left; the connection follows."""
    w = world(["a/big"])
    async for _ in w.router.stream_chat(BODY):
        break
    assert w.gate("a/big").in_flight == 0
    await asyncio.sleep(0)
    w.assert_idle()
    assert w.sink.of(RequestFinished)[0].outcome == "cancelled"


@virtual
async def test_a_stream_dropped_between_two_chunks_frees_the_slot() -> None:
    """One chunk by hand, no loop, no close: when the stream goes, so does what it held."""
    w = world(["a/big"], replies={"a": FakeProvider(FakeReply(gap=1.0))})
    stream = w.router.stream_chat(BODY)
    await anext(stream)
    del stream
    await asyncio.sleep(0)
    assert classes(w) == [("a/big", FailureClass.CANCELLED)]
    w.assert_idle()


@virtual
@pytest.mark.parametrize("probing", [False, True])
async def test_who_leaves_at_the_finish_reason_has_the_whole_answer(probing: bool) -> None:
    """Many callers stop reading there: a success like any other, which also closes a breaker that was probing."""
    w = world(["a/big"])
    breaker = w.gate("a/big").breakers["stream"]
    for _ in range(5 * probing):
        permit = breaker.try_acquire(now())
        assert isinstance(permit, Permit)
        breaker.record(permit, "failure", now())
    await asyncio.sleep(40.0)
    async with w.router.stream_chat(BODY) as stream:
        chunks = [await anext(stream) for _ in range(4)]
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert stream.report.complete
    assert classes(w) == [("a/big", None)]
    assert [event.outcome for event in w.sink.of(RequestFinished)] == ["ok"]
    assert breaker.state(now()) is BreakerState.CLOSED
    w.assert_idle()


@pytest.mark.parametrize("leaving", ["cancel", "close"])
@pytest.mark.parametrize("policy", ["none", "continue", "hold_back(50)"])
@virtual
async def test_a_caller_that_leaves_before_the_end_of_a_translated_answer_has_not_all_of_it(
    policy: str, leaving: str
) -> None:
    """The provider has finished, and the end that its caller would get is not made yet; by policy the call is held."""
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}

    async def finished() -> AsyncIterator[StreamEvent]:
        yield chunk({"content": "I look."})
        yield chunk({"tool_calls": [call]})
        yield chunk({}, finish="tool_calls")
        await asyncio.sleep(60.0)

    w = world(["a/big"], replies={"a": HandMade(finished)})
    tools = [{"name": "look", "input_schema": {"type": "object"}}]
    stream = w.router.stream_messages({**BODY, "max_tokens": 9, "tools": tools}, recovery=policy)
    reading = asyncio.ensure_future(read(stream))
    await asyncio.sleep(1.0)
    if leaving == "close":
        await stream.aclose()
    await swallow(reading)
    assert not stream.report.complete
    assert classes(w) == [("a/big", None)]
    assert [event.outcome for event in w.sink.of(RequestFinished)] == ["cancelled"]
    w.assert_idle()


@pytest.mark.parametrize("leaving", ["cancel", "close"])
@virtual
async def test_a_bug_in_the_end_of_a_translation_keeps_no_slot(leaving: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller that leaves is cancelled as ever, and has no whole answer."""

    async def finished() -> AsyncIterator[StreamEvent]:
        yield chunk({"content": "I look."})
        yield chunk({}, finish="stop")
        await asyncio.sleep(60.0)

    def broken(self: EventTranslator) -> list[StreamEvent]:
        raise KeyError("bug")

    monkeypatch.setattr(EventTranslator, "end", broken)
    w = world(["a/big"], replies={"a": HandMade(finished)})
    stream = w.router.stream_messages({**BODY, "max_tokens": 9})
    reading = asyncio.ensure_future(read(stream))
    await asyncio.sleep(1.0)
    if leaving == "close":
        await stream.aclose()
    await swallow(reading)
    assert reading.cancelled() or leaving == "close"
    assert not stream.report.complete
    w.assert_idle()


@virtual
async def test_an_exception_in_the_loop_frees_the_slot() -> None:
    """The consumer's own bug is no reason to keep a stream open."""
    w = world(["a/big"])

    async def consume() -> None:
        async with w.router.stream_chat(BODY) as stream:
            async for _ in stream:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await consume()
    w.assert_idle()


@virtual
async def test_a_stream_nobody_iterates_sends_nothing() -> None:
    """A stream is a promise until its first chunk is asked for."""
    w = world(["a/big"])
    async with w.router.stream_chat(BODY):
        pass
    assert w.calls("a") == 0
    assert not w.sink.of(RequestFinished)


@virtual
async def test_a_closed_stream_stays_closed() -> None:
    """Closing twice is fine; iterating afterwards ends at once."""
    w = world(["a/big"])
    stream = w.router.stream_chat(BODY)
    await anext(stream)
    await stream.aclose()
    await stream.aclose()
    assert await read(stream) == []
    w.assert_idle()


@virtual
async def test_a_stream_closed_by_another_task_while_it_opens_is_not_kept() -> None:
    """The head arrives after everybody has left: it is given back."""
    w = world(["a/big"])
    w.providers["a"].set(FakeReply(seconds=2.0))
    stream = w.router.stream_chat(BODY)
    reader = asyncio.ensure_future(read(stream))
    await asyncio.sleep(1.0)
    await stream.aclose()
    assert await reader == []
    w.assert_idle()


@virtual
async def test_a_stream_closed_by_another_task_while_it_is_read_is_settled_once() -> None:
    """One attempt, one verdict, whoever closes."""
    w = world(["a/big"])
    w.providers["a"].set(FakeReply(pieces=("one", "two"), gap=1.0, cut=CUT))
    stream = w.router.stream_chat(BODY)
    reader = asyncio.ensure_future(read(stream))
    await asyncio.sleep(1.5)
    await stream.aclose()
    await asyncio.gather(reader, return_exceptions=True)
    assert len(classes(w)) == len(stream.report.attempts) == 1
    w.assert_idle()


@pytest.mark.parametrize(
    ("reply", "after"),
    [
        (FakeReply(seconds=3.0), 1.0),
        (FakeReply(pieces=("x",), gap=3.0), 1.0),
        (FakeReply(pieces=("x",) * 9, gap=3.0), 4.0),
        (FakeReply(pieces=("x",), stalls=True), 2.0),
    ],
    ids=["connecting", "held", "committed", "stalled"],
)
@virtual
async def test_cancellation_in_any_state_of_a_stream_keeps_nothing(reply: FakeReply, after: float) -> None:
    """No slot, no permit, no token, no task, no connection."""
    w = world(["a/big"], kinds={"a": {"rpm": 60, "tpm": 100_000}})
    for _ in range(20):  # of a target whose pace is known no call runs on
        assert await served_by(w, stream=True) == "a/big"
    w.sink.events.clear()
    w.providers["a"].set(reply)
    tasks = asyncio.all_tasks()
    ask = asyncio.ensure_future(read(w.router.stream_chat(BODY)))
    await asyncio.sleep(after)
    await swallow(ask)
    w.assert_idle()
    assert asyncio.all_tasks() == tasks
    assert w.sink.of(RequestFinished)[0].outcome == "cancelled"


# Providers with bugs ----------------------------------------------------------------------------------


def raising(error: Exception) -> Any:
    """A function that raises."""

    def fail() -> Any:
        raise error

    return fail


@virtual
async def test_a_stream_that_cannot_be_iterated_is_a_failure() -> None:
    """A provider's bug in `__aiter__` falls back and keeps nothing."""
    w = world(["a/big", "b/big"], replies={"a": HandMade(raising(TypeError("bug")))})
    assert await served_by(w, stream=True) == "b/big"
    w.assert_idle()


@virtual
async def test_a_stream_that_raises_is_a_failure() -> None:
    """A provider's bug in the middle of a head falls back; after content it is told."""

    async def events() -> AsyncIterator[StreamEvent]:
        yield chunk({"content": "one"})
        raise TypeError("bug")

    w = world(["a/big"], replies={"a": HandMade(events)})
    with pytest.raises(StreamInterrupted, match="bug"):
        await read(w.router.stream_chat(BODY))
    w.assert_idle()


@virtual
async def test_a_stream_that_cannot_be_closed_changes_nothing_for_the_caller() -> None:
    """A provider's bug in `aclose`, after a failed head and after the end: the caller has its answer."""

    async def fails() -> AsyncIterator[StreamEvent]:
        yield StreamEvent(EventKind.ERROR, b"", failure=CUT)

    async def works() -> AsyncIterator[StreamEvent]:
        yield chunk({"content": "fine"}, finish="stop", kind=EventKind.CONTENT)
        yield DONE

    replies = {name: HandMade(make, raising(OSError("bug"))) for name, make in (("a", fails), ("b", works))}
    w = world(["a/big", "b/big"], replies=replies)
    stream = w.router.stream_chat(BODY)
    assert texts(await read(stream)) == "fine"
    assert stream.report.complete
    w.assert_idle()


@virtual
async def test_a_stream_that_cannot_be_closed_does_not_swallow_a_cancellation() -> None:
    """Cancellation is never caught and kept."""

    async def hangs() -> AsyncIterator[StreamEvent]:
        await asyncio.Event().wait()
        yield DONE

    w = world(["a/big"], replies={"a": HandMade(hangs, raising(OSError("bug")))})
    ask = asyncio.ensure_future(read(w.router.stream_chat(BODY)))
    await asyncio.sleep(1.0)
    ask.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ask
    await w.verdicts()
    w.assert_idle()


# Probes -----------------------------------------------------------------------------------------------


@virtual
@pytest.mark.parametrize(("others", "seconds"), [((), 1.0), (("b/big",), 11.0)], ids=["alone", "another is free"])
async def test_a_streaming_probe_has_succeeded_by_its_content(others: tuple[str, ...], seconds: float) -> None:
    """The breaker closes while the stream goes on: after 10 s of content, at its first content where nobody else is.

    A later cut is an ordinary failure.
    """
    w = world(["a/big", *others], config={"routing": {"strategy": "ordered"}})
    w.providers["a"].set(FakeReply(seconds=0.1, failure=Failure(FailureClass.SERVER_ERROR)))
    await asyncio.gather(*(served_by(w, stream=True, timeout=0.5, avoid=["b"] if others else []) for _ in range(5)))
    breaker = w.gate("a/big").breakers["stream"]
    await asyncio.sleep(40.0)
    w.providers["a"].set(FakeReply(pieces=("x",) * 30, gap=1.0, cut=CUT))
    ask = asyncio.ensure_future(read(w.router.stream_chat(BODY)))
    await asyncio.sleep(seconds - 0.5)
    assert breaker.state(now()) is BreakerState.HALF_OPEN
    await asyncio.sleep(1.0)
    assert breaker.state(now()) is BreakerState.CLOSED
    with pytest.raises(StreamInterrupted):
        await ask
    assert breaker.state(now()) is BreakerState.CLOSED
    w.assert_idle()


@virtual
async def test_a_silent_streaming_probe_is_left_after_patience_while_another_is_free() -> None:
    """A probe that says nothing for 5 s has failed, and its request goes on to the free target."""
    w = world(["a/big", "b/big"])
    w.providers["a"].set(FakeReply(seconds=0.1, failure=Failure(FailureClass.SERVER_ERROR)))
    await asyncio.gather(*(served_by(w, stream=True) for _ in range(5)))
    await asyncio.sleep(40.0)
    w.providers["a"].set(FakeReply(seconds=600.0))
    began = now()
    assert await served_by(w, stream=True) == "b/big"
    assert now() - began == pytest.approx(5.0)
    assert w.gate("a/big").breakers["stream"].state(now()) is BreakerState.OPEN


@virtual
async def test_a_stream_that_nobody_can_serve_says_so_at_its_first_chunk() -> None:
    """The errors of streams are those of whole answers."""
    w = world(["a/big"])
    w.providers["a"].set(DOWN)
    stream = w.router.stream_chat(BODY, timeout=1.0)
    with pytest.raises(SmartRouterError) as caught:
        await anext(stream)
    assert caught.value.report is stream.report
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    w.assert_idle()


def test_a_stream_that_outlives_its_loop_makes_no_noise() -> None:
    """The process is ending: dropping a half-read stream raises nothing and warns of nothing."""
    kept: list[object] = []

    @virtual
    async def scenario() -> None:
        stream = world(["a/big"]).router.stream_chat(BODY)
        iterator = aiter(stream)
        await anext(iterator)
        kept.append(iterator)

    scenario()
    kept.clear()
    gc.collect()
