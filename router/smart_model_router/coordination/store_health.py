"""Whether the shared state answers. While it does not, every process decides alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager

from smart_model_router.domain.ports import Clock

POLL_SECONDS = 0.1
"""How often it is asked what others have changed: the operator is obeyed within 0.25 s, on a busy machine, too."""
TELL_SECONDS = 0.25
"""How often it is told what others need not hear at once: recent calls, tokens that were used."""
SLOW_SECONDS = 0.5
"""A store that has not answered by then is as good as none."""
RETRY_SECONDS = 1.0
TOO_SLOW = "it takes too long to answer"
_TICK = 0.05
"""How often one looks meanwhile: a process that is not given the processor must not blame the store."""


class StoreReachability:
    """`reason` says why the shared state is out of reach, "" while it is not; `changed` is told of every change."""

    def __init__(self, clock: Clock, changed: Callable[[str], None]) -> None:
        self._clock = clock
        self._changed = changed
        self.reason = ""
        self.retry_at = 0.0
        """It is not asked again before this instant."""
        self.overdue = False
        """Whether an answer took too long since somebody last set this to False."""

    def lose(self, reason: str, *, again_in: float = RETRY_SECONDS) -> None:
        """It cannot answer; ask again in so many seconds."""
        self.retry_at = self._clock.now() + again_in
        self._tell(reason)

    def regain(self) -> None:
        """It answers."""
        self._tell("")

    @contextmanager
    def patience(self) -> Generator[None]:
        """Lose it once SLOW_SECONDS have passed in here in which this loop had its turns."""
        waiting = _Patience(self._too_slow)
        try:
            yield
        finally:
            waiting.cancel()

    def _too_slow(self) -> None:
        self.overdue = True
        self.lose(TOO_SLOW)

    def _tell(self, reason: str) -> None:
        if reason != self.reason:
            self.reason = reason
            self._changed(reason)


class _Patience:
    """Calls `give_up` once SLOW_SECONDS of ticks have passed, unless it is cancelled before."""

    def __init__(self, give_up: Callable[[], None]) -> None:
        self._give_up = give_up
        self._ticks = round(SLOW_SECONDS / _TICK)
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(_TICK, self._tick)

    def cancel(self) -> None:
        """No-op once it gave up."""
        self._timer.cancel()

    def _tick(self) -> None:
        self._ticks -= 1
        if self._ticks:
            self._timer = self._loop.call_later(_TICK, self._tick)
        else:
            self._give_up()
