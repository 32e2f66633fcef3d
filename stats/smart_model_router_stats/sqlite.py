"""SqliteStore: statistics that survive the process, in one file that any number of processes write."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, ClassVar

from smart_model_router_stats import statements
from smart_model_router_stats.batched_store import INTERVAL_SECONDS, BatchedStore
from smart_model_router_stats.delta import write
from smart_model_router_stats.housekeeping import RECENT_MINUTES, Housekeeper, Limits
from smart_model_router_stats.open_db import (
    BUSY_SECONDS,
    GuardedConnection,
    StoreUnavailableError,
    filesystem_of,
    is_busy,
    is_corrupt,
    open_store,
    set_aside,
)
from smart_model_router_stats.reading import read_past
from smart_model_router_stats.schema import STATS_MIGRATIONS
from smart_model_router_stats.sqlite_file import Database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from smart_model_router_stats.batched_store import Header
    from smart_model_router_stats.delta import Batch
    from smart_model_router_stats.reading import Past

_EXIT_BUSY_SECONDS = 1.0
_TELLING_BUSY = 3


class SqliteStore(BatchedStore):
    """Writes to the file at `path`. `filesystem` names the type of the file system of a path."""

    errors: ClassVar[tuple[type[Exception], ...]] = (sqlite3.Error, *BatchedStore.errors)

    def __init__(
        self,
        path: Path,
        *,
        wall: Callable[[], float] = time.time,  # noqa: TID251 - stamps for people; no decision rests on them
        monotonic: Callable[[], float] = time.monotonic,
        interval: float = INTERVAL_SECONDS,
        limits: Limits | None = None,
        filesystem: Callable[[Path], str] = filesystem_of,
    ) -> None:
        self._path = path.expanduser().absolute()
        self._limits = limits or Limits()
        self._filesystem = filesystem
        self._database = Database(str(self._path), self._open)
        super().__init__(str(self._path), wall=wall, monotonic=monotonic, interval=interval)

    def _begin_anew(self) -> None:
        super()._begin_anew()
        self._damaged: int | None = None
        self._keeper = Housekeeper(self._database, self._path, self._writer, self._limits)

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self._path

    @property
    def _is_open(self) -> bool:
        return self._database.is_open

    async def _connect(self) -> None:
        if not self._database.is_open:
            await self._database.open()
            await self._database.run(statements.SETUP)

    @property
    def _has_past(self) -> bool:
        return self._path.exists()

    async def _read_past(self, wall: float, now: float) -> Sequence[Past]:
        return await self._database.call(lambda connection: read_past(connection, wall, now))

    async def _put(self, batch: Batch, header: Header) -> bool:
        await self._database.call(lambda connection: write(connection, batch, header))
        return True

    @property
    def _held_back(self) -> str:
        full = self._keeper.wal_is_full
        return "its write-ahead log is full, because a reader holds on to a snapshot" if full else ""

    async def _keep_in_order(self) -> None:
        await self._keeper.tick(self._monotonic, self._wall())

    async def _leave(self) -> None:
        """Bring the percentiles up to date, and leave the housekeeping to another process."""
        await self._keeper.leave(self._wall())

    async def _disconnect(self) -> None:
        await self._database.close()

    def _change_loop(self) -> None:
        self._database.retire()

    def _forget(self) -> None:
        self._database.forget()

    def _after(self, error: Exception) -> str | None:
        if isinstance(error, sqlite3.Error):
            if is_busy(error) and self._failures < _TELLING_BUSY:
                return None
            if is_corrupt(error):
                self._damaged = self._database.inode
            self._database.abandon(0.0)
        return error.reason if isinstance(error, StoreUnavailableError) else str(error)

    def _put_now(self, batches: Iterator[tuple[Batch, Header]]) -> None:
        self._database.abandon(_EXIT_BUSY_SECONDS)
        if not self._has_more:
            return
        with closing(self._open(_EXIT_BUSY_SECONDS)) as connection:
            connection.executescript(statements.SETUP)
            for batch, header in batches:
                write(connection, batch, header)
            wall = self._wall()
            connection.execute(statements.GIVE_CHORE, (wall, int(wall // 60) - RECENT_MINUTES))
            connection.executescript(statements.AGE)
            connection.executescript(statements.REFRESH)

    def _open(self, busy_seconds: float = BUSY_SECONDS) -> GuardedConnection:
        """On the thread of the connection."""
        if self._damaged is not None:
            set_aside(self._path, self._damaged)
            self._damaged = None
        return open_store(self._path, STATS_MIGRATIONS, busy_seconds=busy_seconds, filesystem=self._filesystem)
