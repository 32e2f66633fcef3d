"""Streams that come in pieces: what arrives together is read and handed over together, and nothing else changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest

from smart_model_router import StreamInterrupted
from smart_model_router.domain.events import AttemptFinished, RequestFinished
from smart_model_router.domain.outcome import NO_READING, EventKind, Failure, FailureClass, LimitReading, StreamEvent
from smart_model_router.domain.ports import ProviderCall, ProviderStream
from smart_model_router.testing import FakeProvider, chunk
from smart_model_router.wires import StreamReader
from tests.world import BODY, HandMade, now, served_by, virtual, world

ONE, TWO, THREE = (chunk({"content": text}).raw for text in ("one", "two", "three"))
STOP, DONE = chunk({}, finish="stop").raw, b"data: [DONE]\n\n"

Step = bytes | float | Exception
"""A piece that comes, seconds in which nothing does, or what is raised."""


class Pieces:
    """A ports.PieceStream that follows steps, and is at its end then."""

    reading: LimitReading = NO_READING

    def __init__(self, provider: FakeProvider, steps: Sequence[Step]) -> None:
        self._provider = provider
        self._steps = iter(steps)
        self._reader = StreamReader("chat")

    @property
    def next_piece(self) -> Callable[[], Awaitable[bytes]]:
        return self._more

    async def _more(self) -> bytes:
        for step in self._steps:
            if isinstance(step, bytes):
                return step
            if isinstance(step, Exception):
                raise step
            await asyncio.sleep(step)
        return b""

    def read(self, piece: bytes) -> Sequence[StreamEvent]:
        return self._reader.feed(piece) if piece else self._reader.end()

    def cut(self, error: Exception) -> StreamEvent:
        if not isinstance(error, ConnectionError):
            raise error
        return self._reader.cut(str(error))

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        raise AssertionError

    async def aclose(self) -> None:
        self._provider.in_flight = 0


class InPieces(FakeProvider):
    """A provider whose streams come in pieces."""

    def __init__(self, *steps: Step) -> None:
        super().__init__()
        self._steps = steps

    async def open_stream(self, call: ProviderCall) -> ProviderStream | Failure:
        """Answer with a stream of these pieces."""
        self._arrive(call)
        return Pieces(self, self._steps)


@virtual
async def test_what_arrives_together_is_handed_over_together() -> None:
    """Events of one piece in one go, a piece that completes none in none, and () at the end, however often."""
    w = world(["a/big"], replies={"a": InPieces(ONE, TWO + THREE, STOP[:9], STOP[9:] + DONE)})
    stream = w.router.stream_chat(BODY)
    got = [[event.raw for event in await stream.next_events()] for _ in range(5)]
    assert got == [[ONE], [TWO, THREE], [STOP, DONE], [], []]
    assert stream.report.complete
    w.assert_idle()


@virtual
async def test_the_text_so_far_is_that_of_the_events_taken() -> None:
    """Who takes one event at a time has only the text of those, whatever came with them; so has who leaves then."""
    w = world(["a/big"], replies={"a": InPieces(ONE + TWO + THREE, 5.0)})
    stream = w.router.stream_chat(BODY)
    await stream.next_event()
    assert stream.text == "one"
    await stream.next_event()
    assert stream.text == "onetwo"
    await stream.aclose()
    assert stream.text == "onetwo"
    w.assert_idle()


@pytest.mark.parametrize("taken", [1, 2, 3])
@virtual
async def test_who_leaves_has_what_was_taken_and_no_more(taken: int) -> None:
    """All came at once: the answer is complete for whoever took its finish reason, and for the provider in any case."""
    w = world(["a/big"], replies={"a": InPieces(ONE + TWO + STOP + DONE)})
    stream = w.router.stream_chat(BODY)
    for _ in range(taken):
        await stream.next_event()
    await stream.aclose()
    assert stream.report.complete is (taken == 3)
    assert [finished.failure_class for finished in w.sink.of(AttemptFinished)] == [None]
    assert [finished.outcome for finished in w.sink.of(RequestFinished)] == ["ok" if taken == 3 else "cancelled"]
    w.assert_idle()


@virtual
async def test_nothing_is_read_past_the_end() -> None:
    """What follows the terminator in the same piece is nobody's, neither content nor error."""
    w = world(["a/big"], replies={"a": InPieces(ONE + STOP + DONE + TWO + b'data: {"error":{}}\n\n')})
    stream = w.router.stream_chat(BODY)
    assert [event.raw for event in await stream.next_events()] == [ONE, STOP, DONE]
    assert await stream.next_events() == ()
    assert stream.report.complete
    assert stream.text == "one"
    w.assert_idle()


@virtual
async def test_an_error_behind_content_comes_after_it() -> None:
    """The content of the same piece is delivered; then the stream is told to be cut, with that content."""
    w = world(["a/big"], replies={"a": InPieces(ONE, TWO + b'data: {"error":{"message":"gone"}}\n\n' + THREE)})
    stream = w.router.stream_chat(BODY)
    assert [event.raw for _ in range(2) for event in await stream.next_events()] == [ONE, TWO]
    with pytest.raises(StreamInterrupted) as told:
        await stream.next_events()
    assert told.value.text == "onetwo"
    w.assert_idle()


@virtual
async def test_a_silence_between_pieces_is_the_providers() -> None:
    """Past `idle` the stream is cut to the second, and the time in which nobody read does not count."""
    config = {"resilience": {"timeouts": {"reader_idle": "1h"}}}
    w = world(["a/big"], replies={"a": InPieces(ONE, 50.0, TWO, 100.0)}, config=config)
    stream = w.router.stream_chat(BODY, recovery="none")
    await stream.next_events()
    await asyncio.sleep(1000.0)
    assert [event.raw for event in await stream.next_events()] == [TWO]
    began = now()
    with pytest.raises(StreamInterrupted, match="TIMEOUT"):
        await stream.next_events()
    assert now() - began == pytest.approx(60.0, abs=1e-3)
    w.assert_idle()


@pytest.mark.parametrize(
    "steps", [(ConnectionError("reset"),), (ONE[:9], ConnectionError("reset")), (TypeError("bug"),)]
)
@virtual
async def test_a_head_that_breaks_is_another_targets(steps: tuple[Step, ...]) -> None:
    """A transport that fails and a bug alike: nobody has seen any of it."""
    w = world(["a/big", "b/big"], replies={"a": InPieces(*steps)})
    assert await served_by(w, stream=True) == "b/big"
    w.assert_idle()


@pytest.mark.parametrize(("error", "told"), [(ConnectionError("reset"), "TRUNCATED"), (TypeError("bug"), "bug")])
@virtual
async def test_a_stream_that_breaks_after_content_is_told(error: Exception, told: str) -> None:
    """No end is silent."""
    w = world(["a/big"], replies={"a": InPieces(ONE, error)})
    stream = w.router.stream_chat(BODY)
    with pytest.raises(StreamInterrupted, match=told):
        [data async for data in stream]
    w.assert_idle()


@virtual
async def test_an_end_without_terminator_or_blank_line_counts() -> None:
    """The finish reason had come, if not its last line: all of it is delivered, each event whole."""
    w = world(["a/big"], replies={"a": InPieces(ONE, STOP.rstrip())})
    stream = w.router.stream_chat(BODY)
    assert [event.raw for _ in range(2) for event in await stream.next_events()] == [ONE, STOP]
    assert await stream.next_events() == ()
    assert stream.report.complete
    w.assert_idle()


@virtual
async def test_a_translated_stream_ends_once() -> None:
    """Also where its terminator is the last thing before the end of the transport, and lacks its blank line."""
    w = world(["a/big"], replies={"a": InPieces(ONE, STOP + DONE.rstrip())}, kinds={"a": {"kind": "groq"}})
    stream = w.router.stream_messages({**BODY, "max_tokens": 5})
    kinds = [data["type"] async for data in stream]
    assert kinds.count("message_stop") == 1
    assert kinds[-1] == "message_stop"
    assert stream.report.complete
    w.assert_idle()


@virtual
async def test_a_reader_who_is_cancelled_gives_back_at_once() -> None:
    """In the middle of waiting for a piece."""
    w = world(["a/big"], replies={"a": InPieces(ONE, 50.0)})
    stream = w.router.stream_chat(BODY)
    await stream.next_events()
    reading = asyncio.ensure_future(_next(stream.next_events))
    await asyncio.sleep(1.0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert await stream.next_events() == ()
    w.assert_idle()


async def _next(following: Callable[[], Awaitable[Any]]) -> Any:
    return await following()


@virtual
async def test_a_hand_made_event_without_its_blank_line_is_given_one() -> None:
    """Two events of somebody's own provider never run together."""

    async def events() -> AsyncIterator[StreamEvent]:
        yield chunk({"content": "one"})._replace(raw=ONE.rstrip())
        yield StreamEvent(EventKind.FINISH, STOP.rstrip() + b"\n", {}, "stop")

    w = world(["a/big"], replies={"a": HandMade(events)})
    stream = w.router.stream_chat(BODY)
    assert [event.raw for _ in range(2) for event in await stream.next_events()] == [ONE, STOP]
    assert await stream.next_events() == ()
    w.assert_idle()


@virtual
async def test_what_came_before_an_event_that_cannot_be_read_is_delivered() -> None:
    """Of its piece, too, once the caller has content; nothing behind it."""
    bad = b"data: {\n\n"
    w = world(["a/big"], replies={"a": InPieces(ONE, TWO + bad + THREE, STOP + DONE)})
    stream = w.router.stream_chat(BODY, recovery="none")
    assert [event.raw for event in await stream.next_events()] == [ONE]
    assert [event.raw for event in await stream.next_events()] == [TWO]
    with pytest.raises(StreamInterrupted, match=FailureClass.MALFORMED):
        await stream.next_events()
    assert stream.report.malformed_events == 1
    w.assert_idle()


@virtual
async def test_an_event_that_cannot_be_read_beside_the_first_content_is_never_seen() -> None:
    """The caller has nothing yet: another target answers, under every policy and with `skip`."""
    routing = {"strategy": "ordered", "malformed_events": "skip"}
    for policy in ("none", "continue", "hold_back(2)", "buffered"):
        w = world(["a/big", "b/big"], replies={"a": InPieces(ONE + b"data: {\n\n")}, config={"routing": routing})
        assert await served_by(w, stream=True, recovery=policy) == "b/big"
        w.assert_idle()
