"""Transactions on a PostgreSQL server, from two threads with a connection each. They keep no state in a session.

So a pooler that gives each transaction another session, as pgbouncer does in transaction mode, changes nothing. A
server that restarts is waited for, and what it broke off is done again: but for a commit whose answer was lost. What
became of that, a server cannot say for certain (after a crash it gives the number of a transaction that it lost to
another one), so it is done again only where twice is as once.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.fork_hooks import in_children
from smart_model_router.flow.clock import SystemClock
from smart_model_router_research.engine.postgres_schema import ServerMigration
from smart_model_router_research.engine.store_port import StoreUnavailable

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
CONNECTIONS = 2
OLDEST_SERVER = 12
PATIENCE_SECONDS = 10.0
"""A server that was there before is waited for as long: less than a lease less a heartbeat."""
ANSWER_SECONDS = 20.0
"""One that took a question and is silent for longer is given up."""
_PAUSE_SECONDS = 0.1
_MIGRATING = 7_365_870_171
"""The number of the lock under which one process brings the schema up to date."""
CREATING = 7_365_870_172
"""The number of the lock under which one process creates a run."""
_CONNECTION = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "2",
    "tcp_user_timeout": "15000",
    "fallback_application_name": "smart-model-router",
}
"""Options of libpq, where the URL has none: a server that is gone without a word is noticed within 20 s."""
# A process that is stopped within a transaction holds a run's row: the server ends it before its lease is over.
_LIMITS = "SET LOCAL idle_in_transaction_session_timeout = '10s'; SET LOCAL lock_timeout = '15s'"
_NOW = "SELECT extract(epoch FROM clock_timestamp())::float8"
_INSTALL = "psycopg is needed; the extra `postgres` brings it: pip install 'smart-model-router[postgres]'"


class ServerSession:
    """The statements of one transaction, with `?` for a parameter. `now` is the server's clock, since 1970."""

    def __init__(self, connection: psycopg.Connection[Any], now: float) -> None:
        self._connection = connection
        self.now = now

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> psycopg.Cursor[Any]:
        """Execute a statement."""
        given = [str(each) if isinstance(each, str) else each for each in parameters]  # psycopg knows no enums of text
        return self._connection.execute(_statement(sql), given)


@lru_cache(256)
def _statement(sql: str) -> bytes:
    return sql.replace("%", "%%").replace("?", "%s").encode()


class ServerDatabase:
    """A schema of a database, brought up to date when it is first used. Raises ConfigurationError without psycopg.

    `place` is the URL without user, password and options.
    """

    def __init__(self, url: str, schema: str, migrations: Sequence[ServerMigration]) -> None:
        parts = urlsplit(url)
        self.place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        self.version = 0
        """The server's, as 180006; 0 before the first connection."""
        self._psycopg = _psycopg()
        self._url = url
        self._secrets = [each for each in (parts.password, unquote(parts.password or "")) if each]
        self._schema = schema
        self._migrations = migrations
        self._is_ready = False
        self._starting = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None
        self._closing = threading.Event()
        self._mine = threading.local()
        self._connections: set[psycopg.Connection[Any]] = set()
        in_children(self._forked)

    async def read(self, work: Callable[[ServerSession], T]) -> T:
        """Let `work` read at one instant. Raises StoreUnavailable."""
        return await self._asked(partial(self._repeated, partial(self._read_once, work)))

    async def write(
        self, work: Callable[[ServerSession], T], lock: str, parameters: Sequence[object] = (), *, twice: bool
    ) -> T:
        """Do `work` as one transaction, which begins with `lock` and is durable when this returns.

        The clock is read when the lock is had. `twice` says that to do it twice is to do it once. Raises
        StoreUnavailable; cancelled, it has done all or nothing.
        """
        once = partial(self._write_once, work, lock, parameters, twice=twice)
        return await self._asked(partial(self._repeated, once))

    async def aclose(self) -> None:
        """Close the connections; safe to call twice, and to use it again."""
        with self._starting:
            self._closing.set()
            self._closing, threads, self._threads = threading.Event(), self._threads, None
            connections, self._connections = self._connections, set()
            self._mine = threading.local()
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)
        for connection in connections:
            with suppress(OSError, self._psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as wire:
                wire.shutdown(socket.SHUT_RDWR)  # what still waits for an answer waits no more
        if threads is not None:
            await asyncio.get_running_loop().run_in_executor(None, threads.shutdown)
        for connection in connections:
            connection.close()

    # -------------------------------------------------------------------------------------------- threads

    async def _asked(self, ask: Callable[[], T]) -> T:
        with self._starting:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(CONNECTIONS, "runs on PostgreSQL")
            threads = self._threads
        answer = asyncio.get_running_loop().run_in_executor(threads, ask)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await answer
        except TimeoutError:
            raise StoreUnavailable(self.place, f"it has not answered for {ANSWER_SECONDS:g} s") from None
        except self._psycopg.Error as error:
            raise StoreUnavailable(self.place, self._reason(error)) from None

    def _forked(self) -> None:
        """In a forked process: threads and connections are the parent's."""
        self._starting = threading.Lock()
        self._threads = None
        self._mine = threading.local()
        self._connections = set()

    # -------------------------------------------------------------------------------------------- transactions

    def _repeated(self, once: Callable[[], T]) -> T:
        """Do something on a connection; again when the server broke it off, and nothing was committed."""
        closing, end = self._closing, SystemClock.now() + (PATIENCE_SECONDS if self._is_ready else 0.0)
        while True:
            try:
                return once()
            except self._psycopg.OperationalError as error:
                self._drop()
                # A lock that was not to be had has been waited for already.
                if isinstance(error, self._psycopg.errors.LockNotAvailable) or SystemClock.now() >= end:
                    raise
                if closing.wait(_PAUSE_SECONDS):
                    raise

    def _read_once(self, work: Callable[[ServerSession], T]) -> T:
        connection = self._connection()
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        with self._rolled_back(connection):
            (now,) = self._begun(connection, begin, _NOW, ())
            return work(ServerSession(connection, now))

    def _write_once(
        self, work: Callable[[ServerSession], T], lock: str, parameters: Sequence[object], *, twice: bool
    ) -> T:
        connection = self._connection()
        with self._rolled_back(connection):
            (now,) = self._begun(connection, "BEGIN", f"{lock}; {_NOW}", parameters)
            done = work(ServerSession(connection, now))
            try:
                connection.execute("COMMIT")
            except self._psycopg.OperationalError:
                if twice:
                    raise
                reason = "it was gone while it committed: whether it did is not known"
                raise StoreUnavailable(self.place, reason) from None
            return done

    def _begun(
        self, connection: psycopg.Connection[Any], begin: str, ask: str, parameters: Sequence[object]
    ) -> tuple[Any, ...]:
        """Begin a transaction, in one message; returns the last row that it answers with."""
        path = f"SET LOCAL search_path TO {self._schema}"
        cursor = connection.execute(f"{begin}; {path}; {_LIMITS}; {ask}".encode(), parameters)
        while cursor.nextset():
            pass
        row: tuple[Any, ...] = cursor.fetchone() or ()
        return row

    @contextmanager
    def _rolled_back(self, connection: psycopg.Connection[Any]) -> Generator[None]:
        """Roll back what has not been committed at the end, or close the connection with it."""
        try:
            yield
        finally:
            try:
                if not connection.closed:
                    connection.rollback()  # nothing where it has ended
            except self._psycopg.Error:
                connection.close()

    # -------------------------------------------------------------------------------------------- connections

    def _connection(self) -> psycopg.Connection[Any]:
        """Return the connection of this thread."""
        found: psycopg.Connection[Any] | None = getattr(self._mine, "connection", None)
        if found is None or found.closed:
            found = self._connected()
            self._mine.connection = found
            with self._starting:
                self._connections.add(found)
        return found

    def _connected(self) -> psycopg.Connection[Any]:
        """Return a new connection, to a server that will do and whose schema is ours."""
        try:
            options = {**_CONNECTION, **self._psycopg.conninfo.conninfo_to_dict(self._url)}
        except self._psycopg.ProgrammingError:  # its text may have a part of the password
            raise StoreUnavailable(
                self.place, "its URL cannot be read: special characters have to be %-encoded"
            ) from None
        connection: psycopg.Connection[Any] = self._psycopg.connect(
            **options, autocommit=True, cursor_factory=self._psycopg.ClientCursor
        )
        try:
            self.version = connection.info.server_version
            if self.version // 10_000 < OLDEST_SERVER:
                found = f"{self.version // 10_000}.{self.version % 10_000}"
                raise StoreUnavailable(self.place, f"PostgreSQL {found} is too old: {OLDEST_SERVER} is needed")
            if not self._is_ready:
                self._migrate(connection)
                self._is_ready = True
        except BaseException:
            connection.close()
            raise
        return connection

    def _drop(self) -> None:
        """Close the connection of this thread: the next use opens another."""
        found: psycopg.Connection[Any] | None = getattr(self._mine, "connection", None)
        self._mine.connection = None
        if found is not None:
            with self._starting:
                self._connections.discard(found)
            found.close()

    def _migrate(self, connection: psycopg.Connection[Any]) -> None:
        """Bring the schema up to date. Several processes may do so at once: the server's lock orders them."""
        if self._number(connection) == len(self._migrations):
            return
        with self._rolled_back(connection):
            connection.execute(f"BEGIN; SELECT pg_advisory_xact_lock({_MIGRATING})".encode())
            if connection.execute(b"SELECT to_regnamespace(%s)", (self._schema,)).fetchone() == (None,):
                connection.execute(f"CREATE SCHEMA {self._schema}".encode())
            connection.execute(f"SET LOCAL search_path TO {self._schema}".encode())
            connection.execute(
                b"CREATE TABLE IF NOT EXISTS migration (number integer PRIMARY KEY, name text NOT NULL,"
                b" applied_at timestamptz NOT NULL DEFAULT clock_timestamp(), needs text NOT NULL)"
            )
            first = self._number(connection)
            for number, migration in enumerate(self._migrations[first:], first + 1):
                connection.execute(migration.statements.encode())
                row = (number, migration.name, migration.since)
                connection.execute(b"INSERT INTO migration (number, name, needs) VALUES (%s, %s, %s)", row)
            connection.execute("COMMIT")

    def _number(self, connection: psycopg.Connection[Any]) -> int:
        """Return the number of the newest migration, 0 for none. Raises StoreUnavailable for one that is unknown."""
        table = f"{self._schema}.migration"
        if connection.execute(b"SELECT to_regclass(%s)", (table,)).fetchone() == (None,):
            return 0
        newest = f"SELECT number, needs FROM {table} ORDER BY number DESC LIMIT 1"  # noqa: S608 - a constant
        number, needs = connection.execute(newest.encode()).fetchone() or (0, "")
        if number > len(self._migrations):
            ours = version("smart-model-router")
            needed = f"a newer smart-model-router than this {ours}" if needs == ours else f"smart-model-router {needs}"
            reason = f"its schema {number} is newer than this smart-model-router knows: install {needed}"
            raise StoreUnavailable(self.place, reason)
        return int(number)

    def _reason(self, error: Exception) -> str:
        """Return what the server, or the library, says, on one line and without the password."""
        text = " ".join(str(error).split()) or type(error).__name__
        for secret in self._secrets:
            text = text.replace(secret, "***")
        if isinstance(error, self._psycopg.errors.InsufficientPrivilege):
            text += f" (the user needs the schema {self._schema}, or the right to create it)"
        return text


def _psycopg() -> Any:
    try:  # a tenth of a second, for runs on a server alone
        import psycopg  # noqa: PLC0415
    except ImportError as error:
        raise ConfigurationError("workflows.store_url", "postgresql://", f"{_INSTALL} ({error})") from error
    return psycopg
