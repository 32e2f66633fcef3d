"""How a sink takes events many at a time: a loop over a hundred costs a fourth of a hundred turns between requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from smart_model_router.events import AttemptFinished, Event, RequestFinished, TargetRefused, WaitFinished

_AT_ONCE = 128
"""Events that wait at most: about half a millisecond of the loop."""
_FREQUENT = frozenset((AttemptFinished, RequestFinished, TargetRefused, WaitFinished))
"""Any request may have them; whatever else happens is news, and taken in at once."""


class Gathering:
    """Hands events to `handlers`, by type, in their order: a batch at a time, and always before somebody looks.

    Whoever shows what came of them calls `catch_up` first. Belongs to the router's loop.
    """

    inline = True

    def __init__(self, handlers: Mapping[type, Callable[[Any], None]]) -> None:
        self._handlers = handlers
        self._waiting: deque[Event] = deque()
        self._at_once = _AT_ONCE

    def emit(self, event: Event) -> None:
        """Keep it until there are enough of them."""
        kind = type(event)
        if kind not in self._handlers:
            return
        waiting = self._waiting
        waiting.append(event)
        if len(waiting) >= self._at_once or kind not in _FREQUENT:
            self.catch_up()

    def stop_gathering(self) -> None:
        """Nobody will look here any more: what comes from now on is taken in event by event."""
        self.catch_up()
        self._at_once = 1

    def catch_up(self) -> None:
        """Take in what waits."""
        waiting, handlers = self._waiting, self._handlers
        while waiting:
            event = waiting.popleft()
            handlers[type(event)](event)
