"""Tracks if the shared state answers. While it does not, processes decide alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

from smart_model_router.domain.ports import Clock

POLL_SECONDS = 0.1
"""The interval of polls for the changes of others: a command is obeyed within 0.25 s, on a busy machine, too."""
IDLE_POLL_SECONDS = 0.2
"""The same while no request comes: fifty idle processes ask a server less than 300 times a second."""
TELL_SECONDS = 0.25
"""The interval of writes that others need not see at once: recent calls, used tokens."""
SLOW_SECONDS = 0.5
"""A store that has not answered by then counts as out of reach."""
RETRY_SECONDS = 1.0
TOO_SLOW = "it takes too long to answer"
_TICK = 0.05
"""The interval of checks meanwhile: a process that gets no processor time must not blame the store."""


@asynccontextmanager
async def in_time() -> AsyncGenerator[None]:
    """Raise TimeoutError once SLOW_SECONDS have passed in this block in which this loop ran."""
    async with asyncio.timeout(None) as scope:
        waiting = _Patience(lambda: scope.reschedule(asyncio.get_running_loop().time()))
        try:
            yield
        finally:
            waiting.cancel()


class StoreReachability:
    """`reason` says why the shared state is out of reach, "" while it is not.

    `changed` is told the first reason, and "" once it is within reach again: the reasons of one outage alternate.
    """

    def __init__(self, clock: Clock, changed: Callable[[str], None]) -> None:
        self._clock = clock
        self._changed = changed
        self.reason = ""
        self.retry_at = 0.0
        """The instant before which the store is not asked again."""
        self.lost_at: float | None = None
        """The instant since which it is out of reach; None while it is not."""
        self.overdue = False
        """True when an answer took too long since this was last set to False."""

    def lose(self, reason: str, *, again_in: float = RETRY_SECONDS) -> None:
        """Note that it cannot answer; ask again in `again_in` seconds, or when an earlier loss said."""
        now = self._clock.now()
        due = now + again_in
        self.retry_at = due if self.retry_at <= now else min(due, self.retry_at)
        self._tell(reason)

    def regain(self) -> None:
        """Note that it answers."""
        self._tell("")

    @contextmanager
    def patience(self) -> Generator[None]:
        """Lose it once SLOW_SECONDS have passed in this block in which this loop ran."""
        waiting = _Patience(self._too_slow)
        try:
            yield
        finally:
            waiting.cancel()

    def _too_slow(self) -> None:
        self.overdue = True
        self.lose(TOO_SLOW)

    def _tell(self, reason: str) -> None:
        was_lost, self.reason = bool(self.reason), reason
        if bool(reason) is not was_lost:
            self.lost_at = self._clock.now() if reason else None
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
