"""The time for searches of one step: when none begins any more, and when those under way are broken off."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from smart_model_router.domain.ports import Clock
from smart_model_router.flow.clock import ended_by

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SearchTime:
    """The time for searches. From `last_begin` (monotonic) none begins, at `end` those under way are broken off."""

    clock: Clock
    last_begin: float
    end: float

    @classmethod
    def before(cls, deadline: float, clock: Clock, kept: float) -> SearchTime:
        """Return the time before a deadline of which so many seconds are kept, half of what is left at most.

        The first half of these is for searches under way to end in, the other for reading what was found.
        """
        kept = min(kept, max(0.0, deadline - clock.now()) / 2.0)
        return cls(clock, deadline - kept, deadline - kept / 2.0)

    @property
    def is_over(self) -> bool:
        """True when no search begins any more."""
        return self.clock.now() >= self.last_begin

    async def within(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what the work gives. Raises TimeoutError at the end of the time; it was cancelled then."""
        task = asyncio.create_task(work)
        try:
            await ended_by(self.clock, task, self.end)
            if not task.done():
                raise TimeoutError("the time for searches was over")
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))
        return task.result()
