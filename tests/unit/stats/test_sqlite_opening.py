"""What a statistics file may be, how it is opened, and that a router goes on without one."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import pytest

from smart_model_router_stats import open_db, statements
from smart_model_router_stats.open_db import (
    Migration,
    NewerSchemaError,
    StoreUnavailableError,
    filesystem_of,
    migrate,
    open_store,
    open_to_read,
    set_aside,
)
from smart_model_router_stats.schema import STATS_MIGRATIONS
from smart_model_router_stats.sqlite import SqliteStore
from tests.e2e.eventually import PATIENCE, becomes
from tests.store_files import UNFIT, attempt, calls, make_public, one, rows


def autocommit(path: Path) -> sqlite3.Connection:
    """A plain connection."""
    return sqlite3.connect(path, isolation_level=None, timeout=10)


def executing(*texts: str) -> Callable[[sqlite3.Connection], None]:
    """A migration's statements."""

    def apply(connection: sqlite3.Connection) -> None:
        for text in texts:
            connection.execute(text)

    return apply


def test_the_file_is_in_wal_mode_with_our_settings(tmp_path: Path) -> None:
    """WAL, synchronous NORMAL, 5 s of patience, a journal of at most 16 MiB, and no checkpoint nobody asked for."""
    with closing(open_store(tmp_path / "s.db", STATS_MIGRATIONS)) as connection:
        names = ("journal_mode", "synchronous", "busy_timeout", "journal_size_limit", "wal_autocheckpoint")
        settings = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]
    assert settings == ["wal", 1, 5_000, 16 * 1024 * 1024, 0]


def test_a_new_file_is_nobody_elses_business(tmp_path: Path) -> None:
    """File and folder are made for their owner only, whatever the umask lets through."""
    path = tmp_path / "new" / "s.db"
    before = os.umask(0)
    try:
        open_store(path, STATS_MIGRATIONS).close()
    finally:
        os.umask(before)
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_each_migration_runs_once_and_is_recorded(tmp_path: Path) -> None:
    """Eight openers at once: every migration is applied exactly once, with the release that a reader needs."""
    steps = [
        Migration(f"step {number}", f"0.{number}.0", executing(f"CREATE TABLE t{number} (x)")) for number in range(5)
    ]
    barrier = threading.Barrier(8)

    def open_at_once(_: int) -> None:
        with closing(autocommit(tmp_path / "s.db")) as connection:
            barrier.wait()
            migrate(connection, steps)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(open_at_once, range(8)))
    found = rows(tmp_path / "s.db", "SELECT number, name, needs FROM migration")
    assert found == [(n + 1, f"step {n}", f"0.{n}.0") for n in range(5)]


def test_who_waited_for_a_migration_does_not_repeat_it(tmp_path: Path) -> None:
    """A second process that begins during the first one's migration waits for it, and finds nothing left to do."""
    began = threading.Event()

    def take_long(connection: sqlite3.Connection) -> None:
        began.set()
        threading.Event().wait(0.3)  # real time: the other one begins meanwhile, and passes if it begins later
        connection.execute("CREATE TABLE t (x)")

    def second() -> None:
        with closing(autocommit(tmp_path / "s.db")) as connection:
            assert began.wait(PATIENCE)
            migrate(connection, [Migration("long", "0.1.0", take_long)])

    with ThreadPoolExecutor(1) as thread, closing(autocommit(tmp_path / "s.db")) as connection:
        waiting = thread.submit(second)
        migrate(connection, [Migration("long", "0.1.0", take_long)])
        waiting.result()
    assert rows(tmp_path / "s.db", "SELECT number, name FROM migration") == [(1, "long")]


def test_tables_that_another_process_has_just_made_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who opens an empty file while somebody else makes its tables writes to them."""
    path = tmp_path / "s.db"

    def late(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
        assert connection.execute("SELECT * FROM sqlite_schema").fetchall() == []
        with closing(sqlite3.connect(path, isolation_level=None)) as somebody:
            migrate(somebody, migrations)
        migrate(connection, migrations)

    monkeypatch.setattr(open_db, "migrate", late)
    with closing(open_store(path, STATS_MIGRATIONS)) as connection:
        connection.executescript(statements.SETUP)
        connection.execute(statements.GIVE_BATCH, ("w", 1, 0.0, 0.0, 1, 7, 0))
        connection.execute(statements.ADD_UP)
    assert one(path, "SELECT observed FROM writer") == 7


def test_a_migration_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """Half a step and its record are rolled back together; the steps before it stay."""
    steps = [
        Migration("good", "0.1.0", executing("CREATE TABLE good (x)")),
        Migration("bad", "0.1.0", executing("CREATE TABLE half (x)", "nonsense")),
    ]
    with closing(autocommit(tmp_path / "s.db")) as connection:
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, steps)
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        number = connection.execute("PRAGMA user_version").fetchone()[0]
    assert (tables, number) == ([("good",), ("migration",)], 1)


def test_a_newer_schema_is_refused_with_the_version_to_install(tmp_path: Path) -> None:
    """A file of tomorrow's router is not touched; the error names the release that reads it."""
    path = tmp_path / "s.db"
    open_store(path, STATS_MIGRATIONS).close()
    with closing(autocommit(path)) as connection:
        connection.execute("INSERT INTO migration VALUES (99, 'tomorrow', 0, '9.8.7')")
        connection.execute("PRAGMA user_version = 99")
        with pytest.raises(NewerSchemaError):
            migrate(connection, STATS_MIGRATIONS)
    for opener in (open_store, open_to_read):
        with pytest.raises(StoreUnavailableError, match=r"install smart-model-router 9\.8\.7 or newer"):
            opener(path, STATS_MIGRATIONS)


def test_a_newer_schema_of_the_same_release_is_not_answered_with_that_release(tmp_path: Path) -> None:
    """As between two development builds: to install what is installed would not help."""
    path, installed = tmp_path / "s.db", version("smart-model-router")
    steps = [*STATS_MIGRATIONS, Migration("next", installed, executing("CREATE TABLE next (x)"))]
    open_store(path, steps).close()
    with pytest.raises(StoreUnavailableError, match=f"install a newer smart-model-router than this {installed}"):
        open_store(path, STATS_MIGRATIONS)


@pytest.mark.asyncio
async def test_a_file_that_is_no_database_is_renamed_and_begun_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Garbage in the place of the file is kept under another name, statistics go on, and the log says so."""
    path = tmp_path / "s.db"
    path.write_bytes(b"this is no database" * 1_000)
    store = SqliteStore(path)
    store.observe(attempt())
    assert await store.flush()
    await store.aclose()
    assert calls(path) == 1
    assert (tmp_path / "s.db.corrupt-1").read_bytes().startswith(b"this is no database")
    assert "renamed to s.db.corrupt-1" in caplog.text


@pytest.mark.asyncio
async def test_a_file_damaged_while_it_is_used_is_renamed_and_begun_anew(tmp_path: Path) -> None:
    """Pages overwritten under a running store are found at a later write; what was not written yet is not lost."""
    path = tmp_path / "s.db"
    store = SqliteStore(path, interval=0.01)
    store.observe(attempt())
    await store.aclose()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4_096)
        file.write(b"\xff" * (size - 4_096))
    second = SqliteStore(path, interval=0.01)
    second.observe(attempt("b/small"))
    assert await becomes(lambda: second.acknowledged == 1)
    await second.aclose()
    assert (tmp_path / "s.db.corrupt-1").exists()
    assert rows(path, "SELECT target, calls FROM v_target_now") == [("b/small", 1)]


def test_who_comes_second_does_not_rename_the_new_file(tmp_path: Path) -> None:
    """Two processes that find the same damage: one renames, the other sees that the file is another by now."""
    path = tmp_path / "s.db"
    path.write_bytes(b"damaged")
    inode = path.stat().st_ino
    assert set_aside(path, inode) == tmp_path / "s.db.corrupt-1"
    path.write_bytes(b"new")
    assert set_aside(path, inode) is None
    assert path.read_bytes() == b"new"


@pytest.mark.asyncio
async def test_a_file_removed_while_it_is_used_is_made_again(tmp_path: Path) -> None:
    """Writing on into a file that has no name any more would lose everything: a new one is begun."""
    path = tmp_path / "s.db"
    store = SqliteStore(path)
    store.observe(attempt())
    assert await store.flush()
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink()
    store.observe(attempt("b/small"))
    assert await store.flush()
    await store.aclose()
    assert rows(path, "SELECT target, calls FROM v_target_now") == [("b/small", 1)]


@pytest.mark.asyncio
@pytest.mark.parametrize(("make", "reason"), UNFIT, ids=[make.__name__ for make, _ in UNFIT])
async def test_an_unfit_file_degrades_visibly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, make: Callable[[Path], None], reason: str
) -> None:
    """Statistics stay in memory, status and log say why, nothing is raised, and the file is left as it was."""
    path = tmp_path / "s.db"
    make(path)
    store = SqliteStore(path)
    store.observe(attempt())
    assert not await store.flush()
    assert store.status.state == "degraded"
    assert reason in store.status.reason
    await store.aclose()
    assert reason in caplog.text
    with pytest.raises(StoreUnavailableError, match=reason):
        open_to_read(path, STATS_MIGRATIONS)


@pytest.mark.asyncio
async def test_a_network_file_system_degrades_visibly(tmp_path: Path) -> None:
    """WAL does not work between hosts: on NFS statistics stay in memory, and no file is made."""
    path = tmp_path / "s.db"
    store = SqliteStore(path, filesystem=lambda _: "nfs4")
    store.observe(attempt())
    assert not await store.flush()
    assert "network file system (nfs4)" in store.status.reason
    await store.aclose()
    assert not path.exists()


def test_the_file_system_of_a_path_is_that_of_its_mount() -> None:
    """The longest mount point that holds the path decides."""
    assert filesystem_of(Path("/proc/self")) == "proc"


@pytest.mark.asyncio
async def test_the_cause_gone_statistics_reach_the_file(tmp_path: Path) -> None:
    """A file that is put right while the router runs gets everything that was summed up meanwhile."""
    path = tmp_path / "s.db"
    make_public(path)
    store = SqliteStore(path, interval=0.01)
    store.observe(attempt())
    assert await becomes(lambda: store.status.state == "degraded")
    path.chmod(0o600)
    assert await becomes(lambda: store.acknowledged == 1)
    assert await becomes(lambda: store.status.state == "ok")
    await store.aclose()


@pytest.mark.asyncio
async def test_a_full_file_degrades_visibly_and_recovers(tmp_path: Path) -> None:
    """SQLite says that there is no room (max_page_count): sums wait in memory until there is."""
    path = tmp_path / "s.db"
    store = SqliteStore(path, interval=0.01)
    store.observe(attempt())
    assert await store.flush()
    pages = await store._database.fetch("PRAGMA page_count")
    await store._database.fetch(f"PRAGMA max_page_count = {pages[0]}")
    observed = 1
    while store.status.state == "ok":
        store.observe(attempt(f"a/{'m' * 3_000}{observed}"))
        observed += 1
        await store.flush()
    assert "full" in store.status.reason
    # The connection of the retry is a new one, without the limit.
    assert await becomes(lambda: store.acknowledged == observed)
    await store.aclose()
    assert calls(path) == observed


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    """Who reads before any router wrote is told so, and no file is made."""
    with pytest.raises(StoreUnavailableError, match="no such file"):
        open_to_read(tmp_path / "s.db", STATS_MIGRATIONS)
    assert not (tmp_path / "s.db").exists()


def test_an_empty_database_is_said(tmp_path: Path) -> None:
    """Somebody's empty database is not taken for ours."""
    (tmp_path / "s.db").touch(mode=0o600)
    with pytest.raises(StoreUnavailableError, match="none of our tables"):
        open_to_read(tmp_path / "s.db", STATS_MIGRATIONS)


def test_the_contract_of_the_views_has_a_version(tmp_path: Path) -> None:
    """A reader can ask which version of the views it meets."""
    open_store(tmp_path / "s.db", STATS_MIGRATIONS).close()
    assert one(tmp_path / "s.db", "SELECT version FROM v_contract") == 4
