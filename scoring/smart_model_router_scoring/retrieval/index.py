"""The index as a SQLite file: its tables, how readers and the writer open it, and what a reader sees of it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import sqlite3
import threading
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from smart_model_router_scoring.evidence import Null
from smart_model_router_scoring.retrieval.documents import IndexedDocument, read_document


class IndexNotReady(IndexError):
    """There is no index, or none that this version can read. The message names the command that makes one.

    An IndexError because the founding contract says so; over HTTP it is a 503.
    """

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}; `smr index DIR` makes an index of a folder"


class IndexBusy(OSError):
    """Another process is writing to the index and did not end in time."""


class ForeignIndex(ValueError):
    """The index is of another folder: writing would remove everything of that one."""


class UnusableVectors(ValueError):
    """An embedder gave vectors that cannot be in one index: too few, or of two lengths. The message says of which."""


FORMAT = f"9/{unicodedata.unidata_version}"
"""The version of the tables, terms and null questions, and of Unicode: words folded by another are not found."""
NULL = "null"
NULL_WITH_COSINES = "null with cosines"
BUSY_SECONDS = 10.0
"""The seconds that a writer waits for another one."""

TABLES = """
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE documents (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, modified REAL NOT NULL,
  mtime_ns INTEGER NOT NULL, size INTEGER NOT NULL, digest BLOB NOT NULL, settled INTEGER NOT NULL,
  notes TEXT NOT NULL
);
CREATE TABLE chunks (
  id INTEGER PRIMARY KEY, document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
  chunk_id TEXT NOT NULL UNIQUE, heading TEXT NOT NULL, body TEXT NOT NULL,
  first_line INTEGER NOT NULL, last_line INTEGER NOT NULL
);
CREATE TABLE texts (document INTEGER PRIMARY KEY REFERENCES documents ON DELETE CASCADE, text BLOB NOT NULL);
CREATE INDEX chunks_of_document ON chunks (document, id);
CREATE TABLE anchors (
  document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE, anchor TEXT NOT NULL,
  chunk INTEGER NOT NULL REFERENCES chunks ON DELETE CASCADE, PRIMARY KEY (document, anchor)
) WITHOUT ROWID;
CREATE INDEX anchors_of_chunk ON anchors (chunk);
CREATE TABLE links (
  document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE, position INTEGER NOT NULL,
  target TEXT NOT NULL, anchor TEXT NOT NULL, PRIMARY KEY (document, position)
) WITHOUT ROWID;
CREATE INDEX links_to ON links (target);
CREATE TABLE vectors (chunk INTEGER PRIMARY KEY REFERENCES chunks ON DELETE CASCADE, vector BLOB NOT NULL);
CREATE TABLE null_vectors (text TEXT PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE stems (id INTEGER PRIMARY KEY, heading TEXT NOT NULL, body TEXT NOT NULL);
CREATE VIRTUAL TABLE words USING fts5 (
  heading, body, content = 'stems', content_rowid = 'id',
  tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co'"
);
"""
"""`links.target` is a path from the root, there or not: a link is an edge as soon as its target is indexed.
`stems` has the rows of `chunks` with their stems, in order, and is the content of `words`: evidence reads them in a
third of the time that FTS5 takes to give its own content back. FTS5 cuts them at spaces only: marks belong to a Thai
term. `about` has the nulls: by words, and with cosines where the vectors are evidence. `null_vectors` are those of the
questions, so that a change of documents embeds none of them again."""


def open_to_read(path: Path) -> sqlite3.Connection:
    """A connection that cannot write. Raises IndexNotReady."""
    if not path.is_file():
        raise IndexNotReady(path, "there is no such index")
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise IndexNotReady(path, str(error)) from None
    try:
        found = connection.execute("SELECT value FROM about WHERE key = 'format'").fetchone()
    except sqlite3.Error as error:
        connection.close()
        raise IndexNotReady(path, f"it is no index ({error})") from None
    if found is None or found[0] != FORMAT:
        connection.close()
        raise IndexNotReady(path, "another version of this program made it")
    return connection


def open_to_write(path: Path) -> sqlite3.Connection:
    """A connection for the writer. The file is made when there is none, and emptied when its format is another.

    Raises sqlite3.Error for a file that is no database, OSError for a folder that cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # an index that was reported as made survives a power cut
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        connection.close()
        raise
    return connection


T = TypeVar("T")
_TRIES = 20
_INTERRUPT_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """The size of a snapshot. `generation` changes with every change of content; the nulls were asked of this one."""

    path: str
    root: str
    generation: int
    documents: int
    chunks: int
    links: int
    embedder: str | None
    tokenizer: str
    null: Null = field(default_factory=Null)
    null_with_cosines: Null | None = None


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

    def fetch(self, document: str) -> IndexedDocument:
        """The whole document of this path. Raises IndexNotReady and UnknownDocument (a LookupError)."""
        try:
            with closing(open_to_read(self.path)) as connection:
                connection.execute("BEGIN")
                return read_document(connection, document)
        except sqlite3.Error as error:
            raise IndexNotReady(self.path, str(error)) from None

    def paths(self) -> frozenset[str]:
        """Return the paths of all documents. Raises IndexNotReady."""
        try:
            with closing(open_to_read(self.path)) as connection:
                return frozenset(path for (path,) in connection.execute("SELECT path FROM documents"))
        except sqlite3.Error as error:
            raise IndexNotReady(self.path, str(error)) from None

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
            tokenizer=about["tokenizer"],
            null=Null.from_json(about[NULL]),
            null_with_cosines=Null.from_json(about[NULL_WITH_COSINES]) if NULL_WITH_COSINES in about else None,
        )
