"""A store of runs in a file, runs.db, that any number of processes of this host read and write."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from smart_model_router.domain.shared_state import ClockReading, SharedStateError
from smart_model_router.flow import clock
from smart_model_router_research.engine.documents import DocumentFiles
from smart_model_router_research.engine.graph_store import FileThreads
from smart_model_router_research.engine.graph_threads import GraphThreads
from smart_model_router_research.engine.run_schema import RUN_MIGRATIONS
from smart_model_router_research.engine.run_tables import RunTables
from smart_model_router_research.engine.store_port import StoreUnavailable
from smart_model_router_research.engine.table_store import RETENTION_DAYS, TableRunStore
from smart_model_router_stats.open_db import GuardedConnection, StoreUnavailableError, filesystem_of, open_to_read
from smart_model_router_stats.sqlite_file import SqliteFile

T = TypeVar("T")
_PRAGMAS = (
    # What was acknowledged survives a power cut, too: the statistics file may lose its last commits there.
    "synchronous = FULL",
    "foreign_keys = ON",
    # A busy file ends no run: others write for milliseconds, but where many do one may lose each turn for a while. Less
    # than a lease less a heartbeat: the lease is kept by the same thread.
    "busy_timeout = 20000",
)


class SqliteRunStore(TableRunStore):
    """Runs in a file for their owner alone, and documents beside it. Runs that ended `retention_days` ago are deleted.

    Every write is one transaction, on a thread of its own, and on the disk before it returns. Network file systems,
    files of a newer release and damaged ones are refused: StoreUnavailable. Deadlines are on the clocks of `here`, by
    the time of the boot, suspended time included: a wall clock that is set changes nothing.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        retention_days: float = RETENTION_DAYS,
        here: Callable[[], ClockReading] = clock.here,
        filesystem: Callable[[Path], str] = filesystem_of,
    ) -> None:
        super().__init__(retention_days)
        self._file = SqliteFile(Path(path), RUN_MIGRATIONS, filesystem=filesystem, pragmas=_PRAGMAS, keep_damaged=True)
        self._documents = DocumentFiles(documents_path(self.path))
        self._here = here
        self._graphs = FileThreads(self._file, here)

    @property
    def graph_threads(self) -> GraphThreads:
        """Threads of LangGraph graphs in the same file, for `RunSaver`."""
        return self._graphs

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self._file.path

    @property
    def place(self) -> str:
        """The absolute path of the file."""
        return str(self.path.absolute())

    async def standing(self) -> str:
        """Return the version of the library, and the number of the schema. Raises StoreUnavailable."""
        await self._read(lambda _: None)
        return f"SQLite {sqlite3.sqlite_version}, schema {len(RUN_MIGRATIONS)}"

    async def put_document(self, content: bytes) -> str:
        """Keep a document; returns its id, the SHA-256 of its content in hex."""
        return await asyncio.to_thread(self._documents.put, content)

    async def get_document(self, document: str) -> bytes:
        """Return a document. Raises KeyError when it is not there."""
        return await asyncio.to_thread(self._documents.get, document)

    async def aclose(self) -> None:
        """Close the file; safe to call twice."""
        await asyncio.to_thread(self._graphs.close)
        await self._file.aclose()

    async def _read(self, work: Callable[[RunTables], T]) -> T:
        return await self._asked(self._file.read(lambda connection: work(self._tables(connection))))

    async def _write(self, run_id: str | None, work: Callable[[RunTables], T], *, twice: bool = False) -> T:
        del run_id, twice  # a file has one writer at a time, and its commits are answered
        return await self._asked(self._file.write(lambda connection: work(self._tables(connection))))

    async def _asked(self, answer: Coroutine[Any, Any, T]) -> T:
        try:
            return await answer
        except SharedStateError as error:
            raise StoreUnavailable(str(self.path), error.reason) from error

    def _tables(self, connection: GuardedConnection) -> RunTables:
        return RunTables(connection, str(self.path), self._here())


def documents_path(runs: Path) -> Path:
    """Return the folder of the documents that belongs to a file of runs: `runs-documents` beside `runs.db`."""
    return runs.with_name(f"{runs.stem}-documents")


def unheld_runs(path: Path) -> list[str]:
    """Return the ids of runs in a file that are to go on and that no process holds. Blocks. Raises StoreUnavailable."""
    try:
        with closing(open_to_read(path, RUN_MIGRATIONS)) as connection:
            return RunTables(connection, str(path), clock.here()).unheld()
    except StoreUnavailableError as error:
        raise StoreUnavailable(str(path), error.reason) from error
    except sqlite3.Error as error:
        raise StoreUnavailable(str(path), str(error)) from error
