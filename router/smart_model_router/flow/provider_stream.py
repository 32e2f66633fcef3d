"""One provider's stream: opened, read under its limits, guarded, translated, and settled exactly once."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from smart_model_router.core.stream import StreamGuard, StreamState
from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, StreamEvent
from smart_model_router.domain.ports import PieceStream, ProviderStream
from smart_model_router.flow.attempt import AttemptRunner, provider_bug
from smart_model_router.flow.clock import Expired, Watchdog
from smart_model_router.flow.request_context import AdmittedTarget
from smart_model_router.flow.request_translation import TranslatedRequest
from smart_model_router.flow.shutdown import CLOSE_SECONDS
from smart_model_router.flow.stream_recovery import RecoveryState
from smart_model_router.wires.dialects import FINISH_CHECKS, SNAPSHOT_READERS
from smart_model_router.wires.values import count

PROOF_SECONDS = 10.0
"""A streaming probe has succeeded after so many seconds of content, complete or not."""
# Asking the class for a member takes ten times as long as a global, and this is asked for each chunk of each stream.
_CONTENT: Final = EventKind.CONTENT
_TOO_DEEP = "an event that is nested too deeply to be written"


class ProviderStreamReader:
    """One provider stream and the lease it runs under. Settled exactly once, on every path."""

    def __init__(
        self,
        attempts: AttemptRunner,
        admitted: AdmittedTarget,
        sent: TranslatedRequest,
        watchdog: Watchdog,
        source: ProviderStream,
    ) -> None:
        self._attempts = attempts
        self._state = attempts.context.state
        self.admitted = admitted
        """The target that serves it, with its lease."""
        self.watchdog = watchdog
        self._source = source if _in_pieces(source) else _OneByOne(source)
        self._next_piece: Callable[[], Awaitable[Any]] = self._source.next_piece
        self._read: Callable[[Any], Sequence[StreamEvent]] = self._source.read
        self._now = attempts.context.state.clock.now
        self._idle = attempts.context.state.timeouts.idle
        request = sent.request
        choices = (count(asked) or 1) if (asked := request.body.get("n")) else 1
        self._with_snapshots = SNAPSHOT_READERS[request.dialect]().read
        self.guard = StreamGuard(FINISH_CHECKS[request.dialect](choices), exact="schema" in request.needs)
        """The state of its answer so far."""
        self._translator = None if sent.translation is None else sent.translation.events()
        self._admitted_at = admitted.lease.admitted_at
        self.ends_at = min(self._admitted_at + attempts.context.state.timeouts.stream_max, attempts.context.ends_at)
        """The instant of the longest stream allowed, monotonic."""
        self._heard_at = self._admitted_at
        self._left_at: float | None = None
        """Since when the caller does not read: during such a pause the provider's silence cannot be seen."""
        self.ttft: float | None = None
        """Seconds from admission to the first content."""
        self._finished_at: float | None = None
        self._proof_at = -math.inf
        """When content has come for long enough to prove a probe, monotonic; -inf until the first content."""
        self._away = 0.0
        self._pieces = 0
        self.untaken: Sequence[StreamEvent] = ()
        """The end of a finished answer whose caller left before it was made."""

    async def hold(self, limit: float, own: bool) -> Sequence[StreamEvent] | Failure:
        """Read up to the first content. Returns the events to deliver, or a failure that the caller need not see.

        An unreadable event that came together with the first content is such a failure: the caller has nothing yet.
        """
        got = await self.more(limit, own)
        if got and not self.guard.unreadable:
            return got
        return await self._end(self.guard.failure or Failure(FailureClass.EMPTY))

    async def more(self, until: float = math.inf, own: bool | None = None) -> Sequence[StreamEvent]:
        """The next events to deliver, at most until `until`; () at the end, which `outcome` tells.

        `own`: whether that limit is the target's own. None: it is the caller's, and the target's is its silence.
        """
        if self._left_at is not None:
            self._resume()
        guard, watchdog = self.guard, self.watchdog
        theirs = min(self.ends_at, until)
        while not guard.ended:
            if self._state.closed:  # before this read began: closing ends only those under way
                return self._too_late(own=False)
            if own is None:
                limit = self._heard_at + self._idle
                mine = limit <= theirs
                limit = limit if mine else theirs
            else:
                limit, mine = until, own
            if self._finished_at is not None:
                limit = min(limit, self._finished_at + self._state.timeouts.finish_grace)
            late = False
            watchdog.watch(limit)
            try:
                try:
                    piece = await self._next_piece()
                finally:
                    late = watchdog.rest()
                events = self._read(piece)
            except (asyncio.CancelledError, Exception) as error:
                if late:
                    ready = self._too_late(mine)
                elif isinstance(error, asyncio.CancelledError):
                    self.cut_short()
                    await asyncio.shield(self._disconnect())
                    raise
                else:
                    ready = self._broken(error)
            else:
                ready = self._take(events)
                if not (piece or guard.ended):
                    ready = [*ready, *self._delivered(guard.end())]
            if ready:
                return ready
        return ()

    async def outcome(self) -> Failure | None:
        """After the end: None when the stream is complete, or the failure that cut it."""
        if self.guard.failure is not None:
            return await self._end(self.guard.failure)
        await self._complete()
        return None

    async def refuse(self, failure: Failure) -> Failure:
        """End a stream whose content is of no use."""
        self._resume()
        self.guard.fail(failure)
        return await self._end(failure)

    @property
    def too_long(self) -> str:
        """The message for a stream that ends at `ends_at`."""
        return f"longer than {self._state.timeouts.stream_max:g} s"

    @property
    def complete(self) -> bool:
        """True when the whole answer came, read to its end or not."""
        return self.guard.state is StreamState.COMPLETE

    def abandon(self, why: str = "the caller left") -> None:
        """The caller left: give everything back now; closing the connection follows on the loop.

        A caller that leaves once the answer is finished has all of it: many stop reading there. A probe that was
        bringing content has its verdict: callers that leave soon must not keep a recovered target out.
        """
        self._resume()
        if self.guard.finished:
            self.guard.end("")
        if not self.admitted.lease.settled:
            if self.complete:
                self._succeeded()
            else:
                left = self._attempts.given_up(self.admitted, self._heard_at, why=why)
                if left.failure_class is FailureClass.CANCELLED and -math.inf < self._proof_at < math.inf:
                    self._prove(self._now())
                self.guard.fail(left)  # a read under way in another task reads no further, and sets no timer
                self._failed(left)
        self.watchdog.close()

    def cut_short(self, why: str = "the caller left") -> None:
        """As `abandon`, for a caller that has a part of the answer: `untaken` completes it where it is finished."""
        ended = self.guard.end("") if self.guard.finished and not self.guard.ended else ()
        self.abandon(why)  # first: nothing that its end is made of may keep a slot
        try:
            self.untaken = self._delivered(ended)
        except Exception as bug:  # noqa: BLE001 - the caller leaves, and its cancellation must not become another error
            self.guard.spoil(f"the end of the answer cannot be made: {type(bug).__name__}: {bug}"[:300])

    async def close_proved(self) -> None:
        """Count it as answered, as its content was all that was wanted, and close its connection."""
        self._resume()
        if not self.admitted.lease.settled:
            self._succeeded()
        await self.close()

    async def close(self) -> None:
        """Give everything back and wait until the connection is closed."""
        self.abandon()
        await self._disconnect()

    def _resume(self) -> None:
        """End a pause of the caller: its time does not count as the provider's silence."""
        if self._left_at is None:
            return
        away = self._now() - self._left_at
        self._left_at = None
        self._away += away
        self._heard_at += away
        if self._finished_at is not None:
            self._finished_at += away

    def _too_late(self, own: bool) -> Sequence[StreamEvent]:
        """Time ran out: once the answer is finished that is the end, else a failure."""
        if self._finished_at is not None:
            return self._delivered(self.guard.end("silence"))
        self.guard.fail(self._expired(own))
        return ()

    def _broken(self, error: Exception) -> Sequence[StreamEvent]:
        """The transport broke, or the provider has a bug."""
        try:
            return self._take((self._source.cut(error),))
        except Exception as bug:  # noqa: BLE001 - see provider_bug
            self.guard.fail(provider_bug(bug, answering=True))
            return ()

    def _expired(self, own: bool) -> Failure:
        """The failure when time ran out; CANCELLED, no fault of the target, for the longest stream allowed."""
        if self._state.closed:
            return Failure(FailureClass.CANCELLED, "its time was over")
        if self._now() >= self.ends_at:
            return Failure(FailureClass.CANCELLED, self.too_long)
        return self._attempts.timed_out(self.admitted, own, self._heard_at)

    def _take(self, events: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
        """Take the events that arrived; return those to deliver."""
        now, guard = self._now(), self.guard
        ready: list[StreamEvent] = []
        try:
            events = self._with_snapshots(events)
        except RecursionError:
            guard.spoil(_TOO_DEEP)
            return ()
        for event in events:
            if event.kind is _CONTENT:
                self._heard_at = now
                self._pieces += 1
                if now >= self._proof_at:
                    self._come_to(now)
            elif event.kind is not EventKind.PING and event.kind is not EventKind.MALFORMED:
                if event.kind is not EventKind.META:
                    self._heard_at = now
                if self._translator is None and event.data is not None:
                    self._attempts.made(self.admitted, event.data)
            ready += guard.feed(event)
            if guard.ended:
                break
            if event.kind is not _CONTENT or event.finish is not None:
                self._finished_at = now if guard.finished else None
        if self._translator is not None:
            ready = [*self._delivered(ready)]
        if ready:
            self._left_at = now
        return ready

    def _come_to(self, now: float) -> None:
        """The first content has come, or content for long enough to prove a probe."""
        if self.ttft is not None:
            self._prove(now)
            return
        self.ttft, self._proof_at = now - self._admitted_at, math.inf
        self.admitted.lease.begun()
        if self.admitted.lease.probe:
            # A continuation of a broken answer may break off in the same place: its beginning says little.
            if self._attempts.context.continues or self._attempts.context.another_is_free(self.admitted.facts, now):
                self._proof_at = now + PROOF_SECONDS
            else:
                self._prove(now)

    def _prove(self, now: float) -> None:
        """A probe that has brought content for so long has succeeded."""
        self._proof_at = math.inf
        lease = self.admitted.lease
        self._state.apply(self.admitted.gate, lease.prove(now), now, None, since=lease.admitted_at)

    def _delivered(self, ready: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
        """The events that the caller gets for these. Only a complete stream is given an end."""
        translator = self._translator
        if translator is None:
            return ready
        out: list[StreamEvent] = []
        try:
            translator.feed(ready, out)
            if self.guard.state is StreamState.COMPLETE:
                out += translator.end()
                if response := (out[-1].data or {}).get("response"):
                    self._attempts.keep(self.admitted, response)
                self._attempts.context.report.losses += translator.losses.entries
        except RecursionError:
            self.guard.spoil(_TOO_DEEP)
        return out

    async def _complete(self) -> None:
        if not self.admitted.lease.settled:
            self._succeeded()
        await self._disconnect()

    async def _end(self, failure: Failure) -> Failure:
        if not self.admitted.lease.settled:  # else another task closed the stream while it was read
            failure = self._failed(failure)
        await self._disconnect()
        return failure

    def _succeeded(self) -> None:
        self._attempts.context.report.malformed_events += self.guard.malformed
        self._attempts.settled(self.admitted, None, usage=self.guard.usage, ttft=self.ttft, away=self._away)

    def _failed(self, failure: Failure) -> Failure:
        self._attempts.context.report.malformed_events += self.guard.malformed
        spent = self._attempts.context.spent(self.admitted, self.guard.usage, self._pieces) if self._pieces else None
        return self._attempts.settle(self.admitted, failure, ttft=self.ttft, usage=spent, away=self._away)

    async def _disconnect(self) -> None:
        """Stop the timer; close the connection within its bound. A provider that cannot is no news for the caller."""
        self.watchdog.close()
        with suppress(Exception):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._source.aclose()


class _OneByOne:
    """The pieces of a stream that has only its iterator: its events."""

    __slots__ = ("_events", "_source")

    def __init__(self, source: ProviderStream) -> None:
        self._source = source
        self._events: AsyncIterator[StreamEvent] | None = None

    async def next_piece(self) -> StreamEvent | None:
        if self._events is None:
            self._events = aiter(self._source)
        return await anext(self._events, None)

    def read(self, piece: StreamEvent | None) -> Sequence[StreamEvent]:
        if piece is None:
            return ()
        if not piece.raw.endswith((b"\n\n", b"\r\n\r\n", b"\r\r")):  # a user's own provider may forget it
            piece = piece._replace(raw=piece.raw.rstrip(b"\r\n") + b"\n\n")
        # Its `text` may stand beside a call or a second choice, which readers of `text` would not look for.
        return (piece if piece.text is None else piece._replace(text=None),)

    def cut(self, error: Exception) -> StreamEvent:
        raise error

    async def aclose(self) -> None:
        await self._source.aclose()


def _in_pieces(source: ProviderStream) -> TypeGuard[PieceStream]:
    return hasattr(source, "next_piece")  # asking isinstance of a protocol takes 20 us or more, for each stream


@dataclass(frozen=True, slots=True)
class StreamOpener:
    """Opens the stream of a request at each admitted target: an argument of `RequestExecutor.serve`.

    Under a policy of recovery (`recovery_state`) a stream is open when there is something to deliver of it.
    """

    attempts: AttemptRunner
    recovery_state: RecoveryState | None

    def __call__(
        self, admitted: AdmittedTarget
    ) -> Awaitable[tuple[ProviderStreamReader, Sequence[StreamEvent]] | Failure]:
        """An open stream and its first events, or the failure of a head that the caller did not see."""
        attempts = self.attempts
        limit, own = attempts.context.limit(admitted)
        if attempts.context.needs_verdict(admitted) and self.recovery_state is None:
            patience = attempts.context.patience(admitted.facts, admitted.lease.admitted_at, admitted.snapshot)
            return attempts.call_to_verdict(admitted, limit, patience, self._opened, _content_is_enough)
        return self._opened(admitted, limit, own)

    async def _opened(
        self, admitted: AdmittedTarget, limit: float, own: bool
    ) -> tuple[ProviderStreamReader, Sequence[StreamEvent]] | Failure:
        attempts = self.attempts
        try:
            sent = attempts.context.translations.sent(admitted.facts)
            attempts.check_open()
            watchdog = attempts.watchdog_of(admitted)
            provider = attempts.state.providers[admitted.facts.target.provider]
            source = await watchdog.within(provider.open_stream(attempts.provider_call(admitted, sent.request)), limit)
        except Expired:
            return attempts.settle(admitted, attempts.timed_out(admitted, own, admitted.lease.admitted_at))
        except asyncio.CancelledError:
            attempts.settle(admitted, attempts.given_up(admitted, silent_since=admitted.lease.admitted_at))
            raise
        except Exception as bug:  # noqa: BLE001 - a provider's own bug, see provider_bug
            return attempts.settle(admitted, provider_bug(bug))
        if isinstance(source, Failure):
            return attempts.settle(admitted, source)
        if (reading := source.reading).buckets or reading.rejected:
            attempts.state.heard(admitted.gate, admitted.lease, reading)
        live = ProviderStreamReader(attempts, admitted, sent, watchdog, source)
        head = await live.hold(limit, own)
        if isinstance(head, Failure):
            return head
        if self.recovery_state is None:
            return live, head
        ready = await self._something_new(live, head, self.recovery_state)
        return ready if isinstance(ready, Failure) else (live, ready)

    def drop(self, served: tuple[ProviderStreamReader, Sequence[StreamEvent]]) -> Coroutine[Any, Any, None]:
        """Give everything back of a stream that is not used; await the end of its connection."""
        live, _ = served
        live.abandon()
        return live.close()

    async def _something_new(
        self, live: ProviderStreamReader, got: Sequence[StreamEvent], recovery_state: RecoveryState
    ) -> list[StreamEvent] | Failure:
        """Read on until there is something to deliver: neither held back nor delivered before."""
        recovery_state.attempt(asked=self.attempts.context.translations.sent(live.admitted.facts).asked)
        until = self.attempts.context.held_until(live.admitted)
        ready: list[StreamEvent] = []
        while got:
            ready += recovery_state.take(got)
            if (repeats := recovery_state.repeats()) is not None:
                return await live.refuse(repeats)
            if (ready or recovery_state.holds_a_part) and not recovery_state.undecided and not live.guard.unreadable:
                return ready
            got = await live.more(until)
        failure = await live.outcome()
        if failure is None:
            return ready + recovery_state.flush()
        recovery_state.fell_back(live.admitted.facts.id, failure)
        if self.attempts.context.another_left(live.admitted.facts):
            # An answer is long: another target is asked first.
            self.attempts.context.history.retrying(live.admitted.facts)
        return failure


async def _content_is_enough(
    served: tuple[ProviderStreamReader, Sequence[StreamEvent]],
    admitted: AdmittedTarget,  # noqa: ARG001
) -> None:
    """A stream that its caller left has proved its target by its first content."""
    live, _ = served
    await live.close_proved()
