"""The index as a SQLite file: its tables, and how readers and the writer open it."""

from __future__ import annotations

import sqlite3
import unicodedata
from pathlib import Path

from smart_model_router_scoring.retrieval.errors import IndexNotReady

FORMAT = f"1/{unicodedata.unidata_version}"
"""The version of the tables and of the folding of text: words folded by another Unicode would not be found."""
BUSY_SECONDS = 10.0
"""How long a writer waits for another one."""

TABLES = """
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE documents (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, modified REAL NOT NULL,
  mtime_ns INTEGER NOT NULL, size INTEGER NOT NULL, digest BLOB NOT NULL, settled INTEGER NOT NULL
);
CREATE TABLE chunks (
  id INTEGER PRIMARY KEY, document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
  chunk_id TEXT NOT NULL UNIQUE, heading TEXT NOT NULL, body TEXT NOT NULL
);
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
CREATE VIRTUAL TABLE words USING fts5 (heading, body, tokenize = 'porter unicode61');
"""
"""`links.target` is a path from the root, there or not: a link is an edge as soon as its target is indexed.
`words` has the rowids of `chunks` and their text, folded."""


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
