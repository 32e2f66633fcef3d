"""SqliteStore: the hot path is bounded, and what the file cannot take yet is neither lost nor written twice."""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest

from smart_model_router.domain.events import Event
from smart_model_router_stats import statements
from smart_model_router_stats.batched_store import QUEUE_LIMIT
from smart_model_router_stats.delta import Delta, write
from smart_model_router_stats.housekeeping import Limits
from smart_model_router_stats.open_db import open_store
from smart_model_router_stats.schema import STATS_MIGRATIONS
from smart_model_router_stats.sqlite import SqliteStore
from tests.e2e.eventually import PATIENCE, becomes
from tests.store_files import attempt, calls, one
from tests.unit.observability.test_batching import OPENED
from tests.unit.observability.test_log import finished


def kept(path: Path) -> int:
    """How many events and requests are in the file."""
    return sum(int(one(path, f"SELECT count(*) FROM {view}")) for view in ("v_events", "v_requests"))


@pytest.mark.asyncio
async def test_the_queue_drops_the_oldest_and_counts_them(tmp_path: Path) -> None:
    """Before the loop gets a turn 10,000 observations wait; more push out the oldest, and the file says how many."""
    path = tmp_path / "s.db"
    store = SqliteStore(path)
    for number in range(QUEUE_LIMIT + 50):
        store.observe(attempt("a/old" if number < 50 else "a/new"))
    await store.aclose()
    assert store.stats_dropped == 50
    assert one(path, "SELECT group_concat(target) FROM v_target_now") == "a/new"
    assert one(path, "SELECT stats_dropped FROM v_writers") == 50


def test_sums_in_memory_are_bounded() -> None:
    """While nothing can be written, cells beyond the limit push out the oldest; what was in them is counted."""
    delta = Delta(limit=10)
    for minute in range(12):
        delta.add(attempt(), 60.0 * minute)
        delta.add(attempt(), 60.0 * minute)
    assert (delta.calls, delta.lost) == (20, 4)


@pytest.mark.asyncio
async def test_two_hundred_observations_do_not_wait_for_the_interval(tmp_path: Path) -> None:
    """With an interval of an hour, 200 observations are written as soon as the loop has a turn."""
    store = SqliteStore(tmp_path / "s.db", interval=3_600)
    for _ in range(200):
        store.observe(attempt())
    assert await becomes(lambda: store.acknowledged == 200)
    await store.aclose()


@pytest.mark.asyncio
async def test_fewer_are_written_after_the_interval(tmp_path: Path) -> None:
    """One observation is in the file after one interval, without anybody asking for it."""
    store = SqliteStore(tmp_path / "s.db", interval=0.02)
    store.observe(attempt())
    assert await becomes(lambda: store.acknowledged == 1)
    assert calls(tmp_path / "s.db") == 1
    await store.aclose()


@pytest.mark.asyncio
@pytest.mark.parametrize("event", [OPENED, finished(1)], ids=["a transition", "a request"])
async def test_events_alone_are_written_too(tmp_path: Path, event: Event) -> None:
    """Where every request is refused nothing is observed; v_events and v_requests have what happened all the same."""
    path = tmp_path / "s.db"
    store = SqliteStore(path, interval=0.02)
    store.emit(event)
    assert await becomes(path.exists)
    await store.aclose()
    assert kept(path) == 1


@pytest.mark.parametrize("event", [OPENED, finished(1)], ids=["a transition", "a request"])
def test_a_program_that_ends_unclosed_writes_events_alone(tmp_path: Path, event: Event) -> None:
    """A program that observed nothing, and never ran a loop, leaves its events in the file."""
    path = tmp_path / "s.db"
    store = SqliteStore(path)
    store.emit(event)
    store._finish()
    assert kept(path) == 1


@pytest.mark.asyncio
async def test_what_was_observed_without_a_loop_waits_for_one(tmp_path: Path) -> None:
    """Observing from plain code before the loop runs is allowed; the first flush writes it."""
    store = SqliteStore(tmp_path / "s.db")
    await asyncio.to_thread(store.observe, attempt())
    assert await store.flush()
    await store.aclose()
    assert calls(tmp_path / "s.db") == 1


@pytest.mark.asyncio
async def test_a_locked_file_delays_nobody(tmp_path: Path) -> None:
    """While somebody else holds the lock, the loop turns and observations are taken; afterwards all are written."""
    path = tmp_path / "s.db"
    store = SqliteStore(path, interval=0.02)
    store.observe(attempt())
    assert await store.flush()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        async with asyncio.timeout(PATIENCE):  # of a lock's 5 s that each of them waited, it would see four
            for _ in range(300):
                store.observe(attempt())
                await asyncio.sleep(0.001)
        assert store.acknowledged == 1
        other.execute("ROLLBACK")
    await store.aclose()
    assert calls(path) == store.acknowledged == 301


@pytest.mark.asyncio
async def test_cancelling_who_waits_for_a_write_leaves_no_lock_and_loses_nothing(tmp_path: Path) -> None:
    """Whenever the caller of `flush` is cancelled, another process can write at once, and every call is there once."""
    path = tmp_path / "s.db"
    store = SqliteStore(path, interval=3_600)
    for number in range(60):
        store.observe(attempt())
        waiting = asyncio.ensure_future(store.flush())
        for _ in range(number * 3):
            await asyncio.sleep(0)
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
    assert await store.flush()
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
    await store.aclose()
    assert calls(path) == 60


@pytest.mark.asyncio
async def test_a_batch_given_twice_is_added_once(tmp_path: Path) -> None:
    """When the news of a commit was lost, the batch is given again: its number says that it is there already."""
    path = tmp_path / "s.db"
    delta = Delta(10)
    delta.add(attempt(), 1_000_000.0)
    batch = delta.take(1)
    with closing(open_store(path, STATS_MIGRATIONS)) as connection:
        connection.executescript(statements.SETUP)
        for _ in range(2):
            write(connection, batch, ("writer", 1, 0.0, 0.0, batch.number, 1, 0))
    assert calls(path) == 1
    assert one(path, "SELECT sum(count) FROM hist_minute") == 1


def test_a_second_loop_goes_on_where_the_first_ended(tmp_path: Path) -> None:
    """A router used from one `asyncio.run` after another loses nothing between them."""
    store = SqliteStore(tmp_path / "s.db", interval=0.01)

    async def observe_some() -> None:
        for _ in range(5):
            store.observe(attempt())
            await asyncio.sleep(0.01)

    for _ in range(3):
        asyncio.run(observe_some())
    asyncio.run(store.aclose())
    assert calls(tmp_path / "s.db") == 15


@pytest.mark.asyncio
async def test_a_reader_that_holds_a_snapshot_bounds_the_log_and_loses_nothing(tmp_path: Path) -> None:
    """Beyond its limit the write-ahead log grows no more; sums wait in memory, and are written once the reader ends."""
    path = tmp_path / "s.db"
    limit = 1_000_000
    store = SqliteStore(path, interval=0.005, limits=Limits(wal_bytes=limit))
    store.observe(attempt())
    assert await store.flush()
    wal = path.with_name("s.db-wal")
    observed = 1
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM outcome_minute").fetchone()
        while store.status.state == "ok":
            for _ in range(50):
                store.observe(attempt(f"a/m{observed % 40}", seconds=1.0 + observed % 97))
                observed += 1
            await asyncio.sleep(0.002)
        for _ in range(500):
            store.observe(attempt())
            observed += 1
        await asyncio.sleep(0.1)  # real time: twenty intervals, in which the log could grow
        assert "reader" in store.status.reason
        assert wal.stat().st_size < limit + 500_000
        reader.execute("ROLLBACK")
    assert await becomes(lambda: store.status.state == "ok")
    await store.aclose()
    assert calls(path) == observed
    assert store.stats_dropped == 0


@pytest.mark.asyncio
async def test_closing_writes_what_a_full_log_held_back(tmp_path: Path) -> None:
    """Who closes while a reader still holds its snapshot does not lose what waited for its end."""
    path = tmp_path / "s.db"
    open_store(path, STATS_MIGRATIONS).close()
    store = SqliteStore(path, limits=Limits(wal_bytes=1))
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        store.observe(attempt())
        assert await store.flush()
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM outcome_minute").fetchone()
        store.observe(attempt())
        assert not await store.flush()
        await store.aclose()
    assert calls(path) == 2


def test_a_batch_is_never_large() -> None:
    """However much waits, a batch takes 32 cells and 1,000 rows at most, and every one of them in turn."""
    delta = Delta(limit=5_000)
    for number in range(100):
        delta.add(attempt(f"a/m{number}"), 0.0)
    for number in range(2_500):
        delta.note("new_request", (number,))
    assert delta.batches == 4
    batches = [delta.take(number).rows for number in range(delta.batches)]
    assert [(len(batch["cell"]), len(batch["new_request"])) for batch in batches] == [
        (32, 1_000),
        (32, 1_000),
        (32, 500),
        (4, 0),
    ]
    assert not delta


def test_routers_on_their_own_loops_add_up(tmp_path: Path) -> None:
    """Four loops in four threads of one process, each with a store on the same file: the file has the sum."""
    path = tmp_path / "s.db"

    async def observe_some() -> None:
        store = SqliteStore(path, interval=0.01)
        for _ in range(50):
            store.observe(attempt())
            await asyncio.sleep(0.002)
        await store.aclose()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: asyncio.run(observe_some()), range(4)))
    assert calls(path) == 200
