"""The parts of a verdict, each on an index made for it: its passages, weights, seeds of links, vectors."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from smart_model_router_scoring.evidence import BEST, MOST_MIDDLE, WINDOW
from smart_model_router_scoring.fusion import EvidenceGate, FusionConfig
from smart_model_router_scoring.retrieval import (
    Found,
    HashedEmbedder,
    HeavyHashedVectors,
    QueryOrchestrator,
    RetrievalConfig,
    Snapshot,
    index_folder,
)
from smart_model_router_scoring.retrieval.null import ask_null
from smart_model_router_scoring.retrieval.stems import DEFAULT_TOKENIZER
from smart_model_router_scoring.retrieval.vectors import VectorMatrix
from tests.unit.scoring.retrieval.folders import NOW, Marks, indexed, write

KEEP_ALL = RetrievalConfig(fusion=FusionConfig(min_confidence=0.0, weights={"graph": 0.0}))


@pytest.mark.asyncio
async def test_a_passage_beyond_the_best_has_no_part_in_the_verdict(tmp_path: Path) -> None:
    """Also where more are asked for, and it alone has the words together: the null was asked of as many."""
    apart = f"amber {'x ' * WINDOW} breeze"
    pages = {f"{n:02}.txt": apart for n in range(BEST)} | {"z.txt": f"amber breeze {'y ' * 900}", "other.txt": "cedar"}
    db, _ = await indexed(tmp_path, pages)
    asked = QueryOrchestrator(db, config=KEEP_ALL)
    few, many = [await asked.query("amber breeze", top_k=k, top_n=5) for k in (BEST, 100)]
    assert (few.considered, many.considered) == (BEST, BEST + 1)
    assert few.answers == many.answers


@pytest.mark.asyncio
async def test_vectors_without_a_weight_have_a_share_of_that_of_keywords(tmp_path: Path) -> None:
    """Four times the weight of keywords is four times that of vectors: every score and order stays."""
    pages = {f"{n}.txt": f"amber {'breeze ' * n}" for n in range(1, 5)}
    db, _ = await indexed(tmp_path, pages, HashedEmbedder())
    told = []
    for weight in (1.0, 4.0):
        weights = {"keyword": weight, "graph": 0.0}
        config = replace(KEEP_ALL, fusion=replace(KEEP_ALL.fusion, weights=weights))
        found = await QueryOrchestrator(db, embedder=HashedEmbedder(), config=config).query("amber breeze")
        told.append(([one for one, _ in found], [score for _, score in found]))
    assert told[0][0] == told[1][0]
    assert told[0][1] == pytest.approx(told[1][1], abs=1e-12)


@pytest.mark.parametrize(("keyword", "vector", "warned"), [(4.0, 0.9, 0), (4.0, 1.1, 1), (0.5, 0.2, 1)])
def test_hashed_vectors_are_heavy_beside_the_weight_of_keywords(
    tmp_path: Path, keyword: float, vector: float, warned: int
) -> None:
    """More than a quarter of it is warned of, whatever it is."""
    config = RetrievalConfig(fusion=FusionConfig(weights={"keyword": keyword, "vector": vector}))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", HeavyHashedVectors)
        QueryOrchestrator(tmp_path / "i.db", embedder=HashedEmbedder(), config=config)
    assert len(told) == warned


@pytest.mark.asyncio
async def test_the_gate_of_founding_scales_changes_nothing_where_evidence_scores(tmp_path: Path) -> None:
    """It would drop the passages that have one of the two words."""
    texts = ("amber", "breeze", "amber breeze", "cedar", "cedar", "cedar")
    db, _ = await indexed(tmp_path, {f"{n}.txt": text for n, text in enumerate(texts)})
    gated = replace(KEEP_ALL, fusion=replace(KEEP_ALL.fusion, evidence_gate=EvidenceGate(threshold=1.0, action="drop")))
    plain, other = [
        await QueryOrchestrator(db, config=one).query("amber breeze", explain=True) for one in (KEEP_ALL, gated)
    ]
    assert (len(plain), list(plain)) == (3, list(other))
    assert [one.order.value for one in plain.explained] == [one.order.value for one in other.explained]


class Scores:
    """A strategy that finds documents with scores."""

    def __init__(self, name: str, **scores: float) -> None:
        self.name = name
        self.scores = scores

    async def search(self, text: str, limit: int, snapshot: Snapshot) -> Sequence[Found]:
        """Always the same."""
        return [Found(f"{name}.md#L1-L1", score=score) for name, score in self.scores.items()]


@pytest.mark.asyncio
async def test_links_start_from_what_the_configured_fusion_finds_best(tmp_path: Path) -> None:
    """By ranks `a` is the best one, by scores `b`: its neighbour comes first."""
    pages = {name: f"[next]({name[0]}2.md)\n" for name in ("a.md", "b.md")} | {"a2.md": "one\n", "b2.md": "two\n"}
    db, _ = await indexed(tmp_path, pages)

    # Ranks: a 1 + 2, b 2 + 1, and `a` has the smaller id. Scores: b is all but equal in one list, far ahead in one.
    strategies = [Scores("one", a=1.0, b=0.99, c=0.0), Scores("two", b=1.0, a=0.1, c=0.0)]
    first: dict[str, list[str]] = {}
    for fusion in ("rrf", "relative"):
        settings = FusionConfig(fusion=fusion, min_confidence=0.0, weights={"graph": 0.05})
        config = RetrievalConfig(fusion=settings, evidence=None)
        found = await QueryOrchestrator(db, strategies=strategies, config=config).query("x", explain=True)
        ranks = {one.passage.path: one.ranks["graph"] for one in found.explained if "graph" in one.ranks}
        first[fusion] = sorted(ranks, key=ranks.__getitem__)[:1]
    assert first == {"rrf": ["a2.md"], "relative": ["b2.md"]}


@pytest.mark.asyncio
async def test_the_null_with_cosines_sees_passages_that_words_do_not_find(tmp_path: Path) -> None:
    """Those of vectors count beside the BEST of keywords, as they do for a question."""
    pages = {f"{n:02}.txt": f"amber leaf {n}" for n in range(BEST + 2)} | {"z.txt": "zebra"}
    db, _ = await indexed(tmp_path, pages, Marks("zebra"))
    asked = {"one": ["the amber"], "two": ["the leaf"]}
    vectors = {"the amber": [1.0], "the leaf": [1.0], "amber": [0.0], "leaf": [0.0]}
    with closing(sqlite3.connect(db)) as sql:
        by_words, with_cosines = ask_null(sql, DEFAULT_TOKENIZER, len(pages), vectors, asked)
    assert with_cosines is not None
    assert by_words.spreads["cosine"][0] == 0.0
    assert with_cosines.spreads["cosine"][0] == MOST_MIDDLE["cosine"]
    assert with_cosines.spreads["cosine_telling"][0] == 0.0
    assert with_cosines.spreads["breadth"] == by_words.spreads["breadth"]
    assert by_words.spreads["breadth"][0] == pytest.approx(1.0)


def matrix(*cosines: float) -> VectorMatrix:
    """Vectors with these cosines to (1, 0)."""
    rows = [[one, np.sqrt(max(1.0 - one * one, 0.0))] for one in cosines]
    return VectorMatrix(tuple(f"{n:02}" for n in range(len(rows))), np.array(rows, dtype=np.float32))


@pytest.mark.parametrize(
    ("cosines", "limit", "found"),
    [
        ([0.2, 0.9, 0.5, 0.5, 0.5], 1, ["01"]),
        ([0.2, 0.9, 0.5, 0.5, 0.5], 2, ["01", "02"]),
        ([0.2, 0.9, 0.5, 0.5, 0.5], 4, ["01", "02", "03", "04"]),
        ([0.2, 0.9, 0.0, -0.5, 0.5], 5, ["01", "04", "00"]),
        ([0.5, 0.5], 2, ["00", "01"]),
    ],
)
def test_the_nearest_are_as_many_as_asked_for_and_of_equals_the_first_ids(
    cosines: list[float], limit: int, found: list[str]
) -> None:
    """Never one of no or of negative cosine."""
    assert [one.chunk_id for one in matrix(*cosines).nearest([[2.0, 0.0]], limit)] == found


def test_a_cosine_is_never_above_1() -> None:
    """Halves of a float in the index round a vector's length up."""
    long = VectorMatrix(("a",), np.array([[1.001, 0.0]], dtype=np.float32))
    found = long.nearest([[1.0, 0.0]], 1)
    assert [one.relevance for one in found] == [1.0]
    assert found.cosines("a") == (1.0, 1.0)


@pytest.mark.asyncio
async def test_vectors_are_loaded_once_for_each_state_of_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second question loads nothing; a document that came since is found."""
    marks, loaded = Marks("amber", "cedar"), []
    db, _ = await indexed(tmp_path, {"a.txt": "amber"}, marks)
    load = VectorMatrix.load

    def counted(sql: sqlite3.Connection) -> VectorMatrix:
        loaded.append(sql)
        return load(sql)

    monkeypatch.setattr(VectorMatrix, "load", counted)
    asked = QueryOrchestrator(db, embedder=marks, config=KEEP_ALL)
    for _ in range(2):
        await asked.query("amber")
    assert len(loaded) == 1
    write(tmp_path / "docs", {"b.txt": "cedars"})
    await index_folder(tmp_path / "docs", db, now=NOW, embedder=marks)
    loaded.clear()
    found = await asked.query("cedar", explain=True)
    assert found.explained[0].ranks["vector"] == 1
    assert (found[0][0], len(loaded)) == ("b.txt#L1-L1", 1)
