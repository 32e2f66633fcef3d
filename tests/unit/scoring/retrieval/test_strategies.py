"""Keyword, vector and graph search, each by itself on a small index."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smart_model_router_scoring.retrieval import (
    CallableEmbedder,
    Found,
    HashedEmbedder,
    NotAvailable,
    QueryOrchestrator,
    SearchIndex,
    strategies,
)
from smart_model_router_scoring.retrieval.embedders import MOST_TERMS, any_of
from smart_model_router_scoring.retrieval.stems import DEFAULT_TOKENIZER
from smart_model_router_scoring.retrieval.strategies import KeywordSearch, neighbours
from smart_model_router_scoring.retrieval.vectors import VectorSearch
from tests.unit.scoring.retrieval.folders import Broken, Marks, indexed

pytestmark = pytest.mark.asyncio


def _wide(text: str) -> str:
    """The text in the wide forms that stand among Chinese characters."""
    return "".join(chr(ord(letter) + 0xFEE0) for letter in text)


async def by_words(db: Path, text: str, limit: int = 10) -> Sequence[Found]:
    """What keyword search finds."""
    snapshot = SearchIndex(db).snapshot("keyword")
    try:
        return await KeywordSearch().search(text, limit, snapshot)
    finally:
        snapshot.close()


async def by_vector(db: Path, search: VectorSearch, text: str) -> Sequence[Found]:
    """What vector search finds."""
    snapshot = SearchIndex(db).snapshot("vector")
    try:
        return await search.search(text, 10, snapshot)
    finally:
        snapshot.close()


def ids(found: Sequence[Found]) -> list[str]:
    """The files found, in order."""
    return [one.chunk_id.partition("#")[0] for one in found]


@pytest.mark.parametrize(
    "text", ['"', "AND", "NEAR(a b)", "a*", "it's", "fork-join", "col:umn", "(", "^a", "+", "{x}", "a\0b"]
)
async def test_nothing_a_person_types_is_syntax(tmp_path: Path, text: str) -> None:
    """Every operator and quote of FTS5 is a word, or nothing: no error, and the words are found."""
    db, _ = await indexed(tmp_path, {"a.txt": "alpha", "b.txt": "and near a b it s fork join col umn x"})
    assert ids(await by_words(db, f"alpha {text}"))[0] in {"a.txt", "b.txt"}
    assert "a.txt" in ids(await by_words(db, f"{text} alpha {text}"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=60))
async def test_no_text_is_too_odd_to_ask(tmp_path: Path, text: str) -> None:
    """Any Unicode is a question; a word of the documents beside it is found."""
    db = tmp_path / "index.sqlite"
    if not db.exists():
        await indexed(tmp_path, {"a.txt": "zyxwv"})
    assert ids(await by_words(db, f"{text} zyxwv")) == ["a.txt"]


@pytest.mark.parametrize("asked", ["ROUTED", "routing", _wide("ROUTE"), "straße route"])
async def test_case_width_and_inflection_make_no_difference(tmp_path: Path, asked: str) -> None:
    """NFKC, case folding and Porter stems on both sides."""
    db, _ = await indexed(tmp_path, {"a.txt": f"It {_wide('routes')} in every STRASSE.", "b.txt": "Something else."})
    assert ids(await by_words(db, asked)) == ["a.txt"]


async def test_function_words_decide_nothing_unless_there_are_only_such(tmp_path: Path) -> None:
    """`how do I` is not what a question is about; `to be or not to be` is searched all the same."""
    db, _ = await indexed(tmp_path, {"a.txt": "how do I do it", "b.txt": "a breaker", "c.txt": "it is not to be"})
    assert ids(await by_words(db, "how do I open a breaker")) == ["b.txt"]
    assert ids(await by_words(db, "to be or not to be"))[0] == "c.txt"
    assert len(DEFAULT_TOKENIZER.question(" ".join(f"w{n}" for n in range(100)))) == MOST_TERMS


async def test_relevance_is_the_share_of_the_questions_information(tmp_path: Path) -> None:
    """All its words: 1. An unknown word counts, and most; so half of the words are less than half."""
    db, _ = await indexed(tmp_path, {f"{n}.txt": f"filler{n}" for n in range(6)} | {"a.txt": "red green"})
    [whole] = await by_words(db, "red green")
    [half] = await by_words(db, "red purple")
    assert whole.relevance == 1.0
    assert half.relevance is not None
    assert 0.3 < half.relevance < 0.5


async def test_equals_are_in_the_order_of_their_ids_however_they_were_indexed(tmp_path: Path) -> None:
    """Documents that say the same are told apart by id, also where the list is cut."""
    db, _ = await indexed(tmp_path, {f"{name}.txt": "the same words" for name in "dbac"})
    assert ids(await by_words(db, "same words", limit=2)) == ["a.txt", "b.txt"]


async def test_common_words_score_without_making_candidates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With rare words enough, commoner ones change no order: scores of candidates are BM25's, all of them doubled."""
    documents = {f"{n:02}.txt": f"{'rare ' * (n % 5)}{'common ' * (n % 6)}word{n} filler" for n in range(30)}
    documents |= {f"x{n}.txt": f"something else entirely{n}" for n in range(60)}
    db, _ = await indexed(tmp_path, documents)
    question = "rare common"
    with closing(sqlite3.connect(db)) as sql:
        plain = [
            name
            for (name,) in sql.execute(
                "SELECT chunk_id FROM words JOIN chunks ON chunks.id = words.rowid WHERE words MATCH ?"
                " ORDER BY round(bm25(words, 2.0, 1.0), 9), chunk_id",
                (any_of(DEFAULT_TOKENIZER.question(question)),),
            )
        ]
    rare = [name for name in plain if int(name.partition(".")[0]) % 5]
    assert len(rare) < len(plain)
    monkeypatch.setattr(strategies, "ROWS_ENOUGH", 1)
    assert [one.chunk_id for one in await by_words(db, question, limit=100)] == rare


async def test_a_word_in_more_than_half_of_the_chunks_is_found_when_it_is_all_there_is(tmp_path: Path) -> None:
    """In a small folder nearly every word is common."""
    db, _ = await indexed(tmp_path, {"a.txt": "breaker one", "b.txt": "breaker two", "c.txt": "three"})
    assert ids(await by_words(db, "breaker")) == ["a.txt", "b.txt"]
    assert ids(await by_words(db, "breaker two"))[0] == "b.txt"


async def test_of_a_word_that_is_everywhere_the_chunks_that_were_indexed_first_are_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With room for two the better one that comes third is not looked at; the two are in the order of their scores."""
    documents = {
        "a.txt": "breaker and many other words",
        "b.txt": "breaker",
        "c.txt": "breaker breaker",
        "d.txt": "tea",
    }
    db, _ = await indexed(tmp_path, documents)
    assert ids(await by_words(db, "breaker")) == ["c.txt", "b.txt", "a.txt"]
    monkeypatch.setattr(strategies, "MOST_ROWS", 2)
    assert ids(await by_words(db, "breaker")) == ["b.txt", "a.txt"]


async def test_vectors_find_what_is_near_and_nothing_else(tmp_path: Path) -> None:
    """By cosine, highest first; a chunk with nothing in common is not found; the relevance is the cosine."""
    marks = Marks("tea", "pot", "cup")
    db, _ = await indexed(tmp_path, {"a.txt": "tea pot cup", "b.txt": "tea", "c.txt": "water"}, marks)
    found = await by_vector(db, VectorSearch(marks), "tea")
    assert ids(found) == ["b.txt", "a.txt"]
    assert [one.relevance for one in found] == [1.0, pytest.approx(3**-0.5, abs=1e-3)]


async def test_a_new_generation_is_seen_by_a_search_that_holds_the_old_vectors(tmp_path: Path) -> None:
    """The matrix in memory is that of the snapshot, not of the first question."""
    marks = Marks("tea")
    db, _ = await indexed(tmp_path, {"a.txt": "tea"}, marks)
    search = VectorSearch(marks)
    assert ids(await by_vector(db, search, "tea")) == ["a.txt"]
    await indexed(tmp_path, {"b.txt": "tea"}, marks)
    assert ids(await by_vector(db, search, "tea")) == ["a.txt", "b.txt"]


@pytest.mark.parametrize(
    ("embedder", "error"),
    [(Marks("tea", name="other"), "vectors of marks"), (Marks("tea", "pot"), "2 dimensions"), (Broken(), "away")],
)
async def test_vectors_of_another_space_are_never_compared(
    tmp_path: Path, embedder: Marks | Broken, error: str
) -> None:
    """Another name, another length, no answer: the strategy says why it cannot take part."""
    db, _ = await indexed(tmp_path, {"a.txt": "tea"}, Marks("tea"))
    with pytest.raises((NotAvailable, OSError), match=error):
        await by_vector(db, VectorSearch(embedder), "tea")


async def test_an_embedder_may_be_a_function(tmp_path: Path) -> None:
    """What a router's embeddings become."""

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[float(len(text))] for text in texts]

    embedder = CallableEmbedder("lengths", embed)
    db, _ = await indexed(tmp_path, {"a.txt": "tea"}, embedder)
    assert ids(await by_vector(db, VectorSearch(embedder), "x")) == ["a.txt"]


async def test_the_hashed_embedder_brings_related_words_together(tmp_path: Path) -> None:
    """Inflections and misspellings are nearer than strangers; the same text gives the same vector of length 1."""
    first, again, near, misspelt, far = await HashedEmbedder().embed(
        ["routing", "routing", "router", "ruoting", "soup"]
    )
    cosine = [sum(x * y for x, y in zip(first, other, strict=True)) for other in (again, near, misspelt, far)]
    assert first == again
    assert cosine[0] == pytest.approx(1.0)
    assert min(cosine[1], cosine[2]) > 0.1 > cosine[3]


async def test_a_text_without_words_has_no_direction(tmp_path: Path) -> None:
    """Zeros, which are near to nothing: no chunk is found for it and none by it."""
    assert (await HashedEmbedder(16).embed(["?!"])) == [[0.0] * 16]
    db, _ = await indexed(tmp_path, {"a.txt": "tea", "b.txt": "?!"}, HashedEmbedder())
    search = VectorSearch(HashedEmbedder())
    assert (await by_vector(db, search, "..."), ids(await by_vector(db, search, "tea"))) == ([], ["a.txt"])


LINKED = {
    "a.md": "# A\n\n[c](c.md#two) [b](b.md) [out](../x.md) [gone](gone.md) [me](a.md) [c again](c.md)\n",
    "b.md": "# B\n\nb\n",
    "c.md": "# C\n\n## One\n\none\n\n## Two\n\ntwo\n",
    "d.md": "# D\n\n[a](a.md) [a](a.md#a)\n",
    "sub/e.md": "[a](/a.md)\n",
}


async def neighbours_of(db: Path, seeds: Sequence[str], limit: int = 10) -> list[str]:
    """Their chunk ids."""
    snapshot = SearchIndex(db).snapshot("facts")
    try:
        return [one.chunk_id for one in await snapshot.lane("facts").run(lambda sql: neighbours(sql, seeds, limit))]
    finally:
        snapshot.close()


async def test_neighbours_are_one_link_away_in_a_fixed_order(tmp_path: Path) -> None:
    """What a document links to, by position (the section it names), then what links to it, by path; each once."""
    db, _ = await indexed(tmp_path, LINKED)
    expected = ["c.md#L7-L9", "b.md#L1-L3", "d.md#L1-L3", "sub/e.md#L1-L1"]
    assert await neighbours_of(db, ["a.md#L1-L3"]) == expected
    assert await neighbours_of(db, ["a.md#L1-L3"], limit=2) == expected[:2]


async def test_a_neighbour_that_was_found_itself_is_shown_by_what_was_found(tmp_path: Path) -> None:
    """Not by the section that a link happens to name: agreement is about one chunk."""
    db, _ = await indexed(tmp_path, LINKED)
    assert (await neighbours_of(db, ["a.md#L1-L3", "c.md#L1-L5"]))[0] == "c.md#L1-L5"


async def test_work_in_a_lane_ends_when_it_is_cancelled(tmp_path: Path) -> None:
    """A query that would never end is interrupted inside SQLite, and its connection is given back."""
    db, _ = await indexed(tmp_path)
    snapshot = SearchIndex(db).snapshot("slow")
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await snapshot.lane("slow").run(lambda sql: sql.execute(endless).fetchone())
    assert (await snapshot.lane("slow").run(lambda sql: sql.execute("SELECT 1").fetchone())) == (1,)
    snapshot.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        await snapshot.lane("slow").run(lambda sql: sql.execute("SELECT 1"))


async def test_a_snapshot_does_not_see_what_is_written_later(tmp_path: Path) -> None:
    """All its lanes are of one generation, whatever a writer does meanwhile."""
    db, _ = await indexed(tmp_path)
    snapshot = SearchIndex(db).snapshot("one", "two")
    await indexed(tmp_path, {"new.md": "# New\n"})
    seen = [await snapshot.lane(name).run(_documents) for name in ("one", "two")]
    snapshot.close()
    assert (seen, SearchIndex(db).facts().documents) == ([4, 4], 5)
    assert len(await QueryOrchestrator(db).query("new")) == 1


def _documents(sql: sqlite3.Connection) -> int:
    count: int = sql.execute("SELECT count(*) FROM documents").fetchone()[0]
    return count
