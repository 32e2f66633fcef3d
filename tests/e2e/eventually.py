"""Waiting for the other end of a socket, which no fake clock can hurry."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

PATIENCE = 20.0
"""Seconds. A wait ends when its condition holds: this only says when a failing test gives up. It is less than what ends
a call by itself: 30 s of patience, 60 s between the events of a stream."""


async def becomes(condition: Callable[[], bool], *, within: float = PATIENCE) -> bool:
    """Whether something across the network becomes true within so many seconds."""
    end = time.monotonic() + within
    while not condition() and time.monotonic() < end:  # noqa: ASYNC110 - the other end has no event for us
        await asyncio.sleep(0.01)
    return condition()
