"""The connection outlives what happens to the loop it was opened on."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from smart_model_router_stats.open_db import GuardedConnection, open_store
from smart_model_router_stats.schema import STATS_MIGRATIONS
from smart_model_router_stats.sqlite_file import Database


def test_a_loop_closed_with_a_job_under_way_is_no_error(tmp_path: Path) -> None:
    """The job is done, and that nobody can be told is no error anybody sees (an unhandled one would fail this)."""
    path = tmp_path / "s.db"
    database = Database(str(path), lambda: open_store(path, STATS_MIGRATIONS))
    begun, go_on, done = threading.Event(), threading.Event(), threading.Event()
    before = threading.enumerate()  # those of other tests may be about to end

    def work(_: GuardedConnection) -> None:
        begun.set()
        assert go_on.wait(10)
        done.set()

    async def leave() -> None:
        await database.open()
        under_way = asyncio.create_task(database.call(work))
        await asyncio.to_thread(begun.wait, 10)
        under_way.cancel()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(leave())
    loop.run_until_complete(loop.shutdown_default_executor())
    (thread,) = [each for each in threading.enumerate() if "_serve" in each.name and each not in before]
    loop.close()
    go_on.set()
    assert done.wait(10)
    asyncio.run(use_again(database))
    thread.join(10)
    assert not thread.is_alive()


async def use_again(database: Database) -> None:
    """On a new loop, which makes the old thread end."""
    database.retire()
    await database.open()
    assert await database.fetch("SELECT 1") == (1,)
    await database.close()


@pytest.mark.parametrize("work", ["execute", "fetch", "run"])
@pytest.mark.asyncio
async def test_whoever_closes_the_handle_excludes_every_job(tmp_path: Path, work: str) -> None:
    """SQLite crashes the process when a handle is closed under a statement: no job runs while the guard is held."""
    path = tmp_path / "s.db"
    handles: list[GuardedConnection] = []

    def opener() -> GuardedConnection:
        handles.append(open_store(path, STATS_MIGRATIONS))
        return handles[-1]

    database = Database(str(path), opener)
    await database.open()
    (handle,) = handles
    with handle.guard:
        job = asyncio.create_task(getattr(database, work)("SELECT 1"))
        assert not (await asyncio.wait([job], timeout=0.1))[0]  # real time: it waits as long as the guard is held
    await job
    await database.close()
