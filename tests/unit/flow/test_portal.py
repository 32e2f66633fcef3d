"""The portal: one home loop, reached from every other loop and thread; nothing is lost on the way or left behind."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from typing import Any, Self, TypeVar

import httpx2
import pytest

from smart_model_router import RouterUnavailable, SmartModelRouter, StreamInterrupted
from smart_model_router.clients import RouterTransport
from smart_model_router.domain.events import AttemptFinished, Event, RequestFinished
from smart_model_router.domain.outcome import EventKind, FailureClass, StreamEvent
from smart_model_router.domain.ports import EventSink, ProviderCall
from smart_model_router.flow.portal import WouldBlock
from smart_model_router.flow.router_stream import RouterStream
from smart_model_router.testing import FakeProvider, FakeReply, RecordingSink, chunk
from tests.e2e.eventually import PATIENCE
from tests.world import BODY, HandMade, swallow, tiers

T = TypeVar("T")
FOREVER = FakeReply(seconds=float("inf"))


class Place:
    """An event loop on a thread of its own."""

    def __enter__(self) -> Self:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._live)
        self.thread.start()
        return self

    def _live(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def begin(self, work: Coroutine[Any, Any, T]) -> Any:
        """Begin a coroutine there."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there to its end."""
        result: T = self.begin(work).result(10)
        return result

    def stop(self, *, cancelling: bool = True) -> None:
        """End the loop as `asyncio.run` does, or (not `cancelling`) under the feet of its tasks; and close it."""
        if not self.thread.is_alive():
            return
        if cancelling:
            self.run(self._cancel_all())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        if cancelling:
            self.loop.close()

    async def _cancel_all(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def __exit__(self, *_: object) -> None:
        self.stop()
        if not self.loop.is_closed():
            self.loop.run_until_complete(self._cancel_all())
            self.loop.close()


class ClockReading(FakeProvider):
    """Notes the thread of each call."""

    def __init__(self, *replies: FakeReply) -> None:
        super().__init__(replies or FakeReply())
        self.threads: set[int] = set()

    def _arrive(self, call: ProviderCall) -> FakeReply:
        self.threads.add(threading.get_ident())
        return super()._arrive(call)


def make(provider: FakeProvider, sink: EventSink | None = None, **timeouts: float) -> SmartModelRouter:
    """A router in real time with one target."""
    config = {
        "version": 1,
        "providers": {"a": {"kind": "openai_compatible", "base_url": "http://fake.invalid/v1", "bulkhead": 1}},
        "models": {"smart": tiers(["a/big"])},
        "routing": {"max_wait": 0, "degrade_after": 0},
        "resilience": {"timeouts": timeouts},
    }
    return SmartModelRouter.from_config(config, providers={"a": provider}, sinks=[] if sink is None else [sink])


def becomes(condition: Callable[[], bool]) -> bool:
    """Return whether it becomes true, however slow the machine is."""
    until = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < until:
        threading.Event().wait(0.002)
    return condition()


def idle(router: SmartModelRouter) -> bool:
    """Nothing is held any more."""
    gates = router._state.fleet.gates.values()
    return not router._state.held and all(gate.in_flight == gate.provider.bulkhead.in_flight == 0 for gate in gates)


@pytest.fixture
def home() -> Iterator[Place]:
    """Where a router is used first."""
    with Place() as place:
        yield place


@pytest.fixture
def away() -> Iterator[Place]:
    """Another loop on another thread."""
    with Place() as place:
        yield place


def test_at_home_nothing_is_hopped() -> None:
    """The first caller's loop is home; a call there runs in the caller's own task."""
    tasks: list[object] = []

    async def scenario() -> None:
        router = make(FakeProvider())
        await router.chat(BODY)
        assert router.portal.here

        async def note() -> None:
            tasks.append(asyncio.current_task())

        await router.portal.reach(note)
        tasks.append(asyncio.current_task())

    asyncio.run(scenario())
    assert tasks[0] is tasks[1]


def test_every_call_is_made_at_home(home: Place, away: Place) -> None:
    """Whole answers and streams asked for on another loop, and by a thread without one, reach providers at home."""
    provider = ClockReading()
    router = make(provider)
    home.run(router.chat(BODY))

    async def ask() -> str | None:
        async with router.stream_chat(BODY) as stream:
            async for _ in stream:
                pass
            return (await router.chat(BODY)).report.target

    assert away.run(ask()) == router.portal.run(lambda: router.chat(BODY)).report.target == "a/big"
    assert provider.threads == {home.thread.ident}
    assert idle(router)


def test_a_thread_without_a_loop_may_be_the_first(away: Place) -> None:
    """Then home is a thread of the process's own, also for loops that come later."""
    provider = ClockReading()
    router = make(provider)
    assert router.portal.run(lambda: router.chat(BODY)).report.complete
    away.run(router.chat(BODY))
    assert len(provider.threads) == 1
    assert provider.threads.isdisjoint({away.thread.ident, threading.get_ident()})


def test_a_stream_is_pulled_not_pushed(home: Place, away: Place) -> None:
    """The provider is asked for an event when the reader on another loop asks for one, and not before."""
    asked: list[int] = []

    async def events() -> AsyncIterator[StreamEvent]:
        for number in range(5):
            asked.append(number)
            yield chunk({"content": str(number)})
        yield chunk({}, finish="stop")
        yield StreamEvent(EventKind.END, b"data: [DONE]\n\n")

    router = make(HandMade(events))
    home.run(router.stream_chat(BODY).aclose())

    async def read() -> tuple[list[int], str]:
        async with router.stream_chat(BODY) as stream:
            await anext(stream)
            early = list(asked)
            return early, stream.text + "".join([c["choices"][0]["delta"].get("content", "") async for c in stream])

    assert away.run(read()) == ([0], "01234")
    assert idle(router)


def test_a_reader_elsewhere_that_does_not_read_keeps_no_slot(home: Place, away: Place) -> None:
    """The time of a reader on another loop runs at home; it is told there what became of its stream."""
    router = make(FakeProvider(FakeReply(pieces=("x",) * 1000, gap=0.05)), reader_idle=0.1)
    home.run(router.stream_chat(BODY).aclose())
    stream = router.stream_chat(BODY)

    async def read() -> None:
        await anext(stream)
        await anext(stream)

    away.run(read())
    assert becomes(lambda: idle(router))
    with pytest.raises(StreamInterrupted) as caught:
        away.run(read_to_the_end(stream))
    assert caught.value.reason == "reader_idle"


def test_a_reader_elsewhere_never_takes_a_cut_for_the_end(home: Place, away: Place) -> None:
    """It comes back in the moment in which the stream is being ended at home, on another thread."""
    ending = ReaderComesBack(away)
    router = make(FakeProvider(FakeReply(pieces=("x",) * 1000, gap=0.05)), ending, reader_idle=0.1)
    home.run(router.stream_chat(BODY).aclose())
    ending.stream = router.stream_chat(BODY)
    away.run(ending.stream.next_event())
    assert becomes(lambda: ending.reading is not None)
    with pytest.raises(StreamInterrupted) as caught:
        ending.reading.result(PATIENCE)
    assert caught.value.reason == "reader_idle"


class ReaderComesBack:
    """A sink that has the reader go on, as far as it can, while the home loop is ending the stream."""

    inline = True

    def __init__(self, away: Place) -> None:
        self.away = away
        self.stream: Any = None
        self.reading: Any = None

    def emit(self, event: Event) -> None:
        """Let it read until it waits for home."""
        if isinstance(event, RequestFinished) and event.outcome == "cancelled" and event.target is not None:
            self.reading = self.away.begin(read_to_the_end(self.stream))
            for _ in range(50):
                self.away.run(asyncio.sleep(0))


async def read_to_the_end(stream: RouterStream) -> None:
    """Whatever is left."""
    async for _ in stream:
        pass


def test_a_router_closed_elsewhere_ends_those_who_wait(home: Place, away: Place) -> None:
    """A call under way for one loop ends when another closes the router."""
    provider = FakeProvider(FOREVER)
    router = make(provider)
    asked = home.begin(router.chat(BODY))
    assert becomes(lambda: len(provider.calls) == 1)
    away.run(router.aclose())
    with pytest.raises(RouterUnavailable, match="the router was closed"):
        asked.result(PATIENCE)
    assert idle(router)


def test_cancelling_on_another_loop_reaches_the_provider(home: Place, away: Place) -> None:
    """The caller is let go at once; slot and call are given back at home, without a verdict."""
    provider, sink = FakeProvider(), RecordingSink()
    router = make(provider, sink)
    for _ in range(20):  # its pace is known: no call runs on
        home.run(router.chat(BODY))
    provider.set(FOREVER)
    asked = away.begin(router.chat(BODY))
    assert becomes(lambda: provider.in_flight == 1)
    asked.cancel()
    assert becomes(lambda: provider.in_flight == 0 and idle(router))
    assert sink.of(AttemptFinished)[-1].failure_class is FailureClass.CANCELLED


def test_a_call_that_runs_on_is_at_home_and_ends_when_the_router_closes(home: Place, away: Place) -> None:
    """Its caller on another loop is free at once; `aclose` from there ends it here."""
    provider, sink = FakeProvider(FOREVER), RecordingSink()
    router = make(provider, sink)
    home.run(router.stream_chat(BODY).aclose())
    asked = away.begin(router.chat(BODY))
    assert becomes(lambda: provider.in_flight == 1)
    asked.cancel()
    assert becomes(lambda: len(router._state.detached) == 1)
    assert not sink.of(AttemptFinished)
    began = time.monotonic()
    away.run(router.aclose())
    assert time.monotonic() - began < PATIENCE
    assert provider.in_flight == 0
    assert idle(router)
    assert not router._state.detached


def test_a_call_that_ran_on_holds_nothing_when_its_loop_has_stopped(away: Place) -> None:
    """The next loop gives its slot back, and is served."""
    provider = FakeProvider(FOREVER)
    router = make(provider)
    with Place() as first:
        asked = first.begin(router.chat(BODY))
        assert becomes(lambda: provider.in_flight == 1)
        asked.cancel()
        assert becomes(lambda: len(router._state.detached) == 1)
    provider.set(FakeReply())
    assert away.run(router.chat(BODY)).report.complete
    assert idle(router)
    assert not router._state.detached


def test_closing_on_another_loop_waits_for_home(home: Place, away: Place) -> None:
    """When `aclose` returns there the connection is closed here."""
    provider = FakeProvider(FakeReply(stalls=True))
    router = make(provider)
    home.run(router.stream_chat(BODY).aclose())

    async def leave() -> int:
        stream = router.stream_chat(BODY)
        await anext(stream)
        await stream.aclose()
        return provider.in_flight

    assert away.run(leave()) == 0
    assert idle(router)


def test_a_stream_dropped_on_another_thread_is_given_back(home: Place) -> None:
    """The collector may find it anywhere: its call ends at home."""
    provider = FakeProvider(FakeReply(stalls=True))
    router = make(provider)

    async def start() -> list[Any]:
        stream = router.stream_chat(BODY)
        await anext(stream)
        return [stream]

    held = home.run(start())
    assert not idle(router)
    held.clear()
    gc.collect()
    assert becomes(lambda: provider.in_flight == 0 and idle(router))


def test_the_next_loop_becomes_home_when_the_first_has_ended(away: Place) -> None:
    """Two `asyncio.run` share a router; what the first left open is given back, and the second may use its slot."""
    provider = ClockReading(FakeReply(stalls=True))
    router, left = make(provider), []

    async def leave() -> None:
        left.append(router.stream_chat(BODY))
        await anext(left[0])

    with Place() as first:
        first.run(leave())
        first.stop()
        assert not idle(router)
        provider.set(FakeReply())
        assert away.run(router.chat(BODY)).report.complete
    assert idle(router)
    assert provider.threads == {first.thread.ident, away.thread.ident}


def test_a_waiter_of_a_loop_that_stopped_is_forgotten(away: Place) -> None:
    """Its place in the waiting room is free, and whoever comes later does not stand behind it."""
    provider = FakeProvider(FOREVER)
    router = make(provider)
    router._state.routing = type(router._state.routing)(max_wait=60.0)
    with Place() as first:
        first.begin(router.chat(BODY))
        assert becomes(lambda: provider.in_flight == 1)
        first.begin(router.chat(BODY))
        assert becomes(lambda: router._state.wait_queue.waiting == 1)
        first.stop(cancelling=False)
        provider.set(FakeReply())
        assert away.run(router.chat(BODY)).report.waited_seconds == 0.0
        assert router._state.wait_queue.waiting == 0
    assert becomes(lambda: idle(router))
    assert router._state.wait_queue.waiting == 0


@pytest.mark.parametrize("cancelling", [True, False])
def test_a_home_that_ends_under_a_call_is_told(away: Place, cancelling: bool) -> None:
    """The caller elsewhere gets RouterUnavailable, no cancellation it did not ask for and no endless wait."""
    provider = FakeProvider(FOREVER)
    router = make(provider)
    with Place() as first:
        first.run(router.stream_chat(BODY).aclose())
        asked = away.begin(router.chat(BODY))
        assert becomes(lambda: provider.in_flight == 1)
        first.stop(cancelling=cancelling)
        with pytest.raises(RouterUnavailable, match="stopped"):
            asked.result(10)


def test_a_synchronous_call_is_told_when_home_ends() -> None:
    """The same for a thread that waits."""
    provider, told = FakeProvider(FOREVER), []
    router = make(provider)

    def ask() -> None:
        with pytest.raises(RouterUnavailable, match="stopped") as caught:
            router.portal.run(lambda: router.chat(BODY))
        told.append(caught.value)

    with Place() as first:
        first.run(router.stream_chat(BODY).aclose())
        thread = threading.Thread(target=ask)
        thread.start()
        assert becomes(lambda: provider.in_flight == 1)
        first.stop()
        thread.join(10)
    assert len(told) == 1


def test_looking_from_another_thread_sees_one_instant(home: Place) -> None:
    """stats, targets, events, explain and system_health are answered at home, between two of its steps."""
    router = make(FakeProvider())
    home.run(router.chat(BODY))
    assert router.stats().targets["a/big"].successes == 1
    assert router.targets()[0].id == router.explain(BODY).serves == router.get_model_for_tier("frontier").target
    assert router.system_health().open_ratio == 0.0
    assert router.predict_availability("a/big").available
    assert len(router.events()) == 2


def test_the_operator_may_be_on_another_thread(home: Place) -> None:
    """isolate and close act at home, and have acted when they return."""
    router = make(FakeProvider())
    home.run(router.chat(BODY))
    router.isolate("a/big")
    with pytest.raises(RouterUnavailable):
        home.run(router.chat(BODY))
    router.close("a/big")
    assert home.run(router.chat(BODY)).report.complete


def test_whoever_would_wait_for_itself_is_told(home: Place) -> None:
    """A synchronous call on the home thread raises at once; looking does not, it needs no waiting."""
    router = make(FakeProvider())

    async def misuse() -> None:
        await router.chat(BODY)
        assert router.stats().targets
        with pytest.raises(WouldBlock, match="on this thread"):
            router.portal.run(lambda: router.chat(BODY))

    home.run(misuse())


def test_a_guard_on_another_loop_is_kept_at_home(home: Place, away: Place) -> None:
    """Admitted and settled there; a failure of the block counts."""
    router, sink = make(FakeProvider()), RecordingSink()
    router._state.sinks = (sink,)
    home.run(router.chat(BODY))

    async def guarded() -> None:
        async with router.guard("search"):
            raise ConnectionError("no route")

    with pytest.raises(ConnectionError):
        away.run(guarded())
    assert becomes(lambda: idle(router))
    assert [event.target for event in sink.of(AttemptFinished)] == ["a/big", "search"]


def test_who_leaves_before_home_has_heard_of_a_guard_holds_nothing(home: Place, away: Place) -> None:
    """Home is busy: cancelled there and then, the block is never entered, and what is admitted later is given back."""
    router = make(FakeProvider())
    home.run(router.chat(BODY))

    async def guarded() -> None:
        async with router.guard("search"):
            raise AssertionError

    async def leave() -> None:
        began, busy = threading.Event(), threading.Event()
        home.loop.call_soon_threadsafe(began.set)
        home.loop.call_soon_threadsafe(busy.wait)
        assert began.wait(PATIENCE)
        block = asyncio.ensure_future(guarded())
        await asyncio.sleep(0)  # it is on its way
        await swallow(block)
        busy.set()

    away.run(leave())
    assert becomes(lambda: "search" in router._state.fleet.gates)
    assert becomes(lambda: idle(router))
    home.run(asyncio.sleep(0))
    assert idle(router)


def test_a_stream_is_read_from_afar_in_batches_and_event_by_event(home: Place, away: Place) -> None:
    """Home reads it, wherever who asks is; what both ways of asking give is one stream without a gap."""
    router = make(FakeProvider(FakeReply(pieces=("one", "two", "three"))))
    home.run(router.chat(BODY))
    stream = router.stream_chat(BODY)

    async def batch() -> Sequence[StreamEvent]:
        return await stream.next_events()

    seen = [away.run(stream.next_event()), *away.run(batch()), *home.run(batch()), *away.run(batch())]
    while batched := away.run(batch()):
        seen += batched
    assert [event.kind for event in seen] == ["meta", *["content"] * 3, "finish", "meta", "end"]
    assert stream.text == "onetwothree"
    assert stream.report.complete
    assert becomes(lambda: idle(router))


def test_a_stream_may_be_left_when_no_loop_is_there_any_more() -> None:
    """Its slot is free at once and its report is closed; nobody hears of a loop."""
    router = make(FakeProvider(FakeReply(pieces=("one", "two"), gap=0.01)))
    stream = router.stream_chat(BODY)
    with Place() as first:
        first.run(stream.next_event())
        first.stop(cancelling=False)
        stream.abandon()
        assert idle(router)
        assert stream.report.seconds > 0


@pytest.mark.parametrize("piecewise", [True, False])
def test_an_sdk_is_told_in_its_own_words_when_home_ends(piecewise: bool) -> None:
    """A synchronous client under whose call the loop of its router stops gets a connection error."""
    provider = FakeProvider(FakeReply(pieces=("one",), stalls=True) if piecewise else FOREVER)
    router = make(provider)
    told: list[bytes | httpx2.NetworkError] = []

    def ask() -> None:
        client = httpx2.Client(transport=RouterTransport(router), base_url="http://router")
        body = {**BODY, "stream": piecewise}
        try:
            with client.stream("POST", "/v1/chat/completions", json=body, timeout=None) as answer:
                told.extend(answer.iter_raw())
        except httpx2.NetworkError as error:
            told.append(error)

    with Place() as first:
        first.run(router.stream_chat(BODY).aclose())
        thread = threading.Thread(target=ask)
        thread.start()
        assert becomes(lambda: bool(told) if piecewise else provider.in_flight == 1)
        first.stop(cancelling=False)
        thread.join(10)
    assert isinstance(told[-1], httpx2.ReadError if piecewise else httpx2.ConnectError)


def test_closing_from_another_loop_closes_at_home(home: Place, away: Place) -> None:
    """The providers are closed when it returns, and later calls are refused wherever they come from."""
    provider = FakeProvider()
    router = make(provider)
    home.run(router.chat(BODY))
    away.run(router.aclose())
    assert provider.closed
    with pytest.raises(RouterUnavailable, match="closed"):
        home.run(router.chat(BODY))
