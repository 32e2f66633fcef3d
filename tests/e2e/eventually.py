"""Waiting for the other end of a socket, which no fake clock can hurry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def becomes(condition: Callable[[], bool], *, within: float) -> bool:
    """Whether something across the network becomes true within so many seconds."""
    for _ in range(int(within / 0.01)):
        if condition():
            return True
        await asyncio.sleep(0.01)
    return False
