"""Batches of events: handling a hundred in one loop costs a fourth of handling each between requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from smart_model_router.domain.events import AttemptFinished, Event, RequestFinished, TargetRefused, WaitFinished

_AT_ONCE = 128
"""Events that wait at most: about half a millisecond of the loop."""
_FREQUENT = frozenset((AttemptFinished, RequestFinished, TargetRefused, WaitFinished))
"""The events of ordinary requests; other events are rare and are handled at once."""


class Batcher:
    """Hands events to `handlers`, by type, in their order, in batches.

    A reader of the results calls `catch_up` first. Belongs to the router's loop.
    """

    inline = True

    def __init__(self, handlers: Mapping[type, Callable[[Any], None]]) -> None:
        self._handlers = handlers
        self._waiting: deque[Event] = deque()
        self._at_once = _AT_ONCE

    def emit(self, event: Event) -> None:
        """Keep the event until there are enough for a batch."""
        kind = type(event)
        if kind not in self._handlers:
            return
        waiting = self._waiting
        waiting.append(event)
        if len(waiting) >= self._at_once or kind not in _FREQUENT:
            self.catch_up()

    def stop_gathering(self) -> None:
        """Handle what waits, and every later event at once: nothing calls `catch_up` any more."""
        self.catch_up()
        self._at_once = 1

    def catch_up(self) -> None:
        """Handle the events that wait."""
        waiting, handlers = self._waiting, self._handlers
        while waiting:
            event = waiting.popleft()
            handlers[type(event)](event)
