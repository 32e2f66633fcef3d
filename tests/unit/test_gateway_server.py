"""Our uvicorn protocol over a wire that only remembers: whole replies in one write, limits of heads and idle times."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from smart_model_router.config import GatewayConfig
from smart_model_router.edge import HttpReply
from smart_model_router.gateway.responding import Responder
from smart_model_router.gateway.server import _patient
from tests.world import virtual


async def _silent(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that leaves the answer to the test."""
    await asyncio.Event().wait()


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closed = False

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


HEAD = b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n"


@contextmanager
def connection() -> Generator[tuple[Any, Wire]]:
    """A connection as uvicorn has it, and the wire below it."""
    state = ServerState()
    state.default_headers = [(b"date", b"today")]
    options = uvicorn.Config(_silent, lifespan="off", ws="none", timeout_keep_alive=75)
    options.load()
    protocol, wire = _patient(GatewayConfig(head_timeout=10))(options, state, {}), Wire()
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
        protocol.data_received(HEAD.replace(b"host: x", b"connection: close"))
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
