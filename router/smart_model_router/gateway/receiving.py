"""What comes in over ASGI: headers, a bounded body, and the news that the client has left."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.types import Receive, Scope

from smart_model_router.edge import ProblemError
from smart_model_router.edge.problems import HEAD_TOO_LARGE, SLOW_BODY, TOO_LARGE

WATCH_AFTER = 0.1
"""Seconds. Who hangs up sooner is noticed then."""


class ClientLeft(Exception):
    """The client hung up before it had said everything: there is nobody to answer."""


def headers_of(scope: Scope) -> dict[str, str]:
    """The headers by lower-case name (as ASGI has them); of a repeated one the last counts."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def check_size(scope: Scope, limit: int) -> None:
    """Raises ProblemError (431) for headers of more than `limit` bytes."""
    if sum([len(name) + len(value) + 4 for name, value in scope["headers"]]) > limit:
        raise ProblemError(HEAD_TOO_LARGE, f"the headers have more than {limit} bytes")


async def read_body(receive: Receive, headers: Mapping[str, str], *, limit: int, timeout: float) -> bytes:
    """The whole body. Raises ProblemError: 413 above `limit` bytes, 408 after `timeout` seconds; ClientLeft."""
    declared = headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:20]) > limit:
        raise ProblemError(TOO_LARGE, f"the body has more than {limit} bytes")
    try:
        async with asyncio.timeout(timeout):
            return await _read(receive, limit)
    except TimeoutError:
        raise ProblemError(SLOW_BODY, f"the body did not arrive within {timeout:g} s") from None


async def _read(receive: Receive, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        piece: bytes = message.get("body", b"")
        size += len(piece)
        if size > limit:
            raise ProblemError(TOO_LARGE, f"the body has more than {limit} bytes")
        if not message.get("more_body", False):
            return piece if not pieces else b"".join([*pieces, piece])
        pieces.append(piece)


async def has_left(receive: Receive) -> bool:
    """Whether the client has hung up. A connection may be gone a moment before the server says so."""
    try:
        async with asyncio.timeout(WATCH_AFTER):
            while (await receive())["type"] != "http.disconnect":
                pass
    except TimeoutError:
        return False
    return True


class Departure:
    """Cancels the task it was made in when the client hangs up; `left` tells that apart from other causes.

    Watching takes a task of its own, which a quick answer is spared: it begins after WATCH_AFTER seconds.
    """

    __slots__ = ("_receive", "_task", "_timer", "_watch", "left")

    def __init__(self, receive: Receive) -> None:
        self.left = False
        self._receive = receive
        self._task: asyncio.Task[Any] | None = asyncio.current_task()
        self._watch: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(WATCH_AFTER, self._begin)

    def close(self) -> None:
        """Watch no longer."""
        self._task = None
        self._timer.cancel()
        if self._watch is not None:
            self._watch.cancel()

    def _begin(self) -> None:
        self._watch = asyncio.get_running_loop().create_task(self._wait())

    async def _wait(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if self._task is not None:
            self.left = True
            self._task.cancel()
