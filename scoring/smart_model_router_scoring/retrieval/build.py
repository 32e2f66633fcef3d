"""The index brought up to date with its folder: files found, read, embedded, and written in one transaction each."""

from __future__ import annotations

import asyncio
import hashlib
import json
import posixpath
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, TypeVar

from smart_model_router_scoring.options import Note, Notes
from smart_model_router_scoring.retrieval.documents import packed_text
from smart_model_router_scoring.retrieval.embedders import Embedder, is_lexical, packed, unpacked
from smart_model_router_scoring.retrieval.files import MOST_BYTES, page_of_file
from smart_model_router_scoring.retrieval.index import (
    FORMAT,
    NULL,
    NULL_WITH_COSINES,
    TABLES,
    ForeignIndex,
    IndexBusy,
    UnusableVectors,
    open_to_write,
)
from smart_model_router_scoring.retrieval.listing import SourceFile, scan
from smart_model_router_scoring.retrieval.null import ask_null, texts_to_embed
from smart_model_router_scoring.retrieval.reading import Chunk, Link, Page
from smart_model_router_scoring.retrieval.stems import DEFAULT_TOKENIZER, Tokenizer

P = ParamSpec("P")
T = TypeVar("T")

BATCH = 128
"""Chunks embedded in one call."""
STEMMED = 512
"""Chunks whose words become stems together: what a word costs that was not seen before falls with their number."""
OLDER_FORMAT = "older_format"
"""The code of the note that an index of another version was replaced. Nothing was left out for it."""
SETTLED_NS = 2_000_000_000
"""A file changed so shortly before it was read may change again without a new time: coarse clocks have two seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport:
    """The changes of an indexing run, in files; `documents` and `chunks` count the index's content now."""

    root: str
    added: int
    changed: int
    removed: int
    unchanged: int
    documents: int
    chunks: int
    embedded: int
    notes: tuple[Note, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)


async def index_folder(
    folder: str | Path,
    db: str | Path,
    *,
    now: float,
    embedder: Embedder | None = None,
    tokenizer: Tokenizer = DEFAULT_TOKENIZER,
) -> IndexReport:
    """Bring the index at `db` up to date with `folder`: read what is new or changed, forget what has vanished.

    A single file is a folder of one. `now` is seconds since 1970. Without an embedder the index has no vectors. Raises
    NotADirectoryError for what is neither, ForeignIndex for the index of another folder, IndexBusy when another process
    is writing, UnusableVectors for those of two lengths, and what the embedder raises; then the index is as it was.
    """
    root = await asyncio.to_thread(_root, folder)
    writer = await asyncio.to_thread(_Writer.open, Path(db), root, tokenizer, embedder.name if embedder else None)
    try:
        await _finished(writer, writer.update, round(now * 1e9))
        if embedder is not None:
            for batch in writer.unembedded():
                vectors = await embedder.embed([text for _, text in batch])
                await _finished(writer, writer.keep, [chunk for chunk, _ in batch], vectors)
            for texts in writer.null_texts() if not is_lexical(embedder) else ():
                vectors = await embedder.embed(texts)
                await _finished(writer, writer.keep_null, texts, vectors)
        return await _finished(writer, writer.commit)
    finally:
        writer.close()


async def _finished(writer: _Writer, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Run `work` in a thread. After a cancellation it has stopped when this returns, so its resources can be closed."""
    task = asyncio.ensure_future(asyncio.to_thread(work, *args, **options))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        writer.stopped = True
        await asyncio.wait([task])
        raise


def _root(folder: str | Path) -> Path:
    root = Path(folder).resolve()
    if not root.is_dir() and not (root.is_file() and root.suffix.lower() in MOST_BYTES):
        raise NotADirectoryError(20, f"neither a folder nor a file of {', '.join(MOST_BYTES)}", str(folder))
    return root


_TABLES = (
    "words", "stems", "null_vectors", "vectors", "links", "anchors", "chunks", "texts", "documents", "about",
)  # fmt: skip
"""In an order in which they can be dropped."""


class _Writer:
    """One transaction. Whatever ends it without `commit` leaves the index as it was."""

    def __init__(self, connection: sqlite3.Connection, root: Path, tokenizer: Tokenizer, embedder: str | None) -> None:
        self._sql = connection
        self._root = root
        self._tokenizer = tokenizer
        self._embedder = embedder
        self.stopped = False
        self._notes = Notes()
        self._done = {"added": 0, "changed": 0, "removed": 0, "unchanged": 0}
        self._embedded = 0
        self._unstemmed: list[tuple[int | None, str, str]] = []

    @classmethod
    def open(cls, db: Path, root: Path, tokenizer: Tokenizer, embedder: str | None) -> _Writer:
        """Begin: from here on no other writer can."""
        connection: sqlite3.Connection | None = None
        try:
            connection = open_to_write(db)
            connection.execute("BEGIN IMMEDIATE")
            writer = cls(connection, root, tokenizer, embedder)
            writer._prepare(db)
        except BaseException as error:
            if connection is not None:
                connection.close()
            if isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise IndexBusy(16, "another process is writing to the index", str(db)) from None
            if isinstance(error, sqlite3.Error):
                raise OSError(22, f"it cannot be an index ({error})", str(db)) from None
            raise
        return writer

    def _prepare(self, db: Path) -> None:
        tables = {name for (name,) in self._sql.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        about = dict(self._sql.execute("SELECT key, value FROM about")) if "about" in tables else {}
        if tables and "format" not in about:
            raise OSError(22, "it is a database of something else", str(db))
        if about and about["root"] != str(self._root):
            raise ForeignIndex(f"{db} is the index of {about['root']}; name another file for {self._root}")
        mine = {"format": FORMAT, "tokenizer": self._tokenizer.name}
        other = next((name for name, value in mine.items() if about.get(name) != value), None)
        if about and other is not None:
            self._notes.add(OLDER_FORMAT, db, f"made anew: it was of {other} {about[other]}, this is {mine[other]}")
        if other is not None:
            for name in _TABLES:
                self._sql.execute(f"DROP TABLE IF EXISTS {name}")
            for statement in TABLES.split(";\n"):
                self._sql.execute(statement)
            about = {**mine, "root": str(self._root), "generation": "0"}
            self._sql.executemany("INSERT INTO about VALUES (?, ?)", about.items())
        if about.get("embedder") != self._embedder:
            for table in ("vectors", "null_vectors"):
                self._sql.execute(f"DELETE FROM {table}")  # noqa: S608 - ours
            self._sql.execute("DELETE FROM about WHERE key IN ('embedder', ?, ?)", (NULL, NULL_WITH_COSINES))
            self._embedded = -1  # to be counted as a change even if no text is there to embed

    def update(self, now_ns: int) -> None:
        """Read what is new or changed; forget what is gone."""
        query = "SELECT path, id, mtime_ns, size, digest, settled, notes FROM documents"
        known = {path: facts for path, *facts in self._sql.execute(query)}
        listing = scan(self._root, self._notes)
        for found in listing.files:
            if self.stopped:
                return
            self._look_at(found, known.get(found.path), now_ns)
        self._stem()
        there = {found.path for found in listing.files}
        for path, facts in known.items():
            # What we were not let to look at has not vanished.
            if path not in there and not any(path == one or path.startswith(f"{one}/") for one in listing.unreadable):
                self._forget(facts[0])
                self._done["removed"] += 1

    def _look_at(self, found: SourceFile, known: list[object] | None, now_ns: int) -> None:
        if known is not None and known[1:3] == [found.mtime_ns, found.size] and known[4]:
            self._leave(found.path, known)
            return
        try:
            raw = found.file.read_bytes()
        except OSError as error:
            self._notes.add("unreadable", found.path, error.strerror)
            return
        digest = hashlib.sha256(raw).digest()
        settled = now_ns - found.mtime_ns >= SETTLED_NS
        times = (found.mtime_ns / 1e9, found.mtime_ns, len(raw), settled)
        if known is not None and known[3] == digest:
            same = "UPDATE documents SET modified = ?, mtime_ns = ?, size = ?, settled = ? WHERE id = ?"
            self._sql.execute(same, (*times, known[0]))
            self._leave(found.path, known)
            return
        notes: list[tuple[str, str]] = []

        def tell(code: str, detail: str) -> None:
            notes.append((code, detail))
            self._notes.add(code, found.path, detail)

        try:
            page = page_of_file(found.file.suffix.lower(), raw, tell, lambda: self.stopped)
        except OSError as error:  # no process for a PDF: its turn is the next time
            tell("unreadable", error.strerror or str(error))
            return
        if known is not None:
            self._forget(known[0])
        self._done["added" if known is None else "changed"] += 1
        columns = "path, digest, modified, mtime_ns, size, settled, notes"
        insert = f"INSERT INTO documents ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - ours
        document = self._sql.execute(insert, (found.path, digest, *times, json.dumps(notes))).lastrowid
        self._write(document, found.path, page)

    def _leave(self, path: str, known: list[object]) -> None:
        """Keep what the index has of a file, and note again what was noted when it was read."""
        self._done["unchanged"] += 1
        for code, detail in json.loads(str(known[5])):
            self._notes.add(code, path, detail)

    def _write(self, document: int | None, path: str, page: Page) -> None:
        self._sql.execute("INSERT INTO texts VALUES (?, ?)", (document, packed_text(page.text)))
        taken: dict[str, int] = {}
        for chunk in page.chunks:
            # The name of the file says what it is about, in documents without headings above all.
            heading = chunk.heading or posixpath.splitext(posixpath.basename(path))[0]
            lines = (chunk.first_line, chunk.last_line)
            values = (document, _name_of(path, chunk, taken), heading, chunk.text, *lines)
            columns = "document, chunk_id, heading, body, first_line, last_line"
            insert = f"INSERT INTO chunks ({columns}) VALUES (?, ?, ?, ?, ?, ?)"  # noqa: S608 - ours
            row = self._sql.execute(insert, values).lastrowid
            self._unstemmed.append((row, heading, chunk.text))
            anchors = [(document, anchor, row) for anchor in chunk.anchors]
            self._sql.executemany("INSERT OR IGNORE INTO anchors VALUES (?, ?, ?)", anchors)
        targets = [(target, link.anchor) for link in page.links if (target := _target(path, link)) is not None]
        rows = [(document, position, *one) for position, one in enumerate(dict.fromkeys(targets))]
        self._sql.executemany("INSERT INTO links VALUES (?, ?, ?, ?)", rows)
        if len(self._unstemmed) >= STEMMED:
            self._stem()

    def _stem(self) -> None:
        """Write the stems of the chunks that have none yet."""
        headings = self._tokenizer.documents([heading for _, heading, _ in self._unstemmed])
        bodies = self._tokenizer.documents([body for _, _, body in self._unstemmed])
        rows = [
            (row, " ".join(heading), " ".join(body))
            for (row, _, _), heading, body in zip(self._unstemmed, headings, bodies, strict=True)
        ]
        self._sql.executemany("INSERT INTO stems (id, heading, body) VALUES (?, ?, ?)", rows)
        self._sql.executemany("INSERT INTO words (rowid, heading, body) VALUES (?, ?, ?)", rows)
        self._unstemmed.clear()

    def _forget(self, document: object) -> None:
        # FTS5 forgets words of an outside table when it is told them again.
        forget = (
            "INSERT INTO words (words, rowid, heading, body) SELECT 'delete', id, heading, body FROM stems"
            " WHERE id IN (SELECT id FROM chunks WHERE document = ?)"
        )
        self._sql.execute(forget, (document,))
        self._sql.execute("DELETE FROM stems WHERE id IN (SELECT id FROM chunks WHERE document = ?)", (document,))
        self._sql.execute("DELETE FROM documents WHERE id = ?", (document,))

    def unembedded(self) -> Iterator[list[tuple[int, str]]]:
        """Chunks without a vector, in batches, with the text to embed."""
        query = (
            "SELECT id, heading || char(10) || body FROM chunks WHERE id > ? AND id NOT IN (SELECT chunk FROM vectors)"
            " ORDER BY id LIMIT ?"
        )
        last = -1
        while batch := self._sql.execute(query, (last, BATCH)).fetchall():
            yield batch
            last = batch[-1][0]

    def keep(self, chunks: Sequence[int], vectors: Sequence[Sequence[float]]) -> None:
        """Write vectors, each at length 1. Raises UnusableVectors."""
        self._check(vectors, len(chunks), lambda at: f"the chunk {self._chunk_id(chunks[at])}")
        rows = [(chunk, packed(one)) for chunk, one in zip(chunks, vectors, strict=True)]
        self._sql.executemany("INSERT INTO vectors VALUES (?, ?)", rows)
        self._embedded = max(self._embedded, 0) + len(rows)

    def _chunk_id(self, row: int) -> str:
        return str(self._sql.execute("SELECT chunk_id FROM chunks WHERE id = ?", (row,)).fetchone()[0])

    def _check(self, vectors: Sequence[Sequence[float]], wanted: int, named: Callable[[int], str]) -> None:
        """Refuse other than one vector a text, and one of another length than those that are there."""
        if len(vectors) != wanted:
            raise UnusableVectors(
                f"{self._embedder} gave {len(vectors)} vectors for {wanted} texts, one each is needed"
            )
        known = self._sql.execute("SELECT length(vector) / 2 FROM vectors LIMIT 1").fetchone()
        length: int = known[0] if known else len(vectors[0])
        wrong = next((at for at, one in enumerate(vectors) if len(one) != length or not length), None)
        if wrong is not None:
            raise UnusableVectors(
                f"{self._embedder} gave {named(wrong)} a vector of {len(vectors[wrong])} numbers, and others {length}:"
                " one length above 0 is needed, and another name where a model changes (a new name embeds all again)"
            )

    def null_texts(self) -> Iterator[list[str]]:
        """The texts of the null without a vector, in batches."""
        known = {text for (text,) in self._sql.execute("SELECT text FROM null_vectors")}
        left = [text for text in texts_to_embed() if text not in known]
        yield from (left[at : at + BATCH] for at in range(0, len(left), BATCH))

    def keep_null(self, texts: Sequence[str], vectors: Sequence[Sequence[float]]) -> None:
        """Write the vectors of texts of the null. Raises UnusableVectors."""
        self._check(vectors, len(texts), lambda at: f"the question {texts[at]!r}")
        rows = [(text, packed(one)) for text, one in zip(texts, vectors, strict=True)]
        self._sql.executemany("INSERT INTO null_vectors VALUES (?, ?)", rows)

    def commit(self) -> IndexReport:
        """Make it so."""
        changed = self._done["added"] + self._done["changed"] + self._done["removed"]
        counts = {
            "documents": "SELECT count(*) FROM documents",
            "chunks": "SELECT count(*) FROM chunks",
            "links": "SELECT count(*) FROM links JOIN documents ON documents.path = links.target",
        }
        figures: dict[str, int] = {name: self._sql.execute(query).fetchone()[0] for name, query in counts.items()}
        generation = "UPDATE about SET value = value + ? WHERE key = 'generation'"
        self._sql.execute(generation, (1 if changed or self._embedded else 0,))
        about: dict[str, object] = {**figures, **({"embedder": self._embedder} if self._embedder else {})}
        if changed or self._sql.execute("SELECT 1 FROM about WHERE key = ?", (NULL,)).fetchone() is None:
            about |= self._nulls(figures["chunks"])
        self._sql.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", about.items())
        if changed * 10 > figures["documents"]:
            self._sql.execute("INSERT INTO words (words) VALUES ('optimize')")
        self._sql.execute("COMMIT")
        return IndexReport(
            root=str(self._root),
            **self._done,
            documents=figures["documents"],
            chunks=figures["chunks"],
            embedded=max(self._embedded, 0),
            notes=self._notes.kept,
            counts=dict(self._notes.counts),
        )

    def _nulls(self, chunks: int) -> dict[str, str]:
        """The scores of questions that have nothing to do with this index, as JSON."""
        found = self._sql.execute("SELECT text, vector FROM null_vectors").fetchall()
        vectors = {text: unpacked(vector) for text, vector in found}
        by_words, with_cosines = ask_null(self._sql, self._tokenizer, chunks, vectors or None)
        told = {NULL: by_words.to_json()}
        return told if with_cosines is None else {**told, NULL_WITH_COSINES: with_cosines.to_json()}

    def close(self) -> None:
        """End; without a commit nothing has happened."""
        self._sql.close()


def _name_of(path: str, chunk: Chunk, taken: dict[str, int]) -> str:
    """`path#L3-L9`, of a PDF `path#page=3`; a second chunk of the same place is `path#L3-L9.2`."""
    plain = f"{path}#page={chunk.page}" if chunk.page else f"{path}#L{chunk.first_line}-L{chunk.last_line}"
    taken[plain] = taken.get(plain, 0) + 1
    return plain if taken[plain] == 1 else f"{plain}.{taken[plain]}"


def _target(path: str, link: Link) -> str | None:
    """The path from the root that a link of `path` leads to; None when it leads out of the folder."""
    if not link.target:
        return None
    base = "" if link.target.startswith("/") else posixpath.dirname(path)
    joined = posixpath.normpath(posixpath.join(base, link.target.lstrip("/")))
    if joined in {path, ".."} or joined.startswith("../"):
        return None
    return joined.encode("utf-8", "replace").decode()
