"""Indexing a folder: incremental, whole or not at all, and equal to an index made from nothing."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from smart_model_router_scoring.retrieval import (
    OLDER_FORMAT,
    CallableEmbedder,
    ForeignIndex,
    IndexBusy,
    IndexNotReady,
    QueryOrchestrator,
    SearchIndex,
    UnusableVectors,
    index,
    index_folder,
)
from smart_model_router_scoring.retrieval.null_questions import NULL_QUESTIONS
from tests.unit.scoring.retrieval.folders import DAY, DOCUMENTS, NOW, Broken, Marks, indexed, write

pytestmark = pytest.mark.asyncio


def content(db: Path) -> list[Any]:
    """Everything in an index that does not depend on its history."""
    queries = (
        "SELECT path, size, modified FROM documents ORDER BY path",
        "SELECT chunk_id, heading, body, first_line, last_line FROM chunks ORDER BY chunk_id",
        "SELECT path, text FROM texts JOIN documents ON documents.id = document ORDER BY path",
        "SELECT path, anchor, chunk_id FROM anchors a, documents d, chunks c WHERE d.id = a.document AND c.id = chunk",
        "SELECT path, position, target, anchor FROM links JOIN documents d ON d.id = links.document ORDER BY 1, 2",
        "SELECT chunk_id, vector FROM vectors JOIN chunks ON chunks.id = vectors.chunk ORDER BY chunk_id",
        "SELECT chunk_id, words.heading, words.body FROM words JOIN chunks ON chunks.id = words.rowid ORDER BY 1",
        "SELECT key, value FROM about WHERE key <> 'generation' ORDER BY key",
    )
    with closing(sqlite3.connect(db)) as sql:
        sql.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
        assert sql.execute("PRAGMA foreign_key_check").fetchall() == []
        return [sql.execute(query).fetchall() for query in queries]


async def test_a_folder_is_read_and_chunks_are_named_by_their_lines(tmp_path: Path) -> None:
    """Markdown, text and HTML in every folder; an id is what a person opens: path and lines."""
    db, report = await indexed(tmp_path)
    assert (report.added, report.documents, report.chunks) == (4, 4, 5)
    with closing(sqlite3.connect(db)) as sql:
        ids = [name for (name,) in sql.execute("SELECT chunk_id FROM chunks ORDER BY chunk_id")]
    assert ids == [
        "breaker.md#L1-L3",
        "how/waiting.md#L1-L3",
        "how/waiting.md#L5-L7",
        "page.html#L1-L1",
        "store.txt#L1-L3",
    ]


async def test_only_what_changed_is_read_again(tmp_path: Path) -> None:
    """A second run embeds nothing, changes nothing and keeps the generation; a new text is the only one embedded."""
    marks = Marks("queue")
    db, _ = await indexed(tmp_path, embedder=marks)
    before = SearchIndex(db).facts().generation
    again = await index_folder(tmp_path / "docs", db, now=NOW, embedder=marks)
    assert (again.unchanged, again.added, again.changed, again.removed, again.embedded) == (4, 0, 0, 0, 0)
    assert SearchIndex(db).facts().generation == before
    write(tmp_path / "docs", {"store.txt": "Now it says something else.\n"}, modified=NOW - DAY)
    changed = await index_folder(tmp_path / "docs", db, now=NOW, embedder=marks)
    assert (changed.unchanged, changed.changed, changed.embedded) == (3, 1, 1)
    assert SearchIndex(db).facts().generation == before + 1


async def test_a_file_that_was_only_touched_is_not_indexed_again(tmp_path: Path) -> None:
    """Its time is new and its text is not: the time is kept, nothing is embedded."""
    marks = Marks("queue")
    db, _ = await indexed(tmp_path, embedder=marks)
    write(tmp_path / "docs", {"store.txt": DOCUMENTS["store.txt"]}, modified=NOW - DAY)
    report = await index_folder(tmp_path / "docs", db, now=NOW, embedder=marks)
    assert (report.unchanged, report.embedded) == (4, 0)
    [documents, *_] = content(db)
    assert {row[0]: row[2] for row in documents}["store.txt"] == NOW - DAY


async def test_a_change_within_the_same_clock_tick_is_noticed(tmp_path: Path) -> None:
    """A file as young as the index is not trusted by its time: same size, same time, other text."""
    folder = write(tmp_path / "docs", {"a.txt": "cats"}, modified=NOW - 1)
    db = tmp_path / "index.sqlite"
    await index_folder(folder, db, now=NOW)
    write(folder, {"a.txt": "dogs"}, modified=NOW - 1)
    assert (await index_folder(folder, db, now=NOW)).changed == 1
    assert [pair[0] for pair in await QueryOrchestrator(db).query("dogs")] == ["a.txt#L1-L1"]


async def test_what_vanished_is_forgotten(tmp_path: Path) -> None:
    """A file that is gone is found no more, by words, vectors or links."""
    db, _ = await indexed(tmp_path, embedder=Marks("queue"))
    (tmp_path / "docs" / "how" / "waiting.md").unlink()
    report = await index_folder(tmp_path / "docs", db, now=NOW, embedder=Marks("queue"))
    assert (report.removed, report.documents) == (1, 3)
    assert SearchIndex(db).facts().links == 0
    assert not [row for table in content(db)[:3] for row in table if "waiting" in str(row[0])]


async def test_an_updated_index_equals_one_made_from_nothing(tmp_path: Path) -> None:
    """Whatever was added, changed and removed before: content, words, links and vectors are the same."""
    marks = Marks("queue", "file")
    db, _ = await indexed(tmp_path, {**DOCUMENTS, "gone.md": "# Gone\n\n[x](store.txt)\n"}, embedder=marks)
    (tmp_path / "docs" / "gone.md").unlink()
    write(tmp_path / "docs", {"new.md": "# New\n\n[store](store.txt)\n", "store.txt": "A queue, and a file.\n"})
    os.utime(tmp_path / "docs" / "store.txt", (NOW - DAY, NOW - DAY))
    await index_folder(tmp_path / "docs", db, now=NOW, embedder=marks)
    fresh = tmp_path / "fresh.sqlite"
    await index_folder(tmp_path / "docs", fresh, now=NOW, embedder=marks)
    assert content(db) == content(fresh)


async def test_an_embedder_that_fails_leaves_the_index_as_it_was(tmp_path: Path) -> None:
    """One transaction: a model that goes away in the middle costs nothing that was there."""
    db, _ = await indexed(tmp_path, embedder=Marks("queue"))
    before = content(db)
    write(tmp_path / "docs", {"new.md": "# New\n"})
    with pytest.raises(OSError, match="the model is away"):
        await index_folder(tmp_path / "docs", db, now=NOW, embedder=Broken())
    assert content(db) == before


@pytest.mark.parametrize(
    ("vectors", "said"),
    [
        ([[1.0, 0.0], [1.0]], r"m gave the chunk b\.txt#L1-L1 a vector of 1 numbers, and others 2: one length"),
        ([[1.0, 0.0]], "m gave 1 vectors for 2 texts"),
        ([[], []], r"the chunk a\.txt#L1-L1 a vector of 0 numbers"),
    ],
)
async def test_vectors_that_cannot_be_in_one_index_are_refused(
    tmp_path: Path, vectors: list[list[float]], said: str
) -> None:
    """Too few, and of two lengths: an error that names the chunk and both, and no index instead of half of one."""

    async def embed(_: Sequence[str]) -> list[list[float]]:
        return vectors

    with pytest.raises(UnusableVectors, match=said):
        await indexed(tmp_path, {"a.txt": "one", "b.txt": "two"}, CallableEmbedder("m", embed))
    with pytest.raises(IndexNotReady):
        SearchIndex(tmp_path / "index.sqlite").facts()


async def test_vectors_of_another_length_than_those_of_the_index_are_refused(tmp_path: Path) -> None:
    """A model that changed under its name: of new chunks and of null questions alike. The index stays as it was."""

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, float(len(text))] for text in texts]

    async def longer(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0] * (3 if NULL_QUESTIONS["cooking"][1] in texts else 2) for _ in texts]

    db, _ = await indexed(tmp_path, embedder=CallableEmbedder("m", embed))
    before = content(db)
    write(tmp_path / "docs", {"new.md": "# New\n"})
    with pytest.raises(UnusableVectors, match=r"the chunk new\.md#L1-L1 a vector of 1 numbers, and others 2"):
        await index_folder(tmp_path / "docs", db, now=NOW, embedder=Marks("new", name="m"))
    with pytest.raises(UnusableVectors, match=r"n gave the question 'how hot .* a vector of 3 numbers, and others 2"):
        await index_folder(tmp_path / "docs", db, now=NOW, embedder=CallableEmbedder("n", longer))
    assert content(db) == before


async def test_another_embedder_means_other_vectors(tmp_path: Path) -> None:
    """Vectors of two spaces are never mixed: a new name embeds everything again, none removes all of them."""
    db, _ = await indexed(tmp_path, embedder=Marks("queue"))
    report = await index_folder(tmp_path / "docs", db, now=NOW, embedder=Marks("file", "queue", name="other"))
    assert (report.embedded, SearchIndex(db).facts().embedder) == (5, "other")
    await index_folder(tmp_path / "docs", db, now=NOW)
    assert SearchIndex(db).facts().embedder is None


async def test_the_index_of_another_folder_is_left_alone(tmp_path: Path) -> None:
    """Indexing a second folder into it would forget the first: it is refused, and nothing changes."""
    db, _ = await indexed(tmp_path)
    before = content(db)
    other = write(tmp_path / "other", {"a.txt": "a"})
    with pytest.raises(ForeignIndex, match="name another file"):
        await index_folder(other, db, now=NOW)
    assert content(db) == before


async def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    """A file with other tables, or no database at all, is an error and stays as it is."""
    folder = write(tmp_path / "docs", {"a.txt": "a"})
    with closing(sqlite3.connect(tmp_path / "mine.db")) as sql:
        sql.execute("CREATE TABLE mine (x)")
    (tmp_path / "notes.txt").write_text("not a database, but long enough to be looked at" * 50)
    for name in ("mine.db", "notes.txt"):
        with pytest.raises(OSError, match="database"):
            await index_folder(folder, tmp_path / name, now=NOW)
        with pytest.raises(IndexNotReady, match="smr index"):
            SearchIndex(tmp_path / name).facts()
    with closing(sqlite3.connect(tmp_path / "mine.db")) as sql:
        assert [name for (name,) in sql.execute("SELECT name FROM sqlite_master")] == ["mine"]


async def test_an_index_of_another_version_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers say so and name the command; the command replaces it."""
    db, _ = await indexed(tmp_path)
    with closing(sqlite3.connect(db)) as sql:
        sql.execute("UPDATE about SET value = 'old' WHERE key = 'format'")
        sql.commit()
    with pytest.raises(IndexNotReady, match="another version"):
        SearchIndex(db).facts()
    report = await index_folder(tmp_path / "docs", db, now=NOW)
    assert (report.added, SearchIndex(db).facts().documents) == (4, 4)
    [note] = report.notes
    assert (note.code, note.subject) == (OLDER_FORMAT, str(db))
    assert "old" in note.detail


async def test_two_writers_do_not_mix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes second waits, and is told when the first does not end; readers see the old index meanwhile."""
    db, _ = await indexed(tmp_path)
    monkeypatch.setattr(index, "BUSY_SECONDS", 0.01)
    with closing(sqlite3.connect(db, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(IndexBusy, match="another process"):
            await index_folder(tmp_path / "docs", db, now=NOW)
        assert SearchIndex(db).facts().documents == 4


async def test_a_cancelled_run_leaves_the_index_as_it_was(tmp_path: Path) -> None:
    """Ctrl-C while a model is embedding: no half of an index, and no lock that stays."""

    class Slow(Marks):
        async def embed(self, texts: Any) -> list[list[float]]:
            running.set()
            await asyncio.Event().wait()
            raise AssertionError

    db, _ = await indexed(tmp_path)
    before = content(db)
    running = asyncio.Event()
    task = asyncio.create_task(index_folder(tmp_path / "docs", db, now=NOW, embedder=Slow("queue")))
    await running.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert content(db) == before
    await index_folder(tmp_path / "docs", db, now=NOW)


async def test_a_run_that_is_cancelled_while_it_reads_is_gone_when_it_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread has ended, after the file it was at and before the next; nothing was written."""
    db, _ = await indexed(tmp_path)
    before = content(db)
    write(tmp_path / "docs", {f"{n}.txt": "new" for n in range(5)})
    reading, go_on, read = threading.Event(), threading.Event(), []

    def slowly(path: Path) -> bytes:
        read.append(path.name)
        reading.set()
        go_on.wait(10)
        return b"new"

    monkeypatch.setattr(Path, "read_bytes", slowly)
    task = asyncio.create_task(index_folder(tmp_path / "docs", db, now=NOW))
    await asyncio.to_thread(reading.wait, 10)
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert read == ["0.txt"]
    assert content(db) == before


async def test_what_cannot_be_indexed_is_told_and_costs_nobody_else(tmp_path: Path) -> None:
    """Binary and huge files, hidden ones and links: left out, the first two with a note; another charset is noted."""
    folder = write(tmp_path / "docs", {"a.txt": "fine", ".hidden.md": "x", ".git/b.md": "x", "c.py": "x"})
    (folder / "binary.txt").write_bytes(b"a\0b")
    (folder / "latin.txt").write_bytes("caf\xe9 au lait".encode("latin-1"))
    with (folder / "huge.txt").open("wb") as file:
        file.truncate(6_000_000)
    (folder / "link.md").symlink_to(folder / "a.txt")
    db = tmp_path / "index.sqlite"
    report = await index_folder(folder, db, now=NOW)
    assert dict(report.counts) == {"binary": 1, "charset": 1, "too_large": 1}
    assert [pair[0] for pair in await QueryOrchestrator(db).query("lait")] == ["latin.txt#L1-L1"]
    assert report.chunks == 2


async def test_what_may_not_be_read_has_not_vanished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose text cannot be read now is noted and keeps what the index knows of it."""
    db, _ = await indexed(tmp_path)
    write(tmp_path / "docs", {"store.txt": "changed"}, modified=NOW - DAY)
    read = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path.name == "store.txt":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    report = await index_folder(tmp_path / "docs", db, now=NOW)
    assert (report.removed, dict(report.counts)) == (0, {"unreadable": 1})
    assert [pair[0] for pair in await QueryOrchestrator(db).query("statistics")] == ["store.txt#L1-L3"]


async def test_a_single_file_is_a_folder_of_one(tmp_path: Path) -> None:
    """Its neighbours are not read, and a change of it is noticed."""
    file, db = tmp_path / "one.md", tmp_path / "index.sqlite"
    (tmp_path / "other.md").write_text("# Other\n\nAnother text.\n")
    file.write_text("# One\n\nThe first text.\n")
    first = await index_folder(file, db, now=NOW)
    file.write_text("# One\n\nThe second text, which is longer.\n")
    second = await index_folder(file, db, now=NOW)

    assert (first.documents, second.changed, second.removed, second.root) == (1, 1, 0, str(file))
    assert [pair[0] for pair in await QueryOrchestrator(db).query("second")] == ["one.md#L1-L3"]


async def test_a_folder_that_is_none_is_an_error(tmp_path: Path) -> None:
    """So is a file of a kind that is not read; and no file is made for it."""
    (tmp_path / "table.xlsx").write_bytes(b"PK")
    for name in ("nowhere", "table.xlsx"):
        with pytest.raises(NotADirectoryError, match="neither a folder nor a file of"):
            await index_folder(tmp_path / name, tmp_path / "index.sqlite", now=NOW)
    assert not (tmp_path / "index.sqlite").exists()


async def test_a_snapshot_that_fails_leaves_no_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second lane that cannot be opened closes the first: no open file waits for the garbage collector."""
    db, _ = await indexed(tmp_path)
    opened: list[sqlite3.Connection] = []
    open_to_read = index.open_to_read

    def open_once(path: Path) -> sqlite3.Connection:
        if opened:
            raise IndexNotReady(path, "no more")
        opened.append(open_to_read(path))
        return opened[0]

    monkeypatch.setattr(index, "open_to_read", open_once)
    with pytest.raises(IndexNotReady, match="no more"):
        SearchIndex(db).snapshot("one", "two")
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].execute("SELECT 1")
