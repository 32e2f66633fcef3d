"""Shared rows in a PostgreSQL database."""

# ruff: noqa: S608 - made of the constants of this file

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.redaction import error_line
from smart_model_router.domain.shared_state import SharedStateError
from smart_model_router_stats.postgres_migrations import prepare
from smart_model_router_stats.row_server import Leased, RowAnswer, RowExchange, ServerFacts
from smart_model_router_stats.server_leases import lease_request, leased
from smart_model_router_stats.server_rows import call_of_text, makers_of_texts, request_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from smart_model_router.domain.shared_state import BucketAsk, BudgetAsk, CallRow, ClockReading, MakerRow, SlotAsk

T = TypeVar("T")

SCHEMA = "smr_shared"
_CONNECTIONS = 2
_CONNECTING_SECONDS = 2
_ANSWER_SECONDS = 5.0
"""No answer after that is a fault of the connection, which is closed: its other end may be gone without a word."""


class PostgresRows:
    """The rows of one namespace, by one loop's connections."""

    def __init__(self, connections: _Connections, namespace: str, told: Callable[[BaseException], str]) -> None:
        self._connections = connections
        self._namespace = namespace
        self._told = told
        self._prepared = False

    async def newest(self) -> tuple[str, int]:
        """The epoch and the number of the newest change that others were told of."""

        async def read(connection: Any) -> tuple[str, int]:
            row = await _one(connection, f"SELECT epoch, news FROM {SCHEMA}.head WHERE namespace = %s", self._namespace)
            return (str(row[0]), int(row[1])) if row else ("", 0)

        return await self._ask(read)

    async def exchange(self, asked: RowExchange) -> RowAnswer:
        """Write all of it or nothing."""
        request = json.dumps(request_of(asked))

        async def send(connection: Any) -> Any:
            return await _one(connection, f"SELECT {SCHEMA}.exchange(%s, %s::jsonb)", self._namespace, request)

        (found,) = await self._ask(send)
        found["rows"] = [(name, revision, text) for name, revision, text in found["rows"]]
        return RowAnswer(**found)

    async def lease(self, asks: Sequence[BucketAsk | BudgetAsk | SlotAsk], here: ClockReading, epoch: str) -> Leased:
        """Settle accounts with limits, budgets and bulkheads, in this order, by the rules that run in the database."""
        request = json.dumps(lease_request(asks, here, epoch))

        async def send(connection: Any) -> Any:
            return await _one(connection, f"SELECT {SCHEMA}.lease(%s, %s::jsonb)", self._namespace, request)

        (found,) = await self._ask(send)
        return leased(asks, found["at"], found["grants"])

    async def calls(self) -> Sequence[CallRow]:
        """The calls that are kept, oldest first."""

        async def read(connection: Any) -> list[Any]:
            sql = f"SELECT body FROM {SCHEMA}.call WHERE namespace = %s ORDER BY number"
            return list(await (await connection.execute(sql, [self._namespace])).fetchall())

        return [call for (body,) in await self._ask(read) if (call := call_of_text(body)) is not None]

    async def makers(self, things: Sequence[bytes]) -> Sequence[MakerRow]:
        """The makers of these things, as far as they are known."""

        async def read(connection: Any) -> dict[str, str]:
            sql = f"SELECT thing, body FROM {SCHEMA}.maker WHERE namespace = %s AND thing = ANY(%s)"
            cursor = await connection.execute(sql, [self._namespace, [thing.hex() for thing in things]])
            return dict(await cursor.fetchall())

        found = await self._ask(read)
        return makers_of_texts((thing, found.get(thing.hex())) for thing in things)

    async def facts(self) -> ServerFacts:
        """Facts of the server, for people."""

        async def read(connection: Any) -> ServerFacts:
            (version,) = await _one(connection, "SHOW server_version")
            return ServerFacts(f"PostgreSQL {version}")

        return await self._ask(read)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connections.aclose()

    async def _ask(self, question: Callable[[Any], Awaitable[T]]) -> T:
        import psycopg  # noqa: PLC0415 - an extra

        try:
            async with self._connections.one() as connection:
                return await _in_time(connection, self._answer(connection, question))
        except (psycopg.Error, OSError, TimeoutError) as error:
            self._prepared = False  # the schema may have gone, with the database or another primary
            raise SharedStateError(self._told(error)) from error

    async def _answer(self, connection: Any, question: Callable[[Any], Awaitable[T]]) -> T:
        if not self._prepared:
            await prepare(connection, SCHEMA, migrations())
            self._prepared = True
        return await question(connection)


class _Connections:
    """At most `most` connections, made when they are needed. One that was left in the middle is not used again."""

    def __init__(self, connect: Callable[[], Awaitable[Any]], most: int) -> None:
        self._connect = connect
        self._free = asyncio.Semaphore(most)
        self._idle: list[Any] = []
        self._lent: set[Any] = set()
        self._closed = False

    @asynccontextmanager
    async def one(self) -> AsyncGenerator[Any]:
        """Lend one; wait for it where all are lent."""
        async with self._free:
            connection = self._idle.pop() if self._idle else await self._connect()
            self._lent.add(connection)
            try:
                yield connection
            except BaseException:
                await connection.close()
                raise
            finally:
                self._lent.discard(connection)
            if self._closed:
                await connection.close()
            else:
                self._idle.append(connection)

    async def aclose(self) -> None:
        """Close all of them, also those that are lent: their questions fail."""
        self._closed = True
        for connection in (*self._idle, *self._lent):
            await connection.close()
        self._idle.clear()


@cache
def migrations() -> tuple[str, ...]:
    """The statements of each migration of the schema, oldest first."""
    folder = files("smart_model_router_stats").joinpath("sql")
    return tuple(folder.joinpath(f"shared_state_{number}.sql").read_text(encoding="utf-8") for number in (1, 2))


async def _in_time(connection: Any, answer: Coroutine[object, object, T]) -> T:
    """Wait for the answer; without one in time, close the connection and raise TimeoutError.

    It is closed first: the library waits ten seconds for a server to cancel what is asked on an open one.
    """
    asked = asyncio.get_running_loop().create_task(answer)
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            return await asyncio.shield(asked)
    except TimeoutError:
        raise TimeoutError(f"no answer within {_ANSWER_SECONDS:g} s") from None
    finally:
        if not asked.done():
            await connection.close()
            asked.cancel()
            await asyncio.wait({asked})


async def _one(connection: Any, statement: str, *values: object) -> Any:
    return await (await connection.execute(statement, values)).fetchone()


def postgres_rows(url: str, namespace: str) -> Callable[[], PostgresRows]:
    """Make connections to the database of this URL. Raises ConfigurationError when the extra is missing."""
    try:
        import psycopg  # noqa: PLC0415 - an extra
        from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415 - as above
    except ImportError:
        wanted = "PostgreSQL is an extra: pip install 'smart-model-router[postgres]'"
        raise ConfigurationError("store.shared_url", "postgresql://…", wanted) from None
    try:
        secret = str(conninfo_to_dict(url).get("password") or "")
    except psycopg.Error:
        fault = "a URL of PostgreSQL is needed, with options that libpq knows and special characters %-encoded"
        raise ConfigurationError("store.shared_url", "postgresql://…", fault) from None  # its text may have a password

    async def connection() -> Any:
        return await psycopg.AsyncConnection.connect(
            url,
            autocommit=True,
            prepare_threshold=None,  # PgBouncer may give each transaction another connection
            connect_timeout=_CONNECTING_SECONDS,
            tcp_user_timeout=1000 * _CONNECTING_SECONDS,  # a machine that is gone sends no end of its connections
            application_name="smart-model-router",
        )

    return lambda: PostgresRows(_Connections(connection, _CONNECTIONS), namespace, partial(error_line, secret=secret))
