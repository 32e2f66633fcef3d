"""What may be in the place of state.db: a router that cannot share says so, serves, and leaves the file as it was."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from smart_model_router import SmartModelRouter
from smart_model_router.cli.doctor import store_findings
from smart_model_router.config import StoreConfig
from smart_model_router.domain.events import Event, StoreChanged
from smart_model_router.domain.outcome import Failure, FailureClass
from smart_model_router.domain.shared_state import BreakerRow, ClockReading, Deadline
from smart_model_router.flow import clock
from smart_model_router.testing import FakeProvider, FakeReply
from smart_model_router_stats import open_db
from smart_model_router_stats.open_db import StoreUnavailableError, open_store
from smart_model_router_stats.reading import isolations
from smart_model_router_stats.shared_schema import STATE_MIGRATIONS, SqliteTables
from tests.e2e.eventually import becomes
from tests.store_files import UNFIT, make_public, make_tomorrows, rows

BODY = {"model": "smart", "messages": [{"role": "user", "content": "hello"}]}
DOWN = FakeReply(failure=Failure(FailureClass.SERVER_ERROR, "500", status=500))


class Listener:
    """A sink that keeps what is said of the shared state."""

    def __init__(self) -> None:
        self.told: list[tuple[bool, str]] = []

    def emit(self, event: Event) -> None:
        """Keep it."""
        if isinstance(event, StoreChanged) and event.store == "state":
            self.told.append((event.degraded, event.reason))


def router(path: Path, listener: Listener, reply: FakeReply | None = None, **provider: Any) -> SmartModelRouter:
    """One target, and another behind it."""
    config = {
        "version": 1,
        "providers": {
            "a": {"kind": "openai_compatible", "base_url": "http://fake.invalid", **provider},
            "b": {"kind": "openai_compatible", "base_url": "http://fake.invalid"},
        },
        "models": {"smart": {"tiers": [{"targets": ["a/m"]}, {"targets": ["b/m"]}], "last_resort": []}},
        "store": {"path": str(path)},
    }
    providers = {"a": FakeProvider(reply or FakeReply()), "b": FakeProvider()}
    return SmartModelRouter.from_config(config, providers=providers, sinks=[listener])


def names_in(folder: Path) -> list[str]:
    """What is in it."""
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.asyncio
@pytest.mark.parametrize(("make", "reason"), UNFIT, ids=[make.__name__ for make, _ in UNFIT])
async def test_an_unfit_file_degrades_visibly(tmp_path: Path, make: Callable[[Path], None], reason: str) -> None:
    """Requests are served within the limit, an event and the doctor say why, and the file is as it was."""
    file, listener = tmp_path / "state.db", Listener()
    make(file)
    before = file.lstat()
    async with router(tmp_path / "stats.db", listener, rpm=60) as made:
        assert [(await made.chat(BODY)).report.target for _ in range(20)] == ["a/m"] * 20
        assert await becomes(lambda: bool(listener.told))
    assert len(listener.told) == 1
    assert listener.told[0][0]
    assert reason in listener.told[0][1]
    after = file.lstat()
    assert (after.st_ino, after.st_mode, after.st_size) == (before.st_ino, before.st_mode, before.st_size)
    said = [finding.text for finding in store_findings(StoreConfig(path=str(tmp_path / "stats.db")))]
    assert any("state.db" in text and reason in text for text in said)


@pytest.mark.asyncio
async def test_a_network_file_system_degrades_visibly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """WAL does not work between hosts: on NFS nothing is shared, and no file is made."""
    mounts, listener = tmp_path / "mounts", Listener()
    mounts.write_text("proc /proc proc rw 0 0\nserver:/export / nfs4 rw 0 0\n", encoding="utf-8")
    monkeypatch.setattr(open_db, "_MOUNTS", mounts)
    async with router(tmp_path / "stats.db", listener) as made:
        assert (await made.chat(BODY)).report.target == "a/m"
        assert await becomes(lambda: bool(listener.told))
    assert "network file system (nfs4)" in listener.told[0][1]
    assert names_in(tmp_path) == ["mounts"]


@pytest.mark.asyncio
async def test_the_cause_gone_the_state_is_shared(tmp_path: Path) -> None:
    """A file that is put right while the router runs is told what was learned meanwhile."""
    file, listener = tmp_path / "state.db", Listener()
    make_public(file)
    async with router(tmp_path / "stats.db", listener, DOWN) as made:
        await asyncio.gather(*(made.chat(BODY) for _ in range(5)))
        assert await becomes(lambda: bool(listener.told))
        file.chmod(0o600)
        assert await becomes(lambda: [degraded for degraded, _ in listener.told] == [True, False])
    async with router(tmp_path / "stats.db", Listener()) as after:
        assert after.targets()[0].state == "open"


@pytest.mark.asyncio
@pytest.mark.parametrize("boot", ["same", "other"])
async def test_a_clock_in_1970_ends_no_open_breaker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boot: str) -> None:
    """The wall clock says 1970 after the restart: within one boot it is not asked, after another all time is left."""
    first, second = ClockReading("same", 1_000.0, 1_700_000_000.0), ClockReading(boot, 1_003.0, 0.0)
    monkeypatch.setattr("smart_model_router.assembly.here", lambda: first)
    async with router(tmp_path / "stats.db", Listener(), DOWN) as before:
        await asyncio.gather(*(before.chat(BODY) for _ in range(5)))
        lasts = before.targets()[0].retry_after
    assert lasts is not None
    monkeypatch.setattr("smart_model_router.assembly.here", lambda: second)
    listener = Listener()
    async with router(tmp_path / "stats.db", listener) as after:
        status = after.targets()[0]
    assert status.state == "open"
    assert status.retry_after == pytest.approx(lasts - (3.0 if boot == "same" else 0.0), abs=1.0)
    assert listener.told == []


@pytest.mark.parametrize("schema", range(1, len(STATE_MIGRATIONS)))
@pytest.mark.asyncio
async def test_a_file_of_an_older_release_is_brought_up_to_date(tmp_path: Path, schema: int) -> None:
    """What is in it stays; then words and budgets are kept there, too. Until then a reader finds nobody isolated."""
    file = tmp_path / "state.db"
    with closing(open_store(file, STATE_MIGRATIONS[:schema])) as older:
        older.execute("BEGIN IMMEDIATE")
        later = Deadline.after(600.0, clock.here())
        row = BreakerRow(owner="a/m", kind="whole", provider="a", state="open", until=later, gen=4)
        SqliteTables(older).put_breaker(row)
        older.execute("COMMIT")
    assert isolations(tmp_path / "stats.db") == ()
    async with router(tmp_path / "stats.db", Listener()) as made:
        assert made.targets()[0].state == "open"
        made.isolate("b/m", by="ada", why="it lies")
        assert await made.publish_word() == ""
    assert [one.told for one in isolations(tmp_path / "stats.db")] == ["by ada: it lies"]
    assert rows(file, "PRAGMA user_version") == [(len(STATE_MIGRATIONS),)]
    assert rows(file, "SELECT owner, state FROM breaker") == [("a/m", "open")]
    assert rows(file, "SELECT * FROM budget") == []


@pytest.mark.asyncio
async def test_a_file_of_a_newer_release_is_not_read_for_the_operators_word(tmp_path: Path) -> None:
    """A reader says which release to install; a router obeys alone, says so, and leaves the file as it was."""
    file = tmp_path / "state.db"
    make_tomorrows(file)
    with pytest.raises(StoreUnavailableError, match="schema 99 is newer than this smart-model-router knows"):
        isolations(tmp_path / "stats.db")
    async with router(tmp_path / "stats.db", Listener()) as made:
        made.isolate("a/m")
        assert "schema 99 is newer" in await made.publish_word()
        assert [(await made.chat(BODY)).report.target for _ in range(3)] == ["b/m"] * 3
    assert rows(file, "SELECT name FROM sqlite_schema") == []


def test_a_word_without_a_loop_is_written_before_it_returns(tmp_path: Path) -> None:
    """A script that isolates and ends is heard by the next process; one whose file cannot be written obeys alone."""
    script = router(tmp_path / "stats.db", Listener())
    script.isolate("a/m", by="ada")
    assert router(tmp_path / "stats.db", Listener()).targets()[0].refusal == "isolated"
    script.close("a/m")
    assert router(tmp_path / "stats.db", Listener()).targets()[0].refusal is None
    (tmp_path / "state.db").chmod(0o666)
    cut_off = router(tmp_path / "stats.db", Listener())
    cut_off.isolate("a/m")
    assert cut_off.targets()[0].refusal == "isolated"
    assert cut_off.monitor.shared_problem == "every user may write to it (mode 666)"


def test_a_word_that_somebody_wrote_by_hand_harms_nobody(tmp_path: Path) -> None:
    """A word that is none is left out, an instant that is none is before every other one."""
    file = tmp_path / "state.db"
    open_store(file, STATE_MIGRATIONS).close()
    with closing(sqlite3.connect(file, isolation_level=None)) as hand:
        hand.execute("INSERT INTO operator VALUES ('a/m', 'isolate', 'ada', '', 'x', 'then', 'then', 'many')")
        hand.execute("INSERT INTO operator VALUES ('b/m', 'destroy', 'ada', '', 'x', 1, 1, 1)")
    made = router(tmp_path / "stats.db", Listener())
    assert [status.refusal for status in made.targets()] == ["isolated", None]
    made.close("a/m")
    made.isolate("b/m")
    again = router(tmp_path / "stats.db", Listener())
    assert [status.refusal for status in again.targets()] == [None, "isolated"]
