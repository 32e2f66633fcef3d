"""A PostgreSQL server with fleet statistics: connections, what is wrong with them, and numbered migrations.

Works behind a pooler that gives a connection away after each transaction: no state of the session is used.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from importlib.metadata import version
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.string import TextLoader

from smart_model_router.domain.redaction import error_line
from smart_model_router_stats.open_db import StoreUnavailableError
from smart_model_router_stats.postgres_migrations import OLDEST_SERVER
from smart_model_router_stats.postgres_schema import FLEET_MIGRATIONS, SCHEMA

if TYPE_CHECKING:
    from smart_model_router_stats.postgres_schema import FleetMigration

T = TypeVar("T")
Connection = psycopg.Connection[tuple[Any, ...]]

_OPTIONS = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "2",
    "tcp_user_timeout": "15000",
    "fallback_application_name": "smart-model-router",
    "client_encoding": "utf8",
}
"""Options of libpq, where the URL has none: a server that is gone without a word is noticed within 20 s."""
_LONGEST_NAME = 63
_PARTITIONS = 100
"""Days are joined into longer partitions where more would have to be kept: a query locks each of a table's."""

_KNOWN: dict[type[Exception], str] = {
    errors.ReadOnlySqlTransaction: "the server is a read-only replica: name the primary",
    errors.InvalidSchemaName: "there is no schema with our tables: has a router with this store run?",
    errors.UndefinedTable: "there is no schema with our tables: has a router with this store run?",
}
"""Errors of the server in words for the owner; others are told in its own."""


class StatsServer:
    """The database at `url`, and the statistics in its `schema`. Raises StoreUnavailableError where one cannot be."""

    def __init__(self, url: str, schema: str = SCHEMA) -> None:
        if len(schema.encode()) > _LONGEST_NAME:
            raise StoreUnavailableError(
                "postgresql://", f"the name of the schema, {schema}, is too long: shorten the namespace"
            )
        self.schema = schema
        self._quoted = '"{}"'.format(schema.replace('"', '""'))
        self.search_path = f"{self._quoted}, pg_temp"
        """The value of the setting with which names are looked up in the schema."""
        try:
            self._parameters: dict[str, Any] = dict(conninfo_to_dict(url))
        except psycopg.Error:  # its message may repeat a part of a password
            raise StoreUnavailableError("postgresql://", "it is no URL of a PostgreSQL database") from None
        given = self._parameters
        for option, value in _OPTIONS.items():
            given.setdefault(option, value)
        port = f":{given['port']}" if "port" in given else ""
        self.name = f"postgresql://{given.get('host', '')}{port}/{given.get('dbname', '')}"
        """For people: without user and password."""

    def connect(self) -> Connection:
        """A new connection, each statement a transaction of its own; blocks.

        Raises psycopg.Error and StoreUnavailableError.
        """
        connection = psycopg.connect(make_conninfo("", **self._parameters), autocommit=True, prepare_threshold=None)
        connection.adapters.register_loader("json", TextLoader)  # as SQLite has it
        try:
            self.check_version(connection.info.server_version)
        except StoreUnavailableError:
            connection.close()
            raise
        return connection

    def check_version(self, number: int) -> None:
        """Raise StoreUnavailableError for a server that is too old; `number` is as libpq gives it (150018 is 15.18)."""
        if number < OLDEST_SERVER:
            old = f"{number // 10_000}.{number % 10_000}"
            raise StoreUnavailableError(
                self.name, f"PostgreSQL {old} is too old: {OLDEST_SERVER // 10_000} or newer is needed"
            )

    def query(self, text: str) -> sql.SQL:
        """A statement of this package's with `@schema@` in it, for this schema."""
        return sql.SQL(literal(text.replace("@schema@", self._quoted)))

    def reason(self, error: Exception) -> str:
        """The reason behind an error, for the owner: nothing secret, in one line."""
        if isinstance(error, StoreUnavailableError):
            return error.reason
        known = _KNOWN.get(type(error))
        if known is not None:
            return known
        if isinstance(error, TimeoutError):
            return "it does not answer"
        return error_line(error, self._parameters.get("password") or "")

    def standing(self) -> str:
        """The server's version and the schema's, for people; blocks. Raises StoreUnavailableError."""
        try:
            with self.connect() as connection:
                number = self.number(connection)
                if connection.execute("SELECT pg_is_in_recovery()").fetchone() == (True,):
                    raise StoreUnavailableError(self.name, _KNOWN[errors.ReadOnlySqlTransaction])
                newest = connection.info.server_version
        except psycopg.Error as error:
            raise StoreUnavailableError(self.name, self.reason(error)) from None
        schema = f"schema {self.schema}" + (f" ({number})" if number else " will be made")
        return f"PostgreSQL {newest // 10_000}.{newest % 10_000}, {schema}"

    def others(self, connection: Connection) -> list[str]:
        """Other schemas of the database with fleet statistics."""
        query = (
            "SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE c.relname = 'v_contract' AND c.relkind = 'v' AND n.nspname <> %s ORDER BY 1"
        )
        return [name for (name,) in connection.execute(query, (self.schema,)).fetchall()]

    # The schema -------------------------------------------------------------------------------------------

    def number(self, connection: Connection) -> int:
        """The number of the schema's newest migration, 0 where there is no schema or an empty one.

        Raises StoreUnavailableError for a newer one, and for one that is not ours.
        """
        relations = connection.execute(
            "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s"
            " AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relname IN"
            " (SELECT 'migration' UNION SELECT min(relname) FROM pg_class k WHERE k.relnamespace = n.oid"
            " AND k.relkind IN ('r', 'p', 'v', 'm', 'f'))",
            (self.schema,),
        ).fetchall()
        if not relations:
            return 0
        if ("migration",) not in relations:
            raise StoreUnavailableError(
                self.name,
                f"the schema {self.schema} is of something else: it has {relations[0][0]}, and none of our tables",
            )
        newest, needs = connection.execute(
            self.query("SELECT number, needs FROM @schema@.migration ORDER BY number DESC LIMIT 1")
        ).fetchone() or (0, "")
        if newest > len(FLEET_MIGRATIONS):
            ours = version("smart-model-router")
            needed = f"a newer one than this {ours}" if needs == ours else f"{needs} or newer"
            raise StoreUnavailableError(
                self.name,
                f"the schema {self.schema} is newer ({newest}) than this smart-model-router knows: install {needed}",
            )
        return int(newest)

    def migrate(self, connection: Connection, retention_days: float) -> None:
        """Bring the schema to the newest one, made where there is none. One process at a time does so.

        Raises StoreUnavailableError and psycopg.Error.
        """
        if self.number(connection) == len(FLEET_MIGRATIONS):
            return
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s), 0)", (self.schema,))
            # A name is looked up in the schemas of the transaction: nothing of the session stays changed.
            connection.execute("SELECT set_config('search_path', %s, true)", (self.search_path,))
            done = self.number(connection)
            if not connection.execute("SELECT FROM pg_namespace WHERE nspname = %s", (self.schema,)).fetchall():
                connection.execute(self.query("CREATE SCHEMA @schema@"))
            connection.execute(
                "CREATE TABLE IF NOT EXISTS migration (number integer PRIMARY KEY, name text NOT NULL,"
                " applied_at timestamptz NOT NULL, needs text NOT NULL)"
            )
            days = max(1, -(-round(retention_days) // _PARTITIONS))
            for number, migration in enumerate(FLEET_MIGRATIONS[done:], start=done + 1):
                self._apply(connection, number, migration, days)

    def _apply(self, connection: Connection, number: int, migration: FleetMigration, days: int) -> None:
        for statement in migration.statements:
            text = statement.replace("@name@", self.schema.replace("'", "''")).replace("@days@", str(days))
            connection.execute(self.query(text))
        connection.execute(
            "INSERT INTO migration VALUES (%s, %s, now(), %s)", (number, migration.name, migration.since)
        )


def literal(text: str) -> LiteralString:
    """A statement made of constants, which a type checker cannot see to be one."""
    return text  # type: ignore[return-value,unused-ignore] # pyright: ignore[reportReturnType]


class Session:
    """A connection on a daemon thread of its own, which does blocking work, one after another.

    Not the loop's: the past of two hundred targets is parsed here, and a program that ends without closing its router
    can write what is left. A session whose work does not come to an end is dropped, and another one begun.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._connection: Connection | None = None
        self._dropped = False
        Thread(target=self._run, name="smart-model-router statistics", daemon=True).start()

    @property
    def is_open(self) -> bool:
        """True while there is a connection."""
        return self._connection is not None and not self._connection.closed

    def submit(self, work: Callable[[Connection], T]) -> Future[T]:
        """Have `work` done with the connection, which is opened before unless it is open."""
        future: Future[T] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(work(self._opened()))
            except BaseException as error:  # noqa: BLE001 - it is the future's
                future.set_exception(error)

        self._jobs.put(job)
        return future

    def drop(self) -> None:
        """Close the connection without waiting for anything: work that is under way fails."""
        self._dropped = True
        self._jobs.put(None)
        connection = self._connection
        if connection is None:
            return
        # Only the thread may close it; this wakes the thread up.
        with (
            suppress(OSError, psycopg.Error),  # closed meanwhile
            socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as duplicate,
        ):
            duplicate.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """Close the connection once all work that was submitted is done."""
        self._jobs.put(None)

    def _opened(self) -> Connection:
        if not self.is_open:
            self._connection = self._connect()
        if self._dropped or self._connection is None:  # meanwhile
            raise psycopg.OperationalError("the connection was dropped")
        return self._connection

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None and not self._dropped:
            job()
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()


def machine() -> str:
    """The name of this machine."""
    return socket.gethostname()
