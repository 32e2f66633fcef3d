"""What goes out over ASGI: whole replies, or a head and frames, kept alive while nothing else is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from starlette.types import Send

from smart_model_router.edge import EVENT_STREAM, PINGS, Family, HttpReply, Problem, error_frame, rendered
from smart_model_router.request import Dialect


class Responder:
    """One response. What is sent is sent under a lock: a ping must not come between a head and its first frame.

    A frame does without while nobody holds the lock: for as long as it is being sent there is no ping.
    """

    def __init__(self, send: Send, family: Family) -> None:
        self._send = send
        self._family: Family = family
        self._lock = asyncio.Lock()
        self._dialect: Dialect | None = None
        self._now = asyncio.get_running_loop().time
        self._sending = False
        self.started = False
        self.sent_at = 0.0

    async def reply(self, reply: HttpReply) -> None:
        """Send a whole reply."""
        self.started = True
        headers = [*_encoded(reply.headers), (b"content-length", str(len(reply.body)).encode())]
        await self._send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": reply.body})

    async def problem(self, problem: Problem) -> None:
        """Tell of a problem: with a status of its own, or in the stream when that has begun."""
        if self._dialect is None:
            if not self.started:
                await self.reply(rendered(problem, self._family))
            return
        told = error_frame(problem, self._dialect)
        if told is None:  # no end is sent: the server cuts the connection
            return
        await self.frame(told)
        await self.end()

    async def head(self, dialect: Dialect, headers: Mapping[str, str]) -> None:
        """Send the head of a stream, unless it is sent already."""
        async with self._lock:
            if self.started:
                return
            self.started, self._dialect = True, dialect
            start = {"type": "http.response.start", "status": 200, "headers": _encoded({**EVENT_STREAM, **headers})}
            await self._send(start)
            self.sent_at = self._now()

    async def frame(self, data: bytes) -> None:
        """Send frames at once."""
        if self._lock.locked():
            async with self._lock:
                await self._send({"type": "http.response.body", "body": data, "more_body": True})
                self.sent_at = self._now()
            return
        self._sending = True
        try:
            await self._send({"type": "http.response.body", "body": data, "more_body": True})
        finally:
            self._sending = False
        self.sent_at = self._now()

    async def ping(self, dialect: Dialect) -> None:
        """Send what means nothing, with the head before it if need be; nothing while a frame is being sent."""
        await self.head(dialect, {})
        async with self._lock:
            if not self._sending:
                await self._send({"type": "http.response.body", "body": PINGS[dialect], "more_body": True})
                self.sent_at = self._now()

    async def end(self) -> None:
        """End a stream."""
        async with self._lock:
            await self._send({"type": "http.response.body", "body": b""})


class Keepalive:
    """One re-armed timer a stream: after `hold` seconds the head goes out, then a ping whenever `ping` were silent."""

    def __init__(self, responder: Responder, dialect: Dialect, *, hold: float, ping: float) -> None:
        self._responder = responder
        self._dialect: Dialect = dialect
        self._ping = ping
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._timer = self._loop.call_later(hold, self._tick)

    async def close(self) -> None:
        """Send nothing more; what is being sent is finished first."""
        self._timer.cancel()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)  # a connection that broke is noticed elsewhere

    def _tick(self) -> None:
        responder = self._responder
        silent_until = responder.sent_at + self._ping
        if responder.started and self._loop.time() < silent_until:
            self._timer = self._loop.call_at(silent_until, self._tick)
            return
        if self._task is None or self._task.done():  # else the client reads more slowly than we ping
            self._task = self._loop.create_task(responder.ping(self._dialect))
        self._timer = self._loop.call_later(self._ping, self._tick)


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()]
