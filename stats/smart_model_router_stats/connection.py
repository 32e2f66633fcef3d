"""One aiosqlite connection that forks, dead loops and a hurried end of the program cannot hurt."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

import aiosqlite
from aiosqlite.core import _connection_worker_thread

from smart_model_router.domain.fork_hooks import before_forks
from smart_model_router_stats.open_db import BUSY_SECONDS, GuardedConnection

T = TypeVar("T")


class Database:
    """Opens lazily, on aiosqlite's thread, what `opener` opens there. Belongs to the loop that uses it.

    SQLite's handles must not cross a fork (sqlite.org/howtocorrupt.html, 2.6): this one is closed before, and both
    sides open anew when they next need it.
    """

    def __init__(self, path: str, opener: Callable[[], GuardedConnection]) -> None:
        self._path = path
        self._opener = opener
        self._raw: GuardedConnection | None = None
        self._connection: aiosqlite.Connection | None = None
        self._retired: list[aiosqlite.Connection] = []
        self._inherited: list[aiosqlite.Connection] = []
        self.inode: int | None = None
        before_forks(self._before_fork)

    @property
    def is_open(self) -> bool:
        """True when there is a handle, and the file is still where it was."""
        return self._raw is not None and self.inode == _inode(self._path)

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

    def abandon(self, seconds: float) -> None:
        """Close the handle without awaiting anything, once what runs on it has ended, at most `seconds` from now."""
        raw, self._raw = self._raw, None
        if raw is not None and raw.guard.acquire(timeout=seconds):
            raw.close()
            raw.guard.release()

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

    def _before_fork(self) -> None:
        raw, self._raw = self._raw, None
        if raw is not None:
            raw.close()


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
