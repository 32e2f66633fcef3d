"""StreamGuard: a stream is held until its first content, then committed, then complete - or truncated, never silent."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, assert_never

from smart_model_router.outcome import EventKind, Failure, FailureClass, StreamEvent, Usage

MALFORMED_LIMIT = 3
_CONTENT: Final = EventKind.CONTENT  # globals: to find a member in its class takes ten times as long
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


class StreamGuard:
    """Reads one provider stream, decides what is delivered when and whether it is complete.

    `finish_required` says that the dialect's finish reason, not its closing frame, proves completeness (Chat).
    `skips` is how many malformed events are passed over before they are a failure.
    """

    __slots__ = (
        "_finish_required",
        "_held",
        "_skips",
        "delivered",
        "ended",
        "failure",
        "finish",
        "malformed",
        "state",
        "usage",
    )

    def __init__(self, *, finish_required: bool, skips: int = MALFORMED_LIMIT) -> None:
        self._finish_required = finish_required
        self._skips = skips
        self._held: list[StreamEvent] = []
        self.state = StreamState.HELD
        self.delivered = False
        self.failure: Failure | None = None
        self.finish: str | None = None
        self.usage: Usage | None = None
        self.malformed = 0
        self.ended = False
        """Whether nothing more is to come."""

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
            self.delivered = True
            return (event,) if self.state is _COMMITTED else self._commit(event)
        match kind:
            case EventKind.PING:
                return (event,) if self.state is StreamState.COMMITTED else ()
            case EventKind.MALFORMED:
                self.malformed += 1
                if self.malformed > self._skips:
                    self._fail(Failure(FailureClass.MALFORMED, f"{self.malformed} malformed events"))
                return ()
            case EventKind.ERROR:
                self._fail(event.failure or Failure(FailureClass.SERVER_ERROR, "error event"))
                return ()
            case EventKind.END:
                return self._close(event)
            case EventKind.META | EventKind.FINISH:
                if self.state is StreamState.COMMITTED:
                    return (event,)
                self._held.append(event)
                return ()
            case never:
                assert_never(never)

    def end(self) -> tuple[StreamEvent, ...]:
        """The transport ended (or lingered too long after the finish reason); return what is still to be delivered."""
        if self.ended:
            return ()
        if self.finish is None:
            seen = "after content" if self.delivered else "before any content"
            self._fail(Failure(FailureClass.TRUNCATED, f"the stream ended {seen} without its terminator"))
            return ()
        return self._close(None)

    def fail(self, failure: Failure) -> None:
        """Something outside the stream ended it (a timeout, a caller who left)."""
        self._fail(failure)

    def _close(self, event: StreamEvent | None) -> tuple[StreamEvent, ...]:
        if self.finish is None and self._finish_required:
            self._fail(Failure(FailureClass.TRUNCATED, "the stream was closed without a finish reason"))
            return ()
        if not self.delivered and self.finish not in _EMPTY_IS_FINE:
            self._fail(Failure(FailureClass.EMPTY, "the stream is complete and has no content"))
            return ()
        out = self._commit(event)
        self.state, self.ended = StreamState.COMPLETE, True
        return out

    def _commit(self, event: StreamEvent | None) -> tuple[StreamEvent, ...]:
        out = (*self._held, event) if event is not None else tuple(self._held)
        self._held.clear()
        self.state = StreamState.COMMITTED
        return out

    def _fail(self, failure: Failure) -> None:
        if not self.ended:
            self.state, self.ended = StreamState.FAILED, True
            self.failure = failure
