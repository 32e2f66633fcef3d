"""PostgresStatsStore: the statistics of a fleet, in a database that the processes of any number of machines write."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import psycopg
from psycopg import errors

from smart_model_router_stats.batched_store import INTERVAL_SECONDS, BatchedStore
from smart_model_router_stats.housekeeping import Limits
from smart_model_router_stats.open_db import StoreUnavailableError
from smart_model_router_stats.postgres_reading import read_fleet_past
from smart_model_router_stats.postgres_server import Connection, Session, StatsServer, machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from smart_model_router_stats.batched_store import Header
    from smart_model_router_stats.delta import Batch
    from smart_model_router_stats.reading import Past

T = TypeVar("T")
_LOG = logging.getLogger(__name__)

ANSWER_SECONDS = 10.0
"""Without an answer for so long the connection is given up, and another one made."""
_EXIT_SECONDS = 3.0
_KEEP_SECONDS = 10.0
_TELLING_LOST = 2
_DAY = 86_400.0

_BUSY = (errors.DeadlockDetected, errors.SerializationFailure, errors.LockNotAvailable)
"""Others were faster; the connection is as good as before."""
_REFUSED = (errors.DataError, errors.NotNullViolation, errors.ProgramLimitExceeded)
"""A row cannot be stored for what is in it."""
_JSON_COLUMNS = {"new_event": 3, "new_request": -1}
"""The place of a column of JSON in the rows of a table."""


class PostgresStatsStore(BatchedStore):
    """Writes to the database of `server`; its schema is made by the first process that comes.

    As SqliteStore it adds up, and what is there already is not added again. Rows that the server refuses for what is
    in them are given up, and counted.
    """

    errors: ClassVar[tuple[type[Exception], ...]] = (psycopg.Error, *BatchedStore.errors)

    def __init__(
        self,
        server: StatsServer,
        *,
        wall: Callable[[], float] = time.time,  # noqa: TID251 - stamps for people; no decision rests on them
        monotonic: Callable[[], float] = time.monotonic,
        interval: float = INTERVAL_SECONDS,
        limits: Limits | None = None,
    ) -> None:
        self._server = server
        self._limits = limits or Limits()
        self._machine = machine()
        super().__init__(server.name, wall=wall, monotonic=monotonic, interval=interval)

    def _begin_anew(self) -> None:
        super()._begin_anew()
        self._session: Session | None = None
        self._was_open = False
        self._keep_at = 0.0

    def _begin(self) -> None:
        # While the interpreter ends no thread can be started: the one that writes what is left is there before.
        self._session = self._session or Session(self._open)

    @property
    def server(self) -> StatsServer:
        """The server, and the schema."""
        return self._server

    @property
    def _is_open(self) -> bool:
        return self._session is not None and self._session.is_open

    async def _connect(self) -> None:
        if not self._is_open:
            await self._ask(lambda _: None)

    async def _read_past(self, wall: float, now: float) -> Sequence[Past]:
        return await self._ask(lambda connection: read_fleet_past(self._server, connection, wall, now))

    async def _put(self, batch: Batch, header: Header) -> bool:
        return await self._ask(lambda connection: self._write_batch(connection, batch, header))

    async def _keep_in_order(self) -> None:
        now = self._monotonic()
        if now < self._keep_at:
            return
        self._keep_at = now + _KEEP_SECONDS
        limits = self._limits
        values = (limits.retention, limits.size_bytes, limits.rows)
        statement = self._server.query("SELECT @schema@.keep(%s, %s, %s)")
        await self._ask(lambda connection: connection.execute(statement, values).fetchone())

    async def _leave(self) -> None:
        """There is nothing to do: figures are computed when they are read."""

    async def _disconnect(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.end()

    def _forget(self) -> None:
        self._session = None

    def _after(self, error: Exception) -> str | None:
        if isinstance(error, _BUSY):
            return None if self._failures < _TELLING_LOST else self._server.reason(error)
        was_open, self._was_open = self._was_open, False
        if self._session is not None:
            self._session.drop()
            self._session = Session(self._open)
        # A server that was only restarted is there again before it is worth a word.
        return None if was_open and self._failures < _TELLING_LOST else self._server.reason(error)

    def _put_now(self, batches: Iterator[tuple[Batch, Header]]) -> None:
        if not self._has_more:
            return
        if self._session is None:
            raise StoreUnavailableError(self._name, "no loop ran")

        def write_all(connection: Connection) -> None:
            for batch, header in batches:
                self._write_batch(connection, batch, header)

        self._session.submit(write_all).result(_EXIT_SECONDS)

    async def _ask(self, work: Callable[[Connection], T]) -> T:
        """Have `work` done on the connection's thread. Raises what it raises, and TimeoutError."""
        self._begin()
        session = cast("Session", self._session)
        future: Future[T] = session.submit(work)
        async with asyncio.timeout(_EXIT_SECONDS if self._closed else ANSWER_SECONDS):
            done = await asyncio.wrap_future(future)
        self._was_open = True
        return done

    def _open(self) -> Connection:
        """On the connection's thread."""
        connection = self._server.connect()
        try:
            self._server.migrate(connection, self._limits.retention / _DAY)
        except BaseException:
            connection.close()
            raise
        return connection

    def _write_batch(self, connection: Connection, batch: Batch, header: Header) -> bool:
        given = encoded({**batch.rows, "writer": header, "machine": self._machine})
        try:
            connection.execute(self._server.query("SELECT @schema@.add_up(%s::json)"), (given,))
        except _REFUSED as error:  # neither later nor elsewhere would it be taken
            _LOG.warning(
                "statistics of %d calls are given up: %s: %s", batch.calls, self._name, self._server.reason(error)
            )
            return False
        return True


def encoded(rows: Mapping[str, Any]) -> str:
    """A batch as JSON that PostgreSQL takes: without NUL, lone surrogates and numbers that are none."""
    requests = [(*row[:-1], *row[-1]) for row in rows["new_request"]]
    plain: dict[str, Any] = {**rows, "new_event": list(rows["new_event"]), "new_request": requests}
    try:
        text = json.dumps(plain, ensure_ascii=False, allow_nan=False)
        text.encode()
    except ValueError:
        text = ""
    if text and not any(sign in text for sign in ("\\u", "NaN", "Infinity")):
        return text
    for table, place in _JSON_COLUMNS.items():
        for number, row in enumerate(plain[table]):
            values = list(row)
            values[place] = json.dumps(_storable(json.loads(values[place])), ensure_ascii=False)
            plain[table][number] = values
    return json.dumps(_storable(plain), ensure_ascii=False)


def _storable(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {_storable(key): _storable(each) for key, each in value.items()}
        case list() | tuple():
            return [_storable(each) for each in value]
        case _:
            return value
