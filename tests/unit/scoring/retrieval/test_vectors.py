"""Vectors as evidence: the extra's embedder, the nulls that an index keeps, and what is left where one is missing."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
import threading
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from benchmarks.search.collections import EVERYDAY, pydoc

from smart_model_router_scoring.evidence import COSINES, WITH_COSINES
from smart_model_router_scoring.fusion import FusionConfig
from smart_model_router_scoring.retrieval import (
    CallableEmbedder,
    EmbedderUnavailable,
    HashedEmbedder,
    QueryOrchestrator,
    QueryResults,
    RetrievalConfig,
    SearchIndex,
    WordLlamaEmbedder,
    index_folder,
    wordllama_embedder,
)
from smart_model_router_scoring.retrieval.embedders import MOST_TERMS, telling_text
from smart_model_router_scoring.retrieval.null import texts_to_embed
from tests.unit.scoring.retrieval.folders import DOCUMENTS, NOW, Broken, Marks, indexed, write

KEEP_ALL = RetrievalConfig(fusion=FusionConfig(min_confidence=0.0, weights={"graph": 0.05}))
MEDICINE = {
    "a.md": "# Surgery hours\n\nThe physician sees patients in the morning.\n",
    "b.md": "# Garage\n\nThe automobile is repaired on weekdays.\n",
    "c.md": "# Kitchen\n\nSoup is cooked in a large pot.\n",
}


class Remembering(Marks):
    """Marks that remember the texts they were given."""

    def __init__(self, *words: str, name: str = "marks") -> None:
        super().__init__(*words, name=name)
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.texts += texts
        return await super().embed(texts)


@pytest.mark.asyncio
async def test_the_embedder_knows_meaning_and_says_which_model_it_is() -> None:
    """A synonym is nearer than a stranger; the name has the hash of the weights, so others embed an index anew."""
    embedder = WordLlamaEmbedder()
    doctor, physician, kettle = await embedder.embed(["doctor", "physician", "kettle"])
    assert (embedder.name, len(doctor)) == ("wordllama/l2_supercat_256/64b47a2dc493", 256)

    def dot(one: Sequence[float], other: Sequence[float]) -> float:
        return sum(a * b for a, b in zip(one, other, strict=True))

    assert dot(doctor, physician) > 3 * abs(dot(doctor, kettle))
    assert await embedder.embed(["", "x " * 100_000]) == await embedder.embed(["", "x " * 4_000])


@pytest.mark.asyncio
async def test_the_model_is_loaded_once_and_not_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two first questions at once wait for one loading, in threads."""
    threads: set[int] = set()
    check = wordllama_embedder._check

    def seen(file: Path, digest: str) -> None:
        threads.add(threading.get_ident())
        check(file, digest)

    monkeypatch.setattr(wordllama_embedder, "_check", seen)
    wordllama_embedder._loaded.cache_clear()
    await asyncio.gather(*(WordLlamaEmbedder().embed(["tea"]) for _ in range(3)))
    assert wordllama_embedder._loaded.cache_info().misses == 1
    assert threading.get_ident() not in threads


@pytest.mark.asyncio
async def test_a_first_question_is_not_late_for_the_loading_of_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its deadline begins when the model is there; a model that cannot be loaded is told as any failure."""
    embedder = WordLlamaEmbedder()
    db, _ = await indexed(tmp_path, embedder=embedder)
    loaded: list[int] = []

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        loaded.append(wordllama_embedder._loaded.cache_info().currsize)
        return [[1.0] * 256 for _ in texts]

    monkeypatch.setattr(embedder, "embed", embed)
    wordllama_embedder._loaded.cache_clear()
    await QueryOrchestrator(db, embedder=embedder).query("circuit breaker")
    assert loaded == [1]
    monkeypatch.undo()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    wordllama_embedder._loaded.cache_clear()
    found = await QueryOrchestrator(db, embedder=embedder).query("circuit breaker")
    assert "smart-model-router[embed]" in found.degraded["vector"]


@pytest.mark.asyncio
async def test_a_model_of_other_content_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong hash and a missing file are an error that names the file and the ways out; so is a missing package."""
    spec = ModuleSpec("wordllama", None, origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    wordllama_embedder._loaded.cache_clear()
    with pytest.raises(EmbedderUnavailable, match=r"No such file.*embedder: none.*l2_supercat_256.safetensors"):
        await WordLlamaEmbedder().embed(["tea"])
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "l2_supercat_256.safetensors").write_bytes(b"other")
    with pytest.raises(EmbedderUnavailable, match=r"SHA-256 is d9298a10.*not 64b47a2d.*embedder: none"):
        await WordLlamaEmbedder().embed(["tea"])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EmbedderUnavailable, match=r"smart-model-router\[embed\]"):
        await WordLlamaEmbedder().embed(["tea"])


@pytest.mark.asyncio
async def test_a_package_that_cannot_be_imported_is_an_unavailable_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when one that it needs is missing: the error says which; a question is answered by words, and says why."""
    embedder = WordLlamaEmbedder()
    db, _ = await indexed(tmp_path, embedder=embedder)
    for name in [one for one in sys.modules if one.partition(".")[0] == "wordllama"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "safetensors", None)
    wordllama_embedder._loaded.cache_clear()
    with pytest.raises(EmbedderUnavailable, match=r"import of safetensors.*embedder: none"):
        await embedder.embed(["tea"])
    found = await QueryOrchestrator(db, embedder=embedder).query("circuit breaker")
    assert found.answers is not None
    assert "import of safetensors" in found.degraded["vector"]


def run(code: str) -> str:
    """The output of a program in a process of its own."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def test_an_embedder_is_imported_only_by_those_that_embed(tmp_path: Path) -> None:
    """Not by the router, `smr --help` or a question by keywords; and its import leaves the application's log alone."""
    write(tmp_path / "docs", DOCUMENTS)
    told = run(f"""
import asyncio, logging, sys
import smart_model_router
from smart_model_router.cli import main
from smart_model_router_scoring.retrieval import QueryOrchestrator, WordLlamaEmbedder, index_folder
sys.argv = ["smr", "--help"]
try:
    main()
except SystemExit:
    pass
async def search():
    await index_folder({str(tmp_path / "docs")!r}, {str(tmp_path / "i.db")!r}, now=1.8e9)
    await QueryOrchestrator({str(tmp_path / "i.db")!r}).query("circuit breaker")
asyncio.run(search())
before = logging.getLogger().level, list(logging.getLogger().handlers)
print("wordllama" in sys.modules, "numpy" in sys.modules)
asyncio.run(WordLlamaEmbedder().embed(["tea"]))
print("wordllama" in sys.modules, before == (logging.getLogger().level, logging.getLogger().handlers))
""")
    assert told.splitlines()[-2:] == ["False False", "True True"]


@pytest.mark.asyncio
async def test_a_passage_without_a_word_of_the_question_answers_it(tmp_path: Path) -> None:
    """By its cosine. Each score and `answers` have cosines in their computations, which recompose."""
    embedder = WordLlamaEmbedder()
    db, _ = await indexed(tmp_path, MEDICINE, embedder)
    by_words = await QueryOrchestrator(db).query("doctor for the sick")
    found = await QueryOrchestrator(db, embedder=embedder).query("doctor for the sick", explain=True)
    assert (list(by_words), found.passages[0].path) == ([], "a.md")
    assert found.answers_term is not None
    assert found.answers_term.recompose() == pytest.approx(found.answers, abs=1e-12)
    assert all(found.answers_term.find(name) for name in COSINES)
    for one, (_, score) in zip(found.explained, found, strict=True):
        assert one.term.recompose() == pytest.approx(score, abs=1e-12)
        assert one.term.find("cosine") is not None


@pytest.mark.asyncio
async def test_with_vectors_more_questions_are_told_apart(tmp_path: Path) -> None:
    """Of 60 questions about Python at least 97 % are answered, and of 100 of daily life at most 10 %.

    By words alone 98 and 18 %.
    """
    topics, embedder = pydoc(), WordLlamaEmbedder()
    topics.write(tmp_path / "docs")
    await index_folder(tmp_path / "docs", tmp_path / "i.db", now=NOW, embedder=embedder)
    asked = QueryOrchestrator(tmp_path / "i.db", embedder=embedder)

    async def answered(questions: Sequence[str]) -> float:
        return sum([bool(await asked.query(text)) for text in questions]) / len(questions)

    assert await answered([topics.questions[one] for one in topics.by_hand]) >= 0.97
    assert await answered(EVERYDAY) <= 0.1


@pytest.mark.asyncio
async def test_vectors_of_any_model_are_evidence_and_hashed_ones_are_not(tmp_path: Path) -> None:
    """`answers` is known with both; only a model's index has a null with cosines, and is judged by it."""

    async def far(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, float("breaker" in text)] for text in texts]

    model, hashed = CallableEmbedder("model", far), HashedEmbedder()
    db, _ = await indexed(tmp_path, embedder=model)
    plain, _ = await indexed(tmp_path / "h", embedder=hashed)
    assert SearchIndex(db).facts().null_with_cosines is not None
    assert SearchIndex(plain).facts().null_with_cosines is None
    found = await QueryOrchestrator(db, embedder=model, config=KEEP_ALL).query("circuit breaker", explain=True)
    by_hash = await QueryOrchestrator(plain, embedder=hashed, config=KEEP_ALL).query("circuit breaker", explain=True)
    for results, weights in ((found, set(WITH_COSINES.answers.weights)), (by_hash, set())):
        assert results.answers is not None
        assert results.answers_term is not None
        assert bool(weights) == (results.answers_term.find("cosine") is not None)


@pytest.mark.asyncio
async def test_the_null_questions_are_embedded_once(tmp_path: Path) -> None:
    """A change of documents scores them again, another embedder embeds them again."""
    first = Remembering("breaker", "tea")
    db, _ = await indexed(tmp_path, embedder=first)
    assert set(texts_to_embed()) < set(first.texts)
    before = SearchIndex(db).facts().null_with_cosines
    first.texts.clear()
    write(tmp_path / "docs", {"tea.txt": "green tea and a goat cheese"})
    await index_folder(tmp_path / "docs", db, now=NOW, embedder=first)
    assert first.texts == ["tea\ngreen tea and a goat cheese"]
    assert SearchIndex(db).facts().null_with_cosines != before
    other = Remembering("breaker", name="other")
    await index_folder(tmp_path / "docs", db, now=NOW, embedder=other)
    assert set(texts_to_embed()) < set(other.texts)
    await index_folder(tmp_path / "docs", db, now=NOW)
    assert SearchIndex(db).facts().null_with_cosines is None


@pytest.mark.asyncio
async def test_a_question_and_its_telling_words_are_one_call(tmp_path: Path) -> None:
    """Of an embedder whose calls may cost something."""
    embedder = Remembering("breaker")
    db, _ = await indexed(tmp_path, embedder=embedder)
    embedder.texts.clear()
    embedder.calls = 0
    await QueryOrchestrator(db, embedder=embedder).query("When does the Breaker open?")
    assert (embedder.calls, embedder.texts) == (1, ["When does the Breaker open?", "breaker open"])


def test_telling_words_are_the_words_of_the_subject() -> None:
    """In order; of scripts without spaces the text as it is, of a page the first words."""
    assert telling_text("How do I open the Circuit-Breaker?") == "open circuit breaker"
    assert telling_text("東京の天気") == "東京の天気"
    assert telling_text("word " * 500).split() == ["word"] * MOST_TERMS


def told(results: QueryResults) -> tuple[list[tuple[str, float]], float | None]:
    """The results, and the confidence in them."""
    return list(results), results.answers


@pytest.mark.asyncio
async def test_without_the_vectors_of_its_index_a_question_is_judged_by_words(tmp_path: Path) -> None:
    """Asked without an embedder, with another one, or with one that is away: as an index that has no vectors."""
    marks = Marks("breaker", "queue")
    db, _ = await indexed(tmp_path, embedder=marks)
    plain, _ = await indexed(tmp_path / "plain")
    by_words = await QueryOrchestrator(plain).query("circuit breaker")
    asked = [QueryOrchestrator(db, embedder=one) for one in (None, Marks("tea", name="other"), Broken())]
    results = [await one.query("circuit breaker") for one in asked]
    assert [told(one) for one in results] == [told(by_words)] * 3
    reasons = [one.degraded.get("vector", "") for one in results]
    assert reasons[0] == ""
    assert reasons[1].startswith("the index has vectors of marks, the question would be embedded by other")
    assert reasons[2] == "OSError: the model is away"
    missing = (await QueryOrchestrator(plain, embedder=marks).query("circuit breaker")).degraded["vector"]
    assert missing.startswith("the index has no vectors")


@pytest.mark.parametrize("vectors", [[[math.nan] * 256] * 2, [[0.0] * 256] * 2, [[math.inf] * 256] * 2, [[1.0] * 256]])
def test_unusable_vectors_of_a_question_are_told_and_words_judge(tmp_path: Path, vectors: list[list[float]]) -> None:
    """A question whose vectors are no numbers, of no length or too few is judged by words, and the reason is told."""
    folder = write(tmp_path / "docs", {"a.md": "# Breakers\n\nA circuit breaker closes again after a probe.\n"})

    async def sound(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, *[0.5] * 255] for _ in texts]

    async def broken(_: Sequence[str]) -> list[list[float]]:
        return vectors

    asyncio.run(index_folder(folder, tmp_path / "i.db", now=NOW, embedder=CallableEmbedder("m", sound)))
    words = asyncio.run(QueryOrchestrator(tmp_path / "i.db").query("circuit breaker"))
    embedder = CallableEmbedder("m", broken)
    found = asyncio.run(QueryOrchestrator(tmp_path / "i.db", embedder=embedder).query("circuit breaker"))
    assert found.answers == words.answers
    assert "vector" in found.degraded
