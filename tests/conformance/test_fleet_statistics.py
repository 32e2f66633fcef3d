"""Statistics in a file and on a server are one contract: the same promises, the same views, the same answers."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Generator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest

from smart_model_router.domain.events import BreakerChanged, RequestFinished
from smart_model_router.domain.outcome import FailureClass, Usage
from smart_model_router.domain.ports import StatsStore
from smart_model_router.flow.clock import WallClock
from smart_model_router_stats.batched_store import BatchedStore
from smart_model_router_stats.delta import SUCCESS
from smart_model_router_stats.figures import Percentiles
from smart_model_router_stats.postgres_reading import FleetReader
from smart_model_router_stats.postgres_server import StatsServer
from smart_model_router_stats.postgres_stats import PostgresStatsStore
from smart_model_router_stats.reading import FileReader, Past, StoreReader
from smart_model_router_stats.schema import VIEWS
from smart_model_router_stats.sqlite import SqliteStore
from tests.conformance.stores import StatsStoreContract
from tests.database_servers import PostgresServer, running
from tests.e2e.eventually import becomes
from tests.store_files import attempt

DOCUMENT = (Path(__file__).parents[2] / "docs" / "statistics.md").read_text("utf-8")
QUERIES = re.findall(r"```sql\n(.*?)```", DOCUMENT, re.DOTALL)
FLEET_ALONE = {"v_writers": ["machine"]}
"""Columns that a file has not."""


@pytest.fixture(scope="module")
def server() -> Generator[PostgresServer]:
    """One for the tests of this module."""
    with running(PostgresServer) as made:
        yield cast("PostgresServer", made)


class TestPostgresStatsStore(StatsStoreContract):
    """The store on a server, read by another connection."""

    @pytest.fixture(autouse=True)
    def _server(self, server: PostgresServer) -> None:
        self.server = server

    async def open(self) -> StatsStore:
        """A store in a database of its own."""
        return PostgresStatsStore(StatsServer(self.server.new_database()))

    async def totals(self, store: StatsStore) -> Mapping[tuple[str, FailureClass | None], int]:
        """Read the database; a store that observed nothing has made no schema."""
        assert isinstance(store, PostgresStatsStore)
        with store.server.connect() as connection:
            if store.server.number(connection) == 0:
                return {}
            tables = "@schema@.outcome_total o JOIN @schema@.target t ON t.id = o.target"
            found = connection.execute(store.server.query(f"SELECT t.name, o.class, o.count FROM {tables}")).fetchall()
        return {(name, None if cause == SUCCESS else FailureClass(cause)): count for name, cause, count in found}


def finished(number: int, outcome: str, at: float) -> RequestFinished:
    """One request that ended at `at`."""
    return RequestFinished(
        at=at,
        request_id=f"r{number}",
        dialect="chat",
        model="smart",
        outcome=outcome,  # type: ignore[arg-type]
        target="a/big" if outcome != "failed" else None,
        requested_tier="best",
        actual_tier="best" if outcome != "failed" else None,
        degraded=outcome == "degraded",
        last_resort=False,
        attempts=1 + number % 3,
        refusals=number % 2,
        seconds=1.5,
        waited_seconds=0.0,
        ttft_seconds=0.5 if number % 2 else None,
        complete=outcome != "failed",
        notes=("cut off",) if outcome == "failed" else (),
    )


def observe_much(store: BatchedStore, now: float) -> None:
    """Answers, streams, failures and requests of three targets over twenty minutes before `now`."""
    for number in range(240):
        ended = now - 5.0 * number
        if 13 * 60 < now - ended < 18 * 60:  # the end of the 15 minutes, which a file knows as of its last write
            continue
        target = ("a/big", "a/small", "b/big")[number % 3]
        failure = (None, FailureClass.RATE_LIMITED, None, FailureClass.TIMEOUT, None)[number % 5]
        usage = None if failure else Usage(100 + number, 20, number % 50)
        store.observe(
            attempt(target, failure, seconds=0.5 + number % 17, ttft=0.1 * (number % 7) or None, at=ended, usage=usage)
        )
    for number, outcome in enumerate(("ok", "fallback", "degraded", "failed", "cancelled")):
        store.emit(finished(number, outcome, now - 60.0 * number))
    for owner, until in (("a/big", now + 30.0), ("b/big", None)):
        store.emit(
            BreakerChanged(
                at=now - 10.0,
                owner=owner,
                kind="whole",
                from_state="closed",
                to_state="open" if until else "closed",
                reason="ratio",
                open_until=until,
            )
        )


def alike(value: object) -> object:
    """A value as both have it: numbers to nine digits, JSON as what it says."""
    match value:
        case bool():
            return int(value)
        case Decimal() | float():
            return float(f"{value:.9g}")
        case str() if value[:1] in "[{" and value:
            return alike(json.loads(value))
        case dict():
            return {key: alike(each) for key, each in value.items()}
        case _:
            return value


CLOCKS = {"last_success_age", "last_failure_age", "percentiles_at", "writer", "seen", "seen_at", "started_at", "scope"}
"""Differ from one look to the next, or from one store to another."""


@pytest.fixture(scope="module")
def stores(server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> tuple[FileReader, FleetReader]:
    """A file and a database of the same observations."""
    path = tmp_path_factory.mktemp("stats") / "s.db"
    there = StatsServer(server.new_database())
    now, wall = time.monotonic(), WallClock().now()

    async def fill(store: BatchedStore) -> None:
        observe_much(store, now)
        await store.aclose()
        assert store.acknowledged == store.observed > 150

    for store in (
        SqliteStore(path, wall=lambda: wall, monotonic=lambda: now),
        PostgresStatsStore(there, wall=lambda: wall, monotonic=lambda: now),
    ):
        asyncio.run(fill(store))
    return FileReader(path, path), FleetReader(there)


def answers(readers: tuple[StoreReader, StoreReader], query: str) -> list[list[dict[str, Any]]]:
    """The answer of each, within one minute, without the columns of clocks."""
    while True:
        found, minutes = [], set()
        for reader in readers:
            with reader.looking() as rows:
                minutes |= {row["minute"] for row in rows("SELECT minute FROM v_contract")}
                found.append([{name: alike(row[name]) for name in row if name not in CLOCKS} for row in rows(query)])
                minutes |= {row["minute"] for row in rows("SELECT minute FROM v_contract")}
        if len(minutes) == 1:
            return found


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_each_documented_query_has_the_same_answer_on_both(stores: tuple[FileReader, FleetReader], query: str) -> None:
    """As it is written, over the same observations; and none of the answers is empty."""
    in_file, on_server = answers(stores, query.rstrip().rstrip(";"))
    assert on_server == in_file
    assert in_file


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_has_the_same_columns_and_rows_on_both(stores: tuple[FileReader, FleetReader], view: str) -> None:
    """In the same order; the server's may have more at the end."""
    order = "ORDER BY at, 4" if view.endswith("_minute") else ""
    in_file, on_server = answers(stores, f"SELECT * FROM {view} {order}")
    more = FLEET_ALONE.get(view, [])
    with stores[0].looking() as ours, stores[1].looking() as theirs:
        (one, *_), (other, *_) = ours(f"SELECT * FROM {view}"), theirs(f"SELECT * FROM {view}")
    assert list(other) == [*one, *more]
    assert [{name: row[name] for name in row if name not in more} for row in on_server] == in_file
    if "scope" in one:
        assert (one["scope"], other["scope"]) == ("store", "fleet")


def test_figures_for_people_are_the_same(stores: tuple[FileReader, FleetReader]) -> None:
    """`smr stats` shows the same of both; the scope says which one it is."""
    in_file, on_server = (reader.view() for reader in stores)
    assert (in_file.figures.scope, on_server.figures.scope) == ("store", "fleet")
    assert (on_server.observed, on_server.stats_dropped) == (in_file.observed, 0)
    for level in ("targets", "models", "providers"):
        ours, theirs = (getattr(view.figures, level) for view in (in_file, on_server))
        assert ours.keys() == theirs.keys()
        for name, stats in ours.items():
            assert theirs[name].failures == stats.failures
            assert theirs[name].latency_all_time.p95 == pytest.approx(stats.latency_all_time.p95)
            assert theirs[name].latency_15_min.count == stats.latency_15_min.count


@pytest.mark.asyncio
async def test_the_past_is_the_same(stores: tuple[FileReader, FleetReader]) -> None:
    """A process that begins learns the same of a server as of a file."""
    readers = stores
    told: list[dict[str, Past]] = []
    now, wall = time.monotonic(), WallClock().now()
    path, there = readers[0].path, readers[1].server
    for store in (
        SqliteStore(path, wall=lambda: wall, monotonic=lambda: now),
        PostgresStatsStore(there, wall=lambda: wall, monotonic=lambda: now),
    ):
        known: dict[str, Past] = {}
        store.on_past(lambda past, known=known: known.update({past.target: past}))  # type: ignore[misc]
        assert await becomes(lambda known=known: len(known) == 3)  # type: ignore[misc]
        await store.aclose()
        told.append(known)
    for name, ours in told[0].items():
        theirs = told[1][name]
        assert theirs.averaged_at == ours.averaged_at
        assert theirs.averages == pytest.approx(ours.averages)
        for kind in ("latency", "ttft"):
            here, other = (getattr(past, kind) for past in (ours, theirs))
            assert Percentiles.of(here.all_time()) == Percentiles.of(other.all_time())
            assert Percentiles.of(here.recent(now)) == Percentiles.of(other.recent(now))
