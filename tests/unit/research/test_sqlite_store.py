"""Runs in a file: what may be in its place, clocks, processes that are gone, and how long runs are kept."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from smart_model_router.domain.shared_state import ClockReading
from smart_model_router_research.engine import (
    Approval,
    NewRun,
    RunBusy,
    RunLease,
    RunNotFound,
    RunState,
    SqliteRunStore,
    StepResult,
    StepState,
    StoreUnavailable,
)
from smart_model_router_research.engine.run_schema import RUN_MIGRATIONS
from smart_model_router_research.engine.sqlite_store import unheld_runs
from smart_model_router_research.workflow import Costs
from smart_model_router_stats.open_db import open_store
from tests.store_files import UNFIT, one, rows

DONE = StepResult(state=StepState.SUCCEEDED, outputs={"x": 1}, attempts=1)
START = ClockReading("boot", 1_000.0, 1_700_000_000.0)


def new_run(run_id: str = "r", **options: Any) -> NewRun:
    """Make a run of a workflow of two steps."""
    hashes = {"a": "1", "b": "2"}
    return NewRun(
        run_id=run_id, workflow="w", workflow_hash="h", step_hashes=hashes, inputs={}, engine="kahn", **options
    )


async def begun(store: SqliteRunStore, **options: Any) -> RunLease:
    """Create the run, take it, and settle its first step."""
    await store.create(new_run(**options))
    lease = await store.lease("r", "one")
    await store.settle(lease, "a", DONE, "i")
    return lease


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a place for the file."""
    return tmp_path / "runs.db"


def files_in(folder: Path) -> list[str]:
    """Return the names of all files below a folder."""
    return [each.name for each in folder.rglob("*") if each.is_file()]


# ------------------------------------------------------------------------------------------------ bad files


@pytest.mark.asyncio
@pytest.mark.parametrize(("make", "reason"), UNFIT, ids=[make.__name__ for make, _ in UNFIT])
async def test_an_unfit_file_is_refused_and_left_as_it_was(
    tmp_path: Path, make: Callable[[Path], None], reason: str
) -> None:
    """The error names the file and the reason, whatever is asked: a newer schema, a link, a file of other users."""
    path = tmp_path / "runs.db"
    make(path)
    before = path.lstat()
    store = SqliteRunStore(path)
    for asked in (store.create(new_run()), store.load("r")):
        with pytest.raises(StoreUnavailable, match=reason) as error:
            await asked
        assert error.value.place == str(path)
    await store.aclose()
    after = path.lstat()
    assert (after.st_ino, after.st_mode, after.st_size) == (before.st_ino, before.st_mode, before.st_size)


@pytest.mark.asyncio
async def test_a_network_file_system_is_refused(tmp_path: Path) -> None:
    """No file is made there."""
    path = tmp_path / "runs.db"
    with pytest.raises(StoreUnavailable, match=r"network file system \(nfs4\)"):
        await SqliteRunStore(path, filesystem=lambda _: "nfs4").create(new_run())
    assert not path.exists()


@pytest.mark.asyncio
async def test_a_damaged_file_is_refused_and_not_begun_anew(tmp_path: Path) -> None:
    """A new file in its place would run and pay for what had settled: its owner decides."""
    path = tmp_path / "runs.db"
    path.write_bytes(b"this is no database" * 1_000)
    path.chmod(0o600)
    store = SqliteRunStore(path)
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="not a database"):
            await store.create(new_run())
    assert files_in(tmp_path) == ["runs.db"]


@pytest.mark.asyncio
async def test_a_file_that_is_deleted_under_a_run_acknowledges_nothing_more(path: Path) -> None:
    """Every write of its holder is an error that names the file and the run; the heartbeat's is that it is unknown."""
    store = SqliteRunStore(path)
    lease = await begun(store)
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink()
    for write in (
        store.begin(lease, "b", 1, "i"),
        store.charge(lease, "b", Costs(1)),
        store.settle(lease, "b", DONE),
        store.end(lease, RunState.COMPLETED, {}, ""),
    ):
        with pytest.raises(StoreUnavailable, match=r"runs\.db: run 'r' is no longer in it: was it deleted"):
            await write
    with pytest.raises(RunNotFound):
        await store.lease("r", "one")
    await store.aclose()


@pytest.mark.asyncio
async def test_a_full_file_loses_nothing_that_was_acknowledged(path: Path) -> None:
    """SQLite says that there is no room: nothing of the write is there, and with room it is made again."""
    store = SqliteRunStore(path)
    lease = await begun(store)
    full = StepResult(state=StepState.SUCCEEDED, outputs={"x": "x" * 500_000})

    def limit(connection: sqlite3.Connection) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")

    await store._file.ask(limit)
    before = await store.load("r")
    with pytest.raises(StoreUnavailable, match=r"runs\.db: database or disk is full"):
        await store.settle(lease, "b", full, "i")
    # The connection of the next question is a new one, without the limit.
    assert await store.load("r") == before
    assert (await store.settle(lease, "b", full, "i")).number == 2
    await store.aclose()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE run_steps SET result = '{'", "its step 'a' cannot be read: JSONDecodeError"),
        ("UPDATE run_steps SET result = '{}'", "its step 'a' cannot be read: KeyError"),
        ("UPDATE run_steps SET result = '[]'", "its step 'a' cannot be read: TypeError"),
        ('UPDATE run_steps SET result = \'{"state": "done"}\'', "its step 'a' cannot be read: ValueError"),
        ("UPDATE runs SET state = 'done'", "its row cannot be read: ValueError"),
        ("UPDATE runs SET lease = '[1]'", "its row cannot be read: TypeError"),
    ],
)
async def test_a_row_that_was_changed_by_hand_is_an_error_that_names_it(path: Path, change: str, said: str) -> None:
    """The file, the run and the step."""
    store = SqliteRunStore(path)
    await begun(store)
    with closing(sqlite3.connect(path)) as hand, hand:
        hand.execute(change)
    with pytest.raises(StoreUnavailable, match=f"runs.db: run 'r': {said}"):
        await store.load("r")
    await store.aclose()


# ------------------------------------------------------------------------------------------------ durability


@pytest.mark.asyncio
async def test_a_write_is_on_the_disk_before_it_returns(path: Path) -> None:
    """In write-ahead mode, synchronous FULL; for its owner alone, as its documents are."""
    store = SqliteRunStore(path)
    await store.create(new_run())

    def settings(connection: sqlite3.Connection) -> list[Any]:
        names = ("journal_mode", "synchronous", "foreign_keys")
        return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

    assert await store._file.ask(settings) == ["wal", 2, 1]
    document = path.with_name("runs-documents") / (name := await store.put_document(b"text"))[:2] / name
    assert [each.stat().st_mode & 0o777 for each in (path, document, document.parent)] == [0o600, 0o600, 0o700]
    await store.aclose()


@pytest.mark.asyncio
async def test_a_write_whose_caller_was_cancelled_is_whole(path: Path) -> None:
    """It is there with all that belongs to it, and the next write waits for it."""
    store = SqliteRunStore(path)
    lease = await begun(store)
    task = asyncio.create_task(store.settle(lease, "b", DONE, "i"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    number = (await store.settle(lease, "b", DONE, "i")).number
    assert (number, [event.step for event in await store.events_since("r", 1)]) == (2, ["a", "b"])
    await store.aclose()


@pytest.mark.asyncio
async def test_a_document_that_was_changed_is_not_returned(path: Path) -> None:
    """Nor is one that cannot be written half there: the errors name the file."""
    store = SqliteRunStore(path)
    name = await store.put_document(b"text")
    file = path.with_name("runs-documents") / name[:2] / name
    file.write_bytes(b"tex")
    with pytest.raises(StoreUnavailable, match=f"{name}: it is damaged"):
        await store.get_document(name)
    file.unlink()
    file.mkdir()
    with pytest.raises(StoreUnavailable, match="directory"):
        await store.get_document(name)
    file.rmdir()
    file.parent.rmdir()
    file.parent.touch()
    with pytest.raises(StoreUnavailable, match=name):
        await store.put_document(b"text")


@pytest.mark.asyncio
async def test_a_document_that_there_is_no_room_for_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No part of it is taken for it later."""

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    store = SqliteRunStore(tmp_path / "runs.db")
    with pytest.raises(StoreUnavailable, match="No space left on device"):
        await store.put_document(b"text")
    assert files_in(tmp_path) == []


# ------------------------------------------------------------------------------------------------ leases


class Clocks:
    """The clocks of a machine, set by hand."""

    def __init__(self) -> None:
        self.boot, self.boottime, self.wall = START.boot, START.boottime, START.wall

    def here(self) -> ClockReading:
        """Return both."""
        return ClockReading(self.boot, self.boottime, self.wall)


@pytest.mark.asyncio
@pytest.mark.parametrize("wall", [0.0, START.wall - 86_400, START.wall + 86_400])
async def test_a_wall_clock_that_is_set_moves_no_deadline(path: Path, wall: float) -> None:
    """Lease, time limit and decision go by the clock of the boot."""
    clocks = Clocks()
    store = SqliteRunStore(path, here=clocks.here)
    lease = await begun(store, seconds=100.0)
    await store.ask(lease, "b", "?", 50.0)
    clocks.wall, clocks.boottime = wall, START.boottime + 10
    with pytest.raises(RunBusy) as error:
        await store.lease("r", "two")
    assert error.value.seconds == 20.0
    assert (await store.load("r")).seconds_left == 90.0
    assert (await store.approvals("r"))[0].seconds_left == 40.0
    clocks.boottime += 20
    assert (await store.lease("r", "two")).fence > lease.fence
    await store.aclose()


@pytest.mark.asyncio
async def test_after_a_restart_of_the_machine_a_run_can_be_taken_at_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its holder is gone; a wall clock that went back meanwhile shortens and lengthens no time limit."""
    clocks = Clocks()
    store = SqliteRunStore(path, here=clocks.here)
    lease = await begun(store, seconds=100.0)
    clocks.boot, clocks.boottime, clocks.wall = "next", 5.0, START.wall - 86_400
    monkeypatch.setattr("smart_model_router_research.engine.processes.boot_id", lambda: "next")
    assert (await store.load("r")).owner == ""
    assert (await store.load("r")).seconds_left == 100.0
    assert (await store.lease("r", "two")).fence > lease.fence
    await store.aclose()


@pytest.mark.asyncio
async def test_processes_of_two_containers_that_go_by_one_name_are_two(path: Path) -> None:
    """Host name and process id are often the same there: the other one is told that the run is held."""
    store = SqliteRunStore(path)
    lease = await begun(store)
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE runs SET holder = json_set(holder, '$[2]', 'elsewhere')")
    with pytest.raises(RunBusy, match="held by one for"):
        await store.lease("r", "one")
    assert await store.begin(lease, "b", 1, "i") is None  # as the other container, whose lease it is
    await store.aclose()


@pytest.mark.asyncio
async def test_a_decision_outlives_the_process_that_took_it(path: Path) -> None:
    """With its payload, as it was given."""
    store = SqliteRunStore(path)
    lease = await begun(store)
    await store.ask(lease, "b", "?", None)
    await store.decide("r", Approval(payload=[1, None], approved=False))
    await store.aclose()
    again = SqliteRunStore(path)
    assert await again.ask(lease, "b", "?", None) == Approval(approved=False, payload=[1, None], step="b")
    await again.aclose()


# ------------------------------------------------------------------------------------------------ retention, schema


@pytest.mark.asyncio
async def test_runs_that_ended_long_ago_are_deleted_with_all_that_belongs_to_them(path: Path) -> None:
    """Running and paused ones stay however old they are."""
    clocks = Clocks()
    store = SqliteRunStore(path, here=clocks.here, retention_days=2)
    for name, state in (("done", RunState.COMPLETED), ("paused", RunState.PAUSED), ("running", None)):
        await store.create(new_run(name))
        lease = await store.lease(name, "one")
        await store.begin(lease, "a", 1, "i")
        await store.charge(lease, "a", Costs(1))
        await store.settle(lease, "a", DONE, "i")
        await store.ask(lease, "b", "?", None)
        if state is not None:
            await store.end(lease, state, {}, "")
    clocks.wall += 2 * 86_400 - 1
    await store.create(new_run("late"))
    assert len(await store.runs()) == 4
    clocks.wall += 2
    await store.create(new_run("later"))
    assert sorted(run.run_id for run in await store.runs()) == ["late", "later", "paused", "running"]
    await store.aclose()
    for table in ("run_steps", "events", "approvals", "ledger", "checkpoints"):
        assert rows(path, f"SELECT 1 FROM {table} WHERE run = 'done'") == []
        assert rows(path, f"SELECT 1 FROM {table} WHERE run = 'paused'") != []


@pytest.mark.asyncio
async def test_many_old_runs_are_deleted_a_few_at_a_time(path: Path) -> None:
    """Ten with each new run, the oldest first: no write waits for long."""
    clocks = Clocks()
    store = SqliteRunStore(path, here=clocks.here, retention_days=1)
    for number in range(12):
        await store.create(new_run(f"r{number}"))
        await store.end(await store.lease(f"r{number}", "one"), RunState.COMPLETED, {}, "")
        clocks.wall += 1
    clocks.wall += 2 * 86_400
    await store.create(new_run("s"))
    assert [run.run_id for run in await store.runs()] == ["s", "r11", "r10"]
    await store.create(new_run("t"))
    assert {run.run_id for run in await store.runs()} == {"s", "t"}
    await store.aclose()


def test_runs_that_no_process_holds_cannot_be_read_from_any_file(path: Path) -> None:
    """The errors are those of a store: no file, or one without our tables."""
    with pytest.raises(StoreUnavailable, match=r"runs\.db: there is no such file"):
        unheld_runs(path)
    with closing(open_store(path, RUN_MIGRATIONS)) as connection:
        connection.execute("DROP TABLE ledger")
        connection.execute("DROP TABLE events")
    with pytest.raises(StoreUnavailable, match=r"runs\.db: no such table: events"):
        unheld_runs(path)


def test_the_schema_has_a_number_that_readers_ask_for(path: Path) -> None:
    """As every file of ours has."""
    open_store(path, RUN_MIGRATIONS).close()
    assert one(path, "PRAGMA user_version") == len(RUN_MIGRATIONS)
    assert rows(path, "SELECT name FROM migration ORDER BY number") == [("runs",), ("graphs",)]
