"""A whole document of an index: its text, where its lines begin, and which lines its chunks are."""

from __future__ import annotations

import sqlite3
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

_LEVEL = 1
"""Of zlib: two fifths of the text are left, for 2 % of the time that indexing takes."""


class UnknownDocument(LookupError):
    """The index has no document of this path."""

    def __init__(self, document: str) -> None:
        super().__init__(document)
        self.document = document

    def __str__(self) -> str:
        return f"the index has no document {self.document!r}"


@dataclass(frozen=True, slots=True)
class ChunkLines:
    """A chunk and its lines in the text, counted from 1, the last one included."""

    chunk_id: str
    heading: str
    first_line: int
    last_line: int


@dataclass(frozen=True)
class IndexedDocument:
    """A document as it was indexed. `modified` is seconds since 1970; `chunks` are in the order of the text.

    `text` is that of the file, decoded, with line feeds at the ends of lines; of a PDF that of its pages, one below the
    other; empty for a file that could not be read.
    """

    path: str
    modified: float
    text: str
    chunks: tuple[ChunkLines, ...]

    @cached_property
    def line_offsets(self) -> tuple[int, ...]:
        """The place in `text` at which each line begins."""
        offsets = [0]
        for line in self.text.split("\n"):
            offsets.append(offsets[-1] + len(line) + 1)
        return tuple(offsets[:-1])

    def lines(self, first: int, last: int) -> list[str]:
        """The lines `first` to `last`, counted from 1; without those that there are not."""
        return self.text.split("\n")[max(first, 1) - 1 : max(last, 0)]


class IndexStore(Protocol):
    """A store of indexed documents. `SearchIndex` is the one of SQLite."""

    def fetch(self, document: str) -> IndexedDocument:
        """The document of this path. Raises UnknownDocument, and IndexNotReady when there is no store."""
        ...


def packed_text(text: str) -> bytes:
    """The text as the index keeps it."""
    return zlib.compress(text.encode(), _LEVEL)


def read_document(sql: sqlite3.Connection, document: str) -> IndexedDocument:
    """See `IndexStore.fetch`."""
    query = "SELECT id, modified, text FROM documents JOIN texts ON texts.document = documents.id WHERE path = ?"
    row = sql.execute(query, (document.encode("utf-8", "replace").decode(),)).fetchone()
    if row is None:
        raise UnknownDocument(document)
    chunks = "SELECT chunk_id, heading, first_line, last_line FROM chunks WHERE document = ? ORDER BY id"
    found = tuple(ChunkLines(*one) for one in sql.execute(chunks, (row[0],)))
    return IndexedDocument(document, row[1], zlib.decompress(row[2]).decode(), found)
