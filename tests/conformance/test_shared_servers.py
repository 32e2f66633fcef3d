"""The shared state on real servers passes the suite of SharedState."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, cast

import psycopg
import pytest

from smart_model_router.domain.shared_state import (
    BucketAsk,
    BucketGrant,
    Changes,
    ClockReading,
    MemberRow,
    SharedStateError,
)
from smart_model_router_stats import transactions
from smart_model_router_stats.row_server import RowAnswer, RowExchange, RowWrite
from smart_model_router_stats.server_rows import row_id
from smart_model_router_stats.shared_optimistic import ServerSharedState
from smart_model_router_stats.shared_postgres import postgres_rows
from smart_model_router_stats.shared_valkey import valkey_rows
from tests.conformance.shared_states import Clock, SharedStateContract
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
        (grant,) = await one.lease([ask])
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
        assert [grant.left for grant in await one.lease([ask])] == [54]
        view = await other.poll()
        assert view is not None
        assert (view.breakers, view.limits) == ((), ())
        assert [grant.left for grant in await other.lease([ask])] == [54]
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
        assert [grant.granted for grant in await state.lease([ask])] == [5]
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
        """Each process decides such a breaker alone, and with such a limit everything."""
        state = self.process()
        breaker, limit = row_id("breaker", "a/m", "whole"), row_id("limit", "a/m requests")
        text = '[2,["of later"]]'
        await self.write([RowWrite(breaker, text, 60.0), RowWrite(limit, text, 60.0)])
        assert (await state.publish(Changes((self.row("open", 30.0),)))).breakers == ()
        found = await self.exchange(RowExchange(since=-1, epoch="", fresh="x"))
        assert {(name, written) for name, _, written in found.rows if written} == {(breaker, text), (limit, text)}
        with pytest.raises(SharedStateError, match="later version"):
            await state.lease([BucketAsk(key="a/m requests", capacity=60, rate=1, most=60, want=5, least=1)])
        await state.aclose()

    @pytest.mark.asyncio
    async def test_a_lease_that_fails_at_one_limit_takes_nothing_of_another(self) -> None:
        """All of it is done or nothing, as often as it is asked."""
        state = self.process()
        late = BucketAsk(key="a/m requests", capacity=60, rate=1, most=60, want=5, least=1)
        ask = replace(late, key="b/m requests")
        await self.write([RowWrite(row_id("limit", late.key), '[2,["of later"]]', 60.0)])
        for _ in range(3):
            with pytest.raises(SharedStateError, match="later version"):
                await state.lease([ask, late])
        assert [grant.left for grant in await state.lease([ask])] == [54]
        await state.aclose()

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
    async def test_a_process_that_stands_still_in_the_middle_of_a_lease_holds_no_limit(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The server closes its connection, and the others lease on."""
        stands, goes_on, lease = threading.Event(), threading.Event(), transactions.lease
        ask = BucketAsk(key="a/m requests", capacity=60, rate=1, most=60, want=5, least=1)

        def stopped(*args: Any) -> tuple[BucketGrant, ...]:
            if not stands.is_set():
                stands.set()
                goes_on.wait(60)
            return lease(*args)

        async def leased() -> tuple[BucketGrant, ...]:
            state = self.process()
            try:
                return await state.lease([ask])
            finally:
                await state.aclose()

        await leased()
        monkeypatch.setattr(transactions, "lease", stopped)
        machine = asyncio.create_task(asyncio.to_thread(lambda: asyncio.run(leased())))
        try:
            await asyncio.to_thread(stands.wait, 30)
            async with asyncio.timeout(20):
                assert [grant.granted for grant in await leased()] == [5]
        finally:
            goes_on.set()
        with pytest.raises(SharedStateError):
            await machine
