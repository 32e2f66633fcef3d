"""Files of every charset, PDF files, and files that are not what they seem: read, or left out with a note."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from smart_model_router_scoring.retrieval import QueryOrchestrator, index_folder, pdf
from smart_model_router_scoring.retrieval.decoding import decoded, is_western
from smart_model_router_scoring.retrieval.pdf import PdfLimits, read_pdf
from tests.pdf_files import encrypted
from tests.pdf_files import pdf as pdf_of
from tests.unit.scoring.retrieval.folders import DAY, NOW, write

SAMPLES = [
    ("café au lait", "latin-1", "windows-1252, by its letters"),
    ("Les élèves français étudient à l'école; déjà vu.", "latin-1", "windows-1252, by its letters"),
    ("Die Größe der Straße über Müller", "cp1252", "windows-1252, by its letters"),
    ("It\u2019s a “smart” quote \u2013 5 €", "cp1252", "windows-1252, by its letters"),
    ("Příliš žluťoučký kůň úpěl ďábelské ódy.", "cp1250", "cp1250, which is a guess"),
    ("Привет мир, это текст на русском языке для проверки", "cp1251", "cp1251, which is a guess"),
    ("今日は東京都庁の展望室から夜景を見た。黒猫もいた。", "shift_jis", "cp932, which is a guess"),
    ("北京是中国的首都,有很多大学和博物馆。", "gb18030", "gb18030, which is a guess"),
    ("나는 서울에서 친구를 만났다.", "euc-kr", "cp949, which is a guess"),
    ("กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย", "cp874", "cp874, which is a guess"),
    ("Ünïcode 東京", "utf-16", "utf-16, as its first bytes say"),
    ("Ünïcode 東京", "utf-32", "utf-32, as its first bytes say"),
    ('<meta charset="iso-8859-2"><p>Zażółć gęślą jaźń', "iso-8859-2", "iso-8859-2, as it declares"),
    ('<?xml version="1.0" encoding="koi8-r"?><p>Привет', "koi8-r", "koi8-r, as it declares"),
]


def read(raw: bytes) -> tuple[str | None, list[tuple[str, str]]]:
    """The text and the notes."""
    told: list[tuple[str, str]] = []
    return decoded(raw, lambda code, detail: told.append((code, detail))), told


@pytest.mark.parametrize(("text", "charset", "taken"), SAMPLES)
def test_a_text_of_another_charset_is_read_and_noted(text: str, charset: str, taken: str) -> None:
    """The note says which charset was taken, and why."""
    assert read(text.encode(charset)) == (text, [("charset", f"read as {taken}")])


@pytest.mark.parametrize(
    ("raw", "western"),
    [
        ("éa", True),
        ("éa é", False),
        ("a long text ïò", True),
        ("a long text ïòé", False),
        ("5 ° ± 1", True),
        ("5 ¤ of it", False),
    ],
)
def test_western_letters_are_at_most_half_of_all_and_scattered(raw: str, western: bool) -> None:
    """Two may stand together, three do not; other signs are those that Western texts have."""
    assert is_western(raw.encode("cp1252")) is western


def test_bytes_that_windows_1252_does_not_have_are_not_western() -> None:
    """It has no letter for five of them."""
    assert not is_western(b"a long text \x81")


@pytest.mark.parametrize("text", ["plain", "Ünïcode 東京", "", "\ufeffwith a mark"])
def test_utf_8_needs_no_note(text: str) -> None:
    """With its mark or without."""
    assert read(text.encode()) == (text.removeprefix("\ufeff"), [])


def test_some_broken_bytes_make_no_other_charset_of_a_text() -> None:
    """Its other characters say that it is UTF-8: they stay."""
    text, told = read("déjà vu à l'été\n".encode() + b"cut \xe6\x9d\n")
    assert text == "déjà vu à l'été\ncut \ufffd\n"
    assert told == [("charset", "read as UTF-8, of which 1 places are none")]


@pytest.mark.parametrize("declared", ["utf-8", "utf-16", "no-such-charset", "zlib", "ascii"])
def test_a_declared_charset_that_lies_is_told(declared: str) -> None:
    """The text is read all the same."""
    raw = f'<meta charset="{declared}"><p>café à la crème</p>'.encode("latin-1")
    text, [(code, detail)] = read(raw)
    assert text is not None
    assert "café à la crème" in text
    assert (code, detail) == (
        "charset",
        f"read as windows-1252, by its letters; it declares {declared}, which it is not",
    )


@pytest.mark.parametrize("raw", [b"a\0b", b"\xff\xfea\0b\0c", "a\0b".encode("utf-16"), b"\0" * 50])
def test_nul_bytes_make_a_file_binary(raw: bytes) -> None:
    """Unless they are halves of UTF-16."""
    assert read(raw) == (None, [("binary", "it has NUL bytes")])


def test_bytes_of_no_charset_are_left_out() -> None:
    """A picture named `.txt`."""
    raw = bytes(byte for byte in range(1, 256)) * 4
    text, [(code, detail)] = read(raw)
    assert (text, code, detail) == (None, "no_charset", "it is no UTF-8, and no other charset fits")


def test_the_pages_of_a_pdf_are_read() -> None:
    """By a process of its own; a PDF that everybody may open is not treated as encrypted."""
    raw = pdf_of("First page.\nSecond line.", "Café closes late.", title="A report")
    for one in (raw, encrypted(raw, "")):
        found = read_pdf(one)
        assert (found.title, found.ended) == ("A report", "")
        assert found.pages == ("First page.\nSecond line.", "Café closes late.")


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (encrypted(pdf_of("secret"), "word"), "it is encrypted"),
        (b"", "it cannot be read (PdfiumError: "),
        (pdf_of("cut off")[:200], "it cannot be read (PdfiumError: "),
        (pdf_of("a").replace(b"/Kids [ 5 0 R", b"/Kids [ 2 0 R"), ""),
    ],
    ids=["encrypted", "empty", "cut", "circle"],
)
def test_a_pdf_that_cannot_be_read_says_why(raw: bytes, reason: str) -> None:
    """Nothing in it raises."""
    found = read_pdf(raw)
    assert not any(found.pages)
    assert found.ended.startswith(reason)


def test_an_endless_pdf_is_ended() -> None:
    """Its second page has millions of operators, which take far longer than it is given."""
    found = read_pdf(
        pdf_of("the first", "the second", operators=b" 0 0 m 9 9 l S" * 3_000_000), within=PdfLimits(seconds=1)
    )
    assert (found.pages in {(), ("the first",)}, found.ended) == (True, "it takes too long")


@pytest.mark.parametrize(
    ("within", "read", "reason"),
    [
        (PdfLimits(pages=3), 3, ""),
        (PdfLimits(pages=2), 2, "it has more than 2 pages"),
        (PdfLimits(characters=11), 3, ""),
        (PdfLimits(characters=10), 2, "it has more than 10 characters"),
        (PdfLimits(characters=5), 1, "it has more than 5 characters"),
    ],
    ids=["pages", "more pages", "characters", "more characters", "many more characters"],
)
def test_a_pdf_is_read_up_to_its_limits(within: PdfLimits, read: int, reason: str) -> None:
    """Of pages and of characters: what is within them is kept."""
    found = read_pdf(pdf_of("one", "two", "three"), within=within)
    assert (found.pages, found.ended) == (("one", "two", "three")[:read], reason)


def test_a_pdf_that_needs_more_memory_is_not_read() -> None:
    """The child has a limit; this process does not notice."""
    found = read_pdf(pdf_of("one") + b"%" * 100_000_000, within=PdfLimits(memory_bytes=100_000_000))
    assert found == pdf.PdfText("", (), "it needs more than 100000000 bytes of memory")


def test_a_pdf_that_is_ended_keeps_the_pages_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here because indexing stops; what the child wrote before counts."""
    child, wrote = tmp_path / "child.py", tmp_path / "wrote"
    child.write_text(
        "import json, pathlib, time\n"
        "print(json.dumps({'page': 'one'}), flush=True)\n"
        f"pathlib.Path({str(wrote)!r}).touch()\n"
        "time.sleep(600)\n"
    )
    monkeypatch.setattr(pdf, "_CHILD", child)
    found = read_pdf(b"", within=PdfLimits(seconds=300), stopped=wrote.exists)
    assert (found.pages, found.ended) == (("one",), "indexing was stopped")


def test_a_child_that_dies_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a signal in the middle of a line, say."""
    child = tmp_path / "child.py"
    child.write_text('print(\'{"page": "one"}\\n{"pa\', end=\'\', flush=True)\nimport os\nos.kill(os.getpid(), 11)\n')
    monkeypatch.setattr(pdf, "_CHILD", child)
    found = read_pdf(b"")
    assert (found.pages, found.ended) == (("one",), "its reader ended with -11")


@pytest.mark.asyncio
async def test_every_kind_of_file_is_found_and_every_bad_one_is_named(tmp_path: Path) -> None:
    """One folder of all of them: the good ones answer, each bad one has a note with its path and its reason."""
    folder = write(
        tmp_path / "docs",
        {
            "tagged.md": "---\ntags: [woodworking]\n---\n\nPlanes and chisels.\n",
            "broken.md": "---\ntags: [bro\n---\n\nText after a broken beginning, about saws.\n",
            "plain.txt": "A hammer drives nails.\n",
        },
    )
    files: dict[str, bytes] = {
        "latin.txt": "La scie à métaux coupe le fer.\n".encode("latin-1"),
        "report.pdf": pdf_of("Introduction.", "The lathe turns table legs.", title="Machines"),
        "locked.pdf": encrypted(pdf_of("Nothing to see."), "word"),
        "scan.pdf": pdf_of(""),
        "half.pdf": pdf_of("Rasps are coarse files.", "Broken.", filtered=b"/Nonsense"),
        "nul.txt": b"a\0b",
        "noise.txt": bytes(range(1, 256)) * 4,
    }
    for name, raw in files.items():
        (folder / name).write_bytes(raw)
    with (folder / "huge.txt").open("wb") as file:
        file.truncate(50_000_000)
    db = tmp_path / "index.sqlite"
    report = await index_folder(folder, db, now=NOW)
    told = {note.subject: (note.code, note.detail) for note in report.notes}
    assert {path: code for path, (code, _) in told.items()} == {
        "broken.md": "front_matter",
        "latin.txt": "charset",
        "locked.pdf": "pdf",
        "scan.pdf": "pdf",
        "nul.txt": "binary",
        "noise.txt": "no_charset",
        "huge.txt": "too_large",
    }
    assert told["locked.pdf"][1] == "it is encrypted"
    assert told["scan.pdf"][1] == "it has no text, as scanned pages have none"
    asked = QueryOrchestrator(db)
    for question, place in (
        ("woodworking", "tagged.md#L1-L5"),
        ("saws", "broken.md#L1-L5"),
        ("scie à métaux", "latin.txt#L1-L1"),
        ("what does a lathe turn", "report.pdf#page=2"),
        ("rasps", "half.pdf#page=1"),
        ("hammer", "plain.txt#L1-L1"),
    ):
        found = await asked.query(question)
        assert [chunk_id for chunk_id, _ in found][:1] == [place]
    [passage] = (await asked.query("lathe")).passages
    assert passage.heading == "Machines"


@pytest.mark.asyncio
async def test_a_file_that_is_not_read_again_is_noted_again(tmp_path: Path) -> None:
    """It is as it was, so the notes on it are: when nothing changed, and when only its time did."""
    folder = write(tmp_path / "docs", {"good.txt": "tea"})
    files = {
        "nul.txt": b"a\0b",
        "latin.txt": "La scie à métaux coupe le fer.\n".encode("latin-1"),
        "locked.pdf": encrypted(pdf_of("Nothing to see."), "word"),
    }
    for name, raw in files.items():
        (folder / name).write_bytes(raw)
        os.utime(folder / name, (NOW - DAY, NOW - DAY))
    db = tmp_path / "index.sqlite"
    first = await index_folder(folder, db, now=NOW)
    again = await index_folder(folder, db, now=NOW)
    os.utime(folder / "nul.txt", (NOW - 2 * DAY, NOW - 2 * DAY))
    touched = await index_folder(folder, db, now=NOW)
    assert [again.unchanged, touched.unchanged] == [4, 4]
    assert [note.subject for note in first.notes] == sorted(files)
    assert first.notes == again.notes == touched.notes


@pytest.mark.asyncio
async def test_without_its_extra_pdf_files_are_named_once_and_not_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One note for all of them; what an index has of them stays."""
    folder = write(tmp_path / "docs", {"a.txt": "tea"})
    for name in ("x.pdf", "y.pdf"):
        (folder / name).write_bytes(pdf_of(f"coffee of {name}"))
    db = tmp_path / "index.sqlite"
    await index_folder(folder, db, now=NOW)

    def absent(name: str) -> Any:
        return None

    monkeypatch.setattr("importlib.util.find_spec", absent)
    report = await index_folder(folder, db, now=NOW)
    [note] = report.notes
    assert (note.code, note.subject, report.documents, report.removed) == ("pdf", "x.pdf, and 1 more", 3, 0)
    assert "smart-model-router[pdf]" in note.detail
    assert len(await QueryOrchestrator(db).query("coffee")) == 2


@pytest.mark.asyncio
async def test_a_pdf_for_which_no_process_starts_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine is at fault, not the file."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "x.pdf").write_bytes(pdf_of("coffee"))
    db = tmp_path / "index.sqlite"
    with monkeypatch.context() as patched:
        patched.setattr("sys.executable", str(tmp_path / "none"))
        report = await index_folder(folder, db, now=NOW)
    assert (report.documents, dict(report.counts)) == (0, {"unreadable": 1})
    assert (await index_folder(folder, db, now=NOW)).added == 1
