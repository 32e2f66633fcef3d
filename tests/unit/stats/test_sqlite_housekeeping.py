"""Housekeeping of a statistics file: 15 minutes that move with the clock, retention, size, and one housekeeper."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from smart_model_router_stats import statements
from smart_model_router_stats.delta import Delta
from smart_model_router_stats.delta import write as write_batch
from smart_model_router_stats.housekeeping import LEASE_SECONDS, Housekeeper, Limits
from smart_model_router_stats.open_db import open_store
from smart_model_router_stats.schema import STATS_MIGRATIONS
from smart_model_router_stats.sqlite_file import Database
from tests.store_files import attempt, one, rows

NOW = 1_000_000 * 60.0
"""A wall clock of these tests: the beginning of minute 1,000,000."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file is."""
    return tmp_path / "s.db"


@pytest_asyncio.fixture
async def database(path: Path) -> AsyncIterator[Database]:
    """An open file."""
    database = Database(str(path), lambda: open_store(path, STATS_MIGRATIONS))
    await database.open()
    await database.run(statements.SETUP)
    yield database
    await database.close()


async def write(database: Database, number: int, *walls: float, target: str = "a/big") -> None:
    """One call at each of these seconds since the epoch, as batch `number`."""
    delta = Delta(10_000)
    for wall in walls:
        delta.add(attempt(target), wall)
    while delta:
        batch = delta.take(number)
        header = ("writer", 1, NOW, NOW, batch.number, len(walls), 0)
        await database.call(partial(write_batch, batch=batch, header=header))
        number += 1


def keeper(database: Database, path: Path, owner: str = "me", limits: Limits | None = None) -> Housekeeper:
    """A housekeeper that has not looked at anything yet."""
    return Housekeeper(database, path, owner, limits or Limits())


def at(seconds: float) -> Callable[[], float]:
    """A monotonic clock that stands at this instant: nothing the housekeeper does takes any time."""
    return lambda: seconds


RECENT = "SELECT coalesce(sum(count), 0) FROM hist_recent"
BY_MINUTES = "SELECT coalesce(sum(count), 0) FROM hist_minute WHERE minute > (SELECT recent_floor FROM keeping)"


@pytest.mark.asyncio
async def test_minutes_leave_the_recent_ones_exactly(database: Database, path: Path) -> None:
    """Forward, in leaps and back: the merged table is always the sum of its 15 minutes, with late calls in it."""
    await write(database, 1, *(NOW + 60 * minute for minute in range(20) for _ in range(minute + 1)))
    seen = []
    for number, minute in enumerate((0, 1, 14, 15, 16, 20, 5, 34, 35, 10), start=10):
        await keeper(database, path).refresh(NOW + 60 * minute)
        await write(database, number, NOW + 60 * minute, NOW + 60 * (minute - 15), NOW + 60 * (minute - 14))
        seen.append((one(path, RECENT), one(path, BY_MINUTES)))
    assert [recent for recent, _ in seen] == [minutes for _, minutes in seen]
    assert len({recent for recent, _ in seen}) > 5


@pytest.mark.asyncio
async def test_percentiles_follow_the_recent_minutes(database: Database, path: Path) -> None:
    """What left the 15 minutes is in the percentiles of all time only."""
    await write(database, 1, NOW, NOW)
    await keeper(database, path).refresh(NOW)
    query = "SELECT span, count FROM percentile WHERE level = 'target' ORDER BY span"
    assert rows(path, query) == [("15_min", 2), ("all_time", 2)]
    await keeper(database, path).refresh(NOW + 15 * 60)
    assert rows(path, query) == [("all_time", 2)]


@pytest.mark.asyncio
async def test_who_leaves_last_leaves_the_percentiles_of_everything(database: Database, path: Path) -> None:
    """Another process writes its last calls, and reads them off, between our reading of the file and our telling."""

    class Overtaken(Database):
        overtaken = False

        async def run(self, script: str) -> None:
            await super().run(script)
            if script == statements.REFRESH and not self.overtaken:
                self.overtaken = True
                await write(database, 2, NOW, NOW, NOW)

    mine = Overtaken(str(path), lambda: open_store(path, STATS_MIGRATIONS))
    await mine.open()
    await mine.run(statements.SETUP)
    await write(database, 1, NOW)
    await keeper(mine, path).leave(NOW)
    await mine.close()
    assert rows(path, "SELECT DISTINCT count FROM percentile WHERE level = 'target' AND span = 'all_time'") == [(4,)]


@pytest.mark.asyncio
async def test_old_minutes_are_forgotten_and_totals_stay(database: Database, path: Path) -> None:
    """Beyond the retention minutes go, a few at a time; what they added up to stays."""
    await write(database, 1, *(NOW + 60 * minute for minute in range(60)))
    for _ in range(20):
        await keeper(database, path, limits=Limits(retention=30 * 60)).tick(at(0.0), NOW + 3_600)
    assert rows(path, "SELECT min(minute), max(minute) FROM v_target_minute") == [(1_000_031, 1_000_059)]
    assert one(path, "SELECT calls FROM v_target_now") == 60


@pytest.mark.asyncio
async def test_a_file_beyond_its_size_loses_its_oldest_minutes(database: Database, path: Path) -> None:
    """The cap comes before the retention; the 15 recent minutes are kept in any case."""
    await write(database, 1, *(NOW + 60 * minute for minute in range(60)))
    for _ in range(30):
        await keeper(database, path, limits=Limits(size_bytes=1)).tick(at(0.0), NOW + 60 * 59)
    assert rows(path, "SELECT min(minute), max(minute) FROM v_target_minute") == [(1_000_045, 1_000_059)]


@pytest.mark.asyncio
async def test_events_are_capped_by_count_and_age(database: Database, path: Path) -> None:
    """The newest rows stay, and none that is older than the retention."""
    delta = Delta(10_000)
    for number in range(50):
        delta.note("new_event", (NOW - 100 + number, "ProbeStarted", f"{number}", "{}"))
    batch = delta.take(1)
    await database.call(lambda connection: write_batch(connection, batch, ("writer", 1, NOW, NOW, 1, 0, 0)))
    await keeper(database, path, limits=Limits(rows=20)).tick(at(0.0), NOW)
    assert rows(path, "SELECT min(CAST(subject AS INTEGER)), count(*) FROM v_events") == [(30, 20)]
    await keeper(database, path, limits=Limits(retention=55)).tick(at(0.0), NOW)
    assert rows(path, "SELECT min(CAST(subject AS INTEGER)), count(*) FROM v_events") == [(45, 5)]


@pytest.mark.asyncio
async def test_one_of_all_processes_keeps_house(database: Database, path: Path) -> None:
    """The lease goes to who asks first, to another once it ran out or was given up, and not to the future."""
    owner = "SELECT owner FROM keeping"
    first, second, third = (keeper(database, path, name) for name in ("first", "second", "third"))
    await first.tick(at(0.0), NOW)
    await second.tick(at(0.0), NOW + LEASE_SECONDS - 1)
    assert one(path, owner) == "first"
    await keeper(database, path, "second").tick(at(0.0), NOW + LEASE_SECONDS)
    assert one(path, owner) == "second"
    await third.tick(at(0.0), NOW - 100_000)  # the clock went back: a lease of so long is none
    assert one(path, owner) == "third"
    await third.leave(NOW)
    await keeper(database, path, "fourth").tick(at(0.0), NOW - 100_000)
    assert one(path, owner) == "fourth"


@pytest.mark.asyncio
async def test_only_the_housekeeper_makes_checkpoints(database: Database, path: Path) -> None:
    """Whoever has no lease leaves the write-ahead log alone, however long it is; who has it empties it."""
    limits = Limits(wal_bytes=200_000)
    await keeper(database, path, "other").tick(at(0.0), NOW)
    await write(database, 1, *(NOW + 60 * minute for minute in range(2_000)))
    wal = path.with_name("s.db-wal")
    before = wal.stat().st_size
    assert before > limits.wal_bytes
    await keeper(database, path, "me", limits).tick(at(0.0), NOW)
    assert wal.stat().st_size >= before
    await keeper(database, path, "other", limits).tick(at(0.0), NOW)
    assert wal.stat().st_size < before


@pytest.mark.asyncio
async def test_an_error_in_a_script_leaves_no_transaction_open(database: Database, path: Path) -> None:
    """A script that fails half way is undone, and the next one works."""
    with pytest.raises(sqlite3.OperationalError):
        await database.run("BEGIN IMMEDIATE; UPDATE keeping SET owner = 'half'; nonsense; COMMIT;")
    await database.run("BEGIN IMMEDIATE; COMMIT;")
    assert one(path, "SELECT owner FROM keeping") == ""
