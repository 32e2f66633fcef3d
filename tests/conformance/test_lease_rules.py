"""The rules of limits, budgets and slots that run in a server equal those in Python, to the last bit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.domain.shared_state import BucketAsk, BudgetAsk, ClockReading, SlotAsk
from smart_model_router_stats import transactions
from smart_model_router_stats.memory import MemoryTables
from smart_model_router_stats.row_server import RowExchange
from smart_model_router_stats.server_rows import AttemptTables, KnownRows
from smart_model_router_stats.shared_postgres import postgres_rows
from smart_model_router_stats.shared_valkey import valkey_rows
from tests.database_servers import PostgresServer, ValkeyServer, running

if TYPE_CHECKING:
    from smart_model_router_stats.row_server import RowServer

START = ClockReading("1-a", 5_000.25, 1_700_000_000.75)
# A quotient too small for a double is an error in PostgreSQL, and zero elsewhere: no amount is near it.
AMOUNTS = st.just(0.0) | st.floats(1e-9, 2_000.0) | st.integers(0, 2_000).map(float)
CAPACITIES = st.floats(0.5, 2_000.0) | st.integers(1, 2_000).map(float)
WINDOWS = st.none() | st.floats(0.5, 90_000.0) | st.sampled_from([1.0, 60.0, 86_400.0])

LIMITS = st.builds(
    BucketAsk,
    key=st.sampled_from(["a/m requests", 'ä"\\ tokens']),
    capacity=CAPACITIES,
    rate=st.floats(1e-4, 1e4),
    most=AMOUNTS,
    window=WINDOWS,
    steady=st.booleans(),
    resets_in=st.just(0.0) | st.floats(0.0, 100.0),
    held_for=st.just(0.0) | st.floats(0.0, 100.0),
    debt=st.just(0.0) | AMOUNTS,
    back=st.just(0.0) | AMOUNTS,
    want=st.just(0.0) | AMOUNTS,
    least=AMOUNTS,
    ours=st.booleans(),
)
WHOLE = st.integers(0, 10**9)
BUDGETS = st.builds(
    BudgetAsk,
    key=st.sampled_from(["guest cafe0123 usd", "guest other usd"]),
    capacity=st.integers(1, 10**9),
    period=st.sampled_from([60.0, 86_400.0]),
    want=st.just(0) | WHOLE,
    reserved=st.just(0) | WHOLE,
    settled=st.just(0) | WHOLE,
    spent=st.just(0) | WHOLE,
)
SMALL = st.integers(0, 12)
SLOTS = st.builds(
    SlotAsk,
    key=st.sampled_from(["a", "b"]),
    holder=st.sampled_from(["p1", "p2", "p3", "p4"]),
    slots=st.integers(1, 12),
    keeps=SMALL,
    least=SMALL,
    want=SMALL,
)
STEPS = st.sampled_from([0.0, 0.01, 1.0, 29.9, 30.3, 60.0, 3_600.0]) | st.floats(-0.2, 200.0)


@dataclass(frozen=True)
class Lane:
    """The rows of namespaces on a server, and the loop that speaks to it."""

    rows: Callable[[str], Callable[[], RowServer]]
    loop: asyncio.AbstractEventLoop
    numbers: Iterator[int]

    def both(self, history: list[tuple[float, bool, Any]]) -> None:
        """Take both ways through a history of asks: so many seconds later each, after a reboot or not."""
        rows = self.rows(f"rules-{next(self.numbers)}")()
        try:
            self.loop.run_until_complete(_both(rows, history))
        finally:
            self.loop.run_until_complete(rows.aclose())


async def _both(rows: RowServer, history: list[tuple[float, bool, Any]]) -> None:
    epoch = (await rows.exchange(RowExchange(since=-1, epoch="", fresh="x"))).epoch
    tables, here = MemoryTables(), START
    for seconds, reboot, ask in history:
        here = replace(here, boottime=here.boottime + seconds, wall=here.wall + seconds)
        if reboot:
            here = replace(here, boot=here.boot + "'", boottime=7.0)
        rule = transactions.slots if isinstance(ask, SlotAsk) else transactions.lease
        expected = cast("Any", rule)(tables, [ask], here)
        assert (await rows.lease([ask], here, epoch)).grants == expected
    found = await rows.exchange(RowExchange(since=-1, epoch="", fresh="x"))
    known = KnownRows()
    known.take(found.epoch, found.news, found.last, found.rows, full=True)
    there = AttemptTables(known)
    for table in ("buckets", "budgets", "all_slots"):
        assert set(getattr(there, table)()) == set(getattr(tables, table)())
    assert found.news == tables.version


@pytest.fixture(scope="module", params=[ValkeyServer, PostgresServer], ids=["valkey", "postgres"])
def lane(request: pytest.FixtureRequest) -> Iterator[Lane]:
    """One server of each kind for all histories, each in a namespace of its own."""
    loop = asyncio.new_event_loop()
    with running(request.param) as server:
        rows: Callable[[str, str], Callable[[], RowServer]] = valkey_rows
        if isinstance(server, PostgresServer):
            rows, url = postgres_rows, server.new_database()
        else:
            url = cast("ValkeyServer", server).url
        yield Lane(partial(rows, url), loop, count(1))
    loop.close()


def histories(asks: st.SearchStrategy[Any]) -> st.SearchStrategy[list[tuple[float, bool, Any]]]:
    """Some asks, one after the other."""
    seldom = st.integers(0, 9).map(lambda drawn: drawn == 9)
    return st.lists(st.tuples(STEPS, seldom, asks), min_size=1, max_size=12)


@pytest.mark.loopback
@given(histories(LIMITS))
def test_limits(lane: Lane, history: list[tuple[float, bool, Any]]) -> None:
    """With and without windows, held, in debt, of another boot, leased by clocks that differ a little."""
    lane.both(history)


@pytest.mark.loopback
@given(histories(BUDGETS))
def test_budgets(lane: Lane, history: list[tuple[float, bool, Any]]) -> None:
    """Over their ends and over reboots."""
    lane.both(history)


@pytest.mark.loopback
@given(histories(SLOTS))
def test_slots(lane: Lane, history: list[tuple[float, bool, Any]]) -> None:
    """Also where more are kept than there are, and of holders that died."""
    lane.both(history)
