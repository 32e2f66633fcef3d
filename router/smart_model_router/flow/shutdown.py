"""Closes a router: its parts are closed side by side, each within its bound, so that none keeps another open."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

_LOG = logging.getLogger(__name__)
CLOSE_SECONDS = 5.0
"""Seconds that one part may take to close."""
_AHEAD_SECONDS = 0.4
"""Seconds that a stage may delay the next one, which takes in the changes by its end."""

Part = Callable[[], Awaitable[object]]


async def close_parts(stages: Sequence[Mapping[str, Part]]) -> None:
    """Close every part of every stage, by name; a part that hangs is cancelled and left behind, with a warning.

    Takes CLOSE_SECONDS at most, and a moment for each stage. What a part raises keeps no other open: the first such
    error is raised in the end.
    """
    begun: list[asyncio.Task[None]] = []
    try:
        for stage in stages:
            closing = [asyncio.create_task(_closed(name, part)) for name, part in stage.items()]
            begun += closing
            if closing:
                await asyncio.wait(closing, timeout=_AHEAD_SECONDS)
        ended = await asyncio.gather(*begun, return_exceptions=True)
    finally:
        for task in begun:
            task.cancel()
    for error in ended:
        if error is not None:
            raise error


async def _closed(name: str, part: Part) -> None:
    closing = asyncio.ensure_future(part())
    try:
        done, _ = await asyncio.wait((closing,), timeout=CLOSE_SECONDS)
    finally:
        closing.cancel()
        closing.add_done_callback(lambda left: left.cancelled() or left.exception())  # else asyncio logs the exception
    if done:
        await closing
    else:
        _LOG.warning("%s did not close within %g s", name, CLOSE_SECONDS)
