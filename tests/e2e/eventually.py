"""Waiting for the other end of a socket, which no fake clock can hurry."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Self

PATIENCE = 20.0
"""Seconds. A wait ends when its condition holds: this only says when a failing test gives up. It is less than what ends
a call by itself: 30 s of patience, 60 s between the events of a stream."""


async def becomes(condition: Callable[[], bool], *, within: float = PATIENCE) -> bool:
    """Whether something across the network becomes true within so many seconds."""
    end = time.monotonic() + within
    while not condition() and time.monotonic() < end:  # noqa: ASYNC110 - the other end has no event for us
        await asyncio.sleep(0.01)
    return condition()


class Lag:
    """By how many `seconds`, in sum, this machine, busy with other things, has kept the loop from its timers.

    On one with nothing else to do that is next to nothing. What has to happen in real time may take as much longer.
    """

    def __init__(self) -> None:
        self.seconds = 0.0

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    async def _watch(self) -> None:
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.1)
            self.seconds += time.monotonic() - began - 0.1
