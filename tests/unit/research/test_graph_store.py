"""Threads of graphs in a file of runs: what may be in its place, damage, durability, OS threads, loops and forks."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from smart_model_router_research.engine import MemoryRunStore, NewRun, RunSaver, SqliteRunStore, StoreUnavailable
from smart_model_router_research.engine.run_schema import RUN_MIGRATIONS
from smart_model_router_stats.open_db import open_store
from tests.conformance.run_saver_parts import ids, kept, new, of
from tests.store_files import UNFIT, one

LARGE = "x" * 100_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a place for the file."""
    return tmp_path / "runs.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteRunStore]:
    """Return a store in it."""
    store = SqliteRunStore(path)
    yield store
    store.graph_threads.close()


@pytest.fixture
def saver(store: SqliteRunStore) -> RunSaver:
    """Return a saver on it."""
    return RunSaver(store)


def by_hand(path: Path, *changes: str) -> None:
    """Change the file past all rules."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for change in changes:
            connection.execute(change)


# ------------------------------------------------------------------------------------------------ bad files


@pytest.mark.parametrize(("make", "reason"), UNFIT, ids=[make.__name__ for make, _ in UNFIT])
def test_an_unfit_file_is_refused_and_left_as_it_was(tmp_path: Path, make: Callable[[Path], None], reason: str) -> None:
    """The error names the file and the reason, whatever is asked: a newer schema, a link, a file of other users."""
    path = tmp_path / "runs.db"
    make(path)
    before = path.lstat()
    saver = RunSaver(SqliteRunStore(path))
    for asked in (lambda: saver.get_tuple(of()), lambda: kept(saver, "1"), lambda: list(saver.list(None))):
        with pytest.raises(StoreUnavailable, match=reason) as error:
            asked()
        assert error.value.place == str(path)
    after = path.lstat()
    assert (after.st_ino, after.st_mode, after.st_size) == (before.st_ino, before.st_mode, before.st_size)


def test_a_network_file_system_is_refused(path: Path) -> None:
    """No file is made there."""
    saver = RunSaver(SqliteRunStore(path, filesystem=lambda _: "nfs4"))
    with pytest.raises(StoreUnavailable, match=r"network file system \(nfs4\)"):
        kept(saver, "1")
    assert not path.exists()


def test_a_damaged_file_is_refused_and_not_begun_anew(path: Path) -> None:
    """Its owner decides."""
    path.write_bytes(b"this is no database" * 1_000)
    path.chmod(0o600)
    saver = RunSaver(SqliteRunStore(path))
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match=r"runs\.db: .*not a database"):
            kept(saver, "1")


def test_a_file_that_is_deleted_under_a_graph_acknowledges_nothing_more(path: Path, saver: RunSaver) -> None:
    """The next checkpoint is an error that names the file and the one that it follows."""
    config = kept(saver, "1")
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink()
    with pytest.raises(
        StoreUnavailable, match=r"runs\.db: thread 't': checkpoint '1', which '2' follows, is not in it"
    ):
        kept(saver, "2", {"a": 1}, "1")
    assert saver.get_tuple(config) is None


@pytest.mark.parametrize(
    ("prevent", "said"),
    [
        ("max_page_count = {pages}", "database or disk is full"),
        ("query_only = ON", "attempt to write a readonly database"),
    ],
)
def test_a_file_that_cannot_be_written_loses_nothing(
    store: SqliteRunStore, saver: RunSaver, prevent: str, said: str
) -> None:
    """Without room, or read-only: nothing of the checkpoint is there, and once it can be written it is kept."""
    kept(saver, "1", {"a": 1})

    def change(connection: sqlite3.Connection) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA {prevent.format(pages=pages)}")

    store._file._blocking.call(change)
    before = list(saver.list(None))
    with pytest.raises(StoreUnavailable, match=rf"runs\.db: {said}"):
        kept(saver, "2", {"a": LARGE, "b": 1}, "1")
    # The connection of the next question is a new one, without the limit.
    assert list(saver.list(None)) == before
    kept(saver, "2", {"a": LARGE, "b": 1}, "1")
    assert ids(list(saver.list(None))) == ["2", "1"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE graph_values SET content = x'00'", "its channel 'a' of checkpoint '1' cannot be read: .*SHA-256"),
        ("UPDATE graph_values SET content = 'text'", "its channel 'a' of checkpoint '1' cannot be read: .* no bytes"),
        ("DELETE FROM graph_values WHERE type = 'bytes'", "its channel 'a' of checkpoint '1' .*: it is not there"),
        ("UPDATE graph_writes SET value = 99", "its write to 'b' of checkpoint '1' .*: it is not there"),
        ("UPDATE graph_checkpoints SET body = x'c1'", "its checkpoint '1' cannot be read: "),
        ("UPDATE graph_checkpoints SET body_type = 'other'", "its checkpoint '1' cannot be read: NotImplementedError"),
        ("UPDATE graph_checkpoints SET metadata = 7", "its checkpoint '1' cannot be read: TypeError"),
        ("UPDATE graph_checkpoints SET metadata = x'c1'", "its metadata of checkpoint '1' cannot be read: "),
        ("UPDATE graph_checkpoints SET channels = '{'", "its checkpoint '1' cannot be read: JSONDecodeError"),
        ("UPDATE graph_checkpoints SET channels = '[]'", "its checkpoint '1' cannot be read: AttributeError"),
        ("UPDATE graph_checkpoints SET format = 'x'", "its checkpoint '1' cannot be read: ValueError"),
    ],
)
def test_a_row_that_was_changed_by_hand_is_an_error_that_names_it(
    path: Path, saver: RunSaver, change: str, said: str
) -> None:
    """The file, the thread, the checkpoint and the channel; a thread that is whole is read."""
    kept(saver, "1", thread_id="whole")
    saver.put_writes(kept(saver, "1", {"a": b"bytes"}), [("b", 2)], "task")
    by_hand(path, change + (" AND" if "WHERE" in change else " WHERE") + " thread = 2")
    with pytest.raises(StoreUnavailable, match=rf"runs\.db: thread 't': {said}"):
        saver.get_tuple(of())
    assert saver.get_tuple(of("whole")) is not None


@pytest.mark.parametrize(
    "change", ["UPDATE graph_checkpoints SET channels = '{\"a\": [1, 99]}'", "DELETE FROM graph_values"]
)
def test_a_damaged_thread_is_not_copied(path: Path, saver: RunSaver, change: str) -> None:
    """No part of it."""
    kept(saver, "1", {"a": 1})
    by_hand(path, change)
    with pytest.raises(StoreUnavailable, match=r"runs\.db: thread 't': its checkpoint '1' cannot be read: KeyError"):
        saver.copy_thread("t", "copy")
    assert saver.get_tuple(of("copy")) is None


def test_a_name_of_kilobytes_is_short_in_errors(saver: RunSaver) -> None:
    """An error has to be read."""
    with pytest.raises(StoreUnavailable) as error:
        kept(saver, "2", None, "1", thread_id="t" * 10_000)
    assert len(str(error.value)) < 400


# ------------------------------------------------------------------------------------------------ durability, size


def test_a_checkpoint_is_on_the_disk_before_it_returns(path: Path, store: SqliteRunStore, saver: RunSaver) -> None:
    """In write-ahead mode, synchronous FULL, with the rules between tables; for its owner alone."""
    kept(saver, "1")

    def settings(connection: sqlite3.Connection) -> list[Any]:
        names = ("journal_mode", "synchronous", "foreign_keys")
        return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

    assert store._file._blocking.call(settings) == ["wal", 2, 1]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_value_is_kept_once(path: Path, saver: RunSaver) -> None:
    """However many checkpoints, channels and writes of a thread have it."""
    parent = None
    for number in range(10, 50):
        made = new(str(number), {"large": LARGE, "small": number}, number)
        made["channel_versions"]["large"] = 1
        changed = made["channel_versions"] if parent is None else {"small": made["channel_versions"]["small"]}
        config = saver.put(of("t", parent), made, {}, changed)
        saver.put_writes(config, [("large", LARGE), ("again", LARGE)], "task")
        parent = str(number)
    assert one(path, "SELECT count(*) FROM graph_values WHERE length(content) > 1000") == 1
    assert one(path, "SELECT sum(length(content)) FROM graph_values") < 1.01 * len(LARGE)
    assert len(list(saver.list(None))) == 40


@pytest.mark.parametrize("leave", ["prune", "delete_for_runs"])
def test_values_that_no_checkpoint_has_any_more_are_deleted(path: Path, saver: RunSaver, leave: str) -> None:
    """A thread without checkpoints and writes, too."""
    kept(saver, "1", {"a": LARGE, "b": 1}, run_id="r")
    saver.put_writes(kept(saver, "2", {"b": 1}, "1", run_id="s"), [("c", 2)], "task")
    gone = {"prune": lambda: saver.prune(["t"]), "delete_for_runs": lambda: saver.delete_for_runs(["r"])}
    gone[leave]()
    assert one(path, "SELECT sum(length(content)) FROM graph_values") == 2
    saver.delete_for_runs(["s"])
    assert [one(path, f"SELECT count(*) FROM graph_{name}") for name in ("values", "writes", "threads")] == [0, 0, 0]


@pytest.mark.asyncio
async def test_a_file_of_the_first_schema_gets_the_tables_and_keeps_its_runs(path: Path) -> None:
    """Runs and graphs are in one file."""
    open_store(path, RUN_MIGRATIONS[:1]).close()
    store = SqliteRunStore(path)
    await store.create(NewRun(run_id="r", workflow="w", workflow_hash="h", step_hashes={}, inputs={}, engine="kahn"))
    saver = RunSaver(store)
    config = await saver.aput(of(), new("1"), {}, {})
    assert (await store.load("r")).run_id == "r"
    await store.aclose()
    again = SqliteRunStore(path)
    assert await RunSaver(again).aget_tuple(config) is not None
    await again.aclose()


# ------------------------------------------------------------------------------------------------ threads, loops, forks


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_any_number_of_threads_write_at_once(path: Path, kind: str) -> None:
    """Nothing is lost, and none is told that the store is busy."""
    savers = (
        [RunSaver(MemoryRunStore())] * 4 if kind == "memory" else [RunSaver(SqliteRunStore(path)) for _ in range(4)]
    )

    def write(number: int) -> None:
        saver, parent = savers[number % 4], None
        for turn in range(10):
            parent = kept(saver, f"{number}-{turn}", {"a": turn, "b": LARGE}, parent).get("configurable", {})[
                "checkpoint_id"
            ]
            saver.put_writes(of("t", parent), [("c", number)], f"task{number}")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(8)))
    found = list(savers[0].list(of()))
    assert ids(found) == [f"{number}-{turn}" for number in range(7, -1, -1) for turn in range(9, -1, -1)]
    assert all(each.pending_writes and each.checkpoint["channel_values"]["b"] == LARGE for each in found)
    for saver in savers:
        saver.close()
        saver.close()


def test_loops_of_several_threads_use_one_saver_at_once(saver: RunSaver) -> None:
    """As a server does that begins a loop for each request."""

    async def write(number: int) -> None:
        for turn in range(10):
            await saver.aput(of(str(number)), new(str(turn)), {}, {})
            assert await saver.aget_tuple(of(str(number), str(turn))) is not None

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: asyncio.run(write(number)), range(8)))
    assert len(list(saver.list(None))) == 80


@pytest.mark.asyncio
async def test_the_loop_goes_on_while_a_checkpoint_is_written(store: SqliteRunStore, saver: RunSaver) -> None:
    """And a caller that was cancelled meanwhile has written all of it."""
    saver.close()
    begun, go_on = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        begun.set()
        assert go_on.wait(10)

    held = asyncio.create_task(store.graph_threads.awrite(hold))
    await asyncio.to_thread(begun.wait, 10)
    held.cancel()
    with pytest.raises(asyncio.CancelledError):
        await held
    go_on.set()
    await saver.aput(of(), new("1"), {}, {})
    assert await saver.aget_tuple(of()) is not None
    await store.aclose()


FORKING = """
import asyncio, os, sys
from smart_model_router_research.engine import RunSaver, SqliteRunStore
from tests.conformance.run_saver_parts import new, of
saver = RunSaver(SqliteRunStore(sys.argv[1]))
asyncio.run(saver.aput(of(), new("1"), {}, {}))
if (child := os.fork()) == 0:
    asyncio.run(saver.aput(of("t", "1"), new("2"), {}, {}))
else:
    assert os.waitpid(child, 0)[1] == 0
    asyncio.run(saver.aput(of("t", "2"), new("3"), {}, {}))
"""


def test_a_forked_process_writes_with_a_handle_of_its_own(path: Path, saver: RunSaver) -> None:
    """Handle and thread are those of its parent, which goes on, too."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    subprocess.run([sys.executable, "-c", FORKING, path], env=environment, check=True)
    assert ids(list(saver.list(of()))) == ["3", "2", "1"]


def test_the_engines_are_imported_without_langgraph() -> None:
    """Only `RunSaver` needs it, and loads it when its name is used."""
    code = (
        "import sys; from smart_model_router_research import engine; store = engine.MemoryRunStore();"
        "before = [n for n in sys.modules if n.startswith('lang')]; engine.RunSaver(store);"
        "print(before, 'langgraph.checkpoint.base' in sys.modules, 'langgraph.pregel' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.split() == ["[]", "True", "False"]


def test_without_langgraph_the_error_names_the_extra() -> None:
    """The rest of the package works."""
    code = (
        "import sys; sys.modules['langgraph'] = None; from smart_model_router_research import engine\n"
        "engine.SqliteRunStore('runs.db')\n"
        "try: engine.RunSaver\nexcept ModuleNotFoundError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == 'RunSaver needs langgraph-checkpoint: pip install "smart-model-router[langgraph]"\n'


def test_a_handle_may_be_closed_and_used_again(saver: RunSaver) -> None:
    """It is opened when it is needed."""
    kept(saver, "1")
    saver.close()
    saver.close()
    kept(saver, "2", None, "1")
    assert ids(list(saver.list(None))) == ["2", "1"]
