"""The system's clocks and dice behind the ports, the name of this boot, and the timer of a call."""

from __future__ import annotations

import asyncio
import ctypes
import math
import random
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from smart_model_router.domain.ports import Clock, TimerHandle
from smart_model_router.domain.shared_state import ClockReading

EARLY = 0.001
"""Seconds by which a timer may fire before its instant: some loops count in milliseconds."""


class SystemClock:
    """time.monotonic and the running loop's timers."""

    now = staticmethod(time.monotonic)
    """Monotonic seconds. Not a method: it is asked ten times a request, and for each piece of a stream."""

    async def sleep(self, seconds: float) -> None:
        """asyncio.sleep."""
        await asyncio.sleep(seconds)

    def call_at(self, when: float, callback: Callable[[], object]) -> TimerHandle:
        """A timer on the running loop."""
        return asyncio.get_running_loop().call_later(max(0.0, when - self.now()), callback)


class WallClock(SystemClock):
    """The wall clock in the place of the monotonic one: only for `measures.monotonic_clock: false`."""

    now = staticmethod(time.time)
    """Seconds since the epoch, steps and all."""


class SystemDice:
    """A seeded stream of chance; without a seed it is the system's."""

    def __init__(self, seed: int | None = None) -> None:
        self.roll = random.Random(seed).random  # noqa: S311 - chance, not secrets
        """A number in [0, 1). Not a method, as `now` is none."""


_LINUX = Path("/proc/sys/kernel/random/boot_id")


def here() -> ClockReading:
    """Now. On Linux and macOS the boot has a name; elsewhere the wall clock alone counts."""
    boot = boot_id()
    return ClockReading(boot, boottime() if boot else 0.0, time.time())


@cache
def boot_id() -> str:
    """The system's id of this boot, "" when it has none."""
    if sys.platform == "darwin":
        return _sysctl("kern.bootsessionuuid")
    try:
        return _LINUX.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def boottime() -> float:
    """Seconds since the boot, suspended time included."""
    # On macOS CLOCK_MONOTONIC goes on while the machine sleeps (clock_gettime(3)); on Linux only CLOCK_BOOTTIME does.
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _sysctl(name: str) -> str:
    """A string of the kernel's; "" when it has none of that name."""
    size = ctypes.c_size_t(64)
    buffer = ctypes.create_string_buffer(size.value)
    try:
        found = ctypes.CDLL(None).sysctlbyname(name.encode(), buffer, ctypes.byref(size), None, ctypes.c_size_t(0))
    except (OSError, AttributeError):
        return ""
    return buffer.value.decode("ascii", "replace") if found == 0 else ""


T = TypeVar("T")


class Expired(Exception):
    """The instant came before the awaited thing did."""


class Watchdog:
    """A timer for one await after the other: `within` for a single one, `watch` and `rest` around each of many.

    Between two of many the timer keeps ticking and is only moved: arming a loop timer for each event of a stream would
    cost more than reading the event. The reader of a stream closes the watchdog when the stream has ended. While the
    timer is set the watchdog is in `ticking`, for a router that closes to end what it keeps time for (`expire`).
    """

    __slots__ = (
        "_between",
        "_cancelling",
        "_clock",
        "_every",
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
        self._between: Callable[[], float | None] | None = None
        self._every = math.inf
        self.deadline = 0.0

    async def within(self, awaitable: Awaitable[T], deadline: float, *, goes_on: bool = False) -> T:
        """The awaited result. Raises Expired once `deadline` (monotonic) has passed; cancellation passes through.

        With `goes_on` the timer stays set for the next await, until `close`.
        """
        late = False
        self.watch(deadline)
        try:
            try:
                return await awaitable
            finally:
                late = self.rest()
                if not goes_on:
                    self.close()
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
        """Cancel the running task at `deadline` (monotonic), unless `rest` is called before; `rest` must follow.

        Two plain calls around an await: they spare the reader of a stream a coroutine for each chunk. The timer stays
        set for the next `watch`, until `close`.
        """
        self.deadline = deadline
        if self._timer is None or self._timer_at > deadline:
            self._arm(deadline)
        # The running loop costs a system call in 3.11: the loop of before is tried first.
        task = asyncio.current_task(self._loop) or asyncio.current_task()
        assert task is not None  # noqa: S101 - only a task can await
        self._fired = False
        self._cancelling = task.cancelling()
        self._task = task

    def rest(self) -> bool:
        """End a `watch`; True when the deadline alone cancelled the task. That cancellation is taken back."""
        task, self._task = self._task, None
        return self._fired and task is not None and task.uncancel() <= self._cancelling

    def attend(self, until: float, every: float, between: Callable[[], float | None]) -> None:
        """From now on call `between` whenever the timer fires while nothing is watched.

        The timer fires by `until` (monotonic), by the instants of each `watch`, and every so many seconds; so a
        stream needs no timer of its own for the time between two watches. `between` returns the instant of its next
        call; None: there is none before the next `watch`.
        """
        self._every, self._between = every, between
        if self._timer is None or self._timer_at > until:
            self._arm(until)

    def expire(self) -> None:
        """Expire the present `watch` at once, or call `between`."""
        self.deadline = -math.inf
        if self._timer is not None:
            self._timer.cancel()
        self._tick()

    def close(self) -> None:
        """Stop the timer."""
        self._between = None
        self._ticking.discard(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._ticking.add(self)
        self._loop = asyncio.get_running_loop()
        self._timer_at = when if self._every == math.inf else min(when, self._clock.now() + self._every)
        self._timer = self._clock.call_at(self._timer_at, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._ticking.discard(self)
        if self._task is None:
            if self._between is not None and (again := self._between()) is not None:
                self._arm(again)
        elif self._clock.now() < self.deadline:
            self._arm(self.deadline)
        elif not self._fired:
            self._fired = True
            self._task.cancel()
            if self._between is not None:  # an answer that was finished is delivered now, and may lie unread
                self._arm(math.inf)


async def ended_by(clock: Clock, task: asyncio.Task[Any], instant: float) -> None:
    """Return when the task has ended, or at the instant (monotonic)."""
    late: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer = clock.call_at(instant, late.cancel)
    try:
        await asyncio.wait((task, late), return_when=asyncio.FIRST_COMPLETED)
    finally:
        timer.cancel()
        late.cancel()
