"""The system's clocks and dice behind the ports."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable

from smart_model_router.domain.ports import TimerHandle

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
        self._random = random.Random(seed)  # noqa: S311 - chance, not secrets

    def roll(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()
