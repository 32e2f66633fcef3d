"""Retrieval: how quick keyword search is over 50,000 documents, and how good rankings and scores are where judged.

`python -m benchmarks.retrieval [--relevance | --speed] [--runs DIR]`. Calibration is fitted on every other question and
measured on the rest. Off-topic false accepts are questions about something else that got a result all the same. With
`--runs` the rankings are written there for `smr evaluate`.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks._collections import OFF_TOPIC, Collection, collections, write_run
from benchmarks._measure import Figure, report

from smart_model_router_scoring.calibration import Calibration, Sigmoid, fit
from smart_model_router_scoring.evaluate import (
    brier_score,
    evaluate,
    expected_calibration_error,
    false_accept_rate,
)
from smart_model_router_scoring.fusion import EvidenceGate, FusionConfig
from smart_model_router_scoring.retrieval import (
    HashedEmbedder,
    QueryOrchestrator,
    QueryResults,
    RetrievalConfig,
    index_folder,
)

DOCUMENTS = 50_000
WORDS = 30_000
LIMIT_MS = 60.0
DEPTH = 100
JUDGED = 10
GATES = (0.0, 0.3, 0.5, 0.7)
PATIENT = {"keyword": 600.0, "vector": 600.0, "graph": 600.0}
"""Timeouts that are never met: else the load of the machine would leave out a late strategy."""


def vocabulary() -> tuple[list[str], list[float]]:
    """Words with cumulative weights as Zipf has them: the first is in nearly every document."""
    syllables = ["".join(two) for two in itertools.product("bdfgklmnprstvz", "aeiou")]
    chance = random.Random(1)  # noqa: S311 - repeatable, not secret
    words = list(dict.fromkeys("".join(chance.choices(syllables, k=chance.randint(2, 4))) for _ in range(WORDS * 2)))
    return words[:WORDS], list(itertools.accumulate(1 / (rank + 2) for rank in range(WORDS)))


def write_documents(folder: Path) -> None:
    """50,000 documents of about 1 kB."""
    words, weights = vocabulary()
    chance = random.Random(2)  # noqa: S311 - as above
    for number in range(DOCUMENTS):
        if number % 500 == 0:
            (folder / str(number // 500)).mkdir()
        text = " ".join(chance.choices(words, cum_weights=weights, k=150))
        (folder / str(number // 500) / f"{number}.txt").write_text(text, encoding="utf-8")


async def speed(folder: Path) -> list[Figure]:
    """Index them, then ask: questions of 3 to 8 words as common as in the documents, and of one very common word."""
    await asyncio.to_thread(write_documents, folder)
    db = folder / "index.sqlite"
    started = time.perf_counter()
    await index_folder(folder, db, now=time.time())
    built = time.perf_counter() - started
    started = time.perf_counter()
    await index_folder(folder, db, now=time.time())
    again = time.perf_counter() - started
    print(f"indexed {DOCUMENTS} documents in {built:.0f} s; again, nothing changed, in {again:.1f} s")
    words, weights = vocabulary()
    chance = random.Random(3)  # noqa: S311 - as above
    mixed = [" ".join(chance.choices(words, cum_weights=weights, k=chance.randint(3, 8))) for _ in range(200)]
    figures = []
    for name, questions in {"3 to 8 words": mixed, "one of the 40 commonest words": words[:40]}.items():
        orchestrator = QueryOrchestrator(db)
        walls, cpus = [], []
        for question in questions:
            wall, cpu = time.perf_counter(), time.process_time()
            await orchestrator.query(question)
            walls.append(1e3 * (time.perf_counter() - wall))
            cpus.append(1e3 * (time.process_time() - cpu))
        note = f"wall clock: median {statistics.median(walls):.0f} ms, p95 {p95(walls):.0f} ms"
        median = statistics.median(cpus)
        figures.append(Figure(f"keyword query p95, {name}", p95(cpus), "ms CPU", median, "its median", LIMIT_MS, note))
    return figures


def p95(values: Sequence[float]) -> float:
    """The 95th percentile."""
    return sorted(values)[int(len(values) * 0.95)]


@dataclass(frozen=True, slots=True)
class Asked:
    """A collection, indexed."""

    collection: Collection
    db: Path

    def orchestrator(
        self, calibration: Calibration | None = None, gate: float = 0.0, **weights: float
    ) -> QueryOrchestrator:
        """Everything is returned (no `min_confidence`); a weight of 0 switches a strategy off."""
        fusion = FusionConfig(
            weights={"graph": 0.25, **weights},
            calibration=calibration or Sigmoid(),
            min_confidence=0.0,
            evidence_gate=EvidenceGate(threshold=gate),
        )
        return QueryOrchestrator(
            self.db, embedder=HashedEmbedder(), config=RetrievalConfig(fusion=fusion, timeouts=PATIENT)
        )

    async def run(self, orchestrator: QueryOrchestrator) -> dict[str, QueryResults]:
        """Every question of the collection."""
        return {
            name: await orchestrator.query(text, top_k=DEPTH, top_n=DEPTH, explain=True)
            for name, text in self.collection.questions.items()
        }


def documents_of(results: QueryResults) -> list[str]:
    """The documents of the chunks, each at its best place."""
    return list(dict.fromkeys(chunk_id.partition("#")[0].removesuffix(".txt") for chunk_id, _ in results))


def judged(
    asked: Asked, run: dict[str, QueryResults], names: Sequence[str], *, attained: bool = False
) -> list[tuple[float, bool]]:
    """(score, or its share of the attainable; relevant?) of the first ten results of these questions."""
    pairs = []
    for name in names:
        grades = asked.collection.grades.get(name, {})
        for one in run[name].explained[:JUDGED]:
            share = one.term.find("attainment")
            value = share.value if attained and share is not None else one.passage.score
            pairs.append((value, grades.get(one.passage.path.removesuffix(".txt"), 0.0) > 0))
    return pairs


async def relevance(folder: Path, collection: Collection, kept: Path | None) -> None:
    """Print the quality of rankings and scores on one collection; its rankings are kept in `kept` if it is given."""
    for name, text in collection.documents.items():
        await asyncio.to_thread((folder / f"{name}.txt").write_text, text, "utf-8")
    asked = Asked(collection, folder / "index.sqlite")
    await index_folder(folder, asked.db, now=time.time(), embedder=HashedEmbedder())
    print(f"\n{collection.name}: {len(collection.documents)} documents, {len(collection.questions)} questions")
    systems = {
        "keyword": asked.orchestrator(vector=0.0),
        "vector (hashed n-grams)": asked.orchestrator(keyword=0.0),
        "both, evidence gate 0.5": asked.orchestrator(gate=0.5),
        "both, vector at 0.25": asked.orchestrator(vector=0.25),
        "both, fused": asked.orchestrator(),
    }
    run: dict[str, QueryResults] = {}
    for system, orchestrator in systems.items():
        run = await asked.run(orchestrator)
        ranked = {name: documents_of(results) for name, results in run.items()}
        found = evaluate(ranked, collection.grades)
        if kept is not None:
            write_run(kept, collection, system, ranked)
        figures = [f"{metric} {one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]" for metric, one in found.metrics.items()]
        print(f"  {system}: {', '.join(figures)}")
    names = sorted(run)
    fitted = fit(judged(asked, run, names[::2], attained=True))
    for told, calibration in {"unfitted": None, "fitted": fitted}.items():
        held_out = judged(asked, await asked.run(asked.orchestrator(calibration)), names[1::2])
        ece, brier = expected_calibration_error(held_out), brier_score(held_out)
        print(f"  {told}: ECE {ece:.3f}, Brier {brier:.3f} ({len(held_out)} held-out results)")
    for gate in GATES:
        away = await best_scores(asked.orchestrator(gate=gate), OFF_TOPIC)
        own = await best_scores(asked.orchestrator(gate=gate), list(collection.questions.values()))
        print(
            f"  evidence gate {gate:g}: off-topic false accepts {false_accept_rate(away, 0.3):.0%} at 0.3,"
            f" {false_accept_rate(away, 0.5):.0%} at 0.5; own questions answered {false_accept_rate(own, 0.3):.0%},"
            f" {false_accept_rate(own, 0.5):.0%}"
        )


async def best_scores(orchestrator: QueryOrchestrator, questions: Sequence[str]) -> list[float]:
    """The best score of each question; 0.0 without a result."""
    return [results[0][1] if (results := await orchestrator.query(text)) else 0.0 for text in questions]


async def run_all(*, relevant: bool, quick: bool, kept: Path | None) -> int:
    """Measure what was asked for."""
    if relevant:
        for collection in collections():
            with tempfile.TemporaryDirectory() as name:
                await relevance(Path(name), collection, kept)
    if not quick:
        return 0
    with tempfile.TemporaryDirectory() as name:
        return report(*await speed(Path(name)))


def main() -> int:
    """Both halves, unless one is asked for; the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--relevance", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--runs", type=Path)
    told = parser.parse_args()
    both = told.relevance == told.speed
    return asyncio.run(run_all(relevant=both or told.relevance, quick=both or told.speed, kept=told.runs))


if __name__ == "__main__":
    sys.exit(main())
