"""The output over ASGI: whole replies, or a head and frames, kept alive while nothing else is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from starlette.types import Scope, Send

from smart_model_router.domain.request import Dialect
from smart_model_router.http_api import (
    EVENT_STREAM,
    PINGS,
    ApiRequest,
    Family,
    HttpReply,
    Problem,
    error_frame,
    rendered,
)
from smart_model_router.http_api.http_reply import id_headers

WHOLE = "smart_model_router.whole"
"""An extension of ASGI that our own server has: it sends a whole reply in one go."""
Whole = Callable[[Scope, int, bytes, bytes, bool], bool]
"""Status, headers as they are written, body, whether the connection ends with it; False when the reply has to be sent
as ASGI has it."""
PIECE = "smart_model_router.piece"
"""Another: it writes a part of a stream without a coroutine, as long as the client reads."""
Piece = Callable[[Scope | None, bytes], bool]
"""False when the part has to be sent as ASGI has it."""
ABORT = "smart_model_router.abort"
"""A third: it ends a connection so that no client takes what it has for the whole answer."""
Abort = Callable[[Scope | None], None]


class Responder:
    """One response. What is sent is sent under a lock: a ping must not come between a head and its first frame.

    A frame does without while the lock is free: for as long as it is being sent there is no ping.
    """

    def __init__(self, send: Send, family: Family, scope: Scope | None = None) -> None:
        self._send = send
        self._scope = scope
        self._family: Family = family
        self._lock = asyncio.Lock()
        self._dialect: Dialect | None = None
        self._now = asyncio.get_running_loop().time
        self._sending = False
        self.started = False
        self._open = False
        """An answer that passes through has begun and not ended."""
        self.sent_at = 0.0

    async def reply(self, reply: HttpReply) -> None:
        """Send a whole reply."""
        self.started = True
        if self._scope is not None and "extensions" in self._scope:
            whole: Whole | None = self._scope["extensions"].get(WHOLE)
            closes = "connection" in reply.headers
            if whole is not None and whole(self._scope, reply.status, _written(reply), reply.body, closes):
                return
        headers = [*_encoded(reply.headers), (b"content-length", str(len(reply.body)).encode())]
        await self._send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": reply.body})

    async def problem(self, problem: Problem) -> None:
        """Tell of a problem: with a status of its own, or in the stream when that has begun, which is aborted then.

        Some clients take a clean end for success, whatever event comes before it (the Vercel AI SDK). So nothing ends
        the response: a server closes the connection then, and ours knows how where the body has no framing.
        """
        if self._dialect is None:
            if not self.started:
                await self.reply(rendered(problem, self._family))
            elif self._open:
                self._abort()
            return
        told = error_frame(problem, self._dialect)
        if told is not None:
            await self.frame(told)
        self._abort()

    def _abort(self) -> None:
        abort: Abort | None = None if self._scope is None else self._scope.get("extensions", {}).get(ABORT)
        if abort is not None:
            abort(self._scope)

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the head of an answer that passes through; `pour` and `end` follow."""
        self.started = self._open = True
        await self._send({"type": "http.response.start", "status": status, "headers": _encoded(headers)})

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

    async def pour(self, following: Callable[[], Awaitable[bytes | None]]) -> None:
        """Send what follows, each at once, until None."""
        scope, locked, now = self._scope, self._lock.locked, self._now
        piece: Piece | None = None if scope is None else scope.get("extensions", {}).get(PIECE)
        while (data := await following()) is not None:
            if piece is not None and not locked() and piece(scope, data):
                self.sent_at = now()
            else:
                await self.frame(data)

    async def ping(self, dialect: Dialect, headers: Mapping[str, str]) -> None:
        """Send what means nothing, with the head before it if need be; nothing while a frame is being sent."""
        await self.head(dialect, headers)
        async with self._lock:
            if not self._sending:
                await self._send({"type": "http.response.body", "body": PINGS[dialect], "more_body": True})
                self.sent_at = self._now()

    async def end(self) -> None:
        """End a stream, or an answer that passed through."""
        async with self._lock:
            await self._send({"type": "http.response.body", "body": b""})
        self._open = False


class Keepalive:
    """One re-armed timer a stream: after `hold` seconds the head goes out, then a ping whenever `ping` were silent."""

    def __init__(self, responder: Responder, ask: ApiRequest, *, hold: float, ping: float) -> None:
        self._responder = responder
        self._ask = ask
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
            ask = self._ask
            headers = id_headers(ask.reports[-1].request_id) if ask.reports else {}
            self._task = self._loop.create_task(responder.ping(ask.dialect, headers))
        self._timer = self._loop.call_later(self._ping, self._tick)


def _written(reply: HttpReply) -> bytes:
    """The headers as HTTP/1.1 has them, with the length of the body."""
    fields = {**reply.headers, "content-length": str(len(reply.body))}
    text = "\r\n".join(map(": ".join, fields.items())) + "\r\n"
    if text.count("\n") != len(fields) or text.count("\r") != len(fields):
        raise ValueError("a line break in a header")
    return text.encode("latin-1", "replace")


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()]
