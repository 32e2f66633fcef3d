"""HoldBack: the newest text of a stream waits, so that what is cut off with it was never seen."""

from __future__ import annotations

import math
from collections import deque

from smart_model_router.domain.outcome import EventKind, StreamEvent


class HoldBack:
    """Delivers an event once at least `characters` of text came after it; infinity delivers nothing before the end.

    What says more than text (a tool call), and the end of an answer, ends the waiting for all before it; not where
    everything waits. From `hold` to `release` everything waits.
    """

    __slots__ = ("_characters", "_events", "_texts", "_usually", "waiting")

    def __init__(self, characters: float) -> None:
        self._usually = self._characters = characters
        self._events: deque[tuple[StreamEvent, int]] = deque()
        self._texts: deque[int] = deque()
        """Characters of those of them that have text: a model may think for thousands of events that have none."""
        self.waiting = 0
        """Characters of text that wait."""

    def take(self, event: StreamEvent, characters: int) -> list[StreamEvent]:
        """Take an event that adds so much text; return what is to be delivered now, in order."""
        if event.kind is EventKind.PING and self._events:
            return []  # it would be delivered late; the gateway sends pings of its own to a client that gets nothing
        self._events.append((event, characters))
        if characters:
            self._texts.append(characters)
        self.waiting += characters
        more_than_text = event.finish is not None or (event.kind is EventKind.CONTENT and not characters)
        if not self._characters or (more_than_text and self._characters < math.inf):
            return self.flush()
        out: list[StreamEvent] = []
        while self.waiting - self._first_text() >= self._characters:
            out.append(self._next())
        return out

    def hold(self) -> None:
        """From now on deliver nothing."""
        self._characters = math.inf

    def release(self) -> list[StreamEvent]:
        """Deliver everything, and go on as before `hold`."""
        self._characters = self._usually
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
