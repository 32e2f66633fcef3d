"""uvicorn's HTTP/1.1 with our manners: impatient with slow heads and with clients that do not read, quick to write."""

from __future__ import annotations

import asyncio
import math
import socket
import struct
from typing import Any, ClassVar

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from smart_model_router.config import GatewayConfig
from smart_model_router.gateway.response import ABORT, PIECE, WHOLE

_LAST_SECONDS = 2.0
"""The seconds for which a client may still send after an answer that ends its connection."""
_LOOK_SECONDS = 0.5
"""The interval of checks of a client that leaves bytes unread."""
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER for 0 seconds: to close is to reset."""


class PatientProtocol(HttpToolsProtocol):
    """HTTP/1.1 that gives a head so many seconds and bytes, an idle connection and a client's reading their time.

    A client that reads nothing for `reader_idle` seconds while something waits for it is cut off.
    """

    head_timeout: ClassVar[float]
    head_bytes: ClassVar[int]
    reader_idle: ClassVar[float]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._in_head = True
        self._seen = 0
        self._head_alarm: asyncio.TimerHandle | None = None
        self._idle_until = math.inf
        self._idle_alarm: asyncio.TimerHandle | None = None
        self._earlier: list[RequestResponseCycle] = []
        self._reader_alarm: asyncio.TimerHandle | None = None
        self._unread = 0
        self._read_at = 0.0
        self._last_alarm: asyncio.TimerHandle | None = None
        self._body_left = 0
        """Bytes of a body that the parser does not read, as it takes its request for the last one of this protocol."""
        self._deaf = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """The first head begins now."""
        super().connection_made(transport)
        self._time_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is expected any more. uvicorn tells the newest request; those before it have to know, too."""
        self._head_ended()
        for alarm in (self._idle_alarm, self._reader_alarm, self._last_alarm):
            if alarm is not None:
                alarm.cancel()
        super().connection_lost(exc)
        for cycle in self._earlier:
            cycle.disconnected = True
            cycle.message_event.set()

    def data_received(self, data: bytes) -> None:
        """More of a head must not go on for ever. After the last answer nothing is read any more."""
        if self._last_alarm is not None:
            return
        if self._in_head:  # before it is read: with a head that begins in it other things may have come
            self._seen += len(data)
        self._feed(data)
        if self._in_head:
            if self._seen > self.head_bytes:
                self._refuse(b"431 Request Header Fields Too Large")
            elif self._head_alarm is None:
                self._time_head()

    def _feed(self, data: bytes) -> None:
        """Read on. A request to upgrade is answered as if it had not asked: Java's client asks for HTTP/2 that way.

        The parser takes what follows such a head for another protocol. Its body is read here.
        """
        if self._body_left:
            body, data = data[: self._body_left], data[self._body_left :]
            self._body_left -= len(body)
            self.on_body(body)
            if not self._body_left:
                self.on_message_complete()
        if not data or self._deaf or self.transport.is_closing():
            return
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as told:
            self.parser = HttpRequestParser(self)
            self._feed(data[told.args[0] :])
        except HttpParserError:
            self.send_400_response("Invalid HTTP request received.")

    def pause_writing(self) -> None:
        """More waits for the client than is to be kept for it."""
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        """It has read."""
        super().resume_writing()
        self._read_at = self.loop.time()

    def on_message_begin(self) -> None:
        """Another head begins: not with any byte, but with one that is more than a line break."""
        super().on_message_begin()
        self._idle_until = math.inf
        if not self._in_head:
            self._in_head, self._seen = True, 0

    def on_headers_complete(self) -> None:
        """It is there."""
        self._head_ended()
        before: RequestResponseCycle | None = self.cycle
        super().on_headers_complete()
        if self.parser.should_upgrade():
            self._go_on_without_upgrade()
        if self._earlier or (before is not None and not before.response_complete):
            self._earlier = [cycle for cycle in (*self._earlier, before) if cycle and not cycle.response_complete]

    def _go_on_without_upgrade(self) -> None:
        fields = dict(self.headers)
        if self.scope["method"] == "CONNECT" or b"transfer-encoding" in fields:
            self._deaf = True  # where it ends is not known here
            self.cycle.keep_alive = False
        else:
            self._body_left = int(fields.get(b"content-length", b"0"))

    def on_message_complete(self) -> None:
        """The request is there, but for a body that is read here."""
        if not self._body_left:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """One timer for the idle times of a connection: uvicorn makes and cancels one for every request.

        Neither the rest of a body that was answered early nor a line break makes it any longer.
        """
        self._await_reader()
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        if self._in_head:
            return
        self._idle_until = self.loop.time() + self.timeout_keep_alive
        if self._idle_alarm is None:
            self._idle_alarm = self.loop.call_at(self._idle_until, self._look_idle)

    def _look_idle(self) -> None:
        self._idle_alarm = None
        if self.loop.time() >= self._idle_until:
            self.timeout_keep_alive_handler()
        elif self._idle_until < math.inf:
            self._idle_alarm = self.loop.call_at(self._idle_until, self._look_idle)

    def _end(self) -> None:
        """The last answer is written: the client reads it and then the end, whatever it sends meanwhile is dropped.

        To close at once would reset the connection while the client still sends, and take the answer from it.
        """
        self.pipeline.clear()
        self.transport.write_eof()
        self.flow.resume_reading()
        self._last_alarm = self.loop.call_later(_LAST_SECONDS, self.transport.abort)

    def _await_reader(self) -> None:
        """Look after a client until it has read what waits for it, whatever becomes of the request meanwhile."""
        self._unread = self.transport.get_write_buffer_size()
        if self._unread and self._reader_alarm is None:
            self._read_at = self.loop.time()
            self._reader_alarm = self.loop.call_later(_LOOK_SECONDS, self._look_at_reader)

    def _look_at_reader(self) -> None:
        self._reader_alarm = None
        now, unread = self.loop.time(), self.transport.get_write_buffer_size()
        if unread < self._unread:
            self._read_at = now
        self._unread = unread
        if not unread:
            return
        if now - self._read_at >= self.reader_idle:
            self.transport.abort()  # to close it would wait for what it does not read
        else:
            self._reader_alarm = self.loop.call_later(_LOOK_SECONDS, self._look_at_reader)

    def _time_head(self) -> None:
        """Begin to count, once a head has not come in one piece."""
        self._head_alarm = self.loop.call_later(self.head_timeout, self._refuse, b"408 Request Timeout")

    def _head_ended(self) -> None:
        self._in_head = False
        if self._head_alarm is not None:
            self._head_alarm.cancel()
            self._head_alarm = None

    def _refuse(self, status: bytes) -> None:
        """Close, and say why unless that would be said in the middle of an answer to an earlier request."""
        self._head_ended()
        if self.transport.is_closing():
            return
        newest: RequestResponseCycle | None = self.cycle
        if newest is None or newest.response_complete:
            self.transport.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        self.transport.close()


class GatewayProtocol(PatientProtocol):
    """It also writes a whole reply, or a part of a stream, in one go: what ASGI has two messages and coroutines for."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._extensions: Any = {WHOLE: self._send_whole, PIECE: self._send_piece, ABORT: self._abort}

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is written any more."""
        self._extensions.clear()  # it holds us
        super().connection_lost(exc)

    def on_headers_complete(self) -> None:
        """A request: its answer may go our way."""
        super().on_headers_complete()
        self.scope["extensions"] = self._extensions

    def _send_whole(self, scope: Scope, status: int, head: bytes, body: bytes, closes: bool) -> bool:
        """Do uvicorn's work of two messages in one go. It looks at each header twice; ours are looked at already."""
        cycle = self.cycle
        if cycle.scope is not scope or cycle.response_started or cycle.disconnected:
            return False
        if not (cycle.keep_alive or closes):
            return False
        if self.flow.write_paused or scope["method"] == "HEAD":
            return False
        ours = [b"%b: %b\r\n" % field for field in cycle.default_headers]  # the date
        told = b"".join((STATUS_LINE[status], *ours, head, b"\r\n", body))
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        self.transport.write(told)
        cycle.message_event.set()
        if closes:
            self._end()
        else:
            cycle.on_response()
        return True

    def _send_piece(self, scope: Scope, body: bytes) -> bool:
        """Do uvicorn's work of a part of a body whose length is unknown."""
        cycle = self.cycle
        if cycle.scope is not scope or self.flow.write_paused or cycle.disconnected or cycle.response_complete:
            return False
        if not (body and cycle.chunked_encoding and cycle.response_started):
            return False
        self.transport.write(b"%x\r\n%b\r\n" % (len(body), body))
        return True

    def _abort(self, scope: Scope) -> None:
        """Close in the middle of a response: without its last chunk, or by a reset for HTTP/1.0, which has none."""
        if scope["http_version"] == "1.0" and (wire := self.transport.get_extra_info("socket")) is not None:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.transport.close()


def protocol_for(config: GatewayConfig, *, reader_idle: float) -> type[GatewayProtocol]:
    """The protocol with the limits of a configuration: uvicorn makes it without arguments of ours."""
    limits = {"head_timeout": config.head_timeout, "head_bytes": config.head_bytes, "reader_idle": reader_idle}
    return type("GatewayProtocol", (GatewayProtocol,), limits)
