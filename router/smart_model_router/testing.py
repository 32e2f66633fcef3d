"""Fakes of the ports, and virtual time: a router under test waits an hour in a millisecond and never flakes.

def test_my_agent_waits_for_its_turn() -> None:
    async def scenario() -> None:
        provider = FakeProvider([FakeReply(seconds=30), FakeReply(failure=Failure(FailureClass.SERVER_ERROR))])
        router = SmartModelRouter.from_config(CONFIG, clock=LoopClock(), providers={"p": provider}, seed=1)
        ...

    run_virtual(scenario())
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from smart_model_router.domain.events import Event
from smart_model_router.domain.outcome import (
    NO_READING,
    EventKind,
    Failure,
    LimitReading,
    Outcome,
    StreamEvent,
    Success,
    Usage,
)
from smart_model_router.domain.ports import ProviderCall, ProviderStream, TimerHandle

T = TypeVar("T")
START = 1_000.0
"""Virtual time begins here: an instant is never mistaken for a duration, and nothing may count from 0."""
_RESOLUTION = time.get_clock_info("monotonic").resolution


class Deadlock(RuntimeError):
    """Nothing is ready, no timer is set: in real time this program would hang for ever."""


class OutOfTime(RuntimeError):
    """The virtual time allowed has passed and the program still runs."""


def run_virtual(main: Coroutine[Any, Any, T], *, start: float = START, limit: float = math.inf) -> T:
    """Run `main` like asyncio.run, in virtual time from `start`. No sockets, no threads, no waiting.

    Raises Deadlock when it would hang, OutOfTime when it takes more than `limit` virtual seconds.
    """
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(start=start, limit=limit)) as runner:
        return runner.run(main)


class VirtualTimeLoop(asyncio.BaseEventLoop):
    """An event loop whose clock jumps to the next timer when nothing is ready. It does no I/O."""

    def __init__(self, *, start: float = START, limit: float = math.inf) -> None:
        super().__init__()
        self._now = start
        self._end = start + limit
        self._selector = self

    def time(self) -> float:
        """Virtual seconds."""
        return self._now

    def select(self, timeout: float | None) -> Sequence[Any]:
        """Jump to the next timer, where other loops wait for sockets. There are no events."""
        if timeout is None:
            raise Deadlock("nothing is ready and no timer is set")
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]  # asyncio's own heap
        # asyncio runs what is due within the clock's resolution at once: it must not be early, or two that wait for
        # an instant a billionth of a second away wake and wait again for ever, while time stands still.
        if timers and (timeout > 0 or timers[0].when() <= self._now + _RESOLUTION):
            self._now = max(self._now, timers[0].when())
        if self._now > self._end:
            raise OutOfTime(f"still running at {self._now:.3f}")
        return ()

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]  # only asyncio's stubs tie the arguments to the function
        """Do it now: a thread would take real time, and this loop has none to wait with."""
        del executor
        done: asyncio.Future[Any] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - whatever the work raises is its caller's
            done.set_exception(error)
        return done

    def set_default_executor(self, executor: Any) -> None:
        """Take no notice: there is no executor."""

    def _process_events(self, event_list: Sequence[Any]) -> None:
        """Nothing to do: `select` never brings any."""

    def _write_to_self(self) -> None:
        """Nothing to do: there is one thread, and no loop that sleeps."""


class LoopClock:
    """A ports.Clock over the running loop's own time, virtual or real."""

    def now(self) -> float:
        """The loop's time."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """asyncio.sleep."""
        await asyncio.sleep(seconds)

    def call_at(self, when: float, callback: Callable[[], object]) -> TimerHandle:
        """A timer on the running loop."""
        return asyncio.get_running_loop().call_at(when, callback)


class FakeDice:
    """A ports.Dice that returns the given numbers in turn, then repeats the last one."""

    def __init__(self, *rolls: float) -> None:
        self._rolls = list(rolls) or [0.0]

    def roll(self) -> float:
        """The next number in [0, 1)."""
        return self._rolls.pop(0) if len(self._rolls) > 1 else self._rolls[0]


class RecordingSink:
    """A ports.EventSink that keeps every event, oldest first."""

    inline = True

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        """Keep it."""
        self.events.append(event)

    def of(self, kind: type[T]) -> list[T]:
        """The events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]


_USAGE = Usage(prompt_tokens=10, completion_tokens=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeReply:
    """The behaviour of a FakeProvider for one call. Durations are virtual seconds; math.inf is never.

    `seconds` pass before the answer (a stream's head), then `failure` is returned or `bug` raised, if there is one.
    A stream waits `gap` before each of `pieces`, then ends well; with `cut` it ends in that failure; with `stalls` it
    sends nothing more but a ping every second. `reading` is what an answer's headers say of the limits (a
    failure has its own).
    """

    seconds: float = 0.0
    failure: Failure | None = None
    bug: BaseException | None = None
    pieces: tuple[str, ...] = ("Hello", ", world.")
    gap: float = 0.0
    cut: Failure | None = None
    stalls: bool = False
    usage: Usage = _USAGE
    reading: LimitReading = NO_READING


Replies = FakeReply | Iterable[FakeReply] | Callable[[ProviderCall], FakeReply]


class FakeProvider:
    """A ports.Provider that speaks Chat Completions: one reply for all, several in turn (then the last), or a function.

    `calls` are all that arrived, `arrivals` when. `in_flight` counts calls and streams not ended or closed yet.
    """

    def __init__(self, reply: Replies = FakeReply()) -> None:
        self.set(reply)
        self.calls: list[ProviderCall] = []
        self.arrivals: list[float] = []
        self.in_flight = 0
        self.max_in_flight = 0
        self.closed = False

    def set(self, reply: Replies) -> None:
        """Answer like this from now on. Calls under way keep their fate."""
        self._reply = reply if callable(reply) else _in_turn([reply] if isinstance(reply, FakeReply) else list(reply))

    async def call(self, call: ProviderCall) -> Outcome:
        """Answer whole."""
        reply = self._arrive(call)
        try:
            failure = await _wait(reply)
            return failure if failure is not None else _answer(call, reply)
        finally:
            self.in_flight -= 1

    async def open_stream(self, call: ProviderCall) -> ProviderStream | Failure:
        """Answer with a stream."""
        reply = self._arrive(call)
        opened = False
        try:
            failure = await _wait(reply)
            opened = failure is None
            return _FakeStream(self, call, reply) if failure is None else failure
        finally:
            self.in_flight -= not opened

    async def aclose(self) -> None:
        """Note that it was closed."""
        self.closed = True

    def _arrive(self, call: ProviderCall) -> FakeReply:
        self.calls.append(call)
        self.arrivals.append(asyncio.get_running_loop().time())
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        return self._reply(call)


class _FakeStream:
    """The stream of one reply. It counts as in flight until it is closed."""

    def __init__(self, provider: FakeProvider, call: ProviderCall, reply: FakeReply) -> None:
        self._provider = provider
        self._call = call
        self._reply = reply
        self._closed = False

    @property
    def reading(self) -> LimitReading:
        """The rate limits in the headers."""
        return self._reply.reading

    async def __aiter__(self) -> AsyncIterator[StreamEvent]:
        reply = self._reply
        yield chunk({"role": "assistant"}, kind=EventKind.META)
        for piece in reply.pieces:
            await asyncio.sleep(reply.gap)
            yield chunk({"content": piece})
        while reply.stalls:
            await asyncio.sleep(1.0)
            yield StreamEvent(EventKind.PING, b": ping\n\n")
        if reply.cut is not None:
            yield StreamEvent(EventKind.ERROR, b"", failure=reply.cut)
            return
        yield chunk({}, finish="stop")
        options = json.loads(self._call.payload).get("stream_options")
        if options is not None and options.get("include_usage"):
            yield usage_chunk(reply.usage)
        yield StreamEvent(EventKind.END, b"data: [DONE]\n\n")

    async def aclose(self) -> None:
        """Count it out, once."""
        self._provider.in_flight -= not self._closed
        self._closed = True


def chunk(delta: dict[str, Any], *, finish: str | None = None, kind: EventKind | None = None) -> StreamEvent:
    """One Chat Completions stream event as a provider reads it."""
    data = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    usual = EventKind.CONTENT if finish is None else EventKind.FINISH
    return StreamEvent(kind or usual, _frame(data), data, finish)


def usage_chunk(usage: Usage) -> StreamEvent:
    """The chunk without choices that `stream_options.include_usage` asks for."""
    data = {"object": "chat.completion.chunk", "choices": [], "usage": _counts(usage)}
    return StreamEvent(EventKind.META, _frame(data), data, usage=usage)


def _frame(data: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"


def _answer(call: ProviderCall, reply: FakeReply) -> Success:
    message = {"role": "assistant", "content": "".join(reply.pieces)}
    body = {
        "object": "chat.completion",
        "model": call.model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": _counts(reply.usage),
    }
    return Success(body, json.dumps(body).encode(), reply.usage, reply.reading)


def _counts(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    }


async def _wait(reply: FakeReply) -> Failure | None:
    if reply.seconds == math.inf:
        await asyncio.get_running_loop().create_future()
    await asyncio.sleep(reply.seconds)
    if reply.bug is not None:
        raise reply.bug
    return reply.failure


def _in_turn(replies: list[FakeReply]) -> Callable[[ProviderCall], FakeReply]:
    return lambda _: replies.pop(0) if len(replies) > 1 else replies[0]
