"""Turns of hosts: one call of a host at a time, and some time between two of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from smart_model_router.domain.ports import Clock

MOST_KEPT = 1_000
"""Hosts that are remembered; those whose time is over are forgotten beyond it."""


@dataclass
class _Turn:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    free_at: float = float("-inf")
    waiting: int = 0


class HostTurns:
    """Turns of hosts by a clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._turns: dict[str, _Turn] = {}

    @asynccontextmanager
    async def turn(self, host: str, seconds: float) -> AsyncGenerator[None]:
        """Wait for the turn of a host, and have it: the next one is `seconds` after its end at the earliest."""
        turn = self._turns.setdefault(host, _Turn())
        turn.waiting += 1
        try:
            async with turn.lock:
                if (left := turn.free_at - self._clock.now()) > 0:
                    await self._clock.sleep(left)
                try:
                    yield
                finally:
                    turn.free_at = self._clock.now() + seconds
        finally:
            turn.waiting -= 1
            self._forget()

    def _forget(self) -> None:
        if len(self._turns) > MOST_KEPT:
            now = self._clock.now()
            self._turns = {host: turn for host, turn in self._turns.items() if turn.waiting or turn.free_at > now}
