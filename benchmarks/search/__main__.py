"""`make bench-search`: how good rankings are on judged collections, and how well search knows what it cannot answer.

`python -m benchmarks.search [--only NAME ...] [--ranking | --answers] [--indexes DIR] [--runs DIR]`. Every ranking is
compared with keywords alone, question by question. For answers, by words and with the extra `embed`, each collection is
asked its own questions and those that no document of its subject answers: everyday ones, and those of the other
collections. `--indexes` keeps the indexes for the next run; `--runs` writes rankings for `smr evaluate`.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from benchmarks.search.collections import APART, BUILDERS, Collection, asked_of, cannot_answer, collections, write_run
from benchmarks.search.measures import share

from smart_model_router_scoring.calibration import fit_platt
from smart_model_router_scoring.evaluate import Comparison, auroc, compare, evaluate, over_halves, threshold_keeping
from smart_model_router_scoring.evaluate.metrics import METRICS
from smart_model_router_scoring.evaluate.metrics import expected_calibration_error as ece
from smart_model_router_scoring.fusion.scales import METHODS as FUSIONS
from smart_model_router_scoring.options import ConfigError
from smart_model_router_scoring.retrieval import (
    Embedder,
    HashedEmbedder,
    HeavyHashedVectors,
    QueryOrchestrator,
    QueryResults,
    RetrievalConfig,
    WordLlamaEmbedder,
    index_folder,
)
from smart_model_router_scoring.retrieval.orchestrator import HASHED_WEIGHT, HASHED_WEIGHT_MOST, WORDLLAMA_WEIGHT

DEPTH = 100
SURE = 20.0
"""Log-odds of a score of 0 or 1."""
SHIPPED = RetrievalConfig().fusion.min_confidence
PATIENT = {"keyword": 600.0, "vector": 600.0, "graph": 600.0}
"""Timeouts that are never met: else the load of the machine would leave out a late strategy."""


WORDS, HASHED, EMBED = "words", "hashed", "embed"
EMBEDDERS: Mapping[str, Embedder] = {HASHED: HashedEmbedder(), EMBED: WordLlamaEmbedder()}


@dataclass(frozen=True, slots=True)
class IndexedCollection:
    """A collection and its indexes, one for each embedder; keywords alone are asked of the last one."""

    collection: Collection
    folder: Path

    @classmethod
    async def of(cls, collection: Collection, folder: Path, kinds: Iterable[str] = EMBEDDERS) -> IndexedCollection:
        """Write the documents and index them; what is there already is kept."""
        found, root = cls(collection, folder), folder / collection.name
        await asyncio.to_thread(collection.write, root)
        for kind in kinds:
            started = time.process_time()
            report = await index_folder(root, found.db(kind), now=time.time(), embedder=EMBEDDERS[kind])
            spent = time.process_time() - started
            told = f"{report.documents} documents, {report.chunks} chunks, {len(collection.questions)} questions"
            by_hand = len(collection.by_hand)
            print(f"{collection.name} ({kind}): {told} ({by_hand} by hand); {spent:.1f} s CPU", file=sys.stderr)
        return found

    def db(self, kind: str) -> Path:
        """The index for this kind of search."""
        return self.folder / f"{self.collection.name}-{kind if kind in EMBEDDERS else EMBED}.sqlite"

    def document(self, chunk_id: str) -> str:
        """The document of a chunk."""
        return chunk_id.partition("#")[0].removesuffix(self.collection.suffix)

    def asking(
        self, kind: str, weights: Mapping[str, float] = MappingProxyType({}), fusion: str = FUSIONS[0]
    ) -> QueryOrchestrator:
        """An orchestrator that returns everything."""
        default = RetrievalConfig().fusion
        fused = replace(default, fusion=fusion, weights={**default.weights, **weights}, min_confidence=0.0)
        config = RetrievalConfig(fusion=fused, timeouts=PATIENT)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HeavyHashedVectors)  # their cost is what is measured
            return QueryOrchestrator(self.db(kind), embedder=EMBEDDERS.get(kind), config=config)


SYSTEMS: Mapping[str, tuple[str, Mapping[str, float]]] = {
    "default: keyword, links": (WORDS, {}),
    f"default with `embed`: vectors at {WORDLLAMA_WEIGHT}": (EMBED, {}),
    **{f"wordllama at {weight}": (EMBED, {"vector": weight}) for weight in (0.1, 0.5, 1.0)},
    **{
        f"hashed vectors at {weight}": (HASHED, {"vector": weight})
        for weight in (HASHED_WEIGHT, 0.05, HASHED_WEIGHT_MOST, 1.0)
    },
}
"""The kind of search, and its weights."""
KEYWORD = "keyword"
"""The baseline of the others."""


async def rankings(
    found: IndexedCollection, kind: str, weights: Mapping[str, float], fusion: str = FUSIONS[0]
) -> dict[str, list[str]]:
    """The documents of each question, each at the place of its best chunk."""
    orchestrator, run = found.asking(kind, weights, fusion), {}
    for name, text in found.collection.questions.items():
        results = await orchestrator.query(text, top_k=DEPTH, top_n=DEPTH)
        run[name] = list(dict.fromkeys(found.document(chunk_id) for chunk_id, _ in results))
    return run


async def print_rankings(found: IndexedCollection, runs: Path | None) -> None:
    """A row for each system, by ranks and by scores, less keywords alone and less the same weights by ranks."""
    baseline = await rankings(found, WORDS, {"graph": 0.0})
    print_ranking(found, KEYWORD, baseline, [None, None], runs)
    for system, (kind, weights) in SYSTEMS.items():
        by_ranks = await rankings(found, kind, weights)
        print_ranking(found, system, by_ranks, [baseline, None], runs)
        for fusion in FUSIONS[1:]:
            run = await rankings(found, kind, weights, fusion)
            print_ranking(found, f"{system}; {fusion}", run, [baseline, by_ranks], runs)


def print_ranking(
    found: IndexedCollection,
    system: str,
    run: dict[str, list[str]],
    others: Sequence[dict[str, list[str]] | None],
    runs: Path | None,
) -> None:
    """Print the row of a system, with its gain over each of `others`."""
    grades = found.collection.grades
    if runs is not None:
        write_run(runs, found.collection, system, run)
    means = evaluate(run, grades).metrics
    cells = [f"{means[metric].mean:.3f} [{means[metric].low:.3f}, {means[metric].high:.3f}]" for metric in METRICS]
    cells += ["" if other is None else gain(compare(other, run, grades)) for other in others]
    print(f"| {found.collection.name} | {system} | {' | '.join(cells)} |", flush=True)


def gain(less: Comparison) -> str:
    """The mean difference with its interval, and p."""
    mean, low, high = less.difference.mean, less.difference.low, less.difference.high
    return f"{mean:+.3f} [{low:+.3f}, {high:+.3f}], p {less.p:.3f}"


def answers(results: QueryResults) -> float:
    """The confidence that the index answers the question."""
    assert results.answers is not None, results.degraded
    return results.answers


async def scores(orchestrator: QueryOrchestrator, questions: Iterable[str]) -> list[float]:
    """The confidence of each question."""
    return [answers(await orchestrator.query(text)) for text in questions]


@dataclass(frozen=True, slots=True)
class Confidences:
    """The confidences of a collection: of its own questions by hand and by script, and of others by their source."""

    name: str
    by_hand: list[float]
    scripted: list[float]
    others: dict[str, list[float]]
    unanswerable: list[str]

    @property
    def away(self) -> list[float]:
        """Those of questions that it cannot answer."""
        return [score for source in self.unanswerable for score in self.others[source]]

    def row(self) -> str:
        """AUROC, shares at the shipped threshold and at one that keeps 95 %, ECE."""
        own = threshold_keeping(self.by_hand)
        mine = [(score, True) for score in (*self.by_hand, *self.scripted)]
        rows = [*mine, *((score, False) for score in self.away)]
        cells = [
            f"{auroc(self.by_hand, self.away):.3f}",
            *(f"{share(of, SHIPPED).mean:.3f}" if of else "" for of in (self.by_hand, self.scripted)),
            told(self.away, SHIPPED),
            told(self.away, own),
            *(f"{over_halves(rows, _platt, ece, balanced=balanced)[0]:.3f}" for balanced in (False, True)),
        ]
        return f"| {self.name} ({len(self.by_hand)}+{len(self.scripted)}, {len(self.away)}) | {' | '.join(cells)} |"


def told(values: Sequence[float], threshold: float) -> str:
    """A share with its interval."""
    found = share(values, threshold)
    return f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"


def _platt(labelled: Sequence[tuple[float, bool]]) -> Callable[[float], float]:
    try:
        curve = fit_platt([(_log_odds(score), answered) for score, answered in labelled], scale="raw")
    except ConfigError:  # scores that do not rise with answers: the base rate is the best guess
        rate = statistics.fmean(answered for _, answered in labelled)
        return lambda _: rate
    return lambda score: curve.calibrate(_log_odds(score), 0.0)


def _log_odds(score: float) -> float:
    return math.log(score / (1 - score)) if 0 < score < 1 else math.copysign(SURE, score - 0.5)


async def judged(found: IndexedCollection, every: Sequence[Collection], kind: str) -> Confidences:
    """Ask a collection its own questions and those it cannot answer."""
    orchestrator, mine = found.asking(kind), found.collection
    by_hand = await scores(orchestrator, (mine.questions[one] for one in mine.by_hand))
    scripted = await scores(orchestrator, (text for one, text in mine.questions.items() if one in mine.scripted))
    others = {
        source: await scores(orchestrator, texts) for source, texts in asked_of(every).items() if source != mine.name
    }
    return Confidences(mine.name, by_hand, scripted, others, cannot_answer(mine, every))


async def measure(told: argparse.Namespace, folder: Path) -> None:
    """Print the tables that were asked for."""
    every = [*collections(), *(one for name in APART.intersection(told.only or ()) for one in collections(name))]
    both = told.ranking == told.answers
    indexed = [await IndexedCollection.of(one, folder) for one in every if not told.only or one.name in told.only]
    if both or told.ranking:
        print(f"| collection | search | {' | '.join(METRICS)} | nDCG@10 less keywords | less rrf |\n|{'---|' * 7}")
        for found in indexed:
            await print_rankings(found, told.runs)
    if both or told.answers:
        for kind in (WORDS, EMBED):
            print(f"\nevidence: {kind}")
            await print_answers(indexed, every, kind)


async def print_answers(indexed: Sequence[IndexedCollection], every: Sequence[Collection], kind: str) -> None:
    """A row for each collection, and the means."""
    columns = (
        "AUROC",
        f"kept at {SHIPPED}",
        "scripted kept",
        "accepted",
        "accepted where 95 % are kept",
        "ECE",
        "balanced",
    )
    print(f"| collection (own by hand + scripted, away) | {' | '.join(columns)} |\n|{'---|' * 8}")
    rows = []
    for found in indexed:
        rows.append(await judged(found, every, kind))
        print(rows[-1].row(), flush=True)
    kept = statistics.fmean(share(one.by_hand, SHIPPED).mean for one in rows)
    accepted = statistics.fmean(share(one.away, SHIPPED).mean for one in rows)
    print(f"mean: {kept:.3f} kept, {accepted:.3f} accepted\n")
    sources = list(asked_of(every))
    print(f"| accepted, of questions of | {' | '.join(sources)} |\n|{'---|' * (len(sources) + 1)}")
    for row in rows:
        cells = (f"{share(row.others[source], SHIPPED).mean:.2f}" if source in row.others else "" for source in sources)
        print(f"| {row.name} | {' | '.join(cells)} |")


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search")
    parser.add_argument("--only", nargs="+", choices=tuple(BUILDERS))
    parser.add_argument("--ranking", action="store_true")
    parser.add_argument("--answers", action="store_true")
    parser.add_argument("--indexes", type=Path)
    parser.add_argument("--runs", type=Path)
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(measure(told, told.indexes or Path(name)))


if __name__ == "__main__":
    main()
