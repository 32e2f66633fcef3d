"""A router with a statistics file: its requests do not notice what becomes of the file."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from smart_model_router import SmartModelRouter
from smart_model_router.testing import FakeProvider
from smart_model_router_stats.open_db import open_store
from smart_model_router_stats.schema import STATS_MIGRATIONS
from smart_model_router_stats.sqlite import SqliteStore
from tests.e2e.eventually import PATIENCE
from tests.store_files import calls, rows

BODY = {"model": "smart", "messages": [{"role": "user", "content": "hello"}]}
CONFIG = {
    "version": 1,
    "providers": {"a": {"kind": "openai_compatible", "base_url": "http://fake.invalid"}},
    "models": {"smart": {"tiers": [{"targets": ["a/big"]}], "last_resort": []}},
}
TURNS = 200
"""Of the loop: more than a request needs, and gone before any file has answered."""


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Somebody else holds the lock."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


@contextmanager
def removed(path: Path) -> Generator[None]:
    """The file is gone."""
    path.unlink()
    yield


@contextmanager
def untouched(path: Path) -> Generator[None]:
    """Nothing happens to the file."""
    del path
    yield


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("happens", "answers"),
    [(locked, True), (removed, True), (untouched, False)],
    ids=["locked", "removed", "file-system-without-answer"],
)
async def test_requests_do_not_notice(
    tmp_path: Path, happens: Callable[[Path], AbstractContextManager[None]], answers: bool
) -> None:
    """With the file locked or removed, or a file system that does not answer, no request waits for either."""
    path = tmp_path / "s.db"
    open_store(path, STATS_MIGRATIONS).close()
    asked, answered = threading.Event(), threading.Event()
    if answers:
        answered.set()

    def filesystem(_: Path) -> str:
        asked.set()
        answered.wait(60)
        return "ext4"

    store = SqliteStore(path, interval=0.01, filesystem=filesystem)
    router = SmartModelRouter.from_config(CONFIG, providers={"a": FakeProvider()}, store=store)
    count = 0
    with happens(path):
        async with asyncio.timeout(3 * PATIENCE):  # a request that blocks its thread would wait 5 s for a lock
            while count < 300 or not asked.is_set():
                asking = asyncio.ensure_future(router.chat(BODY))
                for _ in range(TURNS):
                    await asyncio.sleep(0)
                assert asking.done()  # it waited for nothing but the loop
                count += 1
                await asyncio.sleep(0.001)
    answered.set()
    await router.aclose()
    assert calls(path) == count


@pytest.mark.asyncio
async def test_a_configured_store_keeps_calls_and_requests(tmp_path: Path) -> None:
    """`store.path` is all it takes: attempts and requests of the router are in the file once it is closed."""
    path = tmp_path / "s.db"
    config = {**CONFIG, "store": {"path": str(path)}}
    async with SmartModelRouter.from_config(config, providers={"a": FakeProvider()}) as router:
        reply = await router.chat(BODY)
        figures = router.stats().targets["a/big"]
    assert rows(path, "SELECT target, calls, successes FROM v_target_now") == [("a/big", 1, 1)]
    assert figures.calls == 1
    assert rows(path, "SELECT request_id, outcome, target FROM v_requests") == [
        (reply.report.request_id, "ok", "a/big")
    ]
