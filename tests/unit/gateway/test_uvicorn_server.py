"""Our uvicorn protocol over a wire that only remembers: whole replies in one write, limits of heads and idle times."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from smart_model_router.config import GatewayConfig
from smart_model_router.gateway.response import PIECE, Piece, Responder
from smart_model_router.gateway.uvicorn_protocol import protocol_for
from smart_model_router.http_api import HttpReply
from tests.world import timers, virtual


async def _silent(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that leaves the answer to the test."""
    await asyncio.Event().wait()


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closed = self._aborted = False
        self.unread = 0

    def get_write_buffer_size(self) -> int:
        """What the client has not read."""
        return self.unread

    def abort(self) -> None:
        """Remember."""
        self._aborted = True

    def aborted(self) -> bool:
        """Whether somebody aborted it."""
        return self._aborted

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Keep it."""
        self.written.append(bytes(data))

    def close(self) -> None:
        """Remember."""
        self.closed = True

    def is_closing(self) -> bool:
        """Whether somebody closed it."""
        return self.closed

    def pause_reading(self) -> None:
        """Nothing is read."""

    def resume_reading(self) -> None:
        """Nothing is read."""


HEAD = b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\n\r\n"


@contextmanager
def connection() -> Generator[tuple[Any, Wire]]:
    """A connection as uvicorn has it, and the wire below it."""
    state = ServerState()
    state.default_headers = [(b"date", b"today")]
    options = uvicorn.Config(_silent, lifespan="off", ws="none", timeout_keep_alive=75)
    options.load()
    protocol, wire = protocol_for(GatewayConfig(head_timeout=10), reader_idle=20)(options, state, {}), Wire()
    protocol.connection_made(wire)
    try:
        yield protocol, wire
    finally:
        protocol.connection_lost(None)
        for task in state.tasks:
            task.cancel()


@virtual
async def test_a_whole_reply_is_one_write() -> None:
    """Status, date, headers, length and body go out at once, and the connection waits for its next request."""
    with connection() as (protocol, wire):
        protocol.data_received(HEAD)
        responder = Responder(protocol.cycle.send, "openai", protocol.scope)
        await responder.reply(HttpReply(201, {"x-a": "b\u00e9"}, b"{}"))
        assert wire.written == [b"HTTP/1.1 201 Created\r\ndate: today\r\nx-a: b\xe9\r\ncontent-length: 2\r\n\r\n{}"]
        assert protocol.cycle.response_complete
        assert not wire.closed


@virtual
async def test_a_reply_to_a_client_that_closes_goes_as_uvicorn_has_it() -> None:
    """`connection: close` is answered, and done."""
    with connection() as (protocol, wire):
        protocol.data_received(HEAD.replace(b"host: 127.0.0.1", b"connection: close"))
        await Responder(protocol.cycle.send, "openai", protocol.scope).reply(HttpReply(200, {}, b"{}"))
        assert b"connection: close\r\n" in b"".join(wire.written)
        assert wire.closed


@virtual
async def test_of_two_requests_at_once_each_gets_its_own_reply() -> None:
    """The first is answered first, whoever is ready first."""
    with connection() as (protocol, wire):
        protocol.data_received(HEAD)
        first = protocol.cycle
        protocol.data_received(HEAD)
        await Responder(first.send, "openai", first.scope).reply(HttpReply(200, {}, b"first"))
        await Responder(protocol.cycle.send, "openai", protocol.scope).reply(HttpReply(200, {}, b"second"))
        sent = b"".join(wire.written)
        assert sent.index(b"first") < sent.index(b"second")


@virtual
async def test_a_line_break_in_a_header_is_not_sent() -> None:
    """It would begin a header of its own."""
    with connection() as (protocol, wire):
        protocol.data_received(HEAD)
        with pytest.raises(ValueError, match="line break"):
            await Responder(protocol.cycle.send, "openai", protocol.scope).reply(HttpReply(200, {"x": "a\nb: c"}))
        assert wire.written == []


@virtual
async def test_a_connection_that_nobody_uses_is_closed() -> None:
    """75 s after its last answer; a request under way, or a new one in the meantime, keeps it."""
    with connection() as (protocol, wire):
        for _ in range(2):
            protocol.data_received(HEAD)
            await asyncio.sleep(100)
            await Responder(protocol.cycle.send, "openai", protocol.scope).reply(HttpReply(200, {}, b"{}"))
            await asyncio.sleep(74)
            assert not wire.closed
        await asyncio.sleep(2)
        assert wire.closed


@virtual
async def test_a_client_that_reads_nothing_is_cut_off() -> None:
    """20 s after it last read, a second later at most: also of a whole reply, and where only a little waits."""
    with connection() as (protocol, wire):
        wire.unread = 100_000
        protocol.pause_writing()
        await asyncio.sleep(19.9)
        assert not wire.aborted()
        await asyncio.sleep(1.0)
        assert wire.aborted()
    with connection() as (protocol, wire):
        protocol.data_received(HEAD)
        wire.unread = 9
        await Responder(protocol.cycle.send, "openai", protocol.scope).reply(HttpReply(200, {}, b"{}"))
        await asyncio.sleep(20.9)
        assert wire.aborted()


@virtual
async def test_a_client_that_reads_slowly_is_left_alone() -> None:
    """A byte in 19 s is something; so is room for more; and who has read all is looked at no longer."""
    with connection() as (protocol, wire):
        wire.unread = 100_000
        protocol.pause_writing()
        for _ in range(5):
            await asyncio.sleep(19.0)
            wire.unread -= 1
        protocol.resume_writing()
        wire.unread = 200_000
        protocol.pause_writing()
        await asyncio.sleep(19.0)
        assert not wire.aborted()
        wire.unread = 0
        await asyncio.sleep(1.0)
        assert not timers()
        assert not wire.aborted()


@virtual
async def test_a_later_head_has_its_time_too() -> None:
    """Every head of a connection that comes in pieces is waited for ten seconds, and no longer."""
    with connection() as (protocol, wire):
        protocol.data_received(HEAD)
        await Responder(protocol.cycle.send, "openai", protocol.scope).reply(HttpReply(200, {}, b"{}"))
        protocol.data_received(HEAD[:20])
        await asyncio.sleep(9)
        assert not wire.closed
        await asyncio.sleep(2)
        assert wire.written[-1].startswith(b"HTTP/1.1 408")
        assert wire.closed


@pytest.mark.parametrize("rest", [b"\r\n", b"x"], ids=["a stray line break", "the rest of a body that was refused"])
@virtual
async def test_what_is_no_head_keeps_no_connection_open(rest: bytes) -> None:
    """A connection whose request is answered has its idle time, whatever else trickles in."""
    with connection() as (protocol, wire):
        length = b"999" if rest == b"x" else b"0"
        protocol.data_received(HEAD.replace(b"content-length: 0", b"content-length: " + length))
        await Responder(protocol.cycle.send, "openai", protocol.scope).reply(HttpReply(413, {}, b"{}"))
        for _ in range(7):
            await asyncio.sleep(10)
            protocol.data_received(rest)
        assert not wire.closed
        await asyncio.sleep(6)
        assert wire.closed


@virtual
async def test_a_head_that_comes_with_the_end_of_a_body_is_not_too_large() -> None:
    """Only what comes of a head counts against its limit, and that of every head."""
    with connection() as (protocol, wire):
        body = b"b" * 100_000
        protocol.data_received(HEAD.replace(b"content-length: 0", b"content-length: 100000"))
        protocol.data_received(body + HEAD[: HEAD.index(b"content")])
        assert not wire.closed
        await Responder(protocol.cycle.send, "openai", protocol.scope).reply(HttpReply(200, {}, b"{}"))
        protocol.data_received(b"x-a: " + body)
        assert wire.written[-1].startswith(b"HTTP/1.1 431")
        assert wire.closed


@pytest.mark.parametrize("rest", [b"", b"b" * 100_000], ids=["too late", "too large"])
@virtual
async def test_a_bad_head_is_not_answered_in_the_middle_of_a_stream(rest: bytes) -> None:
    """The next request of a client that is still being answered: the connection ends, and nothing is mixed in."""
    with connection() as (protocol, wire):
        protocol.data_received(HEAD)
        responder = Responder(protocol.cycle.send, "openai", protocol.scope)
        await responder.head("chat", {})
        protocol.data_received(HEAD[:40])
        protocol.data_received(rest)
        await asyncio.sleep(11)
        assert len(wire.written) == 1
        assert wire.closed


async def streaming(protocol: Any) -> Callable[[bytes], bool]:
    """A stream whose head is sent; how a part of it is written at once."""
    protocol.data_received(HEAD)
    await Responder(protocol.cycle.send, "openai", protocol.scope).head("chat", {})
    scope = protocol.scope
    piece: Piece = scope["extensions"][PIECE]
    return lambda body: piece(scope, body)


@virtual
async def test_a_piece_is_a_chunk() -> None:
    """Written at once, and framed as a body is whose length nobody knows."""
    with connection() as (protocol, wire):
        send = await streaming(protocol)
        assert send(b"data: {}\n\n")
        await protocol.cycle.send({"type": "http.response.body", "body": b""})
        assert b"transfer-encoding: chunked\r\n" in wire.written[0]
        assert wire.written[1:] == [b"a\r\ndata: {}\n\n\r\n", b"0\r\n\r\n"]


def _pause(protocol: Any) -> None:
    protocol.pause_writing()


def _hang_up(protocol: Any) -> None:
    protocol.connection_lost(None)


def _go_on(protocol: Any) -> None:
    protocol.data_received(HEAD)


def _end(protocol: Any) -> None:
    protocol.cycle.response_complete = True


@pytest.mark.parametrize("happens", [_pause, _hang_up, _go_on, _end])
@virtual
async def test_a_piece_that_cannot_be_written_at_once_is_left_to_uvicorn(happens: Callable[[Any], None]) -> None:
    """A client that does not read, or is gone; an answer that is not the newest request's, or is over."""
    with connection() as (protocol, wire):
        send = await streaming(protocol)
        happens(protocol)
        before = list(wire.written)
        assert not send(b"data: {}\n\n")
        assert wire.written == before


@virtual
async def test_an_empty_piece_does_not_end_a_stream() -> None:
    """An empty chunk is the last one."""
    with connection() as (protocol, wire):
        send = await streaming(protocol)
        assert not send(b"")
        assert len(wire.written) == 1


@virtual
async def test_a_head_alone_has_the_length_of_its_body() -> None:
    """HEAD is answered like GET, but for the body (RFC 9110, 8.6)."""
    with connection() as (protocol, wire):
        protocol.data_received(b"HEAD /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        await Responder(protocol.cycle.send, "openai", protocol.scope).reply(HttpReply(200, {}, b"{}"))
        assert b"".join(wire.written).endswith(b"content-length: 2\r\n\r\n")
