"""The access of one process to a database file that all processes of the host read and write."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import RLock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

import aiosqlite
from aiosqlite.core import _connection_worker_thread

from smart_model_router.domain.fork_hooks import before_forks, in_children
from smart_model_router.domain.shared_state import SharedStateError
from smart_model_router_stats.open_db import (
    BUSY_SECONDS,
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
    from collections.abc import Sequence
    from pathlib import Path

    from smart_model_router_stats.open_db import Migration

T = TypeVar("T")


class Handle:
    """A handle of a database file that `opener` opens.

    SQLite's handles must not cross a fork (sqlite.org/howtocorrupt.html, 2.6): this one is closed before, and both
    sides open anew when they next need it.
    """

    def __init__(self, path: str, opener: Callable[[], GuardedConnection]) -> None:
        self._path = path
        self._opener = opener
        self._raw: GuardedConnection | None = None
        self.inode: int | None = None
        before_forks(self._before_fork)

    @property
    def is_open(self) -> bool:
        """True when there is a handle, and the file is still where it was."""
        return self._raw is not None and self.inode == _inode(self._path)

    def abandon(self, seconds: float) -> None:
        """Close the handle without awaiting anything, once what runs on it has ended, at most `seconds` from now."""
        raw, self._raw = self._raw, None
        if raw is not None and raw.guard.acquire(timeout=seconds):
            raw.close()
            raw.guard.release()

    def _before_fork(self) -> None:
        raw, self._raw = self._raw, None
        if raw is not None:
            raw.close()


class BlockingDatabase(Handle):
    """A handle for any number of threads, one at a time, each of which waits for its work to be done."""

    def __init__(self, path: str, opener: Callable[[], GuardedConnection]) -> None:
        super().__init__(path, opener)
        self.lock = RLock()
        """Held while the handle works."""
        in_children(self._forked)

    def call(self, work: Callable[[GuardedConnection], T]) -> T:
        """Do `work` with the handle, opened unless it is open. Raises what opener and work raise."""
        with self.lock:
            raw = self._raw if self.is_open else None
            if raw is None:
                self.close()
                raw = self._raw = self._opener()
                self.inode = _inode(self._path)
            with raw.guard:
                return work(raw)

    def close(self) -> None:
        """Close the handle; safe to call twice."""
        with self.lock:
            self.abandon(BUSY_SECONDS)

    def _before_fork(self) -> None:
        with self.lock:
            super()._before_fork()

    def _forked(self) -> None:
        """In a forked process: a thread that held the lock is not here."""
        self.lock = RLock()


class Database(Handle):
    """Opens lazily, on aiosqlite's thread, what `opener` opens there. Belongs to the loop that uses it."""

    def __init__(self, path: str, opener: Callable[[], GuardedConnection]) -> None:
        super().__init__(path, opener)
        self._connection: aiosqlite.Connection | None = None
        self._retired: list[aiosqlite.Connection] = []
        self._inherited: list[aiosqlite.Connection] = []

    async def open(self) -> None:
        """Open unless it is open. Raises whatever the opener raises."""
        if self.is_open:
            return
        await self.close()
        connection = aiosqlite.connect(self._path, factory=self._factory)
        # The interpreter waits at its end for threads that are no daemons, and nothing would end this one.
        thread = connection._thread = Thread(target=_serve, args=(connection._tx,), daemon=True)
        try:
            self._connection = await connection
        except GeneratorExit:
            self.abandon(0.0)  # the loop is gone: there is nothing left to wait with
            raise
        except BaseException:
            # aiosqlite lets the thread end, but not before it has opened the file that is not needed any more.
            await asyncio.to_thread(thread.join, BUSY_SECONDS)
            self.abandon(0.0)
            raise
        self.inode = _inode(self._path)

    async def run(self, script: str) -> None:
        """Run a constant script as one job of the thread: cancelling the caller does not stop it half way.

        An error in it leaves no transaction open. Raises sqlite3.Error.
        """

        def work(connection: GuardedConnection) -> None:
            try:
                connection.executescript(script)
            except sqlite3.Error:
                connection.rollback()
                raise

        await self.call(work)

    async def execute(self, statement: str, values: Any = ()) -> int:
        """Run one statement as a transaction of its own; the number of rows it changed."""
        return await self.call(lambda connection: connection.execute(statement, values).rowcount)

    async def fetch(self, query: str, values: Any = ()) -> tuple[Any, ...]:
        """The first row of a query that has one."""
        (first,) = await self.call(lambda connection: connection.execute(query, values).fetchall())
        return tuple(first)

    async def call(self, work: Callable[[GuardedConnection], T]) -> T:
        """Run `work` with the handle, as one job of the thread. Raises what it raises.

        The only way to the handle: closing it from another thread waits for the job under the same guard.
        SQLite's C code does not survive a handle that is closed while it is used.
        """
        connection, raw = self._connection, self._raw
        if connection is None or raw is None:
            raise sqlite3.ProgrammingError("it was closed")

        def guarded() -> T:
            with raw.guard:
                return work(raw)

        done: T = await connection._execute(guarded)  # type: ignore[no-untyped-call]  # there is no public way
        return done

    async def close(self) -> None:
        """Close the handle and end the thread; safe to call twice."""
        connection, self._connection = self._connection, None
        self._raw = None
        retired, self._retired = self._retired, []
        for old in retired:
            old.stop()
            await asyncio.to_thread(_thread_of(old).join, BUSY_SECONDS)
        if connection is not None:
            await connection.close()

    def retire(self) -> None:
        """Let go of a handle whose loop is gone; its thread ends when the next one is opened."""
        self.abandon(BUSY_SECONDS)
        if self._connection is not None:
            self._retired.append(self._connection)
            self._connection = None

    def forget(self) -> None:
        """In a forked process: the handle and the thread are the parent's."""
        self._raw = None
        if self._connection is not None:
            self._retired.append(self._connection)
            self._connection = None
        self._inherited += self._retired  # kept, for their end would want a loop
        self._retired = []

    def _factory(self, *_: Any, **__: Any) -> sqlite3.Connection:
        self._raw = self._opener()
        return self._raw


def _serve(jobs: SimpleQueue[Any]) -> None:
    """Do aiosqlite's work on this thread until it is told to stop.

    A loop that was closed with a job under way takes no answer any more: the job is done, and its result has no reader.
    """
    stopped = False
    while not stopped:
        with suppress(RuntimeError):
            _connection_worker_thread(jobs)  # there is no public way to it
            stopped = True


def _thread_of(connection: aiosqlite.Connection) -> Thread:
    return connection._thread  # there is no public way to it


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino  # noqa: PTH116 - on the path of every write
    except OSError:
        return None


_BUSY_SECONDS = 2.0
_CHECKPOINT_BYTES = 4 * MIB


class SqliteFile:
    """Every question is one job on the connection's thread, or with `write_now` and `read_now` on the caller's.

    The former belong to one loop at a time, the latter are for any thread; a forked process opens the file anew. A file
    that was deleted is made again, a damaged one renamed aside; with `keep_damaged` that is an error instead.
    """

    def __init__(
        self,
        path: Path,
        migrations: Sequence[Migration],
        *,
        filesystem: Callable[[Path], str] = filesystem_of,
        pragmas: Sequence[str] = (),
        keep_damaged: bool = False,
    ) -> None:
        self.path = path.expanduser().absolute()
        self.openings = 0
        """The number of times the file was opened: data read through an earlier handle may be of another file."""
        self._wal = self.path.with_name(self.path.name + "-wal")
        self._migrations = migrations
        self._filesystem = filesystem
        self._pragmas = pragmas
        self._keep_damaged = keep_damaged
        self._database = Database(str(self.path), self.opened)
        self._blocking = BlockingDatabase(str(self.path), self.opened)
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
        return await self.ask(lambda connection: self._written(connection, work))

    async def read(self, work: Callable[[GuardedConnection], T]) -> T:
        """Have `work` read the file at one instant. Raises SharedStateError."""
        return await self.ask(lambda connection: snapshot(connection, work))

    def write_now(self, work: Callable[[GuardedConnection], T]) -> T:
        """Do `work` as one transaction; blocks. Raises SharedStateError."""
        return self._now(lambda connection: self._written(connection, work))

    def read_now(self, work: Callable[[GuardedConnection], T]) -> T:
        """Let `work` read the file at one instant; blocks. Raises SharedStateError."""
        return self._now(lambda connection: snapshot(connection, work))

    async def empty_log(self) -> None:
        """Leave nothing in the write-ahead log, as far as no reader is in the way. Raises SharedStateError."""
        await self.ask(_truncate)

    async def aclose(self) -> None:
        """Close the file; safe to call twice."""
        self.close_now()
        await self._database.close()

    def close_now(self) -> None:
        """Close the handle of `write_now` and `read_now`; safe to call twice."""
        self._blocking.close()

    def failed(self, error: Exception, handle: Handle | None = None) -> SharedStateError:
        """The error for callers that an error of the file becomes; `handle` had it, by default that of the loop."""
        handle = handle or self._database
        if isinstance(error, sqlite3.Error):
            if is_corrupt(error) and not self._keep_damaged:
                self._damaged = handle.inode
            if not is_busy(error):
                handle.abandon(0.0)
        reason = error.reason if isinstance(error, StoreUnavailableError) else str(error)
        return SharedStateError(reason or type(error).__name__)

    def opened(self, busy_seconds: float = _BUSY_SECONDS) -> GuardedConnection:
        """A handle of its own; blocks. Raises StoreUnavailableError and sqlite3.Error."""
        if self._damaged is not None:
            set_aside(self.path, self._damaged)
            self._damaged = None
        connection = open_store(
            self.path,
            self._migrations,
            busy_seconds=busy_seconds,
            filesystem=self._filesystem,
            keep_damaged=self._keep_damaged,
        )
        for pragma in self._pragmas:
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def _forked(self) -> None:
        """This is a copy of the process: the handle is the parent's."""
        self._database.forget()
        self._loop = None
        self.openings += 1

    def _now(self, job: Callable[[GuardedConnection], T]) -> T:
        with self._blocking.lock:  # no other thread uses the handle when it fails
            try:
                return self._blocking.call(job)
            except (sqlite3.Error, ValueError, OSError, StoreUnavailableError) as error:
                raise self.failed(error, self._blocking) from error

    def _written(self, connection: GuardedConnection, work: Callable[[GuardedConnection], T]) -> T:
        done = transaction(connection, work)
        self._checkpoint(connection)
        return done

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


def snapshot(connection: GuardedConnection, work: Callable[[GuardedConnection], T]) -> T:
    """Return what `work` reads: all of it as it was at one instant."""
    connection.execute("BEGIN")
    try:
        return work(connection)
    finally:
        connection.rollback()
