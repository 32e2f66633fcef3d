"""Rules of a stream: what waits for its first content or by a policy, when it is complete, and what is recovered."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal, Protocol, assert_never

from smart_model_router.domain.outcome import Category, EventKind, Failure, FailureClass, StreamEvent, Usage
from smart_model_router.domain.recovery_policy import NO_RECOVERY, Recovery
from smart_model_router.domain.request import Dialect, RouteRequest

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
    """The dialect's rules of a finished answer (wires/dialects.py)."""

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
        "unreadable",
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
        self.unreadable = False
        """True when it failed by an event that could not be read."""
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
        self.failure, self.unreadable = Failure(FailureClass.MALFORMED, why), True

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
            self.failure, self.unreadable = failure, failure.failure_class is FailureClass.MALFORMED


class HoldBack:
    """Delivers an event once at least `characters` of text came after it; infinity delivers nothing before the end.

    What says more than text (a tool call), and the end of an answer, ends the waiting for all before it; not where
    everything waits. From `hold` to `release` everything waits.
    """

    __slots__ = ("_characters", "_events", "_texts", "_usually", "passes", "waiting")

    def __init__(self, characters: float) -> None:
        self._usually = self._characters = characters
        self.passes = not characters
        """True when `take` delivers every event at once."""
        self._events: deque[tuple[StreamEvent, int]] = deque()
        self._texts: deque[int] = deque()
        """Characters of those of them that have text: a model may think for thousands of events that have none."""
        self.waiting = 0
        """Characters of text that wait."""

    def take(self, event: StreamEvent, characters: int) -> list[StreamEvent]:
        """Take an event that adds so much text; return what is to be delivered now, in order."""
        if self.passes:
            return [event]
        if event.kind is EventKind.PING and self._events:
            return []  # it would be delivered late; the gateway sends pings of its own to a client that gets nothing
        self._events.append((event, characters))
        if characters:
            self._texts.append(characters)
        self.waiting += characters
        more_than_text = event.finish is not None or (event.kind is EventKind.CONTENT and not characters)
        if more_than_text and self._characters < math.inf:
            return self.flush()
        out: list[StreamEvent] = []
        while self.waiting - self._first_text() >= self._characters:
            out.append(self._next())
        return out

    def hold(self) -> None:
        """From now on deliver nothing."""
        self._characters, self.passes = math.inf, False

    def release(self) -> list[StreamEvent]:
        """Deliver everything, and go on as before `hold`."""
        self._characters, self.passes = self._usually, not self._usually
        return self.flush()

    def flush(self) -> list[StreamEvent]:
        """Deliver everything."""
        return [self._next() for _ in range(len(self._events))]

    def drop(self) -> int:
        """Forget what waits; how many characters of text that was."""
        dropped, self.waiting = self.waiting, 0
        self._events.clear()
        self._texts.clear()
        return dropped

    def _first_text(self) -> float:
        """Characters of the first event that has text; brackets before it go with it, and not without it."""
        return self._texts[0] if self._texts else math.inf

    def _next(self) -> StreamEvent:
        event, characters = self._events.popleft()
        if characters:
            self.waiting -= self._texts.popleft()
        return event


_TEXT_DIALECTS: frozenset[Dialect] = frozenset({"chat", "messages"})
_THEIR_FAULT = frozenset({Category.TRANSIENT, Category.TIMEOUT, Category.RATE_LIMIT})
"""Cuts, stalls and errors in the stream. Not recovered: a caller that left, a content filter, a limit of our own."""


HOLD_SECONDS = 30.0
"""The longest time for which a part that only makes sense whole is held: clients wait in silence for longer."""
Held = Literal["nothing", "calls", "all"]
_EAGER_BETA = "fine-grained-tool-streaming"
_GRAMMARS = ("output_format", "guided_json", "guided_grammar", "guided_regex", "structured_outputs", "grammar")
"""Fields of single servers (Anthropic's beta, vLLM, llama.cpp) that a whole answer has to fit."""


def effective(request: RouteRequest, default: Recovery) -> Recovery:
    """The policy of one request: its own, else its model's, where its answer can be recovered (routing.md section 8).

    `buffered` delivers nothing before all is there, so any answer can be made anew. The others are for one answer of
    Chat or Messages; a client cannot be told to forget half a schema.
    """
    policy = request.recovery if request.recovery is not None else default
    if policy.mode == "buffered":
        return policy
    if request.dialect not in _TEXT_DIALECTS or request.body.get("n") not in (None, 1):
        return NO_RECOVERY
    if policy.mode == "restart" and (_is_constrained(request) or not request.accept_restart):
        return NO_RECOVERY
    return policy


def held(request: RouteRequest, policy: Recovery) -> Held:
    """The part of the answer that is delivered once it is whole, for no other model can continue half of it.

    A caller who asks for the arguments of calls as they are written gets them so, and an error when they are cut.
    """
    if policy.mode not in ("continue", "hold_back"):
        return "nothing"
    if _is_constrained(request):
        return "all"
    return "nothing" if _wants_arguments_early(request) else "calls"


def _is_constrained(request: RouteRequest) -> bool:
    """Return whether the answer follows a schema or a grammar, or is JSON: a model begins it anew, or not at all."""
    if "schema" in request.needs or any(request.body.get(key) for key in _GRAMMARS):
        return True
    form = request.body.get("response_format")
    return isinstance(form, Mapping) and form.get("type", "text") != "text"


def _wants_arguments_early(request: RouteRequest) -> bool:
    """Return whether a Messages request asks for unfinished arguments."""
    if request.dialect != "messages":
        return False
    if any(_EAGER_BETA in value for name, value in request.headers.items() if name.lower() == "anthropic-beta"):
        return True
    tools = request.body.get("tools")
    listed = tools if isinstance(tools, (list, tuple)) else ()
    return any(isinstance(tool, Mapping) and tool.get("eager_input_streaming") is True for tool in listed)


def recoverable(failure: Failure) -> bool:
    """True when another target should continue a stream that ended like this."""
    return failure.failure_class.category in _THEIR_FAULT
