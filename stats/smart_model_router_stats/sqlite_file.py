"""One process's way to a file of ours that all processes of the host read and write."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from smart_model_router.domain.fork_hooks import in_children
from smart_model_router.domain.shared_state import SharedStateError
from smart_model_router_stats.connection import Database
from smart_model_router_stats.open_db import (
    MIB,
    GuardedConnection,
    StoreUnavailableError,
    filesystem_of,
    is_busy,
    is_corrupt,
    open_store,
    set_aside,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from smart_model_router_stats.migrations import Migration

T = TypeVar("T")

_BUSY_SECONDS = 2.0
_CHECKPOINT_BYTES = 4 * MIB


class SqliteFile:
    """Every question is one job on the connection's thread.

    Belongs to one loop at a time; a forked process opens the file anew. A file that was deleted is made again, a
    damaged one renamed aside.
    """

    def __init__(
        self,
        path: Path,
        migrations: Sequence[Migration],
        *,
        filesystem: Callable[[Path], str] = filesystem_of,
        pragmas: Sequence[str] = (),
    ) -> None:
        self.path = path.expanduser().absolute()
        self.openings = 0
        """How often the file was opened: what was read through an earlier handle may be of another file."""
        self._wal = self.path.with_name(self.path.name + "-wal")
        self._migrations = migrations
        self._filesystem = filesystem
        self._pragmas = pragmas
        self._database = Database(str(self.path), self.opened)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening = asyncio.Lock()
        self._damaged: int | None = None
        in_children(self._forked)

    async def ask(self, work: Callable[[GuardedConnection], T]) -> T:
        """Have `work` done with the open file. Raises SharedStateError."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            if self._loop is not None:
                self._database.retire()
            self._loop, self._opening = loop, asyncio.Lock()
        try:
            async with self._opening:
                if not self._database.is_open:
                    self.openings += 1
                    await self._database.open()
            return await self._database.call(work)
        except (sqlite3.Error, ValueError, OSError, StoreUnavailableError) as error:
            raise self.failed(error) from error

    async def write(self, work: Callable[[GuardedConnection], T]) -> T:
        """Have `work` done as one transaction. Raises SharedStateError."""

        def write(connection: GuardedConnection) -> T:
            done = transaction(connection, work)
            self._checkpoint(connection)
            return done

        return await self.ask(write)

    async def empty_log(self) -> None:
        """Leave nothing in the write-ahead log, as far as no reader is in the way. Raises SharedStateError."""
        await self.ask(_truncate)

    async def aclose(self) -> None:
        """Close the file; safe to call twice."""
        await self._database.close()

    def failed(self, error: Exception) -> SharedStateError:
        """The error for callers that an error of the file becomes."""
        if isinstance(error, sqlite3.Error):
            if is_corrupt(error):
                self._damaged = self._database.inode
            if not is_busy(error):
                self._database.abandon(0.0)
        reason = error.reason if isinstance(error, StoreUnavailableError) else str(error)
        return SharedStateError(reason or type(error).__name__)

    def opened(self, busy_seconds: float = _BUSY_SECONDS) -> GuardedConnection:
        """A handle of its own; blocks. Raises StoreUnavailableError and sqlite3.Error."""
        if self._damaged is not None:
            set_aside(self.path, self._damaged)
            self._damaged = None
        connection = open_store(self.path, self._migrations, busy_seconds=busy_seconds, filesystem=self._filesystem)
        for pragma in self._pragmas:
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def _forked(self) -> None:
        """This is a copy of the process: the handle is the parent's."""
        self._database.forget()
        self._loop = None
        self.openings += 1

    def _checkpoint(self, connection: GuardedConnection) -> None:
        """Keep the write-ahead log small. This kind of checkpoint keeps writers out: none can begin the log anew."""
        try:
            if self._wal.stat().st_size <= _CHECKPOINT_BYTES:
                return
        except OSError:
            return
        _truncate(connection)


def _truncate(connection: GuardedConnection) -> None:
    with suppress(sqlite3.OperationalError):  # a reader is active: the next time will do
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def transaction(connection: GuardedConnection, work: Callable[[GuardedConnection], T]) -> T:
    """All of it, or nothing. A deferred one that reads and then writes is busy at once, whatever the timeout."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        done = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise
    return done
