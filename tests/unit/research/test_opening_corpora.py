"""Corpora of a run: what can be a source, what was left out of it, and mistakes named with what would be right."""

from __future__ import annotations

import asyncio
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from smart_model_router_research.deep.claims import SourceTier
from smart_model_router_research.deep.corpus_file import CorpusError
from smart_model_router_research.deep.corpus_search import CorpusSearch
from smart_model_router_research.deep.tiers import SourcePolicy
from smart_model_router_research.pipeline import opened_corpora as corpora
from smart_model_router_research.pipeline.opened_corpora import OpenedCorpora, index_of, open_corpora, standing_of
from smart_model_router_scoring.retrieval import IndexBusy, IndexReport, SearchIndex, index_folder

pytestmark = pytest.mark.anyio

NOW = 1_790_000_000.0
AS_OF = datetime.fromtimestamp(NOW, UTC)
TIDES = "# Tides\n\nThe tide in the harbour rises by four metres.\n"


def pages(folder: Path, **texts: str) -> Path:
    """Write texts as Markdown files, and return their folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text)
    return folder


async def opened(cache: Path, *paths: Path, policy: SourcePolicy | None = None) -> OpenedCorpora:
    """Open corpora at a fixed time."""
    return await open_corpora(paths, as_of=AS_OF, cache=cache / "cache", policy=policy, wall=lambda: NOW)


async def found(corpora: OpenedCorpora, text: str) -> list[str]:
    """Return the ids of the documents that all corpora find."""
    return [each.stored.id for search in corpora.searches for each in await search.search(text)]


async def test_a_folder_is_searched_and_its_documents_are_trusted(tmp_path: Path) -> None:
    """The user named it: without corpus.yaml it is tier A, and its name is that of the folder."""
    result = await opened(tmp_path, pages(tmp_path / "docs", tides=TIDES))

    (document,) = await result.searches[0].search("tide in the harbour")
    assert (document.stored.id, document.stored.tier, document.stored.backend) == (
        "docs/tides.md", SourceTier.A, "corpus",
    )  # fmt: skip
    assert result.skipped == ()


async def test_a_single_document_is_a_corpus(tmp_path: Path) -> None:
    """Its neighbours are not read."""
    folder = pages(tmp_path / "docs", tides=TIDES, harbour="# Harbour\n\nThe harbour is old.\n")

    assert await found(await opened(tmp_path, folder / "tides.md"), "harbour") == ["tides.md/tides.md"]


async def test_an_index_is_a_corpus_with_the_declaration_of_its_folder(tmp_path: Path) -> None:
    """As `smr index` made it; the folder may be gone."""
    folder, db = pages(tmp_path / "docs", tides=TIDES), tmp_path / "tides.db"
    (folder / "corpus.yaml").write_text("name: Tides\npublisher: The port\ntier: B\n")
    await index_folder(folder, db, now=NOW)
    declared = await opened(tmp_path, db)
    shutil.rmtree(folder)
    gone = await opened(tmp_path, db)

    publishers = [
        each.corpus.publisher for each in (*declared.searches, *gone.searches) if isinstance(each, CorpusSearch)
    ]
    assert publishers == ["The port", "docs"]
    assert await found(declared, "tide") == ["Tides/tides.md"]


async def test_a_second_run_reads_only_what_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is kept in the user's folder, under the absolute path."""
    folder = pages(tmp_path / "docs", tides=TIDES, harbour="# Harbour\n\nThe harbour is old.\n")
    await opened(tmp_path, folder)
    (folder / "tides.md").write_text(TIDES + "\nAnd falls again.\n")
    reports: list[IndexReport] = []

    async def noted(*args: object, **options: object) -> IndexReport:
        reports.append(await index_folder(*args, **options))  # type: ignore[arg-type]
        return reports[-1]

    monkeypatch.setattr(corpora, "index_folder", noted)
    monkeypatch.chdir(folder)
    await opened(tmp_path, Path())

    assert [(each.changed, each.unchanged) for each in reports] == [(1, 1)]
    assert SearchIndex(index_of(folder, tmp_path / "cache")).facts().documents == 2


async def test_a_corpus_says_how_it_stands(tmp_path: Path) -> None:
    """Before it is read, after it, and where it cannot be; nothing is indexed for that."""
    folder, cache = pages(tmp_path / "docs", tides=TIDES), tmp_path / "cache"
    assert standing_of(folder, cache) == "folder, indexed by its first run"
    assert not cache.exists()
    await opened(tmp_path, folder)
    assert standing_of(folder, cache) == "folder, 1 document at its latest run"
    assert standing_of(index_of(folder, cache), cache) == f"index of 1 document of {folder}"
    with pytest.raises(CorpusError, match="not there"):
        standing_of(tmp_path / "gone", cache)


async def test_what_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    """The rest is a corpus; kinds that are not read are counted by suffix, hidden files are not named."""
    folder = pages(tmp_path / "docs", tides=TIDES)
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    (folder / "table.xlsx").write_bytes(b"PK")
    (folder / "photo.png").write_bytes(b"x")
    (folder / ".hidden.bin").write_bytes(b"x")
    skipped = (await opened(tmp_path, folder)).skipped

    assert [line.partition(": ")[0] for line in skipped] == [str(folder / "broken.pdf"), str(folder)]
    assert skipped[1] == f"{folder}: 2 files of other kinds are not read: .png (1), .xlsx (1)"


async def test_many_files_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    """A line each for the first of them."""
    folder = pages(tmp_path / "docs", tides=TIDES)
    for number in range(25):
        (folder / f"{number:02}.txt").write_bytes(b"\0" * 100)
    skipped = (await opened(tmp_path, folder)).skipped

    assert len(skipped) == 21
    assert skipped[-1] == f"{folder}: 5 more files were left out"


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda path: None, ("not there", "an existing folder")),
        (lambda path: path.mkdir(), ("nothing that can be read", "it is empty")),
        (lambda path: pages(path, blank="\n"), ("nothing that can be read",)),
        (lambda path: (pages(path) / "a.docx").write_bytes(b"PK"), ("nothing that can be read", ".docx (1)")),
        (lambda path: path.write_bytes(b"PK"), ("no suffix", "a file of another kind", ".pdf")),
        (lambda path: path.write_bytes(b"SQLite format 3\0" + b"\0" * 100), ("an index that this version",)),
    ],
    ids=["missing", "empty", "blank", "other kinds", "other file", "no index"],
)
async def test_a_path_that_is_no_corpus_is_refused(tmp_path: Path, make: object, told: tuple[str, ...]) -> None:
    """The error has the path, what is wrong with it, and what would be right."""
    path = tmp_path / "it"
    make(path)  # type: ignore[operator]
    with pytest.raises(CorpusError) as caught:
        await opened(tmp_path, path)
    assert caught.value.key == str(path)
    assert all(each in str(caught.value) for each in told)


async def test_faults_of_a_declaration_have_line_and_column(tmp_path: Path) -> None:
    """All of them, and those of the other paths beside."""
    folder = pages(tmp_path / "docs", tides=TIDES)
    (folder / "corpus.yaml").write_text("name: Tides\ntier: D\n")
    with pytest.raises(CorpusError) as caught:
        await opened(tmp_path, folder, tmp_path / "gone")
    keys = [fault.key for fault in (caught.value, *caught.value.others)]

    assert keys == [
        f"{folder}/corpus.yaml:1:1 publisher", f"{folder}/corpus.yaml:2:1 tier", str(tmp_path / "gone"),
    ]  # fmt: skip


async def test_the_operator_s_word_counts_for_declarations(tmp_path: Path) -> None:
    """A blocked domain cannot claim tier A."""
    folder = pages(tmp_path / "docs", tides=TIDES)
    (folder / "corpus.yaml").write_text("name: T\npublisher: T\ntier: A\nbase_url: https://tides.example/\n")
    with pytest.raises(CorpusError, match=r"tier C is needed"):
        await opened(tmp_path, folder, policy=SourcePolicy(block=("tides.example",)))


async def test_folders_of_one_name_are_kept_apart(tmp_path: Path) -> None:
    """Documents are known by the corpus and their path: two of one name would be one."""
    one, other = pages(tmp_path / "a" / "docs", tides=TIDES), pages(tmp_path / "b" / "docs", tides=TIDES)

    ids = await found(await opened(tmp_path, one, other), "tide")
    assert ids == [f"{one}/tides.md", f"{other}/tides.md"]


async def test_declared_corpora_of_one_name_are_refused(tmp_path: Path) -> None:
    """Their declarations say which."""
    folders = [pages(tmp_path / name, tides=TIDES) for name in ("a", "b")]
    for folder in folders:
        (folder / "corpus.yaml").write_text("name: Tides\npublisher: T\ntier: B\n")
    with pytest.raises(CorpusError) as caught:
        await opened(tmp_path, *folders)
    assert [fault.key for fault in (caught.value, *caught.value.others)] == [f"{each}/corpus.yaml" for each in folders]


async def test_a_path_given_twice_is_one_corpus(tmp_path: Path) -> None:
    """It is no second source."""
    folder = pages(tmp_path / "docs", tides=TIDES)

    assert len((await opened(tmp_path, folder, folder)).searches) == 1


async def test_two_at_once_index_one_folder(tmp_path: Path) -> None:
    """One waits for the other, and both can search."""
    folder = pages(tmp_path / "docs", **{f"page{number}": TIDES for number in range(40)})

    results = await asyncio.gather(*(opened(tmp_path, folder) for _ in range(4)))
    assert [len(each.searches) for each in results] == [1, 1, 1, 1]
    assert await found(results[0], "tide") == await found(results[3], "tide")


async def test_a_folder_that_another_process_indexes_for_ever_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After so many waits."""
    waits: list[object] = []

    async def busy(*args: object, **options: object) -> IndexReport:
        waits.append(args)
        raise IndexBusy(16, "busy")

    monkeypatch.setattr(corpora, "index_folder", busy)
    with pytest.raises(CorpusError, match="another process is indexing it"):
        await opened(tmp_path, pages(tmp_path / "docs", tides=TIDES))
    assert len(waits) == 30


async def test_an_index_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """It names the folder of indices."""
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(CorpusError, match="SMART_ROUTER_DATA_DIR"):
        await opened(tmp_path, pages(tmp_path / "docs", tides=TIDES))
