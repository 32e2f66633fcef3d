"""A stats.db of the first schema: what is in it stays, it gets the columns of today, and who has it open writes on."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from smart_model_router.domain.outcome import Usage
from smart_model_router.observability.store_snapshot import StoreSnapshot
from smart_model_router_stats import schema, statements
from smart_model_router_stats.open_db import open_store
from smart_model_router_stats.reading import FileReader, read_store
from smart_model_router_stats.schema import STATS_MIGRATIONS, VIEWS
from smart_model_router_stats.sqlite import SqliteStore
from tests.store_files import attempt, make_first_schema, one, rows

FORMER = re.compile(
    r", cached_prompt_tokens(?: = cached_prompt_tokens \+ excluded\.cached_prompt_tokens)?"
    r"|, (?:s\.)?(?:complete|notes)\b"
)
"""Parts of today's scripts that the release before the second schema did not have."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The older file."""
    path = tmp_path / "stats.db"
    make_first_schema(path)
    return path


def shape(path: Path) -> dict[str, object]:
    """The columns of every table, and every view as it was written."""
    tables = rows(path, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    columns = {
        name: sorted(row[1:4] + row[5:] for row in rows(path, f"PRAGMA table_info({name})")) for (name,) in tables
    }
    return {**columns, "views": sorted(rows(path, "SELECT name, sql FROM sqlite_schema WHERE type = 'view'"))}


@pytest.mark.asyncio
async def test_an_older_file_is_brought_up_to_date_and_loses_nothing(path: Path, tmp_path: Path) -> None:
    """Totals and minutes go on from what they were; cached tokens begin at 0; the file is as a new one."""
    before = read_store(path).figures.targets
    with closing(sqlite3.connect(path)) as connection, connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(request)")]
        connection.execute(f"INSERT INTO request VALUES ({', '.join('1' for _ in names)})")
        connection.execute("UPDATE request SET at = CAST(strftime('%s', 'now') AS REAL)")
    store = SqliteStore(path)
    store.observe(attempt("a/big", usage=Usage(10, 20, 6)))
    await store.aclose()
    after = read_store(path).figures.targets
    big = after["a/big"]
    assert (before["a/big"].calls, big.calls, big.prompt_tokens, big.cached_prompt_tokens) == (10, 11, 110, 6)
    assert (after["b/small"].failures, after["b/small"].calls) == (before["b/small"].failures, before["b/small"].calls)
    assert big.latency_all_time.count == 11
    minutes = (
        "SELECT calls, prompt_tokens, cached_prompt_tokens FROM v_target_minute WHERE target = 'a/big' ORDER BY at"
    )
    assert rows(path, minutes) == [(5, 50, 0), (5, 50, 0), (1, 10, 6)]
    assert rows(path, "SELECT count(*) FROM v_events") == [(1,)]
    assert rows(path, "SELECT number FROM migration") == [(1,), (2,), (3,), (4,)]
    assert rows(path, "SELECT DISTINCT complete, notes FROM v_requests") == [(None, "[]")]
    open_store(tmp_path / "new.db", STATS_MIGRATIONS).close()
    assert shape(path) == shape(tmp_path / "new.db")


def test_an_older_file_is_read_as_it_is(path: Path) -> None:
    """A reader changes nothing in it; it kept no cached tokens, so there are 0."""
    before = path.read_bytes()
    for figures in read_store(path).figures.models.values():
        assert figures.prompt_tokens > 0
        assert figures.cached_prompt_tokens == 0
    assert path.read_bytes() == before


@pytest.mark.parametrize("cached", [None, 0.0])
def test_the_dashboard_draws_an_older_file(path: Path, cached: float | None) -> None:
    """Prompt tokens an hour are there; of a file that kept no cached tokens none are told."""
    if cached is not None:
        open_store(path, STATS_MIGRATIONS).close()
    newest = one(path, "SELECT max(minute) FROM v_target_minute") * 60.0
    targets = {
        target["id"]: target for target in StoreSnapshot(FileReader(path, path)).picture(newest + 60.0)["targets"]
    }
    assert targets["a/big"]["prompt_hour"] > 0
    assert targets["a/big"]["cached"] == cached


def test_a_migration_that_breaks_off_leaves_the_older_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns, views and the record come together or not at all; the migrations before it stay."""
    open_store(path, STATS_MIGRATIONS[:-1]).close()
    before = shape(path)
    monkeypatch.setattr(schema, "VIEWS", {**VIEWS, "v_events": "nonsense"})
    with pytest.raises(sqlite3.OperationalError):
        open_store(path, STATS_MIGRATIONS)
    assert shape(path) == before
    assert one(path, "PRAGMA user_version") == len(STATS_MIGRATIONS) - 1


@pytest.mark.asyncio
async def test_a_process_of_the_older_release_writes_on(path: Path) -> None:
    """It had the file open when a newer process came: its calls are added to the same rows."""
    with closing(sqlite3.connect(path, isolation_level=None)) as older:
        former = FORMER.sub("", statements.SETUP)
        assert not re.search("cached|complete|notes", former)
        older.executescript(former)
        store = SqliteStore(path)
        store.observe(attempt("a/big", usage=Usage(10, 20, 6)))
        assert await store.flush()
        older.execute(statements.GIVE_BATCH, ("older", 1, 0.0, 0.0, 1, 1, 0))
        sums = ", ".join("1" for name in (*schema.SUMS, *schema.LASTS) if name != "cached_prompt_tokens")
        older.execute(f"INSERT INTO temp.cell SELECT 0, 'a/big', 'a', 'big', max(minute), NULL, {sums} FROM sum_minute")
        older.execute("INSERT INTO temp.outcome VALUES (0, 'OK', 1)")
        older.execute(statements.ADD_UP)
        store.observe(attempt("a/big", usage=Usage(10, 20, 6)))
        assert await store.flush()
        await store.aclose()
    big = read_store(path).figures.targets["a/big"]
    assert (big.calls, big.prompt_tokens, big.cached_prompt_tokens) == (13, 121, 12)


def test_an_owners_own_view_stays(path: Path) -> None:
    """A view that somebody made of ours is as it was, and reads the new ones."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE VIEW mine AS SELECT target, calls FROM v_target_now")
    open_store(path, STATS_MIGRATIONS).close()
    assert rows(path, "SELECT * FROM mine") == [("a/big", 10), ("b/small", 4)]
