"""Whole documents come back from the index, with the place of each line and the lines of each chunk."""

from __future__ import annotations

from pathlib import Path

import pytest

from smart_model_router_scoring.retrieval import (
    IndexNotReady,
    QueryOrchestrator,
    SearchIndex,
    UnknownDocument,
    index_folder,
)
from tests.pdf_files import pdf
from tests.unit.scoring.retrieval.folders import DOCUMENTS, NOW, indexed, write

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("path", DOCUMENTS)
async def test_a_document_is_fetched_whole(tmp_path: Path, path: str) -> None:
    """Its text is that of the file, its offsets are those of the lines."""
    db, _ = await indexed(tmp_path)
    found = SearchIndex(db).fetch(path)
    assert (found.path, found.text, found.modified) == (path, DOCUMENTS[path], NOW - 100 * 86_400)
    assert [found.text[start:].split("\n")[0] for start in found.line_offsets] == found.text.split("\n")
    assert found.lines(1, len(found.line_offsets)) == found.text.split("\n")
    assert found.lines(-3, 0) == []
    assert found.lines(2, 2) == found.text.split("\n")[1:2]


async def test_offsets_are_of_characters_and_not_of_bytes(tmp_path: Path) -> None:
    """A line behind letters of two and four bytes begins where its text does."""
    db, _ = await indexed(tmp_path, {"é.md": "# Café 🚲\n\nnaïve\nlast\n"})
    found = SearchIndex(db).fetch("é.md")
    assert [found.text[start:].split("\n")[0] for start in found.line_offsets] == found.text.split("\n")
    assert found.lines(4, 4) == ["last"]


async def test_the_lines_of_a_result_are_those_of_its_document(tmp_path: Path) -> None:
    """A citation can be looked up: what the chunk says stands in its lines."""
    db, _ = await indexed(
        tmp_path, {"a.md": "\r\n# Tea\r\n\r\nGreen tea.\r\n\r\n## Time\r\n\r\nTwo minutes\u2028or three.\r\n"}
    )
    [(chunk_id, _)] = await QueryOrchestrator(db).query("how many minutes", top_n=1)
    document = SearchIndex(db).fetch("a.md")
    place = next(one for one in document.chunks if one.chunk_id == chunk_id)
    assert (chunk_id, place.heading) == ("a.md#L6-L8", "Tea > Time")
    assert document.lines(place.first_line, place.last_line) == ["## Time", "", "Two minutes\u2028or three."]


async def test_the_text_of_a_pdf_is_that_of_its_pages(tmp_path: Path) -> None:
    """Ids name pages, lines are those of the text."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "r.pdf").write_bytes(pdf("One.\nTwo.", "Three."))
    await index_folder(folder, tmp_path / "i.db", now=NOW)
    found = SearchIndex(tmp_path / "i.db").fetch("r.pdf")
    assert found.text == "One.\nTwo.\nThree."
    assert [(one.chunk_id, found.lines(one.first_line, one.last_line)) for one in found.chunks] == [
        ("r.pdf#page=1", ["One.", "Two."]),
        ("r.pdf#page=2", ["Three."]),
    ]


async def test_a_document_changes_with_its_file(tmp_path: Path) -> None:
    """The index has the text that it was made of, until it is brought up to date."""
    db, _ = await indexed(tmp_path, {"a.txt": "old"})
    folder = write(tmp_path / "docs", {"a.txt": "new text"})
    assert SearchIndex(db).fetch("a.txt").text == "old"
    await index_folder(folder, db, now=NOW)
    assert SearchIndex(db).fetch("a.txt").text == "new text"


@pytest.mark.parametrize("path", ["none.md", "", "a.txt#L1-L1", "\ud800", "A.TXT"])
async def test_a_document_that_is_not_there_is_named(tmp_path: Path, path: str) -> None:
    """A LookupError that says which; without an index the command that makes one."""
    db, _ = await indexed(tmp_path, {"a.txt": "tea"})
    with pytest.raises(UnknownDocument) as caught:
        SearchIndex(db).fetch(path)
    assert caught.value.document == path
    assert repr(path) in str(caught.value)
    with pytest.raises(IndexNotReady, match="smr index"):
        SearchIndex(tmp_path / "none.db").fetch("a.txt")


async def test_a_file_that_could_not_be_read_has_no_text(tmp_path: Path) -> None:
    """It is in the index, so that it is not read again and again."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "b.txt").write_bytes(b"a\0b")
    await index_folder(folder, tmp_path / "i.db", now=NOW)
    found = SearchIndex(tmp_path / "i.db").fetch("b.txt")
    assert (found.text, found.chunks, found.line_offsets) == ("", (), (0,))
