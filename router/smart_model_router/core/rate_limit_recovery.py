"""How long an un-hinted rate limit takes to clear, learned from when calls were refused and admitted again."""

from __future__ import annotations

_TOWARDS_THE_LEAST = 0.25
"""How far the next guess goes from what was long enough towards what was too short: mostly right, and ever closer."""
_IDLE = 2.0
"""Seconds. A call so long after the end of a wait says that nobody asked sooner, not how long it took."""


class RateLimitRecovery:
    """The spells of one target, from the first un-hinted refusal to the next admitted call.

    Somewhere between the longest time that was too short and the shortest that was long enough lies the truth.
    Instants are monotonic seconds.
    """

    __slots__ = ("_began", "_enough", "_too_short", "_waits_until")

    def __init__(self) -> None:
        self._began: float | None = None
        self._waits_until = 0.0
        self._too_short = 0.0
        self._enough: float | None = None

    def refused(self, now: float) -> float | None:
        """A call was refused: after how many seconds it will probably clear, None while nobody knows."""
        if self._began is None:
            self._began = now
        else:  # the wait that was guessed was too short
            self._too_short = now - self._began
            if self._enough is not None and self._enough <= self._too_short:
                self._enough = None
        if self._enough is None:
            return None
        return self._enough - _TOWARDS_THE_LEAST * (self._enough - self._too_short)

    def waits(self, until: float) -> None:
        """Nobody is sent before `until`."""
        self._waits_until = until

    def admitted(self, admitted_at: float) -> None:
        """A call was answered: if it was sent after the spell began, the spell is over."""
        if self._began is None or admitted_at <= self._began:
            return
        if admitted_at <= self._waits_until + _IDLE:
            self._enough = admitted_at - self._began
        self._began = None
