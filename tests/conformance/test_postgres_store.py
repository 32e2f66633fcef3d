"""The store of runs on PostgreSQL keeps the promises of a RunStore on a real server, and those that need a server."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.shared_state import ClockReading
from smart_model_router_research.engine import (
    PostgresRunStore,
    RunBusy,
    RunNotFound,
    RunState,
    RunStore,
    StaleLease,
    StoreUnavailable,
    server_database,
)
from smart_model_router_research.workflow import Costs
from tests.conformance.run_stores import RunStoreContract, done, new_run
from tests.database_servers import PostgresServer, free_port, running


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server, for all tests of this file."""
    with running(PostgresServer) as one:
        assert isinstance(one, PostgresServer)
        yield one


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncGenerator[PostgresRunStore]:
    """Open a store, and close it."""
    store = PostgresRunStore(url, **options)
    try:
        yield store
    finally:
        await store.aclose()


class TestPostgresRunStore(RunStoreContract):
    """Each of its processes has connections of its own; the time of the server is that of the test."""

    @pytest.fixture(autouse=True)
    def _database(self, server: PostgresServer) -> Iterator[None]:
        self.url, self.opened = server.new_database(), list[PostgresRunStore]()
        yield
        for each in self.opened:
            asyncio.run(each.aclose())

    def process(self) -> RunStore:
        """Return another store of the same database."""
        store = PostgresRunStore(self.url, reading=lambda _: ClockReading("server", self.now(), self.now()))
        self.opened.append(store)
        return store


# ------------------------------------------------------------------------------------------------ time and machines


@pytest.mark.asyncio
async def test_leases_go_by_the_clock_of_the_server(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clocks of the machines that hold them may be hours apart, and change nothing."""
    url = server.new_database()
    async with opened(url) as one, opened(url) as other:
        await one.create(new_run(seconds=60.0))
        lease = await one.lease("r", "one", 20.0)
        for hours in (-5, 5):
            monkeypatch.setattr("time.time", lambda hours=hours: 1_700_000_000.0 + hours * 3600)
            with pytest.raises(RunBusy) as busy:
                await other.lease("r", "two")
            assert 10 < busy.value.seconds <= 20
            run = await other.load("r")
            assert run.seconds_left is not None
            assert 50 < run.seconds_left <= 60
        short = await one.lease("r", "one", 0.01)
        assert short.fence == lease.fence
        while (await other.load("r")).owner:  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.01)
        assert (await other.lease("r", "two")).fence > lease.fence
        with pytest.raises(StaleLease):
            await one.settle(lease, "a", done())


@pytest.mark.asyncio
async def test_a_process_of_this_host_that_is_gone_holds_nothing(server: PostgresServer) -> None:
    """Its lease is taken at once; it wrote what it was acknowledged."""
    url = server.new_database()
    program = (
        "import asyncio, sys; from smart_model_router_research.engine import PostgresRunStore\n"
        "from tests.conformance.run_stores import new_run\n"
        "async def main():\n"
        "    store = PostgresRunStore(sys.argv[1]); await store.create(new_run()); await store.lease('r', 'one')\n"
        "    print('held', flush=True); await asyncio.sleep(600)\n"
        "asyncio.run(main())"
    )
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", program, url, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None
    assert await child.stdout.readline() == b"held\n"
    async with opened(url) as store:
        with pytest.raises(RunBusy):
            await store.lease("r", "two")
        child.send_signal(signal.SIGKILL)
        await child.wait()
        assert (await store.lease("r", "two")).fence == 2


@pytest.mark.asyncio
async def test_runs_are_lost_whose_process_is_gone_and_that_it_has_not_given_back(server: PostgresServer) -> None:
    """Each with its fence, by which one of several that look is the first to take it."""
    async with opened(server.new_database()) as store:
        for run_id in ("lost", "given", "held", "new", "ended"):
            await store.create(new_run(run_id))
        lost = await store.lease("lost", "one", 0.01)
        ended = await store.lease("ended", "one", 0.01)
        await store.end(ended, RunState.COMPLETED, {}, "")
        await store.release(await store.lease("given", "one", 0.01))
        await store.lease("held", "one")
        while not (found := await store.lost()):  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.01)
        assert [(run.run_id, run.steps, fence) for run, fence in found] == [("lost", {}, lost.fence)]
        assert (await store.lease("lost", "two")).fence == lost.fence + 1
        assert await store.lost() == []


@pytest.mark.asyncio
async def test_one_of_many_creates_and_takes_a_run(server: PostgresServer) -> None:
    """Twenty stores at once, also the first ones of a database: one schema, one run, one holder, one charge each."""
    url = server.new_database()
    stores = [PostgresRunStore(url) for _ in range(20)]
    try:
        created = await asyncio.gather(*(store.create(new_run(most_alike=1)) for store in stores))
        assert {run.seq for run in created} == {1}
        asked = [store.lease("r", f"p{number}") for number, store in enumerate(stores)]
        taken = await asyncio.gather(*asked, return_exceptions=True)
        (lease,) = [each for each in taken if not isinstance(each, BaseException)]
        assert all(isinstance(each, RunBusy) for each in taken if each is not lease)
        await asyncio.gather(*(store.charge(lease, "a", Costs(calls=1)) for store in stores))
        assert (await stores[0].load("r")).spent == Costs(calls=20)
        with pytest.raises(RunNotFound):
            await stores[1].load("s")
    finally:
        await asyncio.gather(*(store.aclose() for store in stores))


# ------------------------------------------------------------------------------------------------ servers that fail


@pytest.mark.asyncio
async def test_a_server_that_restarts_is_waited_for(server: PostgresServer) -> None:
    """What was acknowledged is there, and a write that it broke off is made once."""
    async with opened(server.new_database()) as store:
        await store.create(new_run())
        lease = await store.lease("r", "one")
        await store.charge(lease, "a", Costs(calls=1))
        server.kill()
        writing = [asyncio.create_task(store.charge(lease, "a", Costs(calls=1))) for _ in range(4)]
        await asyncio.get_running_loop().run_in_executor(None, server.start)
        await asyncio.gather(*writing)
        assert (await store.load("r")).spent == Costs(calls=5)


@pytest.mark.asyncio
@pytest.mark.parametrize("committed", [True, False])
async def test_a_commit_whose_answer_is_lost_counts_once(
    server: PostgresServer, committed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is the same when it is done twice is done again; anything else is told, and was done once at most."""
    lost: list[int] = []
    execute = psycopg.Connection.execute

    def cut(connection: Any, query: Any, *rest: Any, **options: Any) -> Any:
        if query == "COMMIT" and len(lost) < armed:
            lost.append(connection.info.backend_pid)
            if committed:
                execute(connection, query)
            with socket.socket(fileno=os.dup(connection.fileno())) as wire:
                wire.shutdown(socket.SHUT_RDWR)
        return execute(connection, query, *rest, **options)

    armed = 0
    monkeypatch.setattr(psycopg.Connection, "execute", cut)
    async with opened(server.new_database()) as store:
        await store.create(new_run())
        lease = await store.lease("r", "one")
        armed = 1
        first = await store.settle(lease, "a", done(x=1), "i")
        armed = 2
        with pytest.raises(StoreUnavailable, match="whether it did is not known"):
            await store.charge(lease, "a", Costs(calls=1))
        assert len(lost) == 2
        run = await store.load("r")
        assert run.spent == Costs(calls=1 if committed else 0)
        assert await store.checkpoints("r") == (first,)
        assert await TestPostgresRunStore().kinds(store) == ["run_started", "step_settled a"]


@pytest.mark.asyncio
async def test_a_server_that_answers_nothing_is_given_up(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop goes on meanwhile, and closing waits for nothing; when it answers again, so does the store."""
    url = server.new_database()
    async with opened(url) as store:
        await store.create(new_run())
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("BEGIN; LOCK TABLE smr_runs.runs")
            with monkeypatch.context() as patch:
                patch.setattr(server_database, "ANSWER_SECONDS", 0.3)
                with pytest.raises(StoreUnavailable, match=r"postgresql://127\.0\.0\.1.*has not answered for 0\.3 s"):
                    await store.load("r")
            await store.aclose()
        assert (await store.load("r")).run_id == "r"
    assert not [each for each in threading.enumerate() if each.name.startswith("runs on PostgreSQL")]


@pytest.mark.asyncio
async def test_a_transaction_that_stands_still_holds_a_run_for_seconds_only(server: PostgresServer) -> None:
    """A process that was stopped within one loses it before its lease is over."""
    async with opened(server.new_database()) as store:
        await store.create(new_run())
        limits = ("idle_in_transaction_session_timeout", "lock_timeout")
        found = await store._database.read(
            lambda session: [session.execute(f"SHOW {name}").fetchone() for name in limits]
        )
        assert found == [("10s",), ("15s",)]


# ------------------------------------------------------------------------------------------------ no session state


@pytest.mark.asyncio
async def test_nothing_is_left_in_a_session(server: PostgresServer) -> None:
    """A pooler may give each transaction another one: none has a setting, a statement or a lock of an earlier one."""
    async with opened(server.new_database()) as store:
        lease = None
        for number in range(5):
            await store.create(new_run(f"r{number}"))
            lease = await store.lease(f"r{number}", "one")
            await store.settle(lease, "a", done(x=1), "i")
        kept = await store._database.read(
            lambda session: [
                session.execute(f"SELECT count(*) FROM {table}").fetchone()
                for table in ("pg_prepared_statements", "pg_cursors", "pg_listening_channels() AS c")
            ]
        )
        assert kept == [(0,), (0,), (0,)]
        assert not store._database._mine.__dict__  # the connections are those of the store's threads
        for connection in store._database._connections:
            assert connection.execute("SHOW search_path").fetchone() == ('"$user", public',)
            assert connection.execute("SHOW lock_timeout").fetchone() == ("0",)
            held = (
                "SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database"
                " WHERE locktype = 'advisory' AND datname = current_database()"
            )
            assert connection.execute(held).fetchone() == (0,)


# ------------------------------------------------------------------------------------------------ refusals


@pytest.mark.asyncio
async def test_a_server_that_is_not_there_is_told_at_once_and_without_the_password() -> None:
    """With its address, and the reason."""
    port = free_port()
    async with opened(f"postgresql://ann:s%40cret-word@127.0.0.1:{port}/db?application_name=x") as store:
        with pytest.raises(StoreUnavailable, match="refused") as error:
            await store.load("r")
    text = str(error.value)
    assert text.startswith(f"postgresql://127.0.0.1:{port}/db: ")
    assert "s%40cret-word" not in text
    assert "s@cret-word" not in text
    assert error.value.__cause__ is None


@pytest.mark.asyncio
async def test_a_url_that_libpq_cannot_read_is_told_without_the_password() -> None:
    """Its own text has a part of it."""
    async with opened("postgresql://ann:100%zzword@127.0.0.1/db") as store:
        with pytest.raises(StoreUnavailable, match="its URL cannot be read") as error:
            await store.load("r")
    assert "zzword" not in str(error.value)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        ("INSERT INTO smr_runs.migration VALUES (9, 'n', now(), '9.1')", "schema 9 is newer.* smart-model-router 9.1"),
        ("ALTER TABLE smr_runs.runs RENAME TO walks", 'relation "runs" does not exist'),
        ("UPDATE smr_runs.runs SET inputs = '{'", "run 'r': its row cannot be read"),
    ],
    ids=["newer", "changed by hand", "damaged"],
)
async def test_a_schema_that_is_not_ours_is_refused(server: PostgresServer, prepare: str, reason: str) -> None:
    """In a sentence with the place."""
    url = server.new_database()
    async with opened(url) as store:
        await store.create(new_run())
    with psycopg.connect(url, autocommit=True) as hand:
        hand.execute(prepare.encode())
    async with opened(url) as store:
        with pytest.raises(StoreUnavailable, match=reason):
            await store.load("r")


@pytest.mark.asyncio
async def test_an_old_server_and_one_without_rights_are_refused(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says what is needed; nothing is made there."""
    url = server.new_database()
    with psycopg.connect(url, autocommit=True) as hand:
        hand.execute("DROP ROLE IF EXISTS guest")
        hand.execute("CREATE ROLE guest LOGIN")
    async with opened(url.replace("postgres@", "guest@")) as store:
        with pytest.raises(StoreUnavailable, match=r"permission denied.*needs the schema smr_runs, or the right"):
            await store.create(new_run())
    monkeypatch.setattr(psycopg.ConnectionInfo, "server_version", property(lambda _: 110_022))
    async with opened(url) as store:
        with pytest.raises(StoreUnavailable, match=r"PostgreSQL 11\.22 is too old: 12 is needed"):
            await store.create(new_run())
    with psycopg.connect(url, autocommit=True) as hand:
        assert hand.execute("SELECT to_regnamespace('smr_runs')").fetchone() == (None,)


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the store is made, not when it is used."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigurationError, match=r"smart-model-router\[postgres\]") as error:
        PostgresRunStore("postgresql://ann:secret@h/d")
    assert "secret" not in str(error.value)


# ------------------------------------------------------------------------------------------------ documents, retention


@pytest.mark.asyncio
async def test_documents_are_in_the_database(server: PostgresServer) -> None:
    """Every machine has them, by the SHA-256 of their content; a damaged one is told."""
    url, content = server.new_database(), bytes(range(256)) * 4096
    async with opened(url) as one, opened(url) as other:
        for store in (one, other):
            assert await store.put_document(content) == hashlib.sha256(content).hexdigest()
        name = hashlib.sha256(content).hexdigest()
        assert await other.get_document(name) == content
        for unknown in ("0" * 64, "../runs.db", ""):
            with pytest.raises(KeyError):
                await one.get_document(unknown)
        with psycopg.connect(url, autocommit=True) as hand:
            hand.execute("UPDATE smr_runs.documents SET content = 'x'")
        with pytest.raises(StoreUnavailable, match="damaged"):
            await one.get_document(name)


@pytest.mark.asyncio
async def test_runs_that_ended_long_ago_are_deleted(server: PostgresServer) -> None:
    """By the server's clock, when another one is created; those that may go on stay."""
    now = 1_700_000_000.0
    reading: Callable[[float], ClockReading] = lambda _: ClockReading("server", now, now)  # noqa: E731
    async with opened(server.new_database(), retention_days=1, reading=reading) as store:
        for run_id in ("old", "open"):
            await store.create(new_run(run_id))
        await store.end(await store.lease("old", "one"), RunState.COMPLETED, {}, "")
        now += 86_401
        await store.create(new_run("new"))
        assert sorted(run.run_id for run in await store.runs()) == ["new", "open"]
