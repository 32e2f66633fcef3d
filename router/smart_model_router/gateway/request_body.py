"""The input over ASGI: headers, a bounded body, and the news that the client has left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from itertools import chain
from typing import Any

from starlette.types import Receive, Scope

from smart_model_router.domain.forwarded_headers import LISTS
from smart_model_router.http_api import ProblemError
from smart_model_router.http_api.api_errors import BAD_REQUEST, HEAD_TOO_LARGE, SLOW_BODY, TOO_LARGE
from smart_model_router.wires.values import ElementCount

ONCE = (b"authorization", b"x-api-key", b"api-key", b"host", b"origin")
"""Headers of which there is one."""
_SMALL = 65_536
WATCH_AFTER = 0.1
"""Seconds. A client that hangs up sooner is noticed then."""


class ClientLeft(Exception):
    """The client hung up before it had said everything: no reply is needed."""


def headers_of(scope: Scope) -> dict[str, str]:
    """The headers by lower-case name (as ASGI has them); of a repeated one the last counts, but for lists of betas."""
    found = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    if len(found) < len(scope["headers"]):
        for name in LISTS & found.keys():
            lines = [value.decode("latin-1") for key, value in scope["headers"] if key.decode("latin-1") == name]
            found[name] = ",".join(lines)
    return found


def check_head(scope: Scope, headers: Mapping[str, str], limit: int) -> None:
    """Raises ProblemError: 431 above `limit` bytes, 400 where client, host or the end of the body is in doubt."""
    check_once(scope, headers)
    if "transfer-encoding" in headers and (
        headers["transfer-encoding"].strip().lower() != "chunked" or scope["http_version"] == "1.0"
    ):
        raise ProblemError(BAD_REQUEST, "transfer-encoding: only chunked, of HTTP/1.1, is understood", closes=True)
    fields = scope["headers"]
    if sum(map(len, chain.from_iterable(fields))) + 4 * len(fields) > limit:
        raise ProblemError(HEAD_TOO_LARGE, f"the headers have more than {limit} bytes")


def check_once(scope: Scope, headers: Mapping[str, str]) -> None:
    """Raises ProblemError (400) where one of ONCE stands twice: which of two would count, others may see otherwise."""
    if len(headers) == len(scope["headers"]):
        return
    for name in ONCE:
        if sum(key == name for key, _ in scope["headers"]) > 1:
            raise ProblemError(BAD_REQUEST, f"the header {name.decode()} stands more than once")


def _too_large(limit: int) -> ProblemError:
    return ProblemError(TOO_LARGE, f"the body has more than {limit} bytes", closes=True)


async def _check_elements(counted: ElementCount, piece: bytes) -> None:
    """Count another piece of a body; the loop turns between two slices. Raises ProblemError (413)."""
    unsure = counted.add(piece)
    while unsure:
        unsure = counted.settle()
        await asyncio.sleep(0)
    if counted.exact > counted.most:
        told = (
            f"the body has more than {counted.most} JSON elements: values, and keys of objects (gateway.max_elements)"
        )
        raise ProblemError(TOO_LARGE, told, closes=True)


async def has_left(receive: Receive) -> bool:
    """Return whether the client has hung up. A connection may be gone a moment before the server says so."""
    try:
        async with asyncio.timeout(WATCH_AFTER):
            while (await receive())["type"] != "http.disconnect":
                pass
    except TimeoutError:
        return False
    return True


class Upload:
    """The body of a request in pieces, as they come. `length` is what its head says, None where it says nothing.

    Reading raises ProblemError: 413 above `limit` bytes, 408 when nothing came for `silence` seconds; and ClientLeft.
    `on_end` is called when the last piece is there.
    """

    def __init__(
        self,
        receive: Receive,
        headers: Mapping[str, str],
        *,
        limit: int,
        silence: float,
        on_end: Callable[[], object],
    ) -> None:
        declared = headers.get("content-length", "")
        told = declared.isascii() and declared.isdigit()
        self.length = int(declared[:20]) if told else None if "transfer-encoding" in headers else 0
        if self.length is not None and self.length > limit:
            raise _too_large(limit)
        self._receive = receive
        self._limit = limit
        self._silence = silence
        self._on_end = on_end
        self._size = 0
        self._complete = False

    @property
    def unread(self) -> bool:
        """Return whether so much may be left that it is not worth reading before the next request of the connection."""
        return not self._complete and (self.length is None or self.length > _SMALL)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._complete:
            raise StopAsyncIteration
        try:
            async with asyncio.timeout(self._silence):
                message = await self._receive()
        except TimeoutError:
            told = f"nothing more of the body arrived for {self._silence:g} s"
            raise ProblemError(SLOW_BODY, told, closes=True) from None
        if message["type"] == "http.disconnect":
            raise ClientLeft
        piece: bytes = message.get("body", b"")
        self._size += len(piece)
        if self._size > self._limit:
            raise _too_large(self._limit)
        if not message.get("more_body", False):
            self._complete = True
            self._on_end()
        return piece


class Client:
    """The other end of a request: its body, and whether it is still there.

    When it hangs up, the task this was made in is cancelled; `left` tells that apart from other causes. Watching takes
    a task of its own, which a quick answer is spared: it begins after WATCH_AFTER seconds. The same timer ends the wait
    for a body that does not come: one more (asyncio.timeout) was tried, and costs every request 8 us.
    """

    __slots__ = ("_late", "_loop", "_reading_until", "_receive", "_slow", "_task", "_timer", "_watch", "left")

    def __init__(self, receive: Receive, *, after: float | None = WATCH_AFTER) -> None:
        self.left = False
        self._receive = receive
        self._reading_until: float | None = None
        self._slow = False
        self._late = False
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[Any] | None = asyncio.current_task(self._loop)
        self._watch: asyncio.Task[None] | None = None
        self._timer = None if after is None else self._loop.call_later(after, self._tick)

    def watch(self) -> None:
        """Begin to watch, where that does not begin by itself (`after` None): the body was read by another task."""
        self._timer = self._loop.call_later(WATCH_AFTER, self._tick)

    async def body(self, headers: Mapping[str, str], *, limit: int, elements: int, timeout: float) -> bytes:
        """The whole body. Raises ProblemError and ClientLeft.

        It is a 413 above `limit` bytes and above so many JSON `elements`, and a 408 after `timeout` seconds.
        """
        declared = headers.get("content-length", "")
        if declared.isascii() and declared.isdigit() and int(declared[:20]) > limit:
            raise _too_large(limit)
        self._reading_until = self._loop.time() + timeout
        try:
            body = await self._read(limit, elements)
        except asyncio.CancelledError:
            if not self._late or self._task is None:
                raise
            self._task.uncancel()
            raise ProblemError(SLOW_BODY, f"the body did not arrive within {timeout:g} s", closes=True) from None
        self._reading_until = None
        if self._slow and self._timer is not None:
            self._timer.cancel()
            self._timer = self._loop.call_later(WATCH_AFTER, self._tick)
        return body

    async def _read(self, limit: int, elements: int) -> bytes:
        pieces: list[bytes] = []
        size = 0
        counted: ElementCount | None = None
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientLeft
            piece: bytes = message.get("body", b"")
            size += len(piece)
            if size > limit:
                raise _too_large(limit)
            if size > elements:  # fewer bytes hold no more elements
                if counted is None:
                    counted = ElementCount(elements)
                    for earlier in pieces:
                        counted.add(earlier)
                await _check_elements(counted, piece)
            if not message.get("more_body", False):
                return piece if not pieces else b"".join([*pieces, piece])
            pieces.append(piece)

    def close(self) -> None:
        """Watch no longer."""
        self._task = None
        if self._timer is not None:
            self._timer.cancel()
        if self._watch is not None:
            self._watch.cancel()

    def _tick(self) -> None:
        if self._reading_until is None:
            self._watch = self._loop.create_task(self._wait())
        elif self._loop.time() < self._reading_until:
            self._slow = True
            self._timer = self._loop.call_at(self._reading_until, self._tick)
        elif self._task is not None:
            self._late = True
            self._task.cancel()

    async def _wait(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if self._task is not None:
            self.left = True
            self._task.cancel()
