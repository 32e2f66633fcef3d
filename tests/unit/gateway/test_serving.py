"""What the gateway does for its process and its connections: the collector, and pings between frames."""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from collections.abc import Iterator

import pytest
from starlette.types import Message

from smart_model_router.gateway.response import PIECE, Responder
from smart_model_router.gateway.uvicorn_server import settle
from smart_model_router.http_api import PINGS


class Ring:
    """Garbage that only the collector finds."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def _collector() -> Iterator[None]:
    """As it was before; what the tests keep was frozen then, too (tests/conftest.py)."""
    threshold, turn = gc.get_threshold(), sys.getswitchinterval()
    yield
    gc.set_threshold(*threshold)
    sys.setswitchinterval(turn)


@pytest.mark.usefixtures("_collector")
def test_the_collector_looks_only_at_what_is_new() -> None:
    """What is there when the gateway has settled costs no request anything; a reload lets go of it."""
    ring = Ring()
    seen = weakref.ref(ring)
    settle()
    del ring
    gc.collect()
    assert seen() is not None
    settle()
    assert seen() is None


@pytest.mark.asyncio
async def test_no_ping_comes_while_a_frame_is_being_sent() -> None:
    """A client that reads slowly gets whole frames, and a ping only between them."""
    sent: list[Message] = []
    may_go_on = asyncio.Event()

    async def send(message: Message) -> None:
        if message.get("body") == b"frame":
            await may_go_on.wait()
        sent.append(message)

    responder = Responder(send, "openai")
    await responder.head("chat", {})
    frame = asyncio.ensure_future(responder.frame(b"frame"))
    await asyncio.sleep(0)
    await responder.ping("chat", {})
    may_go_on.set()
    await frame
    await responder.ping("chat", {})
    assert [message.get("body") for message in sent[1:]] == [b"frame", PINGS["chat"]]


@pytest.mark.asyncio
async def test_a_frame_waits_for_the_ping_that_is_being_sent() -> None:
    """Neither is cut in two by the other."""
    sent: list[Message] = []
    may_go_on = asyncio.Event()

    async def send(message: Message) -> None:
        if message.get("body") == PINGS["chat"]:
            await may_go_on.wait()
        sent.append(message)

    responder = Responder(send, "openai")
    ping = asyncio.ensure_future(responder.ping("chat", {}))
    await asyncio.sleep(0)
    frame = asyncio.ensure_future(responder.frame(b"frame"))
    await asyncio.sleep(0)
    may_go_on.set()
    await asyncio.gather(ping, frame)
    assert [message["type"] for message in sent] == ["http.response.start"] + ["http.response.body"] * 2
    assert [message.get("body") for message in sent[1:]] == [PINGS["chat"], b"frame"]


@pytest.mark.asyncio
async def test_a_stream_goes_out_in_order_whoever_sends_it() -> None:
    """Our own server writes what it can at once; what it cannot, and what meets a ping, goes the way of ASGI."""
    sent: list[object] = []

    async def send(message: Message) -> None:
        await asyncio.sleep(0)
        sent.append(message.get("body"))

    def piece(scope: object, body: bytes) -> bool:
        if body == b"late":
            return False
        sent.append(body)
        return True

    responder = Responder(send, "openai", {"extensions": {PIECE: piece}})
    frames = iter((b"one", b"late", b"two", b"three", None))
    pings: list[asyncio.Future[None]] = []

    async def following() -> bytes | None:
        frame = next(frames)
        if frame == b"three":
            pings.append(asyncio.ensure_future(responder.ping("chat", {})))
            await asyncio.sleep(0)
        return frame

    await responder.head("chat", {})
    await responder.pour(following)
    await asyncio.gather(*pings)
    assert sent == [None, b"one", b"late", b"two", PINGS["chat"], b"three"]
