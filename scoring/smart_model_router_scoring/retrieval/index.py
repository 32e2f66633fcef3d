"""Reading the index: one snapshot a query, in as many lanes as strategies want to run beside each other."""

from __future__ import annotations

import asyncio
import concurrent.futures
import sqlite3
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from smart_model_router_scoring.retrieval.errors import IndexNotReady
from smart_model_router_scoring.retrieval.schema import open_to_read

T = TypeVar("T")
_TRIES = 20
_INTERRUPT_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """The size of a snapshot. `generation` changes with every change of content."""

    path: str
    root: str
    generation: int
    documents: int
    chunks: int
    links: int
    embedder: str | None


class Lane:
    """One connection inside the snapshot, for one piece of work at a time in a thread of its own."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._closed = False

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """`work` in a thread. Cancelled, it is interrupted inside SQLite, and gone when this returns."""
        job: concurrent.futures.Future[T] = concurrent.futures.Future()
        asyncio.get_running_loop().run_in_executor(None, self._work, job, work)
        try:
            return await asyncio.wrap_future(job)
        except asyncio.CancelledError:
            while not (job.cancel() or job.done()):
                self._connection.interrupt()
                await asyncio.sleep(_INTERRUPT_SECONDS)
            raise

    def close(self) -> None:
        """Give the connection back: now, or when the work on it ends."""
        self._closed = True
        if self._lock.acquire(blocking=False):
            try:
                self._connection.close()
            finally:
                self._lock.release()

    def _work(self, job: concurrent.futures.Future[T], work: Callable[[sqlite3.Connection], T]) -> None:
        if not job.set_running_or_notify_cancel():
            return
        with self._lock:
            try:
                job.set_result(work(self._connection))
            except BaseException as error:  # noqa: BLE001 - it is raised in the waiting task
                job.set_exception(error)
            finally:
                if self._closed:
                    self._connection.close()


class Snapshot:
    """The index as it was at one instant. Close it: an open one keeps SQLite's log from being cleared."""

    def __init__(self, facts: IndexFacts, lanes: Mapping[str, Lane]) -> None:
        self.facts = facts
        self._lanes = lanes

    def lane(self, name: str) -> Lane:
        """The lane of this name."""
        return self._lanes[name]

    def close(self) -> None:
        """Close every lane."""
        for lane in self._lanes.values():
            lane.close()


class SearchIndex:
    """An index file that others may be writing to."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def snapshot(self, *lanes: str) -> Snapshot:
        """The index now, with these lanes. Raises IndexNotReady."""
        try:
            for _ in range(_TRIES):
                with ExitStack() as stack:
                    begun = [self._begin(stack) for _ in lanes]
                    if len({facts.generation for _, facts in begun}) == 1:  # no writer finished between two of them
                        stack.pop_all()
                        opened = {name: Lane(connection) for name, (connection, _) in zip(lanes, begun, strict=True)}
                        return Snapshot(begun[0][1], opened)
        except sqlite3.Error as error:
            raise IndexNotReady(self.path, str(error)) from None
        raise IndexNotReady(self.path, "it changes faster than it can be read")

    def facts(self) -> IndexFacts:
        """Return the present content's size. Raises IndexNotReady."""
        snapshot = self.snapshot("facts")
        snapshot.close()
        return snapshot.facts

    def _begin(self, stack: ExitStack) -> tuple[sqlite3.Connection, IndexFacts]:
        connection = stack.enter_context(closing(open_to_read(self.path)))
        connection.execute("BEGIN")
        about = dict(connection.execute("SELECT key, value FROM about"))
        return connection, IndexFacts(
            path=str(self.path),
            root=about["root"],
            generation=int(about["generation"]),
            documents=int(about["documents"]),
            chunks=int(about["chunks"]),
            links=int(about["links"]),
            embedder=about.get("embedder"),
        )
