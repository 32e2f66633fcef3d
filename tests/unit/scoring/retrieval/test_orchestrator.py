"""A question to an index: what comes back, in which order, and what happens when something is missing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from smart_model_router_scoring.fusion import FusionConfig
from smart_model_router_scoring.options import ConfigError
from smart_model_router_scoring.retrieval import (
    NOTHING_FOUND,
    Found,
    HashedEmbedder,
    IndexNotReady,
    Passage,
    QueryOrchestrator,
    QueryResults,
    RetrievalConfig,
    SearchIndex,
    Snapshot,
)
from smart_model_router_scoring.retrieval.answering import answer
from smart_model_router_scoring.retrieval.strategies import KeywordSearch
from smart_model_router_scoring.retrieval.vectors import VectorSearch
from tests.unit.scoring.retrieval.folders import DAY, DOCUMENTS, NOW, Broken, Marks, indexed, write

pytestmark = pytest.mark.asyncio
EVERYTHING = RetrievalConfig(fusion=FusionConfig(min_confidence=0.0, weights={"graph": 0.25}))


class Says:
    """A strategy that finds what it is told, at its own pace."""

    def __init__(self, name: str, *found: Found, turns: int = 0) -> None:
        self.name = name
        self.found = found
        self.turns = turns

    async def search(self, text: str, limit: int, snapshot: Snapshot) -> Sequence[Found]:
        """After so many turns of the loop."""
        for _ in range(self.turns):
            await asyncio.sleep(0)
        return self.found[:limit]


class Hangs(Says):
    """A strategy that never answers."""

    async def search(self, text: str, limit: int, snapshot: Snapshot) -> Sequence[Found]:
        """Never."""
        await asyncio.Event().wait()
        raise AssertionError


class Fails(Says):
    """A strategy that raises."""

    async def search(self, text: str, limit: int, snapshot: Snapshot) -> Sequence[Found]:
        """Always."""
        raise OSError("disk on fire")


async def test_a_query_that_is_cancelled_asks_no_strategy_any_more(tmp_path: Path) -> None:
    """One that had not begun is not called: nothing is left that was never awaited."""
    db, _ = await indexed(tmp_path)
    asked: list[str] = []

    class Cancels(Says):
        async def search(self, text: str, limit: int, snapshot: Snapshot) -> Sequence[Found]:
            asked.append(self.name)
            query.cancel()
            return await super().search(text, limit, snapshot)

    query = asyncio.ensure_future(QueryOrchestrator(db, strategies=[Cancels("a"), Cancels("b")]).query("x"))
    with pytest.raises(asyncio.CancelledError):
        await query
    assert asked == ["a"]


async def test_the_best_chunk_comes_first_with_a_score_that_means_something(tmp_path: Path) -> None:
    """A list of (chunk id, score), best first, each 0..1, with the passage that is meant."""
    db, _ = await indexed(tmp_path, embedder=HashedEmbedder())
    found = await QueryOrchestrator(db, embedder=HashedEmbedder()).query("how long may a queued request wait")
    assert found[0][0] == "how/waiting.md#L5-L7"
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    assert all(0.0 < score < 1.0 for _, score in found)
    assert found.answers is not None
    assert found[0][1] > 0.5 < found.answers
    assert found.passages[0].text.endswith("Until the deadline of the request.")
    assert (found.passages[0].heading, found.meaning) == ("Waiting > How long", "fitted confidence")


async def test_every_score_explains_itself(tmp_path: Path) -> None:
    """With `explain` each result has its ranks, relevances and a computation that gives the score again."""
    db, _ = await indexed(tmp_path, embedder=HashedEmbedder())
    config = replace(EVERYTHING, recency=True)
    asked = QueryOrchestrator(db, embedder=HashedEmbedder(), config=config, now=lambda: NOW)
    found = await asked.query("circuit breaker failures", explain=True)
    assert [one.passage.chunk_id for one in found.explained] == [chunk_id for chunk_id, _ in found]
    for one, (_, score) in zip(found.explained, found, strict=True):
        assert one.term.recompose() == pytest.approx(score, abs=1e-12)
    first = found.explained[0]
    assert (first.ranks["keyword"], first.relevance["keyword"]) == (1, 1.0)
    assert first.age_days == pytest.approx(100)
    assert found.explained[-1].ranks.keys() != first.ranks.keys()
    assert (await asked.query("circuit breaker failures")).explained == ()


async def test_hashed_vectors_without_a_weight_add_passages_after_those_of_keywords(tmp_path: Path) -> None:
    """The first ones are as by keywords alone, then comes what letters bring; a written weight orders anew."""
    documents = {f"{n:02}.txt": f"breaker {'cup ' * n}" for n in range(1, 13)} | {"far.txt": "breakfast"}
    db, _ = await indexed(tmp_path, documents, HashedEmbedder())

    async def found(embedder: HashedEmbedder | None, **weights: float) -> list[str]:
        config = replace(EVERYTHING, fusion=replace(EVERYTHING.fusion, weights=weights))
        asked = QueryOrchestrator(db, embedder=embedder, config=config)
        return [chunk_id for chunk_id, _ in await asked.query("breaker cup", top_k=20, top_n=20)]

    words = await found(None)
    assert await found(HashedEmbedder()) == [*words, "far.txt#L1-L1"]
    assert await found(HashedEmbedder(), vector=0.25) != [*words, "far.txt#L1-L1"]


async def test_fewer_results_are_the_first_of_more(tmp_path: Path) -> None:
    """The prefix property, over every number of results up to `top_k`, also where `top_k` hides some of the chunks."""
    db, _ = await indexed(tmp_path, {f"{n}.txt": f"tea {'cup ' * n}" for n in range(20)}, HashedEmbedder())
    asked = QueryOrchestrator(db, embedder=HashedEmbedder(), config=EVERYTHING)
    whole = await asked.query("tea cup", top_k=12, top_n=12)
    assert len(whole) == 12
    assert all([await asked.query("tea cup", top_k=12, top_n=n) == whole[:n] for n in range(1, 12)])


async def test_each_strategy_is_asked_for_the_greater_of_top_k_and_top_n(tmp_path: Path) -> None:
    """So a list never ends because of its strategy before `top_n`, and `top_k` is what it says."""
    db, _ = await indexed(tmp_path)
    limits: list[int] = []

    class Spy:
        name = "spy"

        async def search(self, text: str, limit: int, snapshot: Snapshot) -> Sequence[Found]:
            del text, snapshot
            limits.append(limit)
            return []

    asked = QueryOrchestrator(db, strategies=[Spy()])
    await asked.query("tea", top_n=5)
    await asked.query("tea", top_n=20)
    await asked.query("tea", top_k=30, top_n=20)
    assert limits == [10, 20, 30]


async def test_asking_for_more_results_asks_strategies_for_more(tmp_path: Path) -> None:
    """`top_k` is at least `top_n`."""
    db, _ = await indexed(tmp_path, {f"{n:02}.txt": "tea" for n in range(30)})
    assert len(await QueryOrchestrator(db, config=EVERYTHING).query("tea", top_k=1, top_n=20)) == 20


async def test_what_is_new_counts_more(tmp_path: Path) -> None:
    """Modification times come from the index: of two equals, the one of this week is first."""
    write(tmp_path / "docs", {"a.txt": "tea"}, modified=NOW - 60 * DAY)
    write(tmp_path / "docs", {"b.txt": "tea"}, modified=NOW - 2 * DAY)
    db, _ = await indexed(tmp_path, {})
    asked = QueryOrchestrator(db, config=replace(EVERYTHING, recency=True), now=lambda: NOW)
    found = await asked.query("tea", explain=True)
    assert [chunk_id for chunk_id, _ in found] == ["b.txt#L1-L1", "a.txt#L1-L1"]
    recency = [one.order.find("recency") for one in found.explained]
    assert [term and term.value for term in recency] == [1.2, 1.0]


async def test_the_order_in_which_strategies_answer_changes_nothing(tmp_path: Path) -> None:
    """The same lists give the same bits, whoever was first."""
    db, _ = await indexed(tmp_path)
    names = ["breaker.md#L1-L3", "page.html#L1-L1", "store.txt#L1-L3"]

    def lists(*turns: int) -> list[Says]:
        return [Says(f"s{n}", *(Found(name) for name in names[n:]), turns=turns[n]) for n in range(3)]

    runs = [
        await QueryOrchestrator(db, config=EVERYTHING, strategies=strategies).query("x")
        for strategies in (lists(0, 5, 9), lists(9, 5, 0), [*reversed(lists(3, 1, 2))])
    ]
    assert runs[0] == runs[1] == runs[2]
    assert runs[0][0][0] == names[2]


@pytest.mark.parametrize("fusion", ["relative", "distribution"])
async def test_strategies_hand_their_scores_to_the_fusion(tmp_path: Path, fusion: str) -> None:
    """By ranks two strategies that disagree are even; by scores the one that is surer decides, and explains it."""
    db, _ = await indexed(tmp_path)
    a, b, c = "breaker.md#L1-L3", "page.html#L1-L1", "store.txt#L1-L3"
    lists = [
        Says("sure", Found(b, score=9.0), Found(a, score=1.0), Found(c, score=0.5)),
        Says("close", Found(a, 0.91), Found(b, 0.9), Found(c, 0.1)),
    ]

    async def asked(**settings: Any) -> QueryResults:
        config = replace(EVERYTHING, fusion=FusionConfig(min_confidence=0.0, weights={"graph": 0.0}, **settings))
        return await QueryOrchestrator(db, config=config, strategies=lists).query("x", explain=True)

    assert [chunk_id for chunk_id, _ in await asked()] == [a, b, c]
    found = await asked(fusion=fusion)
    assert [chunk_id for chunk_id, _ in found] == [b, a, c]
    for one in found.explained:
        assert one.term.recompose() == pytest.approx(one.passage.score, abs=1e-12)
    share = found.explained[0].order.find("sure")
    assert share is not None
    assert [part.name for part in share.parts] == ["weight", "share"]


async def test_keywords_hand_over_bm25_and_vectors_the_cosine(tmp_path: Path) -> None:
    """The numbers that order their lists; the first of a list has the highest."""
    embedder = Marks("statistics", "file", "queue")
    db, _ = await indexed(tmp_path, embedder=embedder)
    snapshot = SearchIndex(db).snapshot("keyword", "vector")
    words = await KeywordSearch().search("statistics file or queue", 10, snapshot)
    vectors = await VectorSearch(embedder).search("statistics file queue", 10, snapshot)
    snapshot.close()
    assert [one.chunk_id for one in words] == ["store.txt#L1-L3", "how/waiting.md#L1-L3"]
    best, second = (one.score or 0.0 for one in words)
    assert best > second > 0
    assert [one.score for one in vectors] == [None] * len(vectors)  # the relevance is the cosine
    assert [round(one.relevance or 0, 3) for one in vectors] == [0.816, 0.577]


@pytest.mark.parametrize("fusion", ["relative", "distribution"])
async def test_evidence_is_explained_with_any_fusion(tmp_path: Path, fusion: str) -> None:
    """The place of a hit is its attainment by that fusion; scores recompose, and links count by their ranks."""
    db, _ = await indexed(tmp_path, embedder=HashedEmbedder())
    config = RetrievalConfig(fusion=FusionConfig(fusion=fusion, min_confidence=0.0))
    asked = QueryOrchestrator(db, embedder=HashedEmbedder(), config=config)
    found = await asked.query("how long does a circuit breaker wait in the queue", explain=True)
    assert {name for one in found.explained for name in one.ranks} == {"keyword", "vector", "graph"}
    for one in found.explained:
        assert one.term.recompose() == pytest.approx(one.passage.score, abs=1e-12)
        attainment = one.term.find("attainment")
        assert attainment is not None
        assert 0.0 <= attainment.value <= 1.0


async def test_a_strategy_that_finds_what_is_not_there_changes_nothing(tmp_path: Path) -> None:
    """An id that the index does not have is no result, and takes no rank from one."""
    db, _ = await indexed(tmp_path)
    made_up = Says("keyword", Found("nowhere.md#L1-L1"), Found("store.txt#L1-L3"))
    plain = Says("keyword", Found("store.txt#L1-L3"))
    answers = [await QueryOrchestrator(db, strategies=[one]).query("x") for one in (made_up, plain)]
    assert answers[0] == answers[1]
    assert len(answers[1]) == 1


async def test_a_strategy_that_is_late_is_left_out_of_the_reckoning(tmp_path: Path) -> None:
    """It is named with the reason, and a score is what it would be without it: keyword alone still convinces."""
    db, _ = await indexed(tmp_path)
    config = RetrievalConfig(timeouts={"vector": 0.01})
    said = Says("keyword", Found("store.txt#L1-L3"))
    both = await QueryOrchestrator(db, config=config, strategies=[said, Hangs("vector")]).query("x")
    alone = await QueryOrchestrator(db, config=config, strategies=[said]).query("x")
    assert dict(both.degraded) == {"vector": "no answer within 0.01 s"}
    assert both == alone
    assert both[0][1] > 0.8


async def test_an_embedder_that_is_away_costs_vectors_and_nothing_else(tmp_path: Path) -> None:
    """An hour without the model: keywords answer, and the reason is told."""
    db, _ = await indexed(tmp_path, embedder=Marks("queue"))
    found = await QueryOrchestrator(db, embedder=Broken()).query("database file")
    assert found[0][0] == "store.txt#L1-L3"
    assert dict(found.degraded) == {"vector": "OSError: the model is away"}


async def test_nobody_left_is_an_error_that_names_everyone(tmp_path: Path) -> None:
    """RuntimeError only when no strategy answered at all."""
    db, _ = await indexed(tmp_path)
    config = RetrievalConfig(timeouts={"a": 0.01})
    asked = QueryOrchestrator(db, config=config, strategies=[Hangs("a"), Fails("b")])
    with pytest.raises(RuntimeError, match=r"no strategy is left: a: no answer within .*; b: OSError: disk on fire"):
        await asked.query("x")


async def test_links_are_asked_only_where_there_are_some(tmp_path: Path) -> None:
    """Among the linked, a neighbour is listed; without links the graph takes no part, and costs no confidence."""
    linked, _ = await indexed(tmp_path / "a")
    unlinked, _ = await indexed(tmp_path / "b", {"store.txt": DOCUMENTS["store.txt"], "x.md": "# X\n"})
    found = await QueryOrchestrator(linked, config=EVERYTHING).query("circuit breaker", explain=True)
    assert [one.ranks for one in found.explained] == [{"keyword": 1}, {"graph": 1}]
    alone = await QueryOrchestrator(unlinked, config=EVERYTHING).query("statistics", explain=True)
    attainable = alone.explained[0].term.find("attainable")
    assert attainable is not None
    assert attainable.value == pytest.approx(1 / 61)


async def test_a_weight_of_nothing_switches_a_strategy_off(tmp_path: Path) -> None:
    """It is not even asked; without any left the configuration is refused."""
    db, _ = await indexed(tmp_path, embedder=Marks("queue"))
    marks = Marks("queue")
    fusion = FusionConfig(weights={"vector": 0.0, "graph": 0.0})
    await QueryOrchestrator(db, embedder=marks, config=RetrievalConfig(fusion=fusion)).query("queue")
    assert marks.calls == 0
    with pytest.raises(ConfigError, match="weight above 0"):
        QueryOrchestrator(db, config=RetrievalConfig(fusion=FusionConfig(weights={"keyword": 0})))
    with pytest.raises(ConfigError, match=r"weights.keywords: 2 - the name of a strategy \(graph, keyword, vector\)"):
        QueryOrchestrator(db, config=RetrievalConfig(fusion=FusionConfig(weights={"keywords": 2})))
    with pytest.raises(ConfigError, match=r"timeouts\.vector"):
        RetrievalConfig(timeouts={"vector": 0.0})


@pytest.mark.parametrize(
    ("text", "options"),
    [("", {}), (" \n", {}), ("x", {"top_n": 0}), ("x", {"top_n": 101}), ("x", {"top_k": 0}), ("x", {"top_n": True})],
)
async def test_nonsense_is_refused_before_anything_is_done(tmp_path: Path, text: str, options: dict[str, Any]) -> None:
    """ValueError, without an index even being there."""
    with pytest.raises(ValueError, match=r"blank|top_n|top_k"):
        await QueryOrchestrator(tmp_path / "none").query(text, **options)


async def test_without_an_index_the_command_is_named(tmp_path: Path) -> None:
    """IndexNotReady is an IndexError, as the founding contract has it."""
    with pytest.raises(IndexNotReady, match="smr index DIR") as told:
        await QueryOrchestrator(tmp_path / "none").query("x")
    assert isinstance(told.value, IndexError)


async def ask(db: Path, **body: Any) -> tuple[int, dict[str, Any], list[tuple[str, Sequence[Passage]]]]:
    """Status, answer, and what a model was asked to write about."""
    written: list[tuple[str, Sequence[Passage]]] = []

    async def synthesise(asked: str, passages: Sequence[Passage]) -> str:
        written.append((asked, passages))
        return f"from {len(passages)} passages"

    status, told = await answer(json.dumps(body).encode(), QueryOrchestrator(db), synthesise)
    return status, told, written


async def test_an_answer_is_written_from_what_was_found(tmp_path: Path) -> None:
    """The founding response: the answer, and pairs of chunk id and score."""
    db, _ = await indexed(tmp_path)
    status, told, written = await ask(db, query="statistics", top_n=1)
    [[chunk_id, score]] = told["results"]
    assert (status, told["answer"], chunk_id) == (200, "from 1 passages", "store.txt#L1-L3")
    assert 0.3 <= score <= 1
    assert [(asked, [one.chunk_id for one in passages]) for asked, passages in written] == [("statistics", [chunk_id])]
    assert "explanations" not in told


async def test_explain_adds_objects_that_json_can_hold(tmp_path: Path) -> None:
    """The computation line by line, with the ranks it starts from."""
    db, _ = await indexed(tmp_path)
    _, told, _ = await ask(db, query="statistics", explain=True)
    [one] = told["explanations"]
    assert (one["ranks"], one["interpretation"]) == ({"keyword": 1}, "moderate")
    assert any("keyword = " in line for line in one["computation"])
    assert one["order"][0].startswith("fused = ")
    assert json.loads(json.dumps(told)) == told


async def test_nothing_found_is_an_answer_and_costs_no_model(tmp_path: Path) -> None:
    """200, the sentence, no results, and nobody was asked to write."""
    db, _ = await indexed(tmp_path)
    status, told, written = await ask(db, query="zebra")
    assert (status, told["answer"], told["results"], written) == (200, NOTHING_FOUND, [], [])


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": ""},
        {"query": " \n"},
        {"query": "\x1c"},
        {"query": "x" * 1001},
        {"query": 7},
        {"query": "x", "top_n": 0},
        {"query": "x", "top_n": 101},
        {"query": "x", "top_n": "5"},
        {"query": "x", "top_n": 2.5},
        {"query": "x", "topn": 5},
    ],
)
async def test_bad_input_is_a_422_that_says_where(tmp_path: Path, body: dict[str, Any]) -> None:
    """Also before there is an index; the value itself is not repeated."""
    status, told, _ = await ask(tmp_path / "none", **body)
    assert (status, told["detail"][0]["loc"][0], "input" in told["detail"][0]) == (422, "body", False)


async def test_no_index_and_no_strategy_are_503(tmp_path: Path) -> None:
    """Not the client's fault, and the reason is told."""
    status, told, _ = await ask(tmp_path / "none", query="x")
    assert (status, "smr index DIR" in told["detail"]) == (503, True)


async def test_results_are_equal_to_plain_pairs(tmp_path: Path) -> None:
    """Code for the founding return type works: a list of tuples."""
    db, _ = await indexed(tmp_path)
    found = await QueryOrchestrator(db).query("statistics")
    assert isinstance(found, QueryResults)
    assert found == [("store.txt#L1-L3", found[0][1])]
    assert found[:0] == []


async def test_a_strategy_of_ones_own_may_weigh_and_fail(tmp_path: Path) -> None:
    """Its weight is known although it gave no list."""

    class Tags:
        name = "tags"

        async def search(self, text: str, limit: int, snapshot: Snapshot) -> Sequence[Found]:
            raise OSError("the tags are away")

    db, _ = await indexed(tmp_path)
    config = RetrievalConfig(fusion=FusionConfig(min_confidence=0.0, weights={"tags": 2}))
    found = await QueryOrchestrator(db, strategies=[KeywordSearch(), Tags()], config=config).query("circuit breaker")
    assert (found[0][0], dict(found.degraded)) == ("breaker.md#L1-L3", {"tags": "OSError: the tags are away"})
