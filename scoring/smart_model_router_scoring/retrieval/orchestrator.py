"""A query: the strategies side by side, their lists fused, and results that explain themselves."""

from __future__ import annotations

import asyncio
import logging
import math
import sqlite3
import warnings
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType

from smart_model_router_scoring.calibration import interpret
from smart_model_router_scoring.evidence import (
    BEST,
    WITH_COSINES,
    EvidenceModel,
    PassageEvidence,
    QuestionTerms,
    question_evidence,
)
from smart_model_router_scoring.fusion import (
    TOP_N,
    EvidenceGate,
    Fused,
    Fusion,
    FusionConfig,
    Listed,
    best_evidence,
    check_names,
    check_top_n,
    fuse_results,
    retrieval_depth,
)
from smart_model_router_scoring.options import ConfigError, check_count, check_positive
from smart_model_router_scoring.retrieval.embedders import Embedder, HashedEmbedder, is_lexical
from smart_model_router_scoring.retrieval.index import Lane, SearchIndex, Snapshot
from smart_model_router_scoring.retrieval.judged import Judged, ScoredHit, by_evidence, by_rank
from smart_model_router_scoring.retrieval.results import Explained, Passage, QueryResults
from smart_model_router_scoring.retrieval.strategies import (
    Found,
    KeywordSearch,
    Matched,
    NotAvailable,
    Strategy,
    evidence_of,
    holes,
    neighbours,
)
from smart_model_router_scoring.retrieval.vectors import Nearest, VectorSearch
from smart_model_router_scoring.retrieval.wordllama_embedder import EmbedderUnavailable, WordLlamaEmbedder

log = logging.getLogger("smart_model_router_scoring.retrieval")

TOP_K = 10
TOP_K_MAX = 1000
GRAPH = "graph"
GRAPH_WEIGHT = 0.05
"""A neighbour did not match the question, something that links to it did: worth a nudge, not a vote.

At 0.25 links cost our own documents 0.049 of nDCG@10 (docs/benchmarks.md); at 0.05 they cost no collection anything."""
HASHED_WEIGHT = 0.01
"""The weight of hashed vectors without one in `FusionConfig.weights`, as a share of that of keywords.

They add passages that keywords do not find. At 0.01 they cost no collection anything, at 0.25 the Factbook 0.030 of
nDCG@10, at 1.0 three of five collections 0.018 to 0.076 (docs/benchmarks.md).
"""
WORDLLAMA_WEIGHT = 0.25
"""The same of a `WordLlamaEmbedder`. It gains 0.01 to 0.07 of nDCG@10 on each of five collections; at 1.0 one loses."""
HASHED_WEIGHT_MOST = 0.25
"""The share above which a weight of hashed vectors is warned of."""
TIMEOUTS = MappingProxyType({"keyword": 2.0, "vector": 5.0, GRAPH: 1.0})
TIMEOUT_SECONDS = 2.0
_FACTS = "facts"


@dataclass(frozen=True, kw_only=True)
class RetrievalConfig:
    """The settings for questions. `timeouts` are seconds by strategy (above 0; 2.0 for one that is not named).

    `evidence` scores results, and an index that does not answer a question (below `fusion.min_confidence`) gives none;
    `evidence_with_cosines` does so where vectors that are evidence took part. With `evidence` None, or a strategy of
    another kind, the calibration of `fusion` does both: the founding scales. `recency` lets younger documents come
    first and raises no score of `evidence`; it is off, as the times of a folder are often those of a checkout. Raises
    ConfigError for invalid values.
    """

    fusion: FusionConfig = field(default_factory=lambda: FusionConfig(weights={GRAPH: GRAPH_WEIGHT}))
    evidence: EvidenceModel | None = field(default_factory=EvidenceModel)
    evidence_with_cosines: EvidenceModel = WITH_COSINES
    recency: bool = False
    timeouts: Mapping[str, float] = field(default_factory=lambda: TIMEOUTS)

    def __post_init__(self) -> None:
        for name, seconds in self.timeouts.items():
            check_positive(f"timeouts.{name}", seconds)
        object.__setattr__(self, "timeouts", MappingProxyType(dict(self.timeouts)))


class HeavyHashedVectors(UserWarning):
    """Hashed vectors weigh more than a quarter of what keywords do: results rank worse than by keywords alone."""


class QueryOrchestrator:
    """Asks an index questions. It may be shared by any number of tasks of one event loop.

    `embedder` must be that of the index for vector search to take part. Beside keywords, scored by evidence, a
    `WordLlamaEmbedder` weighs 0.25 and a `HashedEmbedder` 0.01 of them unless `weights` names `vector`; of the latter
    more than 0.25 is warned of (HeavyHashedVectors). `now` gives seconds since 1970, for recency; without it recency
    counts for nothing. `strategies` replace keyword and vector search. `without_vectors` is the reason why there is no
    embedder: where the index has vectors, `degraded` names it.
    """

    def __init__(
        self,
        index: SearchIndex | str | Path,
        *,
        embedder: Embedder | None = None,
        config: RetrievalConfig | None = None,
        now: Callable[[], float] | None = None,
        strategies: Sequence[Strategy] | None = None,
        without_vectors: str | None = None,
    ) -> None:
        self._index = index if isinstance(index, SearchIndex) else SearchIndex(index)
        self._now = now
        self._without_vectors = without_vectors
        given: list[Strategy] = [KeywordSearch()]
        if embedder is not None:
            given.append(VectorSearch(embedder))
        chosen = given if strategies is None else strategies
        self._config = _with_vector_weight(config or RetrievalConfig(), chosen)
        fusion = self._config.fusion
        self._names = [*(one.name for one in chosen), GRAPH]
        check_names(fusion.weights, self._names)
        self._strategies = tuple(one for one in chosen if fusion.weight(one.name))
        if not self._strategies:
            raise ConfigError("weights", dict(fusion.weights), "a weight above 0 for keyword or vector search")
        self._evidence = self._config.evidence or EvidenceModel()
        # Of what another kind of strategy finds, nothing is known.
        known = all(isinstance(one, KeywordSearch | VectorSearch) for one in self._strategies)
        words = any(isinstance(one, KeywordSearch) for one in self._strategies)
        self._judges = self._config.evidence is not None and known and words
        if not self._judges:
            self._fusion  # noqa: B018 - a `min_confidence` that cannot be reached is told now
        # The order alone: what is shown, and with which score, is for the evidence to say.
        ordering = replace(fusion, min_confidence=0.0, evidence_gate=EvidenceGate())
        self._ordering = Fusion(ordering, strategies=self._names)

    @cached_property
    def _fusion(self) -> Fusion:
        """The fusion of a founding scale, for strategies without evidence and for hours without keyword search."""
        return Fusion(self._config.fusion, strategies=self._names)

    async def query(self, text: str, top_k: int = TOP_K, top_n: int = TOP_N, explain: bool = False) -> QueryResults:
        """The best `top_n` (1..100) chunks, of the best `top_k` (1..1000, at least `top_n`) of each strategy.

        Raises ValueError for a blank text or a number out of range, IndexNotReady without an index, and RuntimeError
        when every strategy failed. The same question to the same index gives the same answer, and fewer results are the
        first of more as long as neither number is above `top_k`: deeper lists say more of every chunk. For pages, give
        the `top_k` of the last page from the first one on.
        """
        if not text.strip():
            raise ValueError("the question is blank")
        check_top_n(top_n)
        check_count("top_k", top_k, 1, TOP_K_MAX)
        lanes = [*(one.name for one in self._strategies), _FACTS]
        snapshot = await asyncio.to_thread(self._index.snapshot, *lanes)
        try:
            for one in self._strategies:
                if isinstance(one, VectorSearch):
                    await one.prepare(snapshot.facts)
            search = _Search(snapshot, self._config, retrieval_depth(top_k, top_n))
            if self._without_vectors is not None and snapshot.facts.embedder is not None:
                has = f"the index has vectors of {snapshot.facts.embedder}"
                search.degraded[VectorSearch.name] = f"{has}, {self._without_vectors}"
            await search.run(self._strategies, text)
            await search.expand()
            return await self._results(search, top_n, explain)
        finally:
            snapshot.close()

    async def _results(self, search: _Search, top_n: int, explain: bool) -> QueryResults:
        # One visit to the index and its thread: each costs more than the evidence does.
        rows, fused, judged = await search.facts_lane.run(lambda sql: self._judge(sql, search, top_n))
        passages, nearest = (
            [rows[one.hit.id].passage(one.hit.id, one.score) for one in hits] for hits in (judged.hits, judged.nearest)
        )
        return QueryResults(
            ((one.hit.id, one.score) for one in judged.hits),
            passages=passages,
            explained=tuple(map(search.explained, judged.hits, passages)) if explain else (),
            degraded=MappingProxyType(search.degraded),
            considered=fused.considered,
            facts=search.snapshot.facts,
            meaning=judged.meaning,
            answers=judged.answers,
            answers_term=judged.explain() if explain else None,
            nearest=nearest,
            evidence=judged.evidence,
        )

    def _judge(
        self, sql: sqlite3.Connection, search: _Search, top_n: int
    ) -> tuple[dict[str, _Row], Fused[str], Judged]:
        rows = _rows(sql, sorted({one for found in (*search.lists.values(), *search.best.values()) for one in found}))
        # An id that the index does not have is no result, whichever strategy found it.
        lists, bests = (
            {name: [chunk_id for chunk_id in found if chunk_id in rows] for name, found in of.items()}
            for of in (search.lists, search.best)
        )
        question = search.question if self._judges else None
        now = self._now() if self._now is not None and self._config.recency else None
        fused = (self._fusion if question is None else self._ordering).fuse(
            search.scored(lists),
            modified_times=None if now is None else {chunk_id: row.modified for chunk_id, row in rows.items()},
            now=None if now is None else datetime.fromtimestamp(now, UTC),
            evidence=best_evidence(search.relevance),
            top_n=top_n,
        )
        if question is None:
            return rows, fused, by_rank(fused.hits, self._config.fusion.calibration.meaning)
        facts, nearest = search.snapshot.facts, search.nearest
        model, null, best = self._evidence, facts.null, bests[KeywordSearch.name]
        if nearest is not None and facts.null_with_cosines is not None:
            model, null = self._config.evidence_with_cosines, facts.null_with_cosines
            best = list(dict.fromkeys([*best, *bests[VectorSearch.name]]))
        wanted = dict.fromkeys((*best, *(hit.id for hit in fused.hits)))
        others = {rows[one].row: one for one in wanted if one not in search.evidence}
        found = evidence_of(sql, question, others)
        passages = search.evidence | {others[row]: passage for row, passage in found.items()}
        if nearest is not None:
            passages |= {one: passages[one].with_cosines(nearest.cosines(one)) for one in wanted}
        features = question_evidence(question, [passages[chunk_id] for chunk_id in best])
        hits = [(hit, passages[hit.id]) for hit in fused.hits]
        judged = by_evidence(model, null, features, hits, self._config.fusion.min_confidence)
        return rows, fused, judged


def _with_vector_weight(config: RetrievalConfig, strategies: Iterable[Strategy]) -> RetrievalConfig:
    """Give vectors beside keyword search the weight of their embedder, unless a weight is written: warn of a heavy one.

    A founding scale keeps the founding weight of 1.0: on `raw` keywords alone never reach `min_confidence`.
    """
    fusion = config.fusion
    embedder = next((one.embedder for one in strategies if isinstance(one, VectorSearch)), None)
    weight = next((share for kind, share in _WEIGHTS.items() if isinstance(embedder, kind)), None)
    keyword = fusion.weight(KeywordSearch.name) if any(isinstance(one, KeywordSearch) for one in strategies) else 0.0
    if config.evidence is None or weight is None or not keyword:
        return config
    written = fusion.weights.get(VectorSearch.name)
    if written is None:
        weights = {**fusion.weights, VectorSearch.name: weight * keyword}
        return replace(config, fusion=replace(fusion, weights=weights))
    if embedder is not None and is_lexical(embedder) and written > HASHED_WEIGHT_MOST * keyword:
        message = (
            f"weights.vector {written:g}: hashed vectors rank worse than keywords; at most"
            f" {HASHED_WEIGHT_MOST * keyword:g} is advised beside a keyword weight of {keyword:g}"
        )
        warnings.warn(message, HeavyHashedVectors, stacklevel=3)
    return config


_WEIGHTS: Mapping[type[Embedder], float] = {HashedEmbedder: HASHED_WEIGHT, WordLlamaEmbedder: WORDLLAMA_WEIGHT}
"""Of vectors without a weight that is written, as a share of that of keywords. Those of others weigh 1.0."""


class _Search:
    """The lists of one question: strategy -> chunk ids, best first, and their scores.

    `lists` are as long as the caller asked for; `best` always has BEST of each: a verdict depends on no such number.
    """

    def __init__(self, snapshot: Snapshot, config: RetrievalConfig, depth: int) -> None:
        self.snapshot = snapshot
        self.lists: dict[str, list[str]] = {}
        self.best: dict[str, list[str]] = {}
        self.relevance: dict[str, dict[str, float]] = {}
        self.evidence: dict[str, PassageEvidence] = {}
        self.scores: dict[str, dict[str, float]] = {}
        self.degraded: dict[str, str] = {}
        self.nearest: Nearest | None = None
        self.question: QuestionTerms | None = None
        self._config = config
        self._depth = depth

    @property
    def facts_lane(self) -> Lane:
        """The lane for what is no strategy's own."""
        return self.snapshot.lane(_FACTS)

    async def run(self, strategies: Sequence[Strategy], text: str) -> None:
        """Ask all of them at once. Raises RuntimeError when none answers."""
        answers = await asyncio.gather(
            *(
                self._ask(one.name, partial(one.search, text, max(self._depth, BEST), self.snapshot))
                for one in strategies
            )
        )
        # In the order of their names: the order of lists must not depend on the clock.
        for one, found in sorted(zip(strategies, answers, strict=True), key=lambda pair: pair[0].name):
            if found is not None:
                self._keep(one.name, found)
        if not self.lists:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in sorted(self.degraded.items()))
            raise RuntimeError(f"no strategy is left: {reasons}")

    async def expand(self) -> None:
        """Ask for neighbours of what was found. Without any, links have nothing to say and no part in the score."""
        fusion = self._config.fusion
        if not fusion.weight(GRAPH) or not self.snapshot.facts.links:
            return
        weights = {name: fusion.weight(name) for name in self.lists}
        fused = fuse_results(self.scored(self.lists), fusion.k, weights, fusion=fusion.fusion)
        seeds = [chunk_id for chunk_id, _ in fused]
        near = partial(self.facts_lane.run, lambda sql: neighbours(sql, seeds, self._depth))
        found = await self._ask(GRAPH, near)
        if found:
            self._keep(GRAPH, found)

    def _keep(self, name: str, found: Sequence[Found]) -> None:
        self.lists[name] = [one.chunk_id for one in found[: self._depth]]
        self.best[name] = [one.chunk_id for one in found[:BEST]]
        if isinstance(found, Nearest):
            self.nearest = found
        if isinstance(found, Matched):
            self.question = found.question
        known = {one.chunk_id: one.relevance for one in found if one.relevance is not None}
        if known:
            self.relevance[name] = known
        self.evidence.update((one.chunk_id, one.evidence) for one in found if one.evidence is not None)
        scores = known | {one.chunk_id: one.score for one in found if one.score is not None}
        if scores:
            self.scores[name] = scores

    def scored(self, lists: Mapping[str, Sequence[str]]) -> dict[str, Listed[str]]:
        """These lists with the scores of their strategies, as far as they gave any."""
        return {
            name: [(key, self.scores[name].get(key, math.nan)) for key in ids] if name in self.scores else ids
            for name, ids in lists.items()
        }

    def explained(self, one: ScoredHit, passage: Passage) -> Explained:
        """The explanation of one result."""
        hit = one.hit
        relevance = {name: of[hit.id] for name, of in self.relevance.items() if hit.id in of}
        word = interpret(one.score)
        return Explained(passage, word, dict(hit.ranks), relevance, hit.age_days, one.explain(), hit.explain_order())

    async def _ask(self, name: str, search: Callable[[], Awaitable[Sequence[Found]]]) -> Sequence[Found] | None:
        # It is called here: of a task that is cancelled before it begins nothing is left that was never awaited.
        seconds = self._config.timeouts.get(name, TIMEOUT_SECONDS)
        try:
            async with asyncio.timeout(seconds):
                return await search()
        except TimeoutError:
            self.degraded[name] = f"no answer within {seconds:g} s"
        except (NotAvailable, EmbedderUnavailable) as why:
            self.degraded[name] = str(why)
        except Exception as error:  # whatever an embedder or a strategy raises, the others still answer
            log.warning("the strategy %s failed", name, exc_info=error)
            self.degraded[name] = f"{type(error).__name__}: {error}"
        return None


@dataclass(frozen=True, slots=True)
class _Row:
    row: int
    path: str
    heading: str
    text: str
    modified: float

    def passage(self, chunk_id: str, score: float) -> Passage:
        return Passage(chunk_id, score, self.path, self.heading, self.text, self.modified)


def _rows(sql: sqlite3.Connection, chunk_ids: Sequence[str]) -> dict[str, _Row]:
    """Return the facts about these chunks."""
    columns = "chunk_id, chunks.id, path, heading, body, modified"
    chunks = "chunks JOIN documents ON documents.id = document"
    query = f"SELECT {columns} FROM {chunks} WHERE chunk_id IN {holes(chunk_ids)}"  # noqa: S608 - ours
    return {chunk_id: _Row(*row) for chunk_id, *row in sql.execute(query, tuple(chunk_ids))}
