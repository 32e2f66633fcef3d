"""Retrieval: the pace of indexing, the cost of a query and of its evidence. How good it is: `benchmarks/search`.

Made-up documents have 150 words each of 30,000, as frequent as Zipf and Mandelbrot have it (1 / (rank + 2)); questions
are 3 to 8 words as frequent as in the documents, so most have a word that thousands of chunks have.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import resource
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks._measure import Figure, report
from benchmarks.search.collections import collections

from smart_model_router_scoring.retrieval import (
    Embedder,
    QueryOrchestrator,
    RetrievalConfig,
    WordLlamaEmbedder,
    index_folder,
)
from smart_model_router_scoring.retrieval.index import Snapshot
from smart_model_router_scoring.retrieval.strategies import Found, KeywordSearch, best_rows

WORDS = 30_000
LIMIT_MS = 60.0
LIMITS_DEFAULT_MS = {10_000: 10.0, 100_000: 30.0}
"""By the number of chunks."""
LIMIT_SHARE = 15.0
REAL = ("factbook", "cranfield")
TURNS = 5
LIMIT_INDEX = 1 / 1.5
LIMIT_EMBED = 1 / 0.5
"""Milliseconds a chunk: 1,500 chunks a second without the embedder, 500 with it."""


def vocabulary() -> tuple[list[str], list[float]]:
    """Words with cumulative weights as Zipf has them: the first is in nearly every document."""
    syllables = ["".join(two) for two in itertools.product("bdfgklmnprstvz", "aeiou")]
    chance = random.Random(1)  # noqa: S311 - repeatable, not secret
    words = list(dict.fromkeys("".join(chance.choices(syllables, k=chance.randint(2, 4))) for _ in range(WORDS * 2)))
    return words[:WORDS], list(itertools.accumulate(1 / (rank + 2) for rank in range(WORDS)))


def write_documents(folder: Path, count: int) -> None:
    """Documents of about 1 kB, each one chunk."""
    words, weights = vocabulary()
    chance = random.Random(2)  # noqa: S311 - as above
    for number in range(count):
        if number % 500 == 0:
            (folder / str(number // 500)).mkdir()
        text = " ".join(chance.choices(words, cum_weights=weights, k=150))
        (folder / str(number // 500) / f"{number}.txt").write_text(text, encoding="utf-8")


async def index(folder: Path, count: int, embedder: Embedder | None = None) -> tuple[Path, Figure]:
    """Write documents and index them; the figure is the pace."""
    await asyncio.to_thread(write_documents, folder, count)
    db = folder / "index.sqlite"
    started = time.process_time()
    report = await index_folder(folder, db, now=time.time(), embedder=embedder)
    spent = time.process_time() - started
    started = time.process_time()
    await index_folder(folder, db, now=time.time(), embedder=embedder)
    again = time.process_time() - started
    note = f"{report.chunks / spent:,.0f} chunks a second; again, nothing changed, in {again:.1f} s"
    name, limit = f"index {report.chunks:,} chunks", LIMIT_INDEX
    if embedder is not None:
        name, limit = f"{name} with `embed`", LIMIT_EMBED
    return db, Figure(name, 1e3 * spent / report.chunks, "ms CPU", 0.0, "none", limit, note)


async def asked(orchestrator: QueryOrchestrator, questions: Sequence[str]) -> tuple[list[float], list[float]]:
    """Milliseconds of each question: of wall clock, of CPU."""
    walls, cpus = [], []
    for question in questions:
        wall, cpu = time.perf_counter(), time.process_time()
        await orchestrator.query(question)
        walls.append(1e3 * (time.perf_counter() - wall))
        cpus.append(1e3 * (time.process_time() - cpu))
    return walls, cpus


class WordsAlone(KeywordSearch):
    """Keyword search that says nothing of relevance: what a query costs without evidence."""

    async def search(self, text: str, limit: int, snapshot: Snapshot) -> Sequence[Found]:
        """See `Strategy`."""

        def work(sql: sqlite3.Connection) -> list[Found]:
            stems, facts = self.tokenizer.question(text), snapshot.facts
            counts = self.counts.of(sql, stems, facts.generation)
            return [Found(name) for name, _ in best_rows(sql, stems, limit, facts.chunks, counts).values()]

        return await snapshot.lane(self.name).run(work)


async def evidence_share(db: Path, questions: Sequence[str], name: str) -> Figure:
    """The share of evidence in the CPU time of these questions, of the median of TURNS turns of each question.

    Both kinds of query take turns question by question, so that a busy machine slows both.
    """
    plain = QueryOrchestrator(db, config=RetrievalConfig(evidence=None), strategies=[WordsAlone()])
    judged = QueryOrchestrator(db)
    turns = [
        [[(await asked(kind, [one]))[1][0] for kind in (plain, judged)] for one in questions] for _ in range(TURNS + 1)
    ]
    by_question = zip(*turns[1:], strict=True)
    without, with_it = map(
        sum, zip(*(map(statistics.median, zip(*of, strict=True)) for of in by_question), strict=True)
    )
    note = f"{len(questions)} questions of {with_it / len(questions):.2f} ms CPU in the mean"
    return Figure(f"evidence, {name}", 100 * (1 - without / with_it), "% of a query", 0.0, "none", LIMIT_SHARE, note)


async def real_texts(folder: Path) -> list[Figure]:
    """The share of evidence on the collections of people's texts that are at hand."""
    figures = []
    for collection in collections(*REAL):
        root, db = folder / collection.name, folder / f"{collection.name}.sqlite"
        await asyncio.to_thread(collection.write, root)
        await index_folder(root, db, now=time.time())
        figures.append(await evidence_share(db, list(collection.questions.values()), collection.name))
    return figures


async def default_query(folder: Path, chunks: int, limit: float) -> list[Figure]:
    """The default query without vectors at so many chunks, and its evidence."""
    db, pace = await index(folder, chunks)
    questions = mixed(200)
    await asked(QueryOrchestrator(db), questions)
    _, cpus = await asked(QueryOrchestrator(db), questions)
    note = f"p95 {p95(cpus):.1f} ms; {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB at most"
    return [
        pace,
        Figure(f"default query p50, {chunks:,} chunks", statistics.median(cpus), "ms CPU", 0.0, "none", limit, note),
        await evidence_share(db, questions, f"{chunks:,} chunks"),
    ]


async def embedded_query(folder: Path) -> list[Figure]:
    """The default query with the extra `embed` at 10,000 chunks. Loading the model counts for the pace of indexing."""
    embedder = WordLlamaEmbedder()
    db, pace = await index(folder, 10_000, embedder)
    orchestrator, questions = QueryOrchestrator(db, embedder=embedder), mixed(200)
    await asked(orchestrator, questions)
    _, cpus = await asked(orchestrator, questions)
    limit = LIMITS_DEFAULT_MS[10_000]
    return [pace, Figure("default query p50 with `embed`", statistics.median(cpus), "ms CPU", 0.0, "none", limit)]


async def keyword_query(folder: Path) -> list[Figure]:
    """Questions of 3 to 8 words as common as in 50,000 documents, and of one very common word."""
    db, pace = await index(folder, 50_000)
    figures = [pace]
    for name, questions in {"3 to 8 words": mixed(200), "one of the 40 commonest words": vocabulary()[0][:40]}.items():
        walls, cpus = await asked(QueryOrchestrator(db), questions)
        note = f"wall clock: median {statistics.median(walls):.0f} ms, p95 {p95(walls):.0f} ms"
        median = statistics.median(cpus)
        figures.append(Figure(f"keyword query p95, {name}", p95(cpus), "ms CPU", median, "its median", LIMIT_MS, note))
    return figures


def mixed(count: int) -> list[str]:
    """Questions of 3 to 8 words, as common as in the documents."""
    words, weights = vocabulary()
    chance = random.Random(3)  # noqa: S311 - repeatable, not secret
    return [" ".join(chance.choices(words, cum_weights=weights, k=chance.randint(3, 8))) for _ in range(count)]


def p95(values: Sequence[float]) -> float:
    """The 95th percentile."""
    return sorted(values)[int(len(values) * 0.95)]


async def measure() -> int:
    """Print every figure; the exit code."""
    figures: list[Figure] = []
    sizes = [partial(default_query, chunks=chunks, limit=limit) for chunks, limit in LIMITS_DEFAULT_MS.items()]
    parts: list[Callable[[Path], Awaitable[list[Figure]]]] = [real_texts, *sizes, embedded_query, keyword_query]
    for part in parts:
        with tempfile.TemporaryDirectory() as name:
            figures += await part(Path(name))
    return report(*figures)


if __name__ == "__main__":
    sys.exit(asyncio.run(measure()))
