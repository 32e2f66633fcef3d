"""Pictures for everyone who looks: drawn once a second while anybody does, and kept for nobody who does not read."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

log = logging.getLogger("smart_model_router.gateway")

MOST_LOOKERS = 100
"""Streams at once; more are asked to come back."""
PICTURE_SECONDS = 1.0
_HASTE_SECONDS = 0.2
"""After a transition the next picture follows so soon."""
_PENDING = 100

Draw = Callable[[], Awaitable[Mapping[str, Any]]]


class FullError(Exception):
    """As many look already as may."""


class Looker:
    """One stream's side: the newest picture and the transitions since. What is not read is replaced, not queued."""

    def __init__(self) -> None:
        self.there = asyncio.Event()
        self._picture: bytes | None = None
        self._moves: deque[bytes] = deque(maxlen=_PENDING)

    def show(self, picture: bytes) -> None:
        """Here is a newer picture."""
        self._picture = picture
        self.there.set()

    def tell(self, move: bytes) -> None:
        """Something moved. Of those that nobody reads the oldest go: they are in the next picture, too."""
        self._moves.append(move)
        self.there.set()

    def take(self) -> bytes:
        """Everything there is to send, transitions first."""
        self.there.clear()
        sent = b"".join(self._moves) + (self._picture or b"")
        self._moves.clear()
        self._picture = None
        return sent


class Feed:
    """Draws for all lookers. Belongs to one loop."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._lookers: set[Looker] = set()
        self._drawing: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self._last: bytes | None = None
        self.closed = False

    def __len__(self) -> int:
        """How many look."""
        return len(self._lookers)

    def open(self) -> Looker:
        """Somebody looks. Raises FullError."""
        if len(self._lookers) >= MOST_LOOKERS or self.closed:
            raise FullError
        looker = Looker()
        self._lookers.add(looker)
        if self._drawing is None or self._drawing.done():
            self._drawing = asyncio.get_running_loop().create_task(self._run(), name="smart-model-router dashboard")
        elif self._last is not None:
            looker.show(self._last)
        return looker

    def leave(self, looker: Looker) -> None:
        """Somebody looked away."""
        self._lookers.discard(looker)

    def tell(self, move: Mapping[str, Any]) -> None:
        """Something moved: everyone hears of it at once, and sees it soon."""
        if not self._lookers:
            return
        frame = framed("transition", move)
        for looker in self._lookers:
            looker.tell(frame)
        self._hurry.set()

    def close(self) -> None:
        """End every stream."""
        self.closed = True
        for looker in self._lookers:
            looker.there.set()
        self._hurry.set()

    async def _run(self) -> None:
        while self._lookers and not self.closed:
            try:
                self._last = framed("snapshot", await self._draw())
            except Exception:  # the picture after this one may be possible again
                log.exception("the dashboard could not be drawn")
            else:
                for looker in self._lookers:
                    looker.show(self._last)
            await asyncio.sleep(_HASTE_SECONDS)
            try:
                async with asyncio.timeout(PICTURE_SECONDS - _HASTE_SECONDS):
                    await self._hurry.wait()
            except TimeoutError:
                pass
            self._hurry.clear()
        self._last = None


def framed(event: str, data: Mapping[str, Any]) -> bytes:
    """One server-sent event. Escaped to ASCII: what is in a name cannot break a line."""
    return f"event: {event}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()
