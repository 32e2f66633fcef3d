"""A stream as its caller sees it: iterated, recovered by policy, and never ended silently."""

from __future__ import annotations

import asyncio
import math
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self
from weakref import WeakMethod

from smart_model_router.domain.errors import Interruption, SmartRouterError, StreamInterrupted
from smart_model_router.domain.events import RequestOutcome
from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, StreamEvent
from smart_model_router.domain.recovery_policy import CONTINUING
from smart_model_router.domain.report import RouteReport
from smart_model_router.domain.request import Dialect
from smart_model_router.flow.clock import EARLY
from smart_model_router.flow.executor import RequestExecutor
from smart_model_router.flow.provider_stream import ProviderStreamReader, StreamOpener
from smart_model_router.flow.stream_recovery import RecoveryState
from smart_model_router.wires.dialects import TEXT_READERS

_CONTENT: Final = EventKind.CONTENT  # as in provider_stream.py
_DRAIN_SECONDS = 0.2
_DRAIN_BYTES = 65_536
"""The time and the bytes to read for a reader whose time is over: an answer that has come is not to be lost."""


class RouterStream:
    """A stream as the caller sees it: an async iterator and an async context manager.

    Iterating yields the dialect's own event objects (dicts). `report` is live and final at the end. Leaving the loop
    early gives everything back at once. After a failure before any content, another target answers, unseen by the
    caller. After content, the policy of recovery (stream_recovery.py) decides; a failure without a recovery is a
    `StreamInterrupted` that carries the text that arrived.

    A reader that takes nothing for `timeouts.reader_idle` loses its slot and connection to others, whether or not it
    ever comes back; when it does it finds what had arrived, then the error.
    """

    def __init__(self, executor: RequestExecutor) -> None:
        self._executor = executor
        self._portal = executor.state.portal
        self._dialect: Dialect = executor.request.dialect
        self._text_of = TEXT_READERS[self._dialect]
        self._live: ProviderStreamReader | None = None
        self._ready: deque[StreamEvent] = deque()
        self._text: list[str] = []
        """The visible text that arrived, also that of events waiting in `_ready`."""
        self._opened = False
        self._ended = False
        self._settled = False
        """True once the stream has ended and `_untold` says how: a reader on another thread must not look before."""
        self._untold: StreamInterrupted | None = None
        """The error of a stream that ended while it was not read, to be raised by the next read."""
        self._now = executor.state.clock.now
        self._idle = executor.state.timeouts.reader_idle
        self._taken_at = math.inf
        """When the reader took events, monotonic; infinity while it waits for more."""
        self._check_reader = _weakly(WeakMethod(self._overdue))  # a timer must not keep a dropped stream alive
        self._mended = False
        """True when bytes were replaced in the delivered text."""
        self._skips = _may_skip(executor)
        self._closing: asyncio.Task[None] | None = None
        self._draining: asyncio.Task[None] | None = None
        self._usage_wanted = _wants_usage(executor.request.body)
        policy = executor.recovery
        self._recovery_state = (
            None if policy.mode == "none" else RecoveryState(policy, executor.request, executor.report, self._now)
        )

    @property
    def report(self) -> RouteReport:
        """The report so far."""
        return self._executor.report

    @property
    def text(self) -> str:
        """The visible text delivered so far."""
        waiting = sum(event.kind is _CONTENT for event in self._ready)
        return "".join(self._text[: len(self._text) - waiting])

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
            if self._settled and self._untold is None:
                raise StopAsyncIteration
            await (self._fill() if self._portal.here else self._portal.reach(self._fill))
        self._taken_at = self._now()
        return self._ready.popleft()

    def next_events(self) -> Coroutine[Any, Any, Sequence[StreamEvent]]:
        """The next events as they came together, pings included; () at the end."""
        return self.reader()()

    def reader(self) -> Callable[[], Coroutine[Any, Any, Sequence[StreamEvent]]]:
        """`next_events` for a reader that stays on the running loop: the loop is looked up once."""
        return self._arriving if self._portal.here else self._from_afar

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
        ended, self._ended = self._ended, True
        self._settle(None)
        self._text = [self.text]
        untaken = tuple(self._ready)
        self._ready.clear()
        if ended:
            return
        if self._live is not None:
            self._live.cut_short()
        if self._opened:
            self._finish_left(untaken)
        if self._live is not None:
            with suppress(RuntimeError):  # no loop runs here: the connection has ended with its own
                if self._draining is not None:
                    self._draining.cancel()
                self._closing = asyncio.get_running_loop().create_task(self._live.close())

    def __del__(self) -> None:
        if not sys.is_finalizing():  # then everything ends with the process, and half of it is gone already
            with suppress(RuntimeError):  # as in _Iteration
                self.abandon()

    def _said(self) -> str:
        """The visible text that arrived, also that of waiting events."""
        return "".join(self._text)

    def _finish_left(self, untaken: Sequence[StreamEvent] = ()) -> None:
        """Finish after the caller left, without the answer or with all of it; it did not take the events `untaken`."""
        live = self._live
        if live is not None:
            held = () if self._recovery_state is None else self._recovery_state.flush()
            untaken = (*untaken, *held, *live.untaken)
            if not any(event.kind is _CONTENT or event.finish is not None for event in untaken):
                self._settle_completeness(live)
        if self.report.complete:
            self._executor.report_builder.finish_served(self._said)
        else:
            self._executor.report_builder.finish("cancelled", answer=self._said)

    async def _from_afar(self) -> Sequence[StreamEvent]:
        """The next events, by way of `_ready`: a cancelled read does not lose them."""
        if not self._ready:
            await self._portal.reach(self._fill)
        return self._taken()

    async def _fill(self) -> None:
        self._ready.extend(await self._arriving())

    def _taken(self) -> Sequence[StreamEvent]:
        if not self._ready and self._untold is not None:
            raise self._first_telling(self._untold)
        self._taken_at = self._now()
        events: list[StreamEvent] = []
        while self._ready:  # one by one: at home others may come meanwhile, when this is another thread
            events.append(self._ready.popleft())
        return tuple(events)

    def _first_telling(self, error: StreamInterrupted) -> StreamInterrupted:
        """The error, to be raised once, by a frame that has no name for it: the two would keep each other."""
        self._untold = None
        return error

    async def _arriving(self) -> Sequence[StreamEvent]:
        """The next events; () at the end."""
        while True:
            ended = self._ended  # by a name of its own, as others end it while something is awaited here
            if ended or self._ready:
                return self._taken()
            if not self._opened:
                self._opened = True
                await self._open()
                continue
            if self._draining is not None:
                await asyncio.wait((self._draining,))
                self._draining = None
                continue
            live = self._live
            assert live is not None  # noqa: S101 - opened and not ended
            failure: Failure | None = None
            self._taken_at = math.inf
            try:
                got = await live.more()
                if not got:
                    failure = await live.outcome()
                    if failure is not None and not self._ended and await self._recovered(live, failure):
                        continue
            except asyncio.CancelledError:
                self._ended = self._settled = True
                self._finish_left()
                raise
            if self._ended:
                continue  # another task closed the stream meanwhile
            if not got:
                self._settle(self._end(live, failure))
                continue
            self._taken_at = self._now()
            passed = self._passed_on(got)
            if passed and not self._ready:
                return passed
            self._ready.extend(passed)

    def _passed_on(self, got: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
        """The events to deliver now, of those that arrived."""
        return self._heard(got if self._recovery_state is None else self._recovery_state.take(got))

    def _heard(self, events: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
        """Remember the text of events that the caller gets, and all that a continuation of them has to fit."""
        if self._recovery_state is not None:
            self._recovery_state.delivered(events)
        for event in events:
            if event.kind is _CONTENT:
                text, data = event.text, event.data
                if text is None:
                    text = "" if data is None else self._text_of(data)
                self._text.append(text)
        return events

    def _overdue(self) -> float | None:
        """The reader asked for no more in time, or the router closes: give everything back, tell the reader later.

        Returns the instant at which its time is over, if that is not yet.
        """
        live, now, state = self._live, self._now(), self._executor.state
        if self._ended or live is None or self._draining is not None or math.isinf(self._taken_at):
            return None
        due = min(self._taken_at + self._idle, live.ends_at)
        if state.closed:
            self._cut_off(live, "closed", "its time was over")
        elif now < due - EARLY:
            return due
        elif now >= live.ends_at - EARLY:
            self._cut_off(live, "stream_max", live.too_long)
        else:
            self._draining = asyncio.get_running_loop().create_task(self._drain(live))
            state.keep(self._draining)
        return None

    async def _drain(self, live: ProviderStreamReader) -> None:
        """Read what has come after the reader's time is over, so that a complete answer is not lost."""
        until, room = self._now() + _DRAIN_SECONDS, _DRAIN_BYTES
        while room > 0 and (got := await live.more(until)) and not self._ended:
            room -= sum(len(event.raw) for event in got)
            self._ready.extend(self._passed_on(got))
        if self._ended:
            return
        failure = live.guard.failure
        if failure is not None and failure.failure_class is not FailureClass.CANCELLED:
            failure = await live.outcome()
            if not self._ended:  # another task closed the stream meanwhile
                self._settle(self._end(live, failure))
        else:
            self._cut_off(live, "reader_idle", f"its reader read nothing for {self._idle:g} s")

    def _cut_off(self, live: ProviderStreamReader, reason: Interruption, why: str) -> None:
        """Give everything back now, and tell the reader when it comes back, unless it has the whole answer."""
        live.cut_short(why)
        self._ready.extend(self._passed_on(live.untaken))
        self._closing = asyncio.get_running_loop().create_task(live.close())
        self._executor.state.keep(self._closing)
        self._settle(self._end(live, None if live.complete else Failure(FailureClass.CANCELLED, why), reason))

    def _settle(self, untold: StreamInterrupted | None) -> None:
        """The stream has ended, so that the reader is told this error, or nothing more."""
        self._untold = untold
        self._settled = True

    def _settle_completeness(self, live: ProviderStreamReader) -> None:
        """Report the completeness of the answer, and its faults."""
        report = self.report
        report.notes += live.guard.notes
        report.complete = live.complete and not (self._mended or live.guard.mended)

    def _end(
        self, live: ProviderStreamReader, failure: Failure | None, reason: Interruption = "cut"
    ) -> StreamInterrupted | None:
        """End the stream. Returns the error to raise to the reader, None when it is complete."""
        self._ended = True
        if failure is None:
            if self._recovery_state is not None and (held := self._recovery_state.flush()):
                self._ready.extend(self._heard(held))
            self._settle_completeness(live)
            self._executor.report_builder.finish_served(self._said)
            return None
        said = failure.message
        if self._executor.state.closed:
            reason, said = "closed", "the router was closed"
        elif reason == "cut" and failure.failure_class is FailureClass.CANCELLED:
            reason = "stream_max"  # a stream that is being read is CANCELLED for no other reason
        text = self._said()
        message = f"the stream was cut after {len(text)} characters: {failure.failure_class} {said}"
        if reason == "cut" and text:
            message += self._without_successor(live)
        outcome: RequestOutcome = "cancelled" if reason == "reader_idle" else "failed"
        self._executor.report_builder.finish(outcome, StreamInterrupted.__name__, self._said)
        return StreamInterrupted(message, report=self.report, text=text, reason=reason, failure=failure)

    def _without_successor(self, live: ProviderStreamReader) -> str:
        """Say that the policy of recovery could not work: no other target goes on with an answer. "" where one does."""
        policy, plan = self._executor.recovery, self._executor.context.plan
        others = (facts for facts in plan.by_id.values() if facts.id != live.admitted.facts.id)
        if policy.mode not in CONTINUING or any(facts.continues_answers for facts in others):
            return ""
        return f". `recovery: {policy}` could not help: the model has no other target that goes on with an answer"

    async def _open(self) -> None:
        recovery_state = self._recovery_state
        delaying = recovery_state if self._executor.delayed else None
        try:
            await self._executor.prepare()
            live, head = await self._executor.serve(StreamOpener(self._executor.attempts, delaying))
        except (SmartRouterError, asyncio.CancelledError):
            self._ended = self._settled = True
            raise
        if self._ended:  # another task closed the stream while it opened
            await live.close()
            return
        self._executor.report.ttft_seconds = live.ttft
        self._go_on(live, head if recovery_state is None or delaying is not None else recovery_state.take(head))

    async def _recovered(self, live: ProviderStreamReader, failure: Failure) -> bool:
        """Recover a stream that broke off; True when another target continues it, or begins it again."""
        executor, recovery_state, guard = self._executor, self._recovery_state, live.guard
        if not guard.can_be_continued:
            return False
        if recovery_state is None or not recovery_state.broke(live.admitted.facts.id, failure):
            return False
        self._live = None  # a caller that leaves meanwhile leaves the executor, as while the stream opened
        within = min(executor.state.timeouts.idle, executor.request.timeout or math.inf)
        executor.context.continue_from(recovery_state.begun, executor.state.clock.now() + within, live.ends_at)
        try:
            found, head = await executor.resume(live.admitted, failure, StreamOpener(executor.attempts, recovery_state))
        except SmartRouterError:
            return False  # the cause of the cut says more than the lack of a successor; the report has both
        if self._ended:  # another task closed the stream meanwhile
            await found.close()
            return True
        self._mended = self._mended or guard.mended > 0
        self._go_on(found, head)
        return True

    def _go_on(self, live: ProviderStreamReader, head: Sequence[StreamEvent]) -> None:
        self._live = live
        live.guard.skipping = self._skips
        if self._recovery_state is not None:
            restart = self._recovery_state.served(live.admitted.facts.id)
            if restart is not None:
                self._text.clear()
                self._mended = False
                self._ready.append(restart)
        self._ready.extend(self._heard(head))
        self._taken_at = self._now()
        live.watchdog.attend(min(self._taken_at + self._idle, live.ends_at), self._idle, self._check_reader)

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


def _weakly(method: WeakMethod[Callable[[], float | None]]) -> Callable[[], float | None]:
    """A call of a method that does nothing once its object is gone."""

    def call() -> float | None:
        found = method()
        return None if found is None else found()

    return call


def _may_skip(executor: RequestExecutor) -> bool:
    """True when events that cannot be read may be passed over: no call and no schema may have a hole."""
    return executor.state.routing.malformed_events == "skip" and executor.request.needs.isdisjoint(("tools", "schema"))


def _wants_usage(body: Mapping[str, Any]) -> bool:
    options = body.get("stream_options")
    return isinstance(options, Mapping) and bool(options.get("include_usage"))
