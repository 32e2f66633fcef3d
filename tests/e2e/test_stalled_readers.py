"""Two hundred readers that do not read, over real sockets: each is ended in time, and its slot with it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from smart_model_router import SmartModelRouter, StreamInterrupted
from smart_model_router.domain.events import AttemptFinished
from smart_model_router.domain.outcome import FailureClass
from smart_model_router.testing import RecordingSink
from tests.e2e.eventually import becomes
from tests.e2e.gateways import MESSAGES, footprint, served
from tests.e2e.gateways import becomes as soon

pytestmark = [pytest.mark.asyncio, pytest.mark.alone]
READERS = 200
IDLE = 1.0
"""`reader_idle` in seconds."""
IN_TIME = 45.0
"""Seconds, on any machine: less than the 60 s of the default, and of whatever else ends a stream. The exact instant is
shown in virtual time (tests/unit/flow/test_readers.py, tests/unit/gateway/test_uvicorn_server.py)."""
CHAT = {"model": "smart", "messages": MESSAGES}
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
PIECE = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "x" * 32_000}}]}
EVENT = b"data: " + json.dumps(PIECE).encode() + b"\n\n"


@dataclass
class Endless:
    """A provider whose streams never end: how many are open, and how many were closed."""

    base_url: str = ""
    open: int = 0
    closed: int = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Stream, as long as somebody reads."""
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_384)
        with suppress(asyncio.IncompleteReadError):  # a connection that was not needed
            await reader.readuntil(b"\r\n\r\n")
            self.open += 1
            with suppress(ConnectionError):
                writer.write(HEAD)
                while True:
                    writer.write(EVENT)
                    await writer.drain()
                    await asyncio.sleep(0)  # others write, too
            self.open -= 1
            self.closed += 1
        writer.close()


@asynccontextmanager
async def endless() -> AsyncGenerator[Endless]:
    """One of them, on a port of its own."""
    provider = Endless()
    server = await asyncio.start_server(provider.answer, "127.0.0.1", 0)
    provider.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield provider
    finally:
        server.close()


def config(provider: Endless) -> dict[str, Any]:
    """A model with one target, which has exactly as many slots as there are readers."""
    mine = {"kind": "openai_compatible", "base_url": provider.base_url, "bulkhead": READERS}
    return {
        "version": 1,
        "providers": {"p": mine},
        "models": {"smart": {"tiers": [{"targets": ["p/m"]}], "last_resort": []}},
        "resilience": {"timeouts": {"reader_idle": IDLE, "first_content": 60}, "adaptive": False},
    }


async def test_two_hundred_iterators_that_nobody_pulls() -> None:
    """In process: each gives its slot and connection back in time, nobody is blamed, and each is told when it asks."""
    sink = RecordingSink()
    async with endless() as provider, SmartModelRouter.from_config(config(provider), sinks=[sink]) as router:
        streams = [router.stream_chat(CHAT) for _ in range(READERS)]
        await asyncio.gather(*map(anext, streams))
        assert await becomes(lambda: router.targets()[0].in_flight == provider.open == 0, within=IN_TIME)
        ended = sink.of(AttemptFinished)
        assert [event.failure_class for event in ended] == [FailureClass.CANCELLED] * READERS
        assert router.targets()[0].state == "closed"
        for stream in streams:
            with pytest.raises(StreamInterrupted) as caught:
                async for _ in stream:
                    pass
            assert caught.value.reason == "reader_idle"


async def test_two_hundred_clients_of_the_gateway_that_do_not_read(tmp_path: Path) -> None:
    """Each is hung up on in time, in the middle of its answer; all slots are free for whoever comes next."""
    body = json.dumps({**CHAT, "stream": True}).encode()
    request = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: %d\r\n\r\n" % len(body)
    async with endless() as provider:
        with ExitStack() as stack:
            gateway = stack.enter_context(served(config(provider), tmp_path))
            before, _ = footprint(gateway.process.pid)
            clients = [stack.enter_context(deaf(gateway.address)) for _ in range(READERS)]
            for client in clients:
                client.sendall(request + body)
            assert await becomes(lambda: provider.open + provider.closed == READERS, within=IN_TIME)
            assert await becomes(lambda: not provider.open, within=IN_TIME)
            assert await becomes(lambda: footprint(gateway.process.pid)[0] <= before + 1)
            assert await asyncio.to_thread(soon, lambda: gateway.in_flight() == 0)
            assert (await asyncio.to_thread(gateway.health))["targets"][0]["state"] == "closed"
            for client in clients:
                assert not everything(client).endswith(b"0\r\n\r\n")


def deaf(address: tuple[str, int]) -> socket.socket:
    """A connection with little room for what is not read."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)  # of which depends what the other side's kernel keeps
    client.settimeout(10.0)
    client.connect(address)
    return client


def everything(client: socket.socket) -> bytes:
    """What had come before the other side hung up."""
    pieces = []
    with suppress(ConnectionError):
        while piece := client.recv(65_536):
            pieces.append(piece)
    return b"".join(pieces)
