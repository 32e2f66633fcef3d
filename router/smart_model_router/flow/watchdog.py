"""One re-armed timer that ends an await, or a reader's absence, at an instant: all timeouts of a call."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from smart_model_router.domain.ports import Clock, TimerHandle

T = TypeVar("T")


class Expired(Exception):
    """The instant came before the awaited thing did."""


class Watchdog:
    """`within` awaits something until an instant. Between two awaits the timer keeps ticking and is only moved.

    Arming a loop timer for each event of a stream would cost more than reading the event. While the timer is set the
    watchdog is in `ticking`, for a router that closes to end what it keeps time for (`expire`).
    """

    __slots__ = (
        "_absent",
        "_cancelling",
        "_clock",
        "_fired",
        "_loop",
        "_task",
        "_ticking",
        "_timer",
        "_timer_at",
        "deadline",
    )

    def __init__(self, clock: Clock, ticking: set[Watchdog] | None = None) -> None:
        self._clock = clock
        self._ticking = set[Watchdog]() if ticking is None else ticking
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._timer: TimerHandle | None = None
        self._timer_at = 0.0
        self._fired = False
        self._cancelling = 0
        self._absent: Callable[[], object] | None = None
        self.deadline = 0.0

    async def within(self, awaitable: Awaitable[T], deadline: float) -> T:
        """The awaited result. Raises Expired once `deadline` (monotonic) has passed; cancellation passes through."""
        late = False
        self.watch(deadline)
        try:
            try:
                return await awaitable
            finally:
                late = self.rest()
        except (asyncio.CancelledError, Exception):  # some libraries raise their own when they are cancelled
            if late:
                raise Expired from None
            raise

    async def sleep(self, until: float) -> None:
        """Return at the instant `until` (monotonic), or as soon as the router closes."""
        forever: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with suppress(Expired):
            await self.within(forever, until)

    def watch(self, deadline: float) -> None:
        """The running task awaits something until `deadline` (monotonic), and is cancelled then; `rest` must follow.

        Two plain calls around an await: who reads a stream is spared a coroutine for each chunk.
        """
        self._absent, self.deadline = None, deadline
        if self._timer is None or self._timer_at > deadline:
            self._arm(deadline)
        # To ask for the running loop is a system call in 3.11; whoever reads on another one than before is asked again.
        task = asyncio.current_task(self._loop) or asyncio.current_task()
        assert task is not None  # noqa: S101 - only a task can await
        self._fired = False
        self._cancelling = task.cancelling()
        self._task = task

    def rest(self) -> bool:
        """The await is over: whether the deadline, and nobody else, cancelled it. That cancellation is taken back."""
        task, self._task = self._task, None
        return self._fired and task is not None and task.uncancel() <= self._cancelling

    def absent(self, until: float, act: Callable[[], object]) -> None:
        """Nothing is awaited now: call `act` once the instant `until` (monotonic) is there without another `watch`."""
        self._absent, self.deadline = act, until
        if self._timer is None or self._timer_at > until:
            self._arm(until)

    def expire(self) -> None:
        """Time is over now for what is awaited, or for who is absent."""
        self.deadline = -math.inf
        if self._timer is not None:
            self._timer.cancel()
        self._tick()

    def close(self) -> None:
        """Stop the timer."""
        self._absent = None
        self._ticking.discard(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._ticking.add(self)
        self._loop = asyncio.get_running_loop()
        self._timer_at = when
        self._timer = self._clock.call_at(when, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._ticking.discard(self)
        task, absent = self._task, self._absent
        if task is None and absent is None:
            return
        if self._clock.now() < self.deadline:
            self._arm(self.deadline)
        elif absent is not None:
            self._absent = None
            absent()
        elif task is not None and not self._fired:
            self._fired = True
            task.cancel()
