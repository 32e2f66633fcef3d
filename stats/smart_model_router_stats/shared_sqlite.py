"""The shared state in a file: state.db, a few tiny rows that every process of the host reads and writes."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING, TypeVar

from smart_model_router.forks import in_children
from smart_model_router.shared import Claim, Restored, SharedStateError
from smart_model_router_stats import transactions
from smart_model_router_stats.connection import Database
from smart_model_router_stats.opening import (
    MIB,
    GuardedConnection,
    StoreUnavailableError,
    filesystem_of,
    is_busy,
    is_corrupt,
    open_store,
    set_aside,
)
from smart_model_router_stats.shared_schema import STATE_MIGRATIONS, SqliteTables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from smart_model_router.shared import (
        BreakerRow,
        BucketAsk,
        BucketGrant,
        Changes,
        Here,
        MakerRow,
        SharedView,
    )

T = TypeVar("T")

_BLOCKING_SECONDS = 0.25
_BUSY_SECONDS = 2.0
_CHECKPOINT_BYTES = 4 * MIB


class SqliteSharedState:
    """One process's way to the file. Every question is one transaction on the connection's thread.

    Belongs to one loop at a time; a forked process opens the file anew. A file that was deleted is made again, a
    damaged one renamed aside.
    """

    def __init__(
        self, path: Path, here: Callable[[], Here], *, filesystem: Callable[[Path], str] = filesystem_of
    ) -> None:
        self._path = path.expanduser().absolute()
        self._wal = self._path.with_name(self._path.name + "-wal")
        self._here = here
        self._filesystem = filesystem
        self._database = Database(str(self._path), self._open)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening = asyncio.Lock()
        self._seen = -1
        self._damaged: int | None = None
        in_children(self._forked)

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._path

    def restore(self) -> Restored:
        """What there is. Nothing is made of a file that is not there yet."""
        if not self._path.exists():
            return Restored()
        return self._now(lambda tables: transactions.restore(tables, self._here()))

    def publish_now(self, changes: Changes) -> SharedView:
        """Write what may be written, on a connection of its own: nobody listens on that of the thread."""
        return self._now(lambda tables: transactions.publish(tables, changes, self._here()))

    async def poll(self) -> SharedView | None:
        """Everything, when something changed."""

        def look(connection: GuardedConnection) -> SharedView | None:
            tables = SqliteTables(connection)
            if tables.version() == self._seen:
                return None
            connection.execute("BEGIN")
            try:
                version = tables.version()
                seen = transactions.view(tables)
                self._seen = version
                return seen
            finally:
                connection.execute("COMMIT")

        return await self._ask(look)

    async def claim(self, rows: Sequence[BreakerRow]) -> Claim:
        """Take the probes of all these breakers, or of none. Who is too late finds out without asking for the lock."""

        def take(connection: GuardedConnection) -> Claim:
            tables = SqliteTables(connection)
            if not transactions.may_claim(tables, rows, self._here()):
                return Claim((), transactions.view(tables))
            return _transaction(connection, lambda inside: transactions.claim(inside, rows, self._here()))

        return await self._ask(take)

    async def renew(self, rows: Sequence[BreakerRow]) -> tuple[BreakerRow, ...]:
        """Extend leases."""
        return await self._write(lambda tables: transactions.renew(tables, rows))

    async def publish(self, changes: Changes) -> SharedView:
        """Write what may be written."""
        return await self._write(lambda tables: transactions.publish(tables, changes, self._here()))

    async def makers(self, things: Sequence[bytes]) -> tuple[MakerRow, ...]:
        """The makers of these things, as far as they are known."""
        return await self._ask(lambda connection: tuple(SqliteTables(connection).makers(things)))

    async def lease(self, asks: Sequence[BucketAsk]) -> tuple[BucketGrant, ...]:
        """Lease tokens."""
        return await self._write(lambda tables: transactions.lease(tables, asks, self._here()))

    async def aclose(self) -> None:
        """Close the file."""
        await self._database.close()

    def _now(self, work: Callable[[SqliteTables], T]) -> T:
        try:
            with closing(self._open(_BLOCKING_SECONDS)) as connection:
                return _transaction(connection, work)
        except (sqlite3.Error, OSError, StoreUnavailableError) as error:
            raise self._failed(error) from error

    async def _write(self, work: Callable[[SqliteTables], T]) -> T:
        def write(connection: GuardedConnection) -> T:
            done = _transaction(connection, work)
            self._checkpoint(connection)
            return done

        return await self._ask(write)

    async def _ask(self, work: Callable[[GuardedConnection], T]) -> T:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            if self._loop is not None:
                self._database.retire()
            self._loop, self._opening = loop, asyncio.Lock()
        try:
            async with self._opening:
                if not self._database.is_open:
                    self._seen = -1
                    await self._database.open()
            return await self._database.call(work)
        except (sqlite3.Error, ValueError, OSError, StoreUnavailableError) as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> SharedStateError:
        if isinstance(error, sqlite3.Error):
            if is_corrupt(error):
                self._damaged = self._database.inode
            if not is_busy(error):
                self._database.abandon(0.0)
        reason = error.reason if isinstance(error, StoreUnavailableError) else str(error)
        return SharedStateError(reason or type(error).__name__)

    def _forked(self) -> None:
        """This is a copy of the process: the handle is the parent's."""
        self._database.forget()
        self._loop = None
        self._seen = -1

    def _open(self, busy_seconds: float = _BUSY_SECONDS) -> GuardedConnection:
        """On the thread of the connection."""
        if self._damaged is not None:
            set_aside(self._path, self._damaged)
            self._damaged = None
        return open_store(self._path, STATE_MIGRATIONS, busy_seconds=busy_seconds, filesystem=self._filesystem)

    def _checkpoint(self, connection: GuardedConnection) -> None:
        """Keep the write-ahead log small. This kind of checkpoint keeps writers out: none can begin the log anew."""
        try:
            if self._wal.stat().st_size <= _CHECKPOINT_BYTES:
                return
        except OSError:
            return
        with suppress(sqlite3.OperationalError):  # somebody reads: the next write will do
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _transaction(connection: GuardedConnection, work: Callable[[SqliteTables], T]) -> T:
    """All of it, or nothing. A deferred one that reads and then writes is busy at once, whatever the timeout."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        done = work(SqliteTables(connection))
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise
    return done
