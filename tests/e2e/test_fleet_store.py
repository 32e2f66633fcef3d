"""Statistics on a real PostgreSQL server: sums are exact whatever dies, requests notice nothing, commands read it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import httpx2
import psycopg
import pytest

from smart_model_router import SmartModelRouter
from smart_model_router.domain.events import BreakerChanged, Event, StoreChanged
from smart_model_router.domain.outcome import FailureClass, Usage
from smart_model_router.testing import FakeProvider
from smart_model_router_providers.fault import FaultServer
from smart_model_router_stats import postgres_stats
from smart_model_router_stats.batched_store import CELL_LIMIT, QUEUE_LIMIT
from smart_model_router_stats.housekeeping import Limits
from smart_model_router_stats.open_db import StoreUnavailableError
from smart_model_router_stats.postgres_reading import FleetReader
from smart_model_router_stats.postgres_schema import BY_DAY
from smart_model_router_stats.postgres_server import Session, StatsServer, literal
from smart_model_router_stats.postgres_stats import PostgresStatsStore
from tests.database_servers import PostgresServer, free_port, running
from tests.e2e.command import SECONDS, Smr, StartedProgram, program
from tests.e2e.eventually import PATIENCE, becomes
from tests.e2e.gateways import Served, fleet, served
from tests.e2e.gateways import becomes as shows
from tests.store_files import attempt

PROGRAM = Path(__file__).with_name("store_program.py")
BODY = {"model": "smart", "messages": [{"role": "user", "content": "hello"}]}
CONFIG: dict[str, Any] = {
    "version": 1,
    "providers": {"a": {"kind": "openai_compatible", "base_url": "http://fake.invalid"}},
    "models": {"smart": {"tiers": [{"targets": ["a/big"]}], "last_resort": []}},
}
TURNS = 200
"""Of the loop: more than a request needs, and gone before any server has answered."""


@pytest.fixture(scope="module")
def server() -> Generator[PostgresServer]:
    """One for the tests that leave it running."""
    with running(PostgresServer) as made:
        yield cast("PostgresServer", made)


@pytest.fixture
def own_server() -> Generator[PostgresServer]:
    """One that the test may kill."""
    with running(PostgresServer) as made:
        yield cast("PostgresServer", made)


@pytest.fixture
def url(server: PostgresServer) -> str:
    """An empty database."""
    return server.new_database()


def told(url: str, query: str, *values: object) -> list[tuple[Any, ...]]:
    """What any SQL tool is told whose names are looked up in the schema."""
    with psycopg.connect(url, autocommit=True, options="-c search_path=smr_stats") as connection:
        return connection.execute(literal(query), values).fetchall()


def calls(url: str) -> dict[str, int]:
    """Calls by target."""
    return dict(told(url, "SELECT target, calls FROM v_target_now"))


def lines_in(file: Path) -> int:
    """The number of lines written so far."""
    return file.read_bytes().count(b"\n") if file.exists() else 0


def last_line(file: Path) -> int:
    """The number in the last whole line."""
    return int(file.read_text().rpartition("\n")[0].split()[-1])


@pytest.mark.asyncio
async def test_sums_are_right_though_a_process_and_the_server_are_killed(
    own_server: PostgresServer, tmp_path: Path
) -> None:
    """Two processes write, the server is killed and begun again in between, and one process is killed after that."""
    url = own_server.new_database()
    outs = [tmp_path / "victim.txt", tmp_path / "survivor.txt"]
    victim, survivor = (
        StartedProgram(PROGRAM, "write", url, count, f"w/{out.stem}", out)
        for count, out in zip((10_000_000, 1_000), outs, strict=True)
    )
    assert await becomes(lambda: min(map(lines_in, outs)) > 10)
    own_server.kill()
    before = [lines_in(out) for out in outs]
    own_server.start()
    assert await becomes(lambda: all(lines_in(out) > count + 3 for out, count in zip(outs, before, strict=True)))
    victim.send_signal(signal.SIGKILL)
    victim.communicate(timeout=SECONDS)
    assert "Traceback" not in survivor.communicate(timeout=SECONDS)[1]
    stored = calls(url)
    assert stored["w/survivor"] == last_line(outs[1]) == 1_000
    observed = dict(told(url, "SELECT pid, observed FROM v_writers"))
    assert last_line(outs[0]) <= stored["w/victim"] <= observed[victim.pid]
    assert observed[survivor.pid] == 1_000


class Changes:
    """A sink that keeps what is said of stores."""

    inline = True

    def __init__(self) -> None:
        self.kept: list[tuple[str, bool]] = []

    def emit(self, event: Event) -> None:
        """Keep it."""
        if isinstance(event, StoreChanged):
            self.kept.append((event.store, event.degraded))


async def serve(router: SmartModelRouter, count: int) -> None:
    """So many requests, each of which waits for nothing but the loop."""
    for _ in range(count):
        asking = asyncio.ensure_future(router.chat(BODY))
        for _ in range(TURNS):
            await asyncio.sleep(0)
        assert asking.done()


@pytest.mark.asyncio
async def test_requests_do_not_notice_a_server_that_is_away(own_server: PostgresServer) -> None:
    """They are served as before, it is said once each way, and everything is written once the server is back."""
    url, sink = own_server.new_database(), Changes()
    config = {**CONFIG, "store": {"stats_url": url, "response_ttl": 0}}
    async with SmartModelRouter.from_config(config, providers={"a": FakeProvider()}, sinks=[sink]) as router:
        await serve(router, 20)
        assert await becomes(lambda: bool(told(url, "SELECT FROM pg_namespace WHERE nspname = 'smr_stats'")))
        own_server.kill()
        await serve(router, 20)
        assert await becomes(lambda: sink.kept == [("stats", True)])
        await serve(router, 20)
        own_server.start()
        assert await becomes(lambda: sink.kept == [("stats", True), ("stats", False)], within=3 * PATIENCE)
    assert calls(url) == {"a/big": 60}
    assert told(url, "SELECT count(*) FROM v_requests") == [(60,)]
    assert told(url, "SELECT kind, detail ->> 'store' FROM v_events") == [("StoreChanged", "stats")] * 2


def backends(url: str) -> list[int]:
    """The server's processes that serve the connections to a database, but for the one that asks."""
    query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    return [pid for (pid,) in told(url, query)]


@pytest.mark.asyncio
async def test_sums_of_an_hour_wait_for_a_database(server: PostgresServer) -> None:
    """Twenty targets called every minute while there was none: every minute is there later, in its own row."""
    there = server.new_database()
    missing = there.rpartition("/")[0] + "/late"
    store = PostgresStatsStore(StatsServer(missing), interval=0.01)
    now = time.monotonic()
    for minute in range(60, 0, -1):
        for number in range(20):
            store.observe(attempt(f"a/m{number}", at=now - 60.0 * minute))
    assert not await store.flush()
    assert "does not exist" in store.status.reason
    with psycopg.connect(there, autocommit=True) as connection:
        connection.execute("CREATE DATABASE late")
    assert await becomes(lambda: store.acknowledged == 1_200)
    await store.aclose()
    assert told(missing, "SELECT count(*), sum(calls)::int FROM v_target_minute") == [(1_200, 1_200)]


@pytest.mark.asyncio
async def test_nothing_depends_on_the_session(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As behind a pooler that gives each transaction another connection: each question goes through a new one."""
    monkeypatch.setattr(Session, "is_open", property(lambda _: False))
    server, made = StatsServer(url), list[psycopg.Connection[Any]]()
    connect = server.connect

    def another() -> psycopg.Connection[Any]:
        for connection in made:
            connection.close()
        made.append(connect())
        return made[-1]

    monkeypatch.setattr(server, "connect", another)
    store = PostgresStatsStore(server)
    for _ in range(3):
        store.observe(attempt())
        assert await store.flush()
    await store.aclose()
    assert len(made) > 3
    assert calls(url) == {"a/big": 3}


@pytest.mark.asyncio
async def test_a_router_that_starts_again_knows_its_percentiles(url: str) -> None:
    """Those of the whole fleet, before its first request, each call once; its own counters begin at 0."""
    config = {**CONFIG, "store": {"stats_url": url, "response_ttl": 0}}

    def count(router: SmartModelRouter) -> int:
        return router.stats().targets["a/big"].latency_all_time.count

    async with SmartModelRouter.from_config(config, providers={"a": FakeProvider()}) as router:
        for _ in range(80):
            await router.chat(BODY)
    async with SmartModelRouter.from_config(config, providers={"a": FakeProvider()}) as router:
        assert await becomes(lambda: count(router) == 80)
        await router.chat(BODY)
        assert (count(router), router.stats().targets["a/big"].calls) == (81, 1)


@pytest.mark.asyncio
async def test_an_answer_that_is_lost_adds_nothing_twice(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that was given up, because its connection stood still, is sent again; then the first one arrives, too."""
    monkeypatch.setattr(postgres_stats, "ANSWER_SECONDS", 0.3)
    store = PostgresStatsStore(StatsServer(url), interval=0.01)
    store.observe(attempt())
    assert await becomes(lambda: store.acknowledged == 1)
    (stopped,) = backends(url)
    os.kill(stopped, signal.SIGSTOP)
    for _ in range(50):
        store.observe(attempt())
    assert await becomes(lambda: store.acknowledged == 51)
    os.kill(stopped, signal.SIGCONT)
    assert await becomes(lambda: stopped not in backends(url))
    await store.aclose()
    assert calls(url) == {"a/big": 51}


@pytest.mark.asyncio
async def test_a_server_that_stands_still_is_said(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its connections nor its door answer; closing takes no long time, and what waited is written later."""
    monkeypatch.setattr(postgres_stats, "ANSWER_SECONDS", 0.3)
    url = server.new_database()
    store = PostgresStatsStore(StatsServer(url), interval=0.01)
    store.observe(attempt())
    assert await becomes(lambda: store.acknowledged == 1)
    stopped = backends(url)
    server.suspend()
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        store.observe(attempt())
        assert await becomes(lambda: store.status.state == "degraded")
        assert store.status.reason == "it does not answer"
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        server.resume()
    assert await becomes(lambda: store.acknowledged == 2)
    await store.aclose()
    assert calls(url) == {"a/big": 2}


@pytest.mark.asyncio
async def test_a_batch_that_is_there_already_changes_nothing(url: str) -> None:
    """The same batch of the same writer, given twice: the second answer is no."""
    server = StatsServer(url)
    store = PostgresStatsStore(server)
    store.observe(attempt())
    await store.aclose()
    (writer,) = told(url, "SELECT writer FROM v_writers")[0]
    batch: dict[str, Any] = {
        "writer": (writer, 1, 0.0, 0.0, 2, 9, 0),
        "machine": "m",
        "cell": [(0, "a/big", "a", "big", 29_000_000, *[1] * 10, None, None)],
        "outcome": [(0, "OK", 5)],
        "bar": [],
        "new_event": [],
        "new_request": [],
    }
    text = postgres_stats.encoded(batch)
    assert [told(url, "SELECT add_up(%s::json)", text) for _ in range(3)] == [[(True,)], [(False,)], [(False,)]]
    assert calls(url) == {"a/big": 6}


@pytest.mark.asyncio
async def test_what_waits_is_bounded(tmp_path: Path) -> None:
    """With no server at all the oldest sums go, and each call that went is counted."""
    del tmp_path
    store = PostgresStatsStore(StatsServer(f"postgresql://postgres@127.0.0.1:{free_port()}/d"))
    for number in range(CELL_LIMIT + 100):
        store.observe(attempt(f"a/m{number}"))
    assert not await store.flush()
    assert store.stats_dropped == 100 + max(0, CELL_LIMIT + 100 - QUEUE_LIMIT)
    assert "refused" in store.status.reason
    await store.aclose()


@pytest.mark.asyncio
async def test_stores_that_meet_an_empty_database_make_it_once(url: str) -> None:
    """Eight at the same time: one makes the schema, the others find it, and their sum is there."""
    stores = [PostgresStatsStore(StatsServer(url)) for _ in range(8)]
    for store in stores:
        store.observe(attempt())
    assert all(await asyncio.gather(*(store.flush() for store in stores)))
    for store in stores:
        await store.aclose()
    assert calls(url) == {"a/big": 8}


@pytest.mark.asyncio
async def test_writers_of_the_same_targets_do_not_stop_each_other(url: str) -> None:
    """Four stores, each with the same thirty targets in another order, many batches: nothing is lost or refused."""
    stores = [PostgresStatsStore(StatsServer(url), interval=0.005) for _ in range(4)]
    for turn in range(20):
        for place, store in enumerate(stores):
            for number in range(30):
                store.observe(attempt(f"a/m{(number * (1, 7, 11, 13)[place] + turn) % 30}", ttft=0.1))
        assert all(await asyncio.gather(*(store.flush() for store in stores)))
    for store in stores:
        await store.aclose()
    assert set(calls(url).values()) == {80}


@pytest.mark.asyncio
async def test_names_and_figures_that_a_database_refuses_are_mended(url: str) -> None:
    """NUL, half a surrogate and an infinite duration lose no batch."""
    store = PostgresStatsStore(StatsServer(url))
    store.observe(attempt("a/\0nul"))
    store.observe(attempt("a/\ud800half"))
    store.emit(
        BreakerChanged(
            at=time.monotonic(),
            owner="a/\0nul",
            kind="whole",
            from_state="closed",
            to_state="open",
            reason="\ud800",
            open_until=float("inf"),
        )
    )
    assert await store.flush()
    await store.aclose()
    assert calls(url) == {"a/�nul": 1, "a/?half": 1}
    events = told(url, "SELECT subject, detail ->> 'reason', detail ->> 'open_seconds' FROM v_events")
    assert events == [("a/�nul", "?", None)]


def made_theirs(url: str) -> None:
    """A schema of our name with a table of others."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA smr_stats")
        connection.execute("CREATE TABLE smr_stats.invoices (id int)")


def made_newer(url: str) -> None:
    """The schema of a later release."""
    server = StatsServer(url)
    with server.connect() as connection:
        server.migrate(connection, 14)
        connection.execute("INSERT INTO smr_stats.migration VALUES (99, 'tomorrow', now(), '9.8.7')")


def made_unwritable(url: str) -> None:
    """A database in which nothing can be made."""
    with psycopg.connect(url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(literal(f"ALTER DATABASE {name} SET default_transaction_read_only = on"))


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("make", "reason"),
    [(made_theirs, "it has invoices"), (made_newer, "install 9.8.7 or newer"), (made_unwritable, "read-only")],
    ids=["a schema of others", "a newer schema", "a replica"],
)
async def test_a_database_that_cannot_serve_is_left_alone_and_named(url: str, make: Any, reason: str) -> None:
    """The store says why, keeps its sums, and changes nothing there."""
    make(url)
    before = told(url, "SELECT count(*) FROM pg_class")
    store = PostgresStatsStore(StatsServer(url))
    store.observe(attempt())
    assert not await store.flush()
    assert reason in store.status.reason
    await store.aclose()
    assert told(url, "SELECT count(*) FROM pg_class") == before


def test_a_server_that_is_too_old_is_refused() -> None:
    """The sentence has its version, and the one that is needed."""
    server = StatsServer("postgresql://user:secret@host:5432/d")
    server.check_version(120_000)
    with pytest.raises(StoreUnavailableError, match=r"PostgreSQL 11\.22 is too old: 12 or newer is needed") as refused:
        server.check_version(110_022)
    assert "secret" not in str(refused.value)


@pytest.mark.asyncio
async def test_the_oldest_days_go(url: str) -> None:
    """A day beyond the retention, or beyond the size, is dropped as a whole; totals and today stay."""
    server = StatsServer(url)
    now = time.monotonic()
    store = PostgresStatsStore(server, limits=Limits(retention=3 * 86_400.0))
    for days in range(6):
        store.observe(attempt(at=now - 86_400.0 * days))
    assert await store.flush()
    await store.aclose()

    def kept(retention: float, size: int = 1 << 40) -> list[int]:
        with server.connect() as connection:
            for _ in range(8):
                connection.execute("UPDATE smr_stats.keeping SET kept_at = 0")
                assert connection.execute("SELECT smr_stats.keep(%s, %s, 100)", (retention, size)).fetchone() == (True,)
        return [calls for (calls,) in told(url, "SELECT calls FROM v_target_minute")]

    assert len(kept(3 * 86_400.0)) in {3, 4}
    assert kept(3 * 86_400.0, size=1) == [1]
    assert calls(url) == {"a/big": 6}
    tables = told(url, "SELECT count(*) FROM pg_inherits")
    assert tables[0][0] in {len(BY_DAY), 2 * len(BY_DAY)}, "today, and tomorrow when it is near"


@pytest.mark.asyncio
async def test_a_year_has_no_more_parts_than_a_season(url: str) -> None:
    """Kept for a year, minutes lie in parts of four days: a query has to open each of a table's."""
    now = time.monotonic()
    store = PostgresStatsStore(StatsServer(url), limits=Limits(retention=365 * 86_400.0))
    for days in range(40):
        store.observe(attempt(at=now - 86_400.0 * days))
    assert await store.flush()
    await store.aclose()
    assert told(url, "SELECT count(*), sum(calls)::int FROM v_target_minute") == [(40, 40)]
    assert told(url, "SELECT count(*) FROM pg_inherits WHERE inhparent = 'sum_minute'::regclass")[0][0] in {10, 11, 12}


@pytest.mark.asyncio
async def test_the_newest_requests_stay(url: str) -> None:
    """As many rows of requests as the limit says."""
    config = {**CONFIG, "store": {"stats_url": url, "response_ttl": 0}}
    async with SmartModelRouter.from_config(config, providers={"a": FakeProvider()}) as router:
        for _ in range(30):
            await router.chat(BODY)
    newest = told(url, "SELECT request_id FROM v_requests LIMIT 10")
    with StatsServer(url).connect() as connection:
        connection.execute("UPDATE smr_stats.keeping SET kept_at = 0")
        connection.execute("SELECT smr_stats.keep(86400, 1000000000, 10)")
    assert told(url, "SELECT request_id FROM v_requests") == newest


@pytest.mark.parametrize("ending", ["leave", "leave_loop"])
def test_a_program_that_never_closes_its_router_leaves_its_statistics(url: str, ending: str) -> None:
    """What was not yet written is written at its end, which takes no long time."""
    left = StartedProgram(PROGRAM, ending, url, 30)
    out, errors = left.communicate(timeout=SECONDS)
    assert (left.returncode, "Traceback" in errors) == (0, False)
    assert time.monotonic() - float(out) < 20
    assert sum(calls(url).values()) >= 60


def test_a_fork_shares_nothing_but_the_server(url: str) -> None:
    """With work waiting and a connection open, both sides of a fork go on; each call is written once."""
    forked = StartedProgram(PROGRAM, "fork", url)
    out, errors = forked.communicate(timeout=SECONDS)
    assert (forked.returncode, json.loads(out), "Traceback" in errors) == (0, {"child": 0}, False)
    assert calls(url) == {"a/child": 7, "a/parent": 30}
    assert told(url, "SELECT count(*) FROM v_writers") == [(2,)]


def test_gateways_of_two_machines_have_one_store(url: str, tmp_path: Path) -> None:
    """Each shows the calls of both under `scope=store`; what wrote them is known by machine and process."""
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    with FaultServer() as upstream, ExitStack() as stack:
        config = {**fleet(upstream), "store": {"stats_url": url}}
        gateways = [stack.enter_context(served(config, folder)) for folder in folders]
        for gateway in gateways:
            reply = httpx2.post(
                f"{gateway.base_url}/v1/chat/completions", json={**BODY, "model": "smart"}, timeout=SECONDS
            )
            assert reply.status_code == 200

        def stored(gateway: Served) -> dict[str, Any]:
            told: dict[str, Any] = httpx2.get(f"{gateway.base_url}/api/stats?scope=store", timeout=SECONDS).json()
            return told

        for gateway in gateways:
            assert shows(lambda gateway=gateway: stored(gateway).get("targets", {}).get("ao/big", {}).get("calls") == 2)  # type: ignore[misc]
        assert stored(gateways[0])["scope"] == "fleet"
        writers = told(url, "SELECT machine, pid FROM v_writers")
    assert {machine for machine, _ in writers} == {socket.gethostname()}
    assert {pid for _, pid in writers} >= {gateway.process.pid for gateway in gateways}


# Commands ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def filled(url: str) -> str:
    """A database with ten calls at one target and three failures at another; the URL has a password."""

    async def fill() -> None:
        store = PostgresStatsStore(StatsServer(url))
        for number in range(10):
            store.observe(attempt("a/big", seconds=1.0 + number, usage=Usage(10, 20, 4)))
        for _ in range(3):
            store.observe(attempt("b/small", FailureClass.TIMEOUT))
        await store.aclose()

    asyncio.run(fill())
    return url.replace("postgres@", "postgres:hush-hush@")


def test_stats_and_top_of_a_server(smr: Smr, filled: str) -> None:
    """As of a file; the password is in no output."""
    table, told_json, top = (
        smr("stats", "--db", filled),
        smr("stats", "--db", filled, "--json"),
        smr("top", "--db", filled, "--times", "2", "--seconds", "0.1"),
    )
    assert [done.returncode for done in (table, told_json, top)] == [0, 0, 0]
    assert [line.split()[:4] for line in table.stdout.splitlines() if "/" in line] == [
        ["a/big", "10", "100.0%", "100.0%"],
        ["b/small", "3", "0.0%", "0.0%"],
    ]
    assert json.loads(told_json.stdout)["scope"] == "fleet"
    assert "13 calls at 2 targets" in top.stdout
    assert "hush-hush" not in "".join(done.stdout + done.stderr for done in (table, told_json, top))


def test_the_server_of_the_configuration_is_the_default(smr: Smr, filled: str, tmp_path: Path) -> None:
    """The URL of the configuration, from a variable; with a file as well the URL has the statistics."""
    config = {**CONFIG, "store": {"path": str(tmp_path / "s.db"), "stats_url": "${STATS}"}}
    (tmp_path / "c.yaml").write_text(json.dumps(config))
    smr.environment["STATS"] = filled
    done = smr("stats", "-c", "c.yaml")
    assert (done.returncode, "10" in done.stdout) == (0, True)
    doctor = smr("doctor", "-c", "c.yaml")
    assert "PostgreSQL" in doctor.stdout
    assert "schema smr_stats" in doctor.stdout
    shown = smr("config", "show", "-c", "c.yaml")
    assert "hush-hush" not in done.stdout + done.stderr + doctor.stdout + doctor.stderr + shown.stdout + shown.stderr


def test_a_dashboard_of_a_server(filled: str) -> None:
    """Its picture has the targets and no password."""
    command = [program(), "dashboard", "--db", filled, "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8")
    assert process.stdout is not None
    try:
        address = json.loads(process.stdout.readline())["url"]
        page = httpx2.get(address).text
        with httpx2.stream("GET", address + "/stream", timeout=30) as reply:
            picture = next(line for line in reply.iter_lines() if line.startswith("data: ") and '"targets"' in line)
    finally:
        process.terminate()
        assert process.wait(30) == 0
        process.stdout.close()
    assert {target["id"] for target in json.loads(picture[6:])["targets"]} == {"a/big", "b/small"}
    assert "hush-hush" not in page + picture


def test_what_cannot_be_read_is_a_line_and_3(smr: Smr, server: PostgresServer) -> None:
    """No server, no schema of ours, no URL: each says what it is, without the password."""
    nowhere = f"postgresql://u:hush-hush@127.0.0.1:{free_port()}/d"
    for command, place, reason in (
        ("stats", nowhere, "refused"),
        ("top", nowhere, "refused"),
        ("dashboard", nowhere, "refused"),
        ("stats", server.new_database().replace("postgres@", "postgres:hush-hush@"), "it has no schema smr_stats"),
        ("stats", "postgresql://u:hush-hush@127.0.0.1/d?hush-hush=1", "it is no URL of a PostgreSQL database"),
        ("stats", "postgresql:///d", "a host is needed"),
    ):
        done = smr(command, "--db", place)
        assert (done.returncode, done.stdout) == (3, "")
        assert reason in done.stderr
        assert "hush-hush" not in done.stderr
        assert "Traceback" not in done.stderr


def test_a_database_of_another_namespace_is_named(smr: Smr, url: str) -> None:
    """Where the schema is not there, the error says which ones are."""
    server = StatsServer(url, "eu_stats")
    with server.connect() as connection:
        server.migrate(connection, 14)
    done = smr("stats", "--db", url)
    assert (done.returncode, "it has no schema smr_stats: there are eu_stats" in done.stderr) == (3, True)


def test_a_replica_can_be_read(filled: str) -> None:
    """Reading needs no right to write."""
    with psycopg.connect(filled, autocommit=True) as connection:
        connection.execute(literal(f"ALTER DATABASE {connection.info.dbname} SET default_transaction_read_only = on"))
    assert FleetReader(StatsServer(filled)).view().figures.targets["a/big"].calls == 10
