"""`make bench-fusion-peers`: fusion here and elsewhere on identical ranked lists: relevance, and properties.

Every peer runs in an environment of its own. Prints tables; exits with 1 when ours, tuned, is worse than a peer
by more than chance, or lacks a property. Tuned is cross-fitted: the weights for one half of the questions are chosen on
the other half.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._environments import ROOT, install
from benchmarks.search.collections import Collection, collections, write_run

from smart_model_router_scoring.evaluate import compare, evaluate, tune
from smart_model_router_scoring.fusion import Fusion, FusionConfig
from smart_model_router_scoring.fusion.scales import METHODS
from smart_model_router_scoring.retrieval import HashedEmbedder, SearchIndex, index_folder
from smart_model_router_scoring.retrieval.embedders import any_of
from smart_model_router_scoring.retrieval.orchestrator import HASHED_WEIGHT
from smart_model_router_scoring.retrieval.stems import DEFAULT_TOKENIZER
from smart_model_router_scoring.retrieval.vectors import VectorSearch

Lists = dict[str, list[tuple[str, float]]]
DEPTH = 100
ALPHA = 0.05
OURS = "ours"
TUNED = "ours, tuned"
DEFAULT = "ours, default weights"
WEIGHTS = tuple({"keyword": 1.0, "vector": weight} for weight in (0.1, 0.25, 0.5, 1.0))
KS = (2.0, 10.0, 30.0, 60.0)
PEERS = {
    "llama_index_fusion": ("llama-index-core", ("reciprocal_rerank", "relative_score", "dist_based_score")),
    "haystack_joiner": ("haystack-ai", ("reciprocal_rank_fusion", "distribution_based_rank_fusion")),
    "langchain_ensemble": ("langchain-classic", ("rrf",)),
    "mem0_scoring": ("mem0ai", ("additive",)),
}
"""The package of each driver, and the methods of fusion it has; the first is its default."""
QUIET = {"HAYSTACK_TELEMETRY_ENABLED": "False", "MEM0_TELEMETRY": "False", "LANGSMITH_TRACING": "false"}

A: list[tuple[str, float]] = [("a", 0.9), ("b", 0.8), ("c", 0.7), ("d", 0.6)]
B: list[tuple[str, float]] = [("e", 9.0), ("c", 8.0), ("f", 7.0), ("a", 6.0)]
C: list[tuple[str, float]] = [("g", 0.5), ("f", 0.4), ("b", 0.3), ("h", 0.2)]
TWICE: list[tuple[str, float]] = [("a", 0.9), ("a", 0.85), *A[1:]]


@dataclass(frozen=True)
class Fused:
    """The result of one job by one library."""

    ids: list[str]
    scores: list[float | None]
    explained: bool
    unmutated: bool

    @property
    def told(self) -> list[tuple[str, float | None]]:
        """Ids with scores, in order."""
        return list(zip(self.ids, self.scores, strict=True))


@dataclass(frozen=True)
class Peer:
    """A library at work."""

    driver: str
    interpreter: Path
    mode: str

    def fuse(self, jobs: Sequence[tuple[Lists, Mapping[str, float] | None]], *, seed: int) -> tuple[str, list[Fused]]:
        """Its version and what it makes of these jobs, in a process of its own with this hash seed."""
        with tempfile.TemporaryDirectory() as home:
            done = subprocess.run(  # noqa: S603 - ours
                [str(self.interpreter), "-m", f"benchmarks.fusion_peers.{self.driver}"],
                input=json.dumps([{"lists": lists, "weights": weights, "mode": self.mode} for lists, weights in jobs]),
                env={**os.environ, **QUIET, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": str(seed), "MEM0_DIR": home},
                stdout=subprocess.PIPE,
                encoding="utf-8",
                check=True,
            )
        told: dict[str, Any] = json.loads(done.stdout)
        return told["version"], [Fused(**one) for one in told["fused"]]


async def ranked_lists(folder: Path, collection: Collection) -> dict[str, Lists]:
    """For each question the first documents by BM25 and by vectors, with their scores."""
    await asyncio.to_thread(collection.write, folder)
    db = folder / "index.sqlite"
    await index_folder(folder, db, now=time.time(), embedder=HashedEmbedder())
    vectors = VectorSearch(HashedEmbedder())
    found: dict[str, Lists] = {}
    query = (
        "SELECT chunk_id, -bm25(words, 2.0, 1.0) AS score FROM words JOIN chunks ON chunks.id = words.rowid"
        " WHERE words MATCH ? ORDER BY score DESC, chunk_id LIMIT ?"
    )
    with closing(sqlite3.connect(db)) as sql:
        for name, text in collection.questions.items():
            snapshot = SearchIndex(db).snapshot(vectors.name)
            near = await vectors.search(text, DEPTH, snapshot)
            snapshot.close()
            by_words = sql.execute(query, (any_of(DEFAULT_TOKENIZER.question(text)), DEPTH)).fetchall()
            found[name] = {
                "keyword": _documents(collection, by_words),
                "vector": _documents(collection, [(one.chunk_id, one.relevance or 0.0) for one in near]),
            }
    return found


def _documents(collection: Collection, chunks: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    best: dict[str, float] = {}
    for chunk_id, score in chunks:
        best.setdefault(chunk_id.partition("#")[0].removesuffix(collection.suffix), score)
    return list(best.items())


def default(collection: Collection, lists: Mapping[str, Lists]) -> dict[str, list[str]]:
    """Ours as it is shipped: by ranks, hashed vectors at their light weight."""
    fusion = Fusion(FusionConfig(weights={"vector": HASHED_WEIGHT}, min_confidence=0.0))
    asked = (name for name in lists if name in collection.questions)
    return {name: [hit.id for hit in fusion.fuse(lists[name], top_n=DEPTH).hits] for name in asked}


def tuned(collection: Collection, lists: Mapping[str, Lists]) -> dict[str, list[str]]:
    """Ours with fusion, weights and k chosen by `tune` on the half of the questions that they are not used for."""
    names = sorted(lists)
    run: dict[str, list[str]] = {}
    for half, other in ((names[::2], names[1::2]), (names[1::2], names[::2])):
        grades = {name: collection.grades[name] for name in other if name in collection.grades}
        mine = {name: lists[name] for name in other}
        chosen = tune(mine, grades, weights=WEIGHTS, ks=KS, fusions=METHODS, holdout=0.0)
        told = f"{chosen.fusion}, {chosen.weights}, k {chosen.k:g}"
        print(f"{collection.name}, tuned on {len(other)} questions: {told}", file=sys.stderr)
        config = FusionConfig(fusion=chosen.fusion, k=chosen.k, weights=chosen.weights, min_confidence=0.0)
        fusion = Fusion(config, strategies=("keyword", "vector"))
        run |= {name: [hit.id for hit in fusion.fuse(lists[name], top_n=DEPTH).hits] for name in half}
    return run


def properties(peer: Peer) -> dict[str, bool]:
    """Try what can be relied on."""
    three = {"vector": A, "keyword": B, "graph": C}
    reverse = dict(reversed(three.items()))
    jobs: list[tuple[Lists, Mapping[str, float] | None]] = [
        (three, None),
        (reverse, None),
        ({"vector": A, "keyword": B}, None),
        ({"vector": TWICE, "keyword": B}, None),
        ({"vector": A, "keyword": B}, {"vector": 0.001, "keyword": 0.999}),
        ({"vector": A, "keyword": B}, {"vector": 0.999, "keyword": 0.001}),
    ]
    _, first = peer.fuse(jobs, seed=1)
    _, again = peer.fuse(jobs, seed=2)
    in_order, reversed_, plain, twice, light, heavy = first
    return {
        "the same in every process": [one.told for one in first] == [one.told for one in again],
        "whatever the order of lists": in_order.told == reversed_.told,
        "a duplicate counts once": plain.told == twice.told,
        "weights are honoured": light.ids[:2] == ["e", "c"] and heavy.ids[:2] == ["a", "b"],
        "input left alone": all(one.unmutated for one in first),
        "returns scores": all(score is not None for one in first for score in one.scores),
        "explains scores": all(one.explained for one in first),
    }


async def gather() -> dict[str, tuple[Collection, dict[str, Lists]]]:
    """Every collection with its lists."""
    found = {}
    for collection in collections():
        with tempfile.TemporaryDirectory() as name:
            found[collection.name] = collection, await ranked_lists(Path(name), collection)
    return found


def main(folder: Path | None) -> int:
    """Install, fuse, compare; the exit code. The runs are written to `folder` if it is given."""
    given = asyncio.run(gather())
    peers = {f"{OURS}: {mode}": Peer(OURS, Path(sys.executable), mode) for mode in METHODS}
    for driver, (package, modes) in PEERS.items():
        interpreter = install(f"fusion-{package}", package)
        peers |= {f"{driver}: {mode}": Peer(driver, interpreter, mode) for mode in modes}
    runs: dict[str, dict[str, dict[str, list[str]]]] = {}
    versions: dict[str, str] = {}
    for driver, peer in peers.items():
        runs[driver] = {}
        for name, (_, lists) in given.items():
            version, fused = peer.fuse([(one, None) for one in lists.values()], seed=0)
            versions[driver] = f"{version}, {peer.mode}"
            runs[driver][name] = {question: one.ids for question, one in zip(lists, fused, strict=True)}
    versions |= {DEFAULT: DEFAULT, TUNED: TUNED}
    light = {name: default(*found) for name, found in given.items()}
    runs = {DEFAULT: light, TUNED: {name: tuned(*found) for name, found in given.items()}, **runs}
    for driver, of in runs.items():
        for name, run in of.items():
            if folder is not None:
                write_run(folder, given[name][0], versions[driver], run)
    worse = relevance(given, runs, versions)
    lacking = reliability(peers, versions)
    for told in (*worse, *lacking):
        print(f"BROKEN {told}")
    return int(bool(worse or lacking))


def relevance(
    given: Mapping[str, tuple[Collection, dict[str, Lists]]],
    runs: Mapping[str, Mapping[str, dict[str, list[str]]]],
    versions: Mapping[str, str],
) -> list[str]:
    """Print the table of relevance; where ours is worse by more than chance."""
    worse: list[str] = []
    for name, (collection, _) in given.items():
        columns = ("nDCG@10", "MRR@10", "recall@100", "default - this, nDCG@10", "p", "tuned - this, nDCG@10", "p")
        print(f"{name}\n\n| | {' | '.join(columns)} |\n|{'---|' * 8}")
        for driver, of in runs.items():
            found = evaluate(of[name], collection.grades).metrics
            cells = [f"{found[metric].mean:.4f}" for metric in ("ndcg@10", "mrr@10", "recall@100")]
            for mine in (DEFAULT, TUNED):
                against = compare(of[name], runs[mine][name], collection.grades)
                gap = against.difference
                cells += [f"{gap.mean:+.4f} [{gap.low:+.4f}, {gap.high:+.4f}]", f"{against.p:.2f}"]
                if mine == TUNED and not driver.startswith(OURS) and gap.mean < 0 and against.p < ALPHA:
                    worse.append(f"{name}: {versions[driver]} ranks better")
            print(f"| {versions[driver]} | {' | '.join(cells)} |")
        print()
    return worse


def reliability(peers: Mapping[str, Peer], versions: Mapping[str, str]) -> list[str]:
    """Print the table of properties; those that ours lacks."""
    tried = {driver: properties(peer) for driver, peer in peers.items()}
    ours = [driver for driver in tried if driver.startswith(OURS)]
    names = list(tried[ours[0]])
    print(f"| | {' | '.join(names)} |\n|{'---|' * (len(names) + 1)}")
    for driver, found in tried.items():
        print(f"| {versions[driver]} | {' | '.join('yes' if found[name] else 'no' for name in names)} |")
    return [f"{driver} lacks: {name}" for driver in ours for name, has in tried[driver].items() if not has]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if sys.argv[1:] else None))
