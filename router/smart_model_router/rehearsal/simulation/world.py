"""The world of a simulation: a loop that notices when it turns on the spot, and a wall clock that jumps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from smart_model_router.domain.ports import TimerHandle
from smart_model_router.testing import LoopClock, VirtualTimeLoop

T = TypeVar("T")
_MOST_ROUNDS = 200_000
"""Rounds of the loop within one virtual second. The busiest scenario needs a hundredth of it."""
_LATE = 1e-6
_EPOCH = 1_700_000_000.0


class Livelock(RuntimeError):
    """The program is busy and time stands still."""


class WorldLoop(VirtualTimeLoop):
    """The loop in virtual time; it raises Livelock when it turns too often within a virtual second."""

    def __init__(self, *, limit: float) -> None:
        super().__init__(limit=limit)
        self._since = self.time()
        self._rounds = 0

    def select(self, timeout: float | None) -> Sequence[Any]:
        """Count the round, then jump."""
        self._rounds += 1
        if self.time() - self._since > 1.0:
            self._since, self._rounds = self.time(), 0
        elif self._rounds > _MOST_ROUNDS:
            raise Livelock(f"{self._rounds} rounds within a second at {self.time():.3f}")
        return super().select(timeout)


def run_world(main: Coroutine[Any, Any, T], *, limit: float) -> T:
    """Run `main` in virtual time. Raises Deadlock, OutOfTime after `limit` seconds, or Livelock."""
    with asyncio.Runner(loop_factory=lambda: WorldLoop(limit=limit)) as runner:
        return runner.run(main)


class Wall:
    """The wall clock of the world: `steps` are (seconds from the beginning, jump in seconds)."""

    def __init__(self, steps: Sequence[tuple[float, float]]) -> None:
        self._steps = tuple(steps)
        self._began: float | None = None

    def offset(self) -> float:
        """All jumps so far."""
        now = asyncio.get_running_loop().time()
        self._began = now if self._began is None else self._began
        return sum(jump for at, jump in self._steps if now - self._began >= at)

    def now(self) -> float:
        """Seconds since the epoch."""
        return _EPOCH + asyncio.get_running_loop().time() + self.offset()


class StepClock(LoopClock):
    """A clock that follows the wall: what a router has whose `monotonic_clock` measure is off.

    Its instants are sums, and off by a rounding: a timer comes a microsecond late rather than too early for ever, as
    real time goes on while a program runs and ours does not.
    """

    def __init__(self, wall: Wall) -> None:
        self._wall = wall

    def now(self) -> float:
        """The loop's time and every jump of the wall."""
        return super().now() + self._wall.offset()

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` and the microsecond."""
        await super().sleep(seconds + _LATE)

    def call_at(self, when: float, callback: Callable[[], object]) -> TimerHandle:
        """A timer that counts down from what the wall says now, like a real one."""
        return asyncio.get_running_loop().call_later(max(0.0, when - self.now()) + _LATE, callback)
