"""The time of a server, as machines tell it that keep shared rows there: no clocks of two machines are compared."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from smart_model_router.domain.shared_state import ClockReading
from smart_model_router_stats.row_server import LONGEST_ROUND_TRIP

STEP_SECONDS = 0.5
"""A server's clock that differs by more from what was measured before was set."""
_MEASURED_SECONDS = 60.0


class SharedClock(Protocol):
    """The clock that deadlines of shared rows are written by."""

    def __call__(self) -> ClockReading:
        """Now."""
        ...

    def heard(self, epoch: str, at: float, sent: float, received: float) -> bool:
        """Take in that the server's time was `at` between two local instants; True when its clock was set."""
        ...

    @property
    def far(self) -> float:
        """The round trip in seconds where it is too long for the time to be known; else 0."""
        ...


class ServerClock:
    """`local` plus the offset that was measured with the shortest round trip of the last minute.

    `local` are seconds that never step and go on while the machine sleeps. The boot of its readings is the server's
    epoch. Before a server was heard, and where none is, it is `alone`.
    """

    def __init__(self, local: Callable[[], float], alone: Callable[[], ClockReading]) -> None:
        self._local = local
        self._alone = alone
        self._epoch = ""
        self._offset = 0.0
        self._measured: deque[tuple[float, float, float]] = deque(maxlen=1000)
        """Of each answer: when it came, its round trip, and the offset that follows."""

    def __call__(self) -> ClockReading:
        """Now, on the server's clock."""
        if not self._epoch:
            return self._alone()
        now = self._local() + self._offset
        return ClockReading(self._epoch, now, now)

    @property
    def round_trip(self) -> float | None:
        """The shortest round trip of the last minute, in seconds; None before the first one."""
        return min((trip for _, trip, _ in self._measured), default=None)

    @property
    def far(self) -> float:
        """The shortest round trip where it is above LONGEST_ROUND_TRIP; else 0."""
        trip = self.round_trip
        return trip if trip is not None and trip > LONGEST_ROUND_TRIP else 0.0

    def heard(self, epoch: str, at: float, sent: float, received: float) -> bool:
        """Take in an answer of the server; True when its clock was set since earlier ones of this epoch."""
        trip, offset = max(0.0, received - sent), at - (sent + received) / 2
        if epoch == self._epoch and self._measured:
            unsure = (trip + min(trip for _, trip, _ in self._measured)) / 2
            if abs(offset - self._offset) > STEP_SECONDS + unsure:
                return True
        if epoch != self._epoch:
            self._epoch = epoch
            self._measured.clear()
        self._measured.append((received, trip, offset))
        while self._measured[0][0] < received - _MEASURED_SECONDS:
            self._measured.popleft()
        self._offset = min(self._measured, key=lambda measured: measured[1])[2]
        return False
