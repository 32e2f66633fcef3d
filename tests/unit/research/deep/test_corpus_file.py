"""A corpus says what it is in corpus.yaml, strictly; a folder without one is trusted as its user named it."""

from __future__ import annotations

from pathlib import Path

import pytest

from smart_model_router_research.deep.claims import SourceTier
from smart_model_router_research.deep.corpus_file import Corpus, CorpusError, load_corpus, parse_corpus
from smart_model_router_research.deep.days import Grain, written_day
from smart_model_router_research.deep.tiers import SourcePolicy

LEAST = "name: tides\npublisher: The Harbour\ntier: B\n"
FULL = """
name: tides
publisher: The Harbour
tier: A
primary: true
independence: document
licence: CC0-1.0
base_url: https://tides.example/pages/
as_of: 2025
dates:
  "news/2024-*": 2024-06-30
  "news/*": 2023-02
"""


def test_every_key_is_read() -> None:
    """The values stand in the corpus, with dates as days and the grain that they have."""
    corpus = parse_corpus(FULL.encode())

    assert (corpus.name, corpus.publisher, corpus.tier) == ("tides", "The Harbour", SourceTier.A)
    assert (corpus.primary, corpus.alone_suffices, corpus.licence) == (True, True, "CC0-1.0")
    assert corpus.url_of("news/a b#.md") == "https://tides.example/pages/news/a%20b%23.md"
    assert corpus.day_of("news/2024-x.md") == written_day("2024-06-30")
    assert corpus.day_of("news/x.md") == written_day("2023-02")
    assert (corpus.day_of("x.md") or written_day("2000")) == written_day("2025")
    assert [day.grain for _, day in corpus.dates] == [Grain.DAY, Grain.MONTH]


def test_what_is_not_said_is_not_claimed() -> None:
    """A declaration with the needed keys alone is not primary, not enough by itself, and from an unknown day."""
    assert parse_corpus(LEAST.encode()) == Corpus(name="tides", publisher="The Harbour", tier=SourceTier.B)


def test_a_folder_without_a_declaration_is_trusted(tmp_path: Path) -> None:
    """Tier A, the folder's name as publisher, and each document vouches for itself."""
    folder = tmp_path / "my notes"
    folder.mkdir()

    assert load_corpus(folder) == Corpus(name="my notes", publisher="my notes", tier=SourceTier.A, alone_suffices=True)


def test_a_declaration_is_found_in_its_folder(tmp_path: Path) -> None:
    """`corpus.yaml` of the folder is read, and its faults name the file."""
    (tmp_path / "corpus.yaml").write_text(LEAST, encoding="utf-8")
    assert load_corpus(tmp_path).publisher == "The Harbour"

    (tmp_path / "corpus.yaml").write_text("tier: A+", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"corpus\.yaml:1:1 "):
        load_corpus(tmp_path)


@pytest.mark.parametrize(
    ("content", "faults"),
    [
        (LEAST + "nane: x", ["nane: 'x' - the key is unknown; did you mean 'name'?"]),
        ("name: x", ["publisher: missing - a value is needed", "tier: missing - a value is needed"]),
        (LEAST.replace("B", "S"), ["tier: 'S' - one of A, B, C is needed"]),
        (LEAST.replace("B", "[A]"), ["tier: ['A'] - one of"]),
        (LEAST.replace("tides", "7"), ["name: 7 - one line of text is needed"]),
        (LEAST.replace("tides", '"a\\nb"'), ["name: 'a\\nb' - one line of text is needed"]),
        (LEAST + "primary: 'yes'", ["primary: 'yes' - true or false is needed"]),
        (LEAST + "independence: corpus", ["independence: 'corpus' - one of document, publisher is needed"]),
        (LEAST + "independence: document", ["independence: 'document' - `primary: true` is needed beside it"]),
        (LEAST + "base_url: ftp://x.example", ["base_url: 'ftp://x.example' - an address with http"]),
        (LEAST + "base_url: 'http://['", ["base_url: 'http://[' - an address with http"]),
        (LEAST + "as_of: soon", ["as_of: 'soon' - a day, a month or a year"]),
        (LEAST + "as_of: 0000", ["as_of: 0 - a day, a month or a year"]),
        (LEAST + "as_of: 99999", ["as_of: 99999 - a day, a month or a year"]),
        (LEAST + "dates: 2024", ["dates: 2024 - patterns of paths with a date each"]),
        (LEAST + "dates: {'*': 2024-02-30, x: null}", ["dates.*: '2024-02-30' - a day", "dates.x: missing - a day"]),
        (LEAST + "base_url: https://www.blocked.example/x", ["tier: 'B' - tier C is needed: the operator blocks"]),
    ],
)
def test_a_faulty_declaration_is_refused(content: str, faults: list[str]) -> None:
    """Every fault at once: unknown keys, missing ones, other types, and claims that it may not make."""
    with pytest.raises(CorpusError) as error:
        parse_corpus(content.encode(), policy=SourcePolicy(block=("blocked.example",)))

    found = [str(each).partition(" ")[2] for each in (error.value, *error.value.others)]
    assert len(found) == len(faults)
    assert all(each.startswith(fault) for each, fault in zip(found, faults, strict=True))


@pytest.mark.parametrize(
    "content",
    [b"", b"- a", b"7", b"[", b"\xff\xfe\x00", b"a: &x [*x]", b"!!python/object:x {}", b"x" * 300_000, b"name: \0"],
)
def test_what_is_no_declaration_is_refused(content: bytes) -> None:
    """Texts, lists, broken YAML, tags, circles and files of any size are a CorpusError."""
    with pytest.raises(CorpusError):
        parse_corpus(content)


@pytest.mark.parametrize("folder", ["absent", "file", "unreadable", "\0"])
def test_a_folder_that_cannot_be_read_is_refused(folder: str, tmp_path: Path) -> None:
    """A folder that is missing or a file, and a declaration that is a folder, are named."""
    (tmp_path / "file").write_text("x", encoding="utf-8")
    (tmp_path / "unreadable" / "corpus.yaml").mkdir(parents=True)

    with pytest.raises(CorpusError):
        load_corpus(tmp_path / folder)
