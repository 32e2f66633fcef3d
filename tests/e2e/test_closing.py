"""Closing a router on real time: threads that hang and files that are locked, which no virtual clock has."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from smart_model_router import RouterUnavailable, SmartModelRouter, StreamInterrupted
from smart_model_router.domain.events import Event
from smart_model_router.testing import FakeProvider, FakeReply
from tests.e2e.eventually import PATIENCE, becomes
from tests.e2e.gateways import MESSAGES

pytestmark = [pytest.mark.asyncio, pytest.mark.alone]
CHAT = {"model": "smart", "messages": MESSAGES}


class Hanging(FakeProvider):
    """A provider whose calls, and whose end, take for ever."""

    async def aclose(self) -> None:
        """Hang."""
        await asyncio.Event().wait()


class Blocking:
    """A sink that never comes back from its first event, nor from its end."""

    def __init__(self) -> None:
        self.released = threading.Event()

    def emit(self, event: Event) -> None:
        """Block."""
        self.released.wait()

    def close(self) -> None:
        """Block."""
        self.released.wait()


async def test_a_router_closes_in_time_whatever_hangs(tmp_path: Path) -> None:
    """A provider and a sink that hang, both files of the store locked: none keeps it open; waiters are told before.

    That it takes 6 s at most is shown in virtual time (tests/unit/flow/test_shutdown.py).
    """
    provider, sink, path = Hanging(), Blocking(), tmp_path / "stats.db"
    tree = {
        "version": 1,
        "providers": {"p": {"kind": "openai_compatible", "base_url": "http://fake.invalid/v1", "bulkhead": 2}},
        "models": {"smart": {"tiers": [{"targets": ["p/m"]}], "last_resort": []}},
        "store": {"path": str(path)},
    }
    router = SmartModelRouter.from_config(tree, providers={"p": provider}, sinks=[sink])
    await router.chat(CHAT)
    files = (path, path.with_name("state.db"))
    assert await becomes(lambda: all(file.exists() for file in files))
    provider.set(FakeReply(pieces=("x",), stalls=True))
    stream = router.stream_chat(CHAT)
    while not stream.text:
        await anext(stream)
    provider.set(FakeReply(seconds=float("inf")))
    asked = [asyncio.ensure_future(router.chat(CHAT)) for _ in range(20)]
    assert await becomes(lambda: len(provider.calls) == 3)
    with closing(sqlite3.connect(files[0])) as one, closing(sqlite3.connect(files[1])) as other:
        for lock in (one, other):
            lock.execute("BEGIN EXCLUSIVE")
        closed = asyncio.ensure_future(router.aclose())
        errors = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), PATIENCE)
        told_before_it_was_closed = not closed.done()
        await asyncio.wait_for(closed, PATIENCE)
    sink.released.set()
    assert [type(error) for error in errors] == [RouterUnavailable] * 20
    assert told_before_it_was_closed
    with pytest.raises(StreamInterrupted, match="the router was closed"):
        await anext(stream)
