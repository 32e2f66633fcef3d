"""The shared state on real servers passes the suite of SharedState."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, cast

import psycopg
import pytest
from psycopg import sql

from smart_model_router.domain.shared_state import (
    BucketAsk,
    BudgetAsk,
    Changes,
    ClockReading,
    MemberRow,
    SharedStateError,
    SlotAsk,
    lease_tokens,
)
from smart_model_router_stats.postgres_migrations import prepare
from smart_model_router_stats.row_server import RowAnswer, RowExchange, RowWrite
from smart_model_router_stats.server_leases import lease_request
from smart_model_router_stats.server_rows import row_id, text_of
from smart_model_router_stats.shared_optimistic import ServerSharedState
from smart_model_router_stats.shared_postgres import SCHEMA, migrations, postgres_rows
from smart_model_router_stats.shared_valkey import valkey_rows
from tests.conformance.shared_states import Clock, SharedStateContract, leased
from tests.database_servers import PostgresServer, ValkeyServer, running

if TYPE_CHECKING:
    from smart_model_router_stats.row_server import RowServer

_namespaces = count(1)


class HandClock:
    """The hand-moved clock of the suite in the place of the server's."""

    far = 0.0

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def __call__(self) -> ClockReading:
        return self._clock()

    def heard(self, epoch: str, at: float, sent: float, received: float) -> bool:
        """Not measured."""
        return False


@pytest.fixture(scope="module")
def valkey_server() -> Iterator[ValkeyServer]:
    """One server for the tests of this module, each with a namespace of its own."""
    with running(ValkeyServer) as server:
        yield cast("ValkeyServer", server)


@pytest.fixture(scope="module")
def postgres_server() -> Iterator[PostgresServer]:
    """As above, each with a database of its own."""
    with running(PostgresServer) as server:
        yield cast("PostgresServer", server)


def in_child(work: Callable[[], None]) -> None:
    """Do it in a fork of this process."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001 - told by the status
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


class ServerContract(SharedStateContract):
    """The suite on a server."""

    @abstractmethod
    def connector(self, namespace: str) -> Callable[[], RowServer]:
        """Makes connections to a namespace of this test."""

    @abstractmethod
    def lose_everything(self) -> None:
        """Flush the server, as an operator does."""

    @abstractmethod
    def write_call_and_maker(self, text: str, thing: bytes) -> None:
        """Write a call, and the maker of `thing`, as another program does."""

    @abstractmethod
    def remove_gone_rows(self) -> None:
        """Remove the marks of rows that are gone, as the server does after a minute."""

    def process(self) -> ServerSharedState:
        return self.process_in("test")

    def process_in(self, namespace: str) -> ServerSharedState:
        """One more process of a fleet."""
        return ServerSharedState(self.connector(namespace), HandClock(self.clock), time.monotonic)

    @pytest.mark.asyncio
    async def test_fifty_writers_of_one_row_all_come_to_an_end(self) -> None:
        """Each conflict is tried again with the newer row, and none is lost."""
        processes = [self.process() for _ in range(50)]
        await asyncio.gather(*(each.poll() for each in processes))
        views = await asyncio.gather(
            *(each.publish(Changes(rests=(self.rest(60.0 + number),))) for number, each in enumerate(processes))
        )
        assert all(len(view.rests) == 1 for view in views)
        (rest,) = self.process().restore().view.rests
        assert rest.until.duration == 60.0 + len(processes) - 1
        assert sum(each.conflicts for each in processes) > 0
        await asyncio.gather(*(each.aclose() for each in processes))

    @pytest.mark.asyncio
    async def test_a_probe_at_a_provider_is_refused_when_another_breaker_appeared(self) -> None:
        """The row of the other one did not exist when this process last looked: no condition on rows would show it."""
        one, other = self.process(), self.process()
        await one.poll()
        await other.poll()
        assert (await one.claim([self.probe("one", owner="a/new")])).granted != ()
        refused = await other.claim([self.probe("other")])
        assert refused.granted == ()
        assert [row.holder for row in refused.view.breakers] == ["one"]
        await one.aclose()
        await other.aclose()

    @pytest.mark.asyncio
    async def test_a_server_that_lost_everything_begins_a_new_epoch(self) -> None:
        """It is empty for every process, each can tell anew, and limits begin a second behind."""
        one, other = self.process(), self.process()
        ask = BucketAsk(key="a/m requests", capacity=60, rate=1, most=60, want=5, least=1)
        await one.publish(Changes((self.row("open", 30.0, step=2),)))
        await one.lease([replace(ask, want=40)])
        assert (await other.poll()) is not None
        epoch, _ = await self.newest()
        self.lose_everything()
        view = await other.poll()
        assert view is not None
        assert view.breakers == ()
        again = await other.publish(Changes((self.row("open", 20.0, step=2),)))
        assert [(row.step, row.gen) for row in again.breakers] == [(2, 1)]
        heard = await one.poll()
        assert heard is not None
        assert heard.breakers == again.breakers
        (grant,) = await leased(one, ask)
        assert grant.left == 59 - grant.granted
        later, _ = await self.newest()
        assert later != epoch
        await one.aclose()
        await other.aclose()

    @pytest.mark.asyncio
    async def test_a_process_that_missed_a_new_epoch_writes_nothing_of_the_old_one(self) -> None:
        """Its rows may be wrong now: it reads again, and its stale claim is refused."""
        one, other = self.process(), self.process()
        await one.publish(Changes((self.row("open", 0.0),)))
        await other.poll()
        self.lose_everything()
        assert (await one.claim([self.probe("one")])).granted != ()
        assert (await other.claim([self.probe("other")])).granted == ()
        await one.aclose()
        await other.aclose()

    @pytest.mark.asyncio
    async def test_a_namespace_sees_nothing_of_another(self) -> None:
        """Two fleets on one server, with the same targets."""
        one, other = self.process_in("one"), self.process_in("other")
        await one.publish(Changes((self.row("open", 30.0),)))
        ask = BucketAsk(key="a/m requests", capacity=60, rate=1, most=60, want=5, least=1)
        assert [grant.left for grant in await leased(one, ask)] == [54]
        view = await other.poll()
        assert view is not None
        assert (view.breakers, view.limits) == ((), ())
        assert [grant.left for grant in await leased(other, ask)] == [54]
        await one.aclose()
        await other.aclose()

    @pytest.mark.asyncio
    @pytest.mark.parametrize("text", ["", "text", "[1]", '[1,["a/m","whole"]]', "[NaN]", '[1,[{"a":1}]]', "null"])
    async def test_rows_written_by_hand_are_no_rows(self, text: str) -> None:
        """They are passed over, and a process that knows better replaces them."""
        state = self.process()
        breaker, limit = row_id("breaker", "a/m", "whole"), row_id("limit", "a/m requests")
        await self.write([RowWrite(breaker, text, 60.0), RowWrite(limit, text, 60.0)])
        assert self.process().restore().view.breakers == ()
        view = await state.publish(Changes((self.row("open", 30.0),)))
        assert [row.gen for row in view.breakers] == [1]
        ask = BucketAsk(key="a/m requests", capacity=60, rate=1, most=60, want=5, least=1)
        assert [grant.granted for grant in await leased(state, ask)] == [5]
        await state.aclose()

    @pytest.mark.asyncio
    async def test_calls_and_makers_written_by_hand_are_none(self) -> None:
        """A process begins and goes on with those that can be read."""
        state = self.process()
        await state.publish(Changes((self.row("open", 30.0),)))
        self.write_call_and_maker("text", b"\xab")
        assert self.process().restore().calls == ()
        assert await state.makers([b"\xab", b"\xac"]) == ()
        await state.aclose()

    @pytest.mark.asyncio
    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
    async def test_a_fork_leaves_the_connections_of_its_parent_alone(self) -> None:
        """The child has its own, and what it inherits is not closed there."""
        state = self.process()
        await state.publish(Changes((self.row("open", 30.0),)))

        async def use() -> None:
            await state.publish(Changes((self.row("open", 40.0, gen=1),)))
            gc.collect()
            await state.aclose()

        await asyncio.to_thread(in_child, lambda: asyncio.run(use()))
        await state.publish(Changes((self.row("open", 50.0, gen=2),)))
        await state.aclose()

    @pytest.mark.asyncio
    async def test_rows_that_are_gone_are_forgotten(self) -> None:
        """A fleet whose processes begin and end all day needs no more memory for it."""
        state = self.process()
        for number in range(3):
            here = self.clock()
            members = [
                MemberRow(holder=f"h{number}-{one}", machine="m", version="1", pid=7, at=here) for one in range(60)
            ]
            await state.publish(Changes(members=tuple(members)))
            await state.publish(Changes(members=tuple(replace(row, over=True) for row in members)))
            self.remove_gone_rows()
        assert len(state._known.all("member")) < 130
        await state.aclose()

    @pytest.mark.asyncio
    async def test_rows_of_a_later_version_are_left_alone(self) -> None:
        """Each process decides alone on such a breaker, and such a limit."""
        state = self.process()
        breaker, limit = row_id("breaker", "a/m", "whole"), row_id("limit", "a/m requests")
        text = '[2,["of later"]]'
        await self.write([RowWrite(breaker, text, 60.0), RowWrite(limit, text, 60.0)])
        assert (await state.publish(Changes((self.row("open", 30.0),)))).breakers == ()
        found = await self.exchange(RowExchange(since=-1, epoch="", fresh="x"))
        assert {(name, written) for name, _, written in found.rows if written} == {(breaker, text), (limit, text)}
        assert await state.lease([self.limit("a/m requests")]) == (None,)
        found = await self.exchange(RowExchange(since=-1, epoch="", fresh="x"))
        assert {written for name, _, written in found.rows if name == limit} == {text}
        await state.aclose()

    @pytest.mark.asyncio
    async def test_a_lease_leaves_out_what_only_later_versions_can_read(self) -> None:
        """Each process decides alone on that one, and all others are settled."""
        state = self.process()
        rows = [row_id("limit", "a/m requests"), row_id("budget", "a"), row_id("slots", "a")]
        await self.write([RowWrite(name, ' [ 10 , ["of later"]]', 60.0) for name in rows])
        limits = self.limit("b/m requests"), self.limit("a/m requests")
        asks = (*limits, BudgetAsk(key="a", capacity=9, period=60, want=1))
        assert [grant and grant.left for grant in await state.lease(asks)] == [54, None, None]
        slots = [SlotAsk(key=key, holder="p", slots=4, keeps=0, least=1, want=1) for key in ("a", "b")]
        assert [grant and grant.held for grant in await state.lease_slots(slots)] == [None, 1]
        await state.aclose()

    @pytest.mark.asyncio
    async def test_leases_of_the_same_limits_in_any_order_all_come_to_an_end(self) -> None:
        """No two of them wait for each other, also where the limits are new, and nothing is leased twice."""
        processes = [self.process() for _ in range(8)]
        asks = [replace(self.limit(f"{name}/m requests"), rate=1e-6, ours=True) for name in "abcd"]
        orders = [asks, asks[::-1], asks[2:] + asks[:2], asks[1::2] + asks[::2]]
        async with asyncio.timeout(30):
            grants = await asyncio.gather(
                *(each.lease(order) for _ in range(4) for each, order in zip(processes, 2 * orders, strict=True))
            )
        granted = Counter[str]()
        for grant in (grant for answer in grants for grant in answer if grant is not None):
            granted[grant.key] += int(grant.granted)
        assert granted == dict.fromkeys((ask.key for ask in asks), 60)
        await asyncio.gather(*(each.aclose() for each in processes))

    def limit(self, key: str) -> BucketAsk:
        """An ask for five tokens of sixty."""
        return BucketAsk(key=key, capacity=60, rate=1, most=60, want=5, least=1)

    @pytest.mark.asyncio
    async def test_a_thousand_targets_are_read_once_and_then_as_they_change(self) -> None:
        """A poll brings what changed, not everything again."""
        one, other = self.process(), self.process()
        rows = tuple(self.row("open", 30.0, owner=f"a/m{number}") for number in range(1000))
        await one.publish(Changes(rows))
        view = await other.poll()
        assert view is not None
        assert len(view.breakers) == len(rows)
        await one.publish(Changes((replace(rows[7], state="closed", gen=1),)))
        changed = await self.exchange(RowExchange(since=1000, epoch=(await self.newest())[0], fresh=""))
        assert [name for name, _, _ in changed.rows] == [row_id("breaker", "a/m7", "whole")]
        view = await other.poll()
        assert view is not None
        assert [row.owner for row in view.breakers if row.state == "closed"] == ["a/m7"]
        await one.aclose()
        await other.aclose()

    async def newest(self) -> tuple[str, int]:
        """The epoch and the news, asked by a connection of its own."""
        server = self.connector("test")()
        try:
            return await server.newest()
        finally:
            await server.aclose()

    async def exchange(self, asked: RowExchange) -> RowAnswer:
        """A question by a connection of its own."""
        server = self.connector("test")()
        try:
            return await server.exchange(asked)
        finally:
            await server.aclose()

    async def write(self, rows: list[RowWrite]) -> None:
        """Write rows as another program does."""
        epoch = (await self.exchange(RowExchange(since=-1, epoch="", fresh="x"))).epoch
        done = await self.exchange(RowExchange(since=-1, epoch=epoch, fresh="x", writes=rows, tells=True))
        assert done.done


class TestValkey(ServerContract):
    """On Valkey, or Redis."""

    @pytest.fixture(autouse=True)
    def _server(self, valkey_server: ValkeyServer) -> None:
        self.server = valkey_server
        self.number = next(_namespaces)

    def connector(self, namespace: str) -> Callable[[], RowServer]:
        return valkey_rows(self.server.url, f"{namespace}-{self.number}")

    def lose_everything(self) -> None:
        with self.server.client() as client:
            client.flushall()

    def remove_gone_rows(self) -> None:
        space = f"smr:{{test-{self.number}}}:"
        with self.server.client() as client:
            gone = [name for name, text in client.hgetall(f"{space}rows").items() if text.endswith(b" ")]
            client.hdel(f"{space}rows", *gone)
            client.zrem(f"{space}order", *gone)
            client.zrem(f"{space}expiry", *gone)

    def write_call_and_maker(self, text: str, thing: bytes) -> None:
        with self.server.client() as client:
            client.hset(f"smr:{{test-{self.number}}}:calls", "a/m", text)
            client.hset(f"smr:{{test-{self.number}}}:makers", thing.hex(), text)

    @pytest.mark.asyncio
    async def test_a_counter_written_by_hand_is_named(self) -> None:
        """A sentence says which key to remove."""
        state = self.process()
        await state.publish(Changes((self.row("open", 30.0),)))
        with self.server.client() as client:
            client.set(f"smr:{{test-{self.number}}}:news", "text")
        with pytest.raises(SharedStateError, match=r":news was not written by the router: remove it"):
            await state.poll()
        await state.aclose()

    @pytest.mark.asyncio
    @pytest.mark.parametrize("value", ["text", "-1", "1e300", "nan", None])
    @pytest.mark.parametrize("field", ["epoch", "server", "writes", "news", "schema"])
    async def test_a_head_written_by_hand_is_that_of_a_server_that_begins_anew(
        self, field: str, value: str | None
    ) -> None:
        """The rows are still there, and no later change of them is missed."""
        one, other = self.process(), self.process()
        for step in range(3):
            await one.publish(Changes((self.row("open", 30.0, step=step, gen=step),)))
        await one.lease([self.limit("a/m requests")])
        await other.poll()
        epoch, _ = await self.newest()
        with self.server.client() as client:
            meta = f"smr:{{test-{self.number}}}:meta"
            client.hdel(meta, field) if value is None else client.hset(meta, field, value)
        (grant,) = await leased(one, self.limit("a/m requests"))
        assert grant.granted == 5
        assert (await self.newest())[0] != epoch
        for step in range(3, 6):
            await one.publish(Changes((self.row("open", 30.0, step=step, gen=step),)))
            view = await other.poll()
            assert view is not None
            assert [row.step for row in view.breakers] == [step]
        await one.aclose()
        await other.aclose()


class TestPostgres(ServerContract):
    """On PostgreSQL."""

    @pytest.fixture(autouse=True)
    def _database(self, postgres_server: PostgresServer) -> None:
        self.url = postgres_server.new_database()

    def connector(self, namespace: str) -> Callable[[], RowServer]:
        return postgres_rows(self.url, namespace)

    def lose_everything(self) -> None:
        with psycopg.connect(self.url) as connection:
            connection.execute("TRUNCATE smr_shared.head, smr_shared.shared_row, smr_shared.call, smr_shared.maker")

    def write_call_and_maker(self, text: str, thing: bytes) -> None:
        with psycopg.connect(self.url) as connection:
            connection.execute("INSERT INTO smr_shared.call VALUES (DEFAULT, 'test', 'a/m', %s, true)", [text])
            connection.execute("INSERT INTO smr_shared.maker VALUES (DEFAULT, 'test', %s, %s, 1)", [thing.hex(), text])

    @pytest.mark.asyncio
    async def test_a_schema_that_was_dropped_is_made_again(self) -> None:
        """The first question after it fails, and the next one finds tables."""
        state = self.process()
        await state.publish(Changes((self.row("open", 30.0),)))
        with psycopg.connect(self.url) as connection:
            connection.execute("DROP SCHEMA smr_shared CASCADE")
        with pytest.raises(SharedStateError, match="does not exist"):
            await state.poll()
        assert len((await state.publish(Changes((self.row("open", 20.0),)))).breakers) == 1
        await state.aclose()

    def remove_gone_rows(self) -> None:
        with psycopg.connect(self.url) as connection:
            connection.execute("DELETE FROM smr_shared.shared_row WHERE body = ''")

    @pytest.mark.asyncio
    async def test_a_database_of_the_first_version_is_brought_up_to_date(self) -> None:
        """With all that is in it: what was leased of a limit stays leased."""
        here = self.clock()
        ask = self.limit("a/m requests")
        row, _ = lease_tokens(None, replace(ask, most=25), here)
        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
            await prepare(connection, SCHEMA, migrations()[:1])
            line = "substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"
            await connection.execute(f"INSERT INTO smr_shared.head VALUES ('test', '7-x', {line}, 1, 1)")
            await connection.execute(
                "INSERT INTO smr_shared.shared_row VALUES ('test', %s, 1, %s, NULL)",
                [row_id("limit", ask.key), text_of("limit", row)],
            )
        state = self.process()
        (grant,) = await leased(state, ask)
        assert (grant.granted, grant.left) == (4, row.level - 4)
        assert await self.newest() == ("7-x", 1)
        await state.aclose()

    @pytest.mark.asyncio
    async def test_a_lease_at_a_server_that_was_promoted_is_one_of_a_new_epoch(self) -> None:
        """The process has not asked for anything else since."""
        state = self.process()
        await state.lease([self.limit("a/m requests")])
        epoch, _ = await self.newest()
        with psycopg.connect(self.url) as connection:
            connection.execute("UPDATE smr_shared.head SET timeline = '0000FFFF'")
        assert len(await leased(state, self.limit("a/m requests"))) == 1
        assert (await self.newest())[0] != epoch
        await state.aclose()

    @pytest.mark.asyncio
    @pytest.mark.parametrize("kind", ["limits", "budgets"])
    async def test_money_alone_is_on_disk_before_it_is_spent(self, kind: str) -> None:
        """The row of a limit is held for as long as a write takes, and what a crash loses of it is told anew."""
        state = self.process()
        await state.poll()
        asks = (
            [BudgetAsk(key="a", capacity=9, period=60, want=1)] if kind == "budgets" else [self.limit("a/m requests")]
        )
        request = json.dumps(lease_request(asks, self.clock(), state.epoch))
        with psycopg.connect(self.url) as connection:
            (found,) = connection.execute("SELECT smr_shared.lease('test', %s)", [request]).fetchone() or ({},)
            assert len(found["grants"]) == 1
            assert connection.execute("SHOW synchronous_commit").fetchone() == ("on" if kind == "budgets" else "off",)
        await state.aclose()

    @pytest.mark.asyncio
    async def test_a_setting_of_the_database_changes_no_figure(self) -> None:
        """Floats of fifteen digits would not be those that were written."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            database = sql.Identifier(self.url.rpartition("/")[2])
            connection.execute(sql.SQL("ALTER DATABASE {} SET extra_float_digits = 0").format(database))
        state = self.process()
        (grant,) = await leased(state, replace(self.limit("a/m tokens"), most=1 / 3, want=0.1, least=0.0, ours=True))
        assert grant.left == 1 / 3 - grant.granted
        await state.aclose()
