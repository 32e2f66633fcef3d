"""Just enough HTTP/1.1 for a fault server: timers instead of tasks, and ends as rude as asked."""

from __future__ import annotations

import asyncio
import math
import socket
import struct
from collections.abc import Callable, Mapping
from email.utils import formatdate
from functools import lru_cache
from typing import Protocol, cast

from smart_model_router_providers.fault.answers import PHRASES, error_body
from smart_model_router_providers.fault.backend import Ending, Exchange
from smart_model_router_providers.fault.steps import Data, End, Head, WaitStep, whole

MOST_HEAD_BYTES = 65_536
MOST_BODY_BYTES = 64 * 1024 * 1024
LINGER_NOT = struct.pack("ii", 1, 0)  # SO_LINGER with zero seconds turns a close into a reset


class Service(Protocol):
    """The handler of a connection's requests."""

    def begin(self, method: str, target: str, headers: Mapping[str, str], body: bytes, now: float) -> Exchange:
        """Take a request."""
        ...

    def wall(self) -> float:
        """Epoch seconds, for the Date of an answer."""
        ...


class _Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Connection(asyncio.Protocol):
    """One client, whose requests are answered one after the other. It is in `peers` while it is open.

    `lost` is done when it is gone.
    """

    def __init__(
        self,
        service: Service,
        peers: set[Connection],
        welcome: Callable[[], bool],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._service = service
        self._peers = peers
        self._welcome = welcome
        self._loop = loop
        self.lost: asyncio.Future[None] = loop.create_future()
        self._buffer = bytearray()
        self._needed = 0
        self._continued = False
        self._exchange: Exchange | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._chunked = False
        self._last = False
        self._head_only = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Join the open connections; one accepted just before listening ended is closed."""
        self._transport = cast("asyncio.Transport", transport)
        self._peers.add(self)
        if not self._welcome():
            self.reset()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  asyncio's signature
        """Whatever was still being answered, the client did not wait for it."""
        self._peers.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self._end("abandoned")
        self.lost.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Collect, and answer what is complete."""
        self._buffer += data
        if self._exchange is None and len(self._buffer) >= self._needed:
            self._serve()

    def reset(self) -> None:
        """Drop the connection with a TCP reset, whatever is on its way."""
        raw = self._transport.get_extra_info("socket")
        if raw is not None and not self._transport.is_closing():
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
        self._transport.abort()

    def _serve(self) -> None:
        while self._exchange is None and not self._transport.is_closing():
            try:
                exchange = self._request()
            except _Refused as error:
                self._last = True
                exchange = Exchange(whole(error.status, error_body("chat", error.status, str(error))))
            if exchange is None:
                return
            self._exchange = exchange
            self._advance()

    def _request(self) -> Exchange | None:
        """Return the next request once it is whole."""
        buffer = self._buffer
        end = buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(buffer) > MOST_HEAD_BYTES:
                raise _Refused(431, "the head is too long")
            return None
        method, target, headers = _head(bytes(buffer[:end]).decode("latin-1"))
        length = _length(headers)
        self._needed = end + 4 + length
        if len(buffer) < self._needed:
            if not self._continued and headers.get("expect", "").lower() == "100-continue":
                self._continued = True
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            return None
        body = bytes(buffer[end + 4 : self._needed])
        del buffer[: self._needed]
        self._needed, self._continued = 0, False
        self._last = headers.get("connection", "").lower() == "close"
        self._head_only = method == "HEAD"
        return self._service.begin(method, target, headers, body, self._loop.time())

    def _advance(self) -> None:
        """Play steps up to the next wait or the end."""
        self._timer = None
        exchange = self._exchange
        if exchange is None:
            return
        out: list[bytes] = []
        for step in exchange.steps:
            if isinstance(step, Data):
                self._add(step.body, out)
            elif isinstance(step, Head):
                exchange.head_sent(step.status)
                out.append(self._rendered(step))
            elif isinstance(step, WaitStep):
                self._transport.write(b"".join(out))
                self._wait(step.seconds)
                return
            else:
                self._finish(step, out)
                return

    def _wait(self, seconds: float) -> None:
        if seconds < math.inf:
            self._timer = self._loop.call_later(seconds, self._resume)

    def _resume(self) -> None:
        self._advance()
        self._serve()

    def _add(self, body: bytes, out: list[bytes]) -> None:
        if self._head_only or not body:
            return
        out.append(b"%x\r\n%b\r\n" % (len(body), body) if self._chunked else body)

    def _rendered(self, head: Head) -> bytes:
        self._chunked = head.length is None
        given = {name for name, _ in head.headers}
        lines = [f"HTTP/1.1 {head.status} {PHRASES.get(head.status, 'Unassigned')}"]
        lines += [f"{name}: {value}" for name, value in head.headers]
        if "date" not in given:
            lines.append(f"date: {_date(int(self._service.wall()))}")
        if self._chunked:
            lines.append("transfer-encoding: chunked")
        elif "content-length" not in given:
            lines.append(f"content-length: {head.length}")
        if self._last:
            lines.append("connection: close")
        return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")

    def _finish(self, end: End, out: list[bytes]) -> None:
        if end is End.CLEAN and self._chunked:
            out.append(b"0\r\n\r\n")
        self._chunked = False
        if out:
            self._transport.write(b"".join(out))
        self._end("answered" if end is End.CLEAN else "cut")
        if end in (End.RESET, End.REFUSED):
            self.reset()
        elif end is End.CUT or self._last:
            self._transport.close()

    def _end(self, ending: Ending) -> None:
        if self._exchange is not None:
            self._exchange.end(ending, self._loop.time())
            self._exchange = None


def _head(text: str) -> tuple[str, str, dict[str, str]]:
    first, *lines = text.split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise _Refused(400, "not an HTTP/1.1 request")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return words[0], words[1], headers


def _length(headers: Mapping[str, str]) -> int:
    if "transfer-encoding" in headers:
        raise _Refused(411, "send the body with a content-length")
    given = headers.get("content-length", "0")
    if not (given.isascii() and given.isdigit()):
        raise _Refused(400, "content-length is not a number")
    if int(given[:20]) > MOST_BODY_BYTES:
        raise _Refused(413, "the body is too long")
    return int(given)


@lru_cache(maxsize=4)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)
