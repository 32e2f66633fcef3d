"""Streams: open one, hold it until its first content, pass it on, and never let it end silently.

`StreamOpener` is what a course performs instead of a whole call; `RouterStream` is what the caller iterates.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from smart_model_router.core.stream import MALFORMED_LIMIT, StreamGuard, StreamState
from smart_model_router.errors import SmartRouterError, StreamInterrupted
from smart_model_router.outcome import EventKind, Failure, FailureClass, StreamEvent
from smart_model_router.ports import ProviderStream
from smart_model_router.request import Dialect, RouteReport
from smart_model_router.runtime.calling import Admission, Caller, provider_bug
from smart_model_router.runtime.course import Course
from smart_model_router.runtime.recovery import Salvage
from smart_model_router.runtime.watchdog import Expired
from smart_model_router.wires.dialects import TEXT_READERS

PROOF_SECONDS = 10.0
"""A streaming probe has succeeded after so many seconds of content, complete or not."""
_FINISH_PROVES_COMPLETENESS: frozenset[Dialect] = frozenset({"chat", "responses"})


class LiveStream:
    """One provider stream and the lease it runs under. Settled exactly once, on every path."""

    def __init__(
        self, caller: Caller, step: Admission, source: ProviderStream, *, skips: int = MALFORMED_LIMIT
    ) -> None:
        self._caller = caller
        self._state = caller.state
        self._step = step
        self._source = source
        self._events: AsyncIterator[StreamEvent] | None = None
        sent = caller.sent(step)
        finish_required = sent.request.dialect in _FINISH_PROVES_COMPLETENESS
        self._guard = StreamGuard(finish_required=finish_required, skips=skips)
        self._translator = None if sent.translation is None else sent.translation.events()
        self._watchdog = caller.watchdog_of(step)
        self._admitted_at = step.lease.admitted_at
        self.ends_at = min(self._admitted_at + caller.state.timeouts.stream_max, caller.ends_at)
        """When it is as long as one may be, monotonic."""
        self._heard_at = self._admitted_at
        self._left_at: float | None = None
        """Since when nobody reads: whoever thinks between two chunks cannot tell whether the provider is silent."""
        self._first_content_at: float | None = None
        self._finished_at: float | None = None
        self._away = 0.0
        self._pieces = 0

    @property
    def step(self) -> Admission:
        """Who serves it, and what it holds."""
        return self._step

    async def hold(self, limit: float, own: bool) -> tuple[StreamEvent, ...] | Failure:
        """Read up to the first content: the events to deliver, or the failure that nobody has to see."""
        while not self._guard.ended:
            ready = await self._read(self._in_grace(limit), own)
            if ready:
                return ready
        return await self._end(self._guard.failure or Failure(FailureClass.EMPTY))

    async def next(self, until: float = math.inf) -> tuple[StreamEvent, ...] | Failure | None:
        """Events to deliver, None when the stream is complete, or the failure that cut it; at most until `until`."""
        self._resume()
        guard, idle = self._guard, self._state.timeouts.idle
        while not guard.ended:
            silence = self._heard_at + idle
            limit = min(silence, self.ends_at, until)
            ready = await self._read(limit if self._finished_at is None else self._in_grace(limit), limit == silence)
            if ready:
                return ready
        if self._guard.failure is not None:
            return await self._end(self._guard.failure)
        await self._complete()
        return None

    async def refuse(self, failure: Failure) -> Failure:
        """What it brings is of no use: end it."""
        self._resume()
        self._guard.fail(failure)
        return await self._end(failure)

    @property
    def ttft(self) -> float | None:
        """Seconds from admission to the first content."""
        return None if self._first_content_at is None else self._first_content_at - self._admitted_at

    @property
    def malformed(self) -> int:
        """Events skipped because they made no sense."""
        return self._guard.malformed

    @property
    def complete(self) -> bool:
        """Whether the whole answer came, read to its end or not."""
        return self._guard.state is StreamState.COMPLETE

    def abandon(self) -> None:
        """The caller left: give everything back now; closing the connection follows on the loop.

        Who leaves after the finish reason has the whole answer: many stop reading there.
        """
        self._resume()
        if self._guard.finish is not None:
            self._guard.end()
        if not self._step.lease.settled:
            if self.complete:
                self._succeeded()
            else:
                self._failed(self._caller.given_up(self._step, self._heard_at))
        self._watchdog.close()

    async def close(self) -> None:
        """Give everything back and wait until the connection is closed."""
        self.abandon()
        await self._disconnect()

    def _resume(self) -> None:
        """Somebody listens again (or never will): the time away is no silence."""
        if self._left_at is None:
            return
        away = self._state.clock.now() - self._left_at
        self._left_at = None
        self._away += away
        self._heard_at += away
        if self._finished_at is not None:
            self._finished_at += away

    def _in_grace(self, limit: float) -> float:
        """The limit, or the end of the grace that follows a finish reason."""
        if self._finished_at is None:
            return limit
        return min(limit, self._finished_at + self._state.timeouts.finish_grace)

    async def _read(self, limit: float, own: bool) -> tuple[StreamEvent, ...]:
        try:
            if self._events is None:
                self._events = aiter(self._source)
            event = await self._watchdog.within(anext(self._events), limit)
        except StopAsyncIteration:
            return self._delivered(self._guard.end())
        except Expired:
            if self._finished_at is not None:
                return self._delivered(self._guard.end())
            self._guard.fail(self._expired(own))
            return ()
        except asyncio.CancelledError:
            self.abandon()
            await asyncio.shield(self._disconnect())
            raise
        except Exception as bug:  # noqa: BLE001 - a provider's own bug, see provider_bug
            self._guard.fail(provider_bug(bug))
            return ()
        return self._take(event)

    def _expired(self, own: bool) -> Failure:
        """Whose fault it is that time ran out; a stream as long as one may be is nobody's."""
        if self._state.clock.now() >= self.ends_at:
            return Failure(FailureClass.CANCELLED, f"longer than {self._state.timeouts.stream_max:g} s")
        return self._caller.timed_out(self._step, own, self._heard_at)

    def _take(self, event: StreamEvent) -> tuple[StreamEvent, ...]:
        kind, now = event.kind, self._state.clock.now()
        if kind is not EventKind.PING and kind is not EventKind.MALFORMED:
            self._heard_at = now if kind is not EventKind.META else self._heard_at
            if kind is EventKind.CONTENT:
                self._pieces += 1
                if self._first_content_at is None:
                    self._first_content_at = now
                elif self._step.lease.probe and now - self._first_content_at >= PROOF_SECONDS:
                    self._state.apply(self._step.gate, self._step.lease.prove(now), now, None)
            elif event.data is not None:
                self._state.remember_maker(self._step.facts.id, event.data)
            if event.finish is not None:
                self._finished_at = now
        ready = self._guard.feed(event)
        if self._translator is not None:
            ready = self._delivered(ready)
        if ready:
            self._left_at = now
        return ready

    def _delivered(self, ready: tuple[StreamEvent, ...]) -> tuple[StreamEvent, ...]:
        """What the caller gets for these events. Only a stream that is complete is given an end."""
        translator = self._translator
        if translator is None:
            return ready
        out = [made for event in ready for made in translator.feed(event)]
        if self._guard.state is StreamState.COMPLETE:
            out += translator.end()
            self._caller.report.losses += translator.losses.entries
        return tuple(out)

    async def _complete(self) -> None:
        if not self._step.lease.settled:
            self._succeeded()
        self._watchdog.close()
        await self._disconnect()

    async def _end(self, failure: Failure) -> Failure:
        if not self._step.lease.settled:  # somebody else closed the stream while it was read
            failure = self._failed(failure)
        await self._disconnect()
        return failure

    def _succeeded(self) -> None:
        self._caller.settled(self._step, None, usage=self._guard.usage, ttft=self.ttft, away=self._away)

    def _failed(self, failure: Failure) -> Failure:
        spent = self._caller.spent(self._step, self._guard.usage, self._pieces) if self._pieces else None
        return self._caller.settle(self._step, failure, ttft=self.ttft, usage=spent, away=self._away)

    async def _disconnect(self) -> None:
        """Close the connection. A provider that cannot even do that is no news for the caller."""
        with suppress(Exception):
            await self._source.aclose()


class StreamOpener:
    """Opens the stream of a course: what `Course.serve` performs for each admitted target.

    Under a policy of recovery (`salvage`) a stream is open when there is something to deliver of it.
    """

    def __init__(self, caller: Caller, salvage: Salvage | None) -> None:
        self._caller = caller
        self._salvage = salvage

    async def __call__(self, step: Admission) -> tuple[LiveStream, Sequence[StreamEvent]] | Failure:
        """An open stream and its first events, or the failure of a head nobody saw."""
        caller, limit_own = self._caller, self._caller.limit(step)
        try:
            source = await caller.watchdog_of(step).within(
                caller.provider(step).open_stream(caller.provider_call(step)), limit_own[0]
            )
        except Expired:
            return caller.settle(step, caller.timed_out(step, limit_own[1], step.lease.admitted_at))
        except asyncio.CancelledError:
            caller.settle(step, caller.given_up(step, silent_since=step.lease.admitted_at))
            raise
        except Exception as bug:  # noqa: BLE001 - a provider's own bug, see provider_bug
            return caller.settle(step, provider_bug(bug))
        if isinstance(source, Failure):
            return caller.settle(step, source)
        caller.state.heard(step.gate, step.lease, source.reading)
        # Of a buffered answer not even a piece may be missing: nobody has any of it yet.
        skips = 0 if self._salvage is not None and self._salvage.buffered else MALFORMED_LIMIT
        live = LiveStream(caller, step, source, skips=skips)
        head = await live.hold(*limit_own)
        if isinstance(head, Failure) or self._salvage is None:
            return head if isinstance(head, Failure) else (live, head)
        ready = await self._something_new(live, head, self._salvage)
        return ready if isinstance(ready, Failure) else (live, ready)

    def drop(self, served: tuple[LiveStream, Sequence[StreamEvent]]) -> Coroutine[Any, Any, None]:
        """Nobody wants this stream: everything is given back now; await the end of its connection."""
        live, _ = served
        live.abandon()
        return live.close()

    async def _something_new(
        self, live: LiveStream, head: tuple[StreamEvent, ...], salvage: Salvage
    ) -> list[StreamEvent] | Failure:
        """Read on until there is something the caller is to have, past what is held back or was delivered before."""
        salvage.attempt()
        until = self._caller.held_until(live.step)
        ready: list[StreamEvent] = []
        got: tuple[StreamEvent, ...] | Failure | None = head
        while isinstance(got, tuple):
            ready += salvage.take(got)
            if (repeats := salvage.repeats()) is not None:
                return await live.refuse(repeats)
            if ready and not salvage.undecided:
                return ready
            got = await live.next(until)
        if got is None:
            return ready + salvage.flush()
        salvage.fell_back(live.step.facts.id, got)
        return got


class RouterStream:
    """A stream as the caller sees it: an async iterator and an async context manager.

    Iterating yields the dialect's own event objects (dicts). `report` is live and final at the end. Leaving the
    loop early gives everything back at once. Before content was delivered another target answers a failure and nobody
    notices; after it, the policy of recovery (recovery.py) decides, and a failure that nobody makes good is a
    `StreamInterrupted` that carries what arrived.
    """

    def __init__(self, course: Course) -> None:
        self._course = course
        self._portal = course.state.portal
        self._dialect: Dialect = course.request.dialect
        self._text_of = TEXT_READERS[self._dialect]
        self._live: LiveStream | None = None
        self._ready: deque[StreamEvent] = deque()
        self._text: list[str] = []
        self._opened = False
        self._ended = False
        self._malformed = 0
        self._closing: asyncio.Task[None] | None = None
        self._usage_wanted = _wants_usage(course.request.body)
        policy = course.recovery
        self._salvage = None if policy.mode == "none" else Salvage(policy, self._dialect, course.report)

    @property
    def report(self) -> RouteReport:
        """What happened so far and why."""
        return self._course.report

    @property
    def text(self) -> str:
        """The visible text delivered so far."""
        return "".join(self._text)

    def __aiter__(self) -> AsyncIterator[Mapping[str, Any]]:
        return _Iteration(self)

    async def __anext__(self) -> Mapping[str, Any]:
        while True:
            event = await self.next_event()
            if event.data is not None and not self._is_our_usage(event):
                return event.data

    async def next_event(self) -> StreamEvent:
        """The next event as it came, pings included. Raises StopAsyncIteration at the end."""
        while not self._ready:
            if self._ended:
                raise StopAsyncIteration
            await (self._refill() if self._portal.here else self._portal.reach(self._refill))
        event = self._ready.popleft()
        if event.kind is EventKind.CONTENT and event.data is not None:
            self._text.append(self._text_of(event.data))
        return event

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop: the provider's connection is closed when this returns."""
        await self._portal.reach(self._close)

    def abandon(self) -> None:
        """Stop at once (from another thread: soon) without waiting for the connection to close."""
        if not self._ended:
            self._portal.tell(self._abandon)

    async def _close(self) -> None:
        self._abandon()
        if self._closing is not None:
            await self._closing

    def _abandon(self) -> None:
        if self._ended:
            return
        self._ended = True
        self._ready.clear()
        if self._live is not None:
            self._live.abandon()
        if self._opened:
            self._finish_left()
        if self._live is not None:
            with suppress(RuntimeError):  # no loop runs here: the connection has ended with its own
                self._closing = asyncio.get_running_loop().create_task(self._live.close())

    def __del__(self) -> None:
        if not sys.is_finalizing():  # then everything ends with the process, and half of it is gone already
            with suppress(RuntimeError):  # as in _Iteration
                self.abandon()

    def _said(self) -> str:
        """The visible text that arrived, also what waits to be taken."""
        waiting = (event.data for event in self._ready if event.kind is EventKind.CONTENT)
        return self.text + "".join(self._text_of(data) for data in waiting if data is not None)

    def _finish_left(self) -> None:
        """The caller left: without the answer, or with all of it."""
        self.report.complete = self._live is not None and self._live.complete
        if self.report.complete:
            self._course.account.finish_served(self._said)
        else:
            self._course.account.finish("cancelled", answer=self._said)

    async def _refill(self) -> None:
        if not self._opened:
            self._opened = True
            await self._open()
            return
        live = self._live
        assert live is not None  # noqa: S101 - opened and not ended
        try:
            got = await live.next()
            if isinstance(got, Failure) and not self._ended and await self._recovered(live, got):
                return
        except asyncio.CancelledError:
            self._ended = True
            self._course.caller.watchdog_of(live.step).close()
            self._finish_left()
            raise
        if self._ended:
            return  # another task closed the stream meanwhile
        self.report.malformed_events = self._malformed + live.malformed
        if isinstance(got, tuple):
            self._ready.extend(got if self._salvage is None else self._salvage.delivered(self._salvage.take(got)))
        elif got is None:
            self._ready.extend(() if self._salvage is None else self._salvage.delivered(self._salvage.flush()))
            self._ended = True
            self.report.complete = True
            self._course.account.finish_served(self._said)
        else:
            self._ended = True
            text = self.text
            message = f"the stream was cut after {len(text)} characters: {got.failure_class} {got.message}"
            self._course.caller.watchdog_of(live.step).close()
            self._course.account.finish("failed", StreamInterrupted.__name__, self._said)
            raise StreamInterrupted(message, report=self.report, text=text)

    async def _open(self) -> None:
        try:
            live, head = await self._course.serve(StreamOpener(self._course.caller, self._salvage))
        except (SmartRouterError, asyncio.CancelledError):
            self._ended = True
            self._course.caller.watchdog.close()
            raise
        if self._ended:  # another task closed the stream while it opened
            await live.close()
            return
        self.report.ttft_seconds = live.ttft
        self._go_on(live, head)

    async def _recovered(self, live: LiveStream, failure: Failure) -> bool:
        """Whether somebody else goes on with the stream that broke off, or begins it again."""
        course, salvage = self._course, self._salvage
        if salvage is None or not salvage.broke(live.step.facts.id, failure):
            return False
        self._live = None  # whoever leaves meanwhile leaves the walk, as when it opened
        within = min(course.state.timeouts.idle, course.request.timeout or math.inf)
        course.caller.go_on_from(salvage.begun, course.state.clock.now() + within, live.ends_at)
        try:
            found, head = await course.resume(live.step, failure, StreamOpener(course.caller, salvage))
        except SmartRouterError:
            return False  # what cut it says more than why nobody could go on; the report has both
        if self._ended:  # another task closed the stream meanwhile
            await found.close()
            return True
        self._malformed += live.malformed
        self._go_on(found, head)
        return True

    def _go_on(self, live: LiveStream, head: Sequence[StreamEvent]) -> None:
        self._live = live
        if self._salvage is not None:
            restart = self._salvage.served(live.step.facts.id)
            self._salvage.delivered(head)
            if restart is not None:
                self._text.clear()
                self._ready.append(restart)
        self._ready.extend(head)

    def _is_our_usage(self, event: StreamEvent) -> bool:
        """The usage chunk that only we asked for."""
        if self._usage_wanted or self._dialect != "chat" or event.usage is None or event.data is None:
            return False
        return not event.data.get("choices")


class _Iteration:
    """One `async for` over a stream. When the loop is left early this goes, and the stream with it."""

    def __init__(self, stream: RouterStream) -> None:
        self._stream = stream

    def __aiter__(self) -> _Iteration:
        return self

    async def __anext__(self) -> Mapping[str, Any]:
        return await self._stream.__anext__()

    def __del__(self) -> None:
        if not sys.is_finalizing():
            with suppress(RuntimeError):  # no loop runs any more: nothing is left to give back
                self._stream.abandon()


def _wants_usage(body: Mapping[str, Any]) -> bool:
    options = body.get("stream_options")
    return isinstance(options, Mapping) and bool(options.get("include_usage"))
