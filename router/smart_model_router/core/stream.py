"""StreamGuard: a stream is held until its first content, then committed, then complete - or failed, never silent."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, Protocol, assert_never

from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, StreamEvent, Usage

_CONTENT: Final = EventKind.CONTENT  # globals: to find a member in its class takes ten times as long
_WithoutContent = Literal[
    EventKind.META, EventKind.PING, EventKind.FINISH, EventKind.END, EventKind.ERROR, EventKind.MALFORMED
]
_NO_ANSWER = (EventKind.ERROR, EventKind.MALFORMED)
_EMPTY_IS_FINE = frozenset(
    {"length", "max_tokens", "max_output_tokens", "content_filter", "refusal", "model_context_window_exceeded"}
)


class StreamState(StrEnum):
    """HELD: nothing delivered, a failure falls back silently. COMMITTED: the caller has content."""

    HELD = "held"
    COMMITTED = "committed"
    COMPLETE = "complete"
    FAILED = "failed"
    """Ended without being complete: a failed head while nothing was delivered, truncated after."""


_COMMITTED: Final = StreamState.COMMITTED


class Finishing(Protocol):
    """The dialect's rules of a finished answer (wires/stream_checks.py)."""

    @property
    def finished(self) -> bool:
        """True when all of the answer has come."""
        ...

    def take(self, event: StreamEvent) -> bool:
        """Take an event with content or meaning; False when it is content that belongs to no part of the answer."""
        ...

    def missing(self) -> str:
        """The parts that an answer lacks at its terminator, in words; "" for a complete one."""
        ...


class StreamGuard:
    """Reads one provider stream, decides what is delivered when and whether it is complete (wires.md section 6).

    An event that cannot be read may have carried content: it is a failure, unless `skipping` is set, which delivers
    what can be read and fails at the end. Once the answer is finished, a fault is noted and changes nothing; content
    after the finish is a failure. `exact`: no byte of the text may be replaced, as it is the caller's schema.
    """

    __slots__ = (
        "_exact",
        "_finish_out",
        "_finishing",
        "_held",
        "delivered",
        "ended",
        "failure",
        "finish",
        "malformed",
        "mended",
        "notes",
        "skipped",
        "skipping",
        "state",
        "usage",
    )

    def __init__(self, finishing: Finishing, *, exact: bool = False) -> None:
        self._finishing = finishing
        self._exact = exact
        self._held: list[StreamEvent] = []
        self._finish_out = False
        self.state = StreamState.HELD
        self.delivered = False
        self.failure: Failure | None = None
        self.finish: str | None = None
        self.usage: Usage | None = None
        self.malformed = 0
        """Events that could not be read."""
        self.skipping = False
        self.skipped = 0
        """The number of those that were passed over: the delivered text may have holes."""
        self.mended = 0
        """Events with content in which bytes were replaced."""
        self.notes: list[str] = []
        """Faults that did not end the stream, in words."""
        self.ended = False
        """True when the stream is over."""

    @property
    def finished(self) -> bool:
        """True when all of the answer has come."""
        return self._finishing.finished

    @property
    def unreadable(self) -> bool:
        """True when it failed by an event that could not be read."""
        return self.failure is not None and self.failure.failure_class is FailureClass.MALFORMED

    @property
    def can_be_continued(self) -> bool:
        """True when another target may continue it: no finish reason is out, and nothing is missing before the end."""
        return not (self.finished or self._finish_out or self.skipped)

    def feed(self, event: StreamEvent) -> tuple[StreamEvent, ...]:
        """Take one event; return what is to be delivered now, in order. After the end nothing changes any more."""
        if self.ended:
            return ()
        if event.usage is not None:
            self.usage = event.usage
        if event.finish is not None:
            self.finish = event.finish
        kind = event.kind
        if kind is _CONTENT:  # nearly all are: it comes before all that is slow
            if not self._finishing.take(event):
                return self._misplaced()
            if event.failure is not None and not self._mend(event.failure):
                return ()
            self.delivered = True
            if self.state is _COMMITTED and not self._held:
                return (event,)
            self._finish_out = self.finish is not None
            return self._commit(event)
        return self._without_content(kind, event)

    def _without_content(self, kind: _WithoutContent, event: StreamEvent) -> tuple[StreamEvent, ...]:
        # Responses repeat the text at its end: a client may take it from there.
        fault = event.failure if kind not in _NO_ANSWER else None
        if fault is not None and not self._mend(fault):
            return ()
        match kind:
            case EventKind.PING:
                return (event,) if self.state is StreamState.COMMITTED else ()
            case EventKind.MALFORMED:
                return self._unreadable(event)
            case EventKind.ERROR:
                return self._error(event)
            case EventKind.END:
                self._finishing.take(event)
                return self._close(event)
            case EventKind.META | EventKind.FINISH:
                if not self._finishing.take(event):
                    return self._misplaced()
                # A finish reason that another part of the answer is still missing for is no end yet.
                if self.state is StreamState.COMMITTED and (self.finish is None or self.finished):
                    return self._commit(event)
                self._held.append(event)
                return ()
            case never:
                assert_never(never)

    def end(self, why: str = "the transport ended") -> tuple[StreamEvent, ...]:
        """Nothing more comes, or is waited for; return what is still to be delivered. `why` "" is not worth a note."""
        if self.ended:
            return ()
        if not self.finished:
            seen = "after content" if self.delivered else "before any content"
            self._fail(Failure(FailureClass.TRUNCATED, f"the stream ended {seen} without its terminator"))
            return ()
        if why:
            self._note(f"{why} before the terminator")
        return self._close(None)

    def fail(self, failure: Failure) -> None:
        """Something outside the stream ended it (a timeout, a caller who left)."""
        self._fail(failure)

    def spoil(self, why: str) -> None:
        """An event that was delivered cannot be handed on: the answer is not complete, even if it is at its end."""
        self.state, self.ended = StreamState.FAILED, True
        self.failure = Failure(FailureClass.MALFORMED, why)

    def _unreadable(self, event: StreamEvent) -> tuple[StreamEvent, ...]:
        self.malformed += 1
        if self.finished:
            self._note("an event after the finish reason could not be read")
        elif self.skipping:
            self.skipped += 1
        else:
            self._fail(event.failure or Failure(FailureClass.MALFORMED, "an event that cannot be read"))
        return ()

    def _error(self, event: StreamEvent) -> tuple[StreamEvent, ...]:
        failure = event.failure or Failure(FailureClass.SERVER_ERROR, "error event")
        if not self.finished:
            self._fail(failure)
            return ()
        self._note(f"{failure.failure_class} after the finish reason")
        return self._close(None) if event.data is None else ()  # without data it is the transport that failed

    def _mend(self, fault: Failure) -> bool:
        """Note the replaced bytes; True when the content may be delivered."""
        if self._exact:
            self._fail(fault)
            return False
        self._note(fault.message)
        self.mended += 1
        return True

    def _note(self, words: str) -> None:
        if words not in self.notes:
            self.notes.append(words)

    def _misplaced(self) -> tuple[StreamEvent, ...]:
        told = "content after the finish reason" if self.finish is not None else "arguments of a call that is not open"
        self._fail(Failure(FailureClass.MALFORMED, told))
        return ()

    def _close(self, event: StreamEvent | None) -> tuple[StreamEvent, ...]:
        missing = self._finishing.missing()
        if missing:
            self._fail(Failure(FailureClass.TRUNCATED, f"the stream was closed without {missing}"))
            return ()
        if self.skipped:
            self._fail(Failure(FailureClass.MALFORMED, f"{self.skipped} events that could not be read were skipped"))
            return ()
        if not self.delivered and self.finish not in _EMPTY_IS_FINE:
            self._fail(Failure(FailureClass.EMPTY, "the stream is complete and has no content"))
            return ()
        out = self._commit(event)
        self.state, self.ended = StreamState.COMPLETE, True
        return out

    def _commit(self, event: StreamEvent | None) -> tuple[StreamEvent, ...]:
        if not self._held and event is not None:
            out: tuple[StreamEvent, ...] = (event,)
        else:
            out = (*self._held, event) if event is not None else tuple(self._held)
        self._held.clear()
        self.state = StreamState.COMMITTED
        return out

    def _fail(self, failure: Failure) -> None:
        if not self.ended:
            self.state, self.ended = StreamState.FAILED, True
            self.failure = failure
