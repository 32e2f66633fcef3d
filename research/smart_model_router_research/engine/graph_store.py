"""The places of threads of graphs: the file of a store of runs, and the memory of this process."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TypeVar

from smart_model_router.domain.fork_hooks import in_children
from smart_model_router.domain.shared_state import ClockReading, SharedStateError
from smart_model_router_research.engine.graph_tables import GraphTables
from smart_model_router_research.engine.run_schema import create_graph_tables
from smart_model_router_research.engine.store_port import StoreUnavailable
from smart_model_router_stats.open_db import GuardedConnection
from smart_model_router_stats.sqlite_file import SqliteFile, snapshot, transaction

T = TypeVar("T")


class FileThreads:
    """Threads of graphs in a file of runs. What was written is on the disk when it returns.

    It has a handle of its own, which any OS thread may use; work of loops is done one after another on one thread.
    """

    def __init__(self, file: SqliteFile, here: Callable[[], ClockReading]) -> None:
        self.place = str(file.path)
        self._file = file
        self._here = here
        self._starting = Lock()
        self._worker: ThreadPoolExecutor | None = None
        in_children(self._forked)

    def read(self, work: Callable[[GraphTables], T]) -> T:
        """Let `work` read at one instant; blocks."""
        return self._asked(self._file.read_now, work)

    def write(self, work: Callable[[GraphTables], T]) -> T:
        """Do `work` as one transaction, which is on the disk when this returns; blocks."""
        return self._asked(self._file.write_now, work)

    async def aread(self, work: Callable[[GraphTables], T]) -> T:
        """Do the same without blocking the loop."""
        return await asyncio.get_running_loop().run_in_executor(self._thread(), partial(self.read, work))

    async def awrite(self, work: Callable[[GraphTables], T]) -> T:
        """Do the same without blocking the loop; cancelled, it has done all or nothing."""
        return await asyncio.get_running_loop().run_in_executor(self._thread(), partial(self.write, work))

    def close(self) -> None:
        """Let go of handle and thread; safe to call twice."""
        with self._starting:
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.shutdown()
        self._file.close_now()

    def _thread(self) -> ThreadPoolExecutor:
        with self._starting:
            if self._worker is None:
                self._worker = ThreadPoolExecutor(1, f"graphs in {Path(self.place).name}")
            return self._worker

    def _asked(self, ask: Callable[[Callable[[GuardedConnection], T]], T], work: Callable[[GraphTables], T]) -> T:
        try:
            return ask(lambda connection: work(GraphTables(connection, self.place, self._here().wall)))
        except SharedStateError as error:
            raise StoreUnavailable(self.place, error.reason) from error

    def _forked(self) -> None:
        """In a forked process: the thread is the parent's."""
        self._starting = Lock()
        self._worker = None


class MemoryThreads:
    """Threads of graphs in the memory of this process, lost with it; in the same tables. `wall` is since 1970."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self.place = "memory"
        self._wall = wall
        self._lock = Lock()
        self._connection: GuardedConnection | None = None

    def read(self, work: Callable[[GraphTables], T]) -> T:
        """Let `work` read."""
        return self._done(lambda connection: snapshot(connection, partial(self._work, work)))

    def write(self, work: Callable[[GraphTables], T]) -> T:
        """Do `work` as one transaction."""
        return self._done(lambda connection: transaction(connection, partial(self._work, work)))

    async def aread(self, work: Callable[[GraphTables], T]) -> T:
        """Let `work` read: nothing is waited for."""
        return self.read(work)

    async def awrite(self, work: Callable[[GraphTables], T]) -> T:
        """Do `work` as one transaction: nothing is waited for."""
        return self.write(work)

    def close(self) -> None:
        """Do nothing: what it holds is let go with it."""

    def _work(self, work: Callable[[GraphTables], T], connection: GuardedConnection) -> T:
        return work(GraphTables(connection, self.place, self._wall()))

    def _done(self, job: Callable[[GuardedConnection], T]) -> T:
        with self._lock:
            if self._connection is None:
                self._connection = sqlite3.connect(
                    ":memory:", isolation_level=None, check_same_thread=False, factory=GuardedConnection
                )
                self._connection.execute("PRAGMA foreign_keys = ON")
                create_graph_tables(self._connection)
            return job(self._connection)
