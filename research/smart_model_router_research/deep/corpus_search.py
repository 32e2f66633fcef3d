"""The two phases of a search in a corpus: hits lead to whole documents, and the documents are read.

The index is asked by keywords and links, and with no least confidence: vectors of hashes would lose passages that words
find, and what answers a question is for the reader of the documents to say.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path

from smart_model_router.domain.errors import SmartRouterError
from smart_model_router_research.deep.corpus_file import Corpus
from smart_model_router_research.deep.found_answers import ReadDocument
from smart_model_router_research.deep.naming import bare
from smart_model_router_research.deep.readers import ReadingContext, read_indexed
from smart_model_router_scoring.fusion import FusionConfig
from smart_model_router_scoring.retrieval import (
    Passage,
    QueryOrchestrator,
    RetrievalConfig,
    SearchIndex,
)
from smart_model_router_scoring.retrieval.orchestrator import GRAPH, GRAPH_WEIGHT, TIMEOUTS

HITS = 16
SAMPLED = 24
FEW_DOCUMENTS = 12
MOST_SHARE = 0.75
"""A name that this share of the sampled documents has is one that all are about."""
_NAME = re.compile(r"\b[A-Z][\w.+#-]*\w")
PATIENCE = 120.0
"""Seconds for each part of a search: a run on a busy machine finds what it finds on a quiet one."""
ASKED = ("keyword", GRAPH)
"""The parts of a search; vectors take none."""
MOST_KEPT = 512
"""Documents that are kept read."""


class SearchIncomplete(SmartRouterError):
    """A search in a corpus of which a part failed, or took too long: `corpus`, and the reasons by part."""

    def __init__(self, corpus: str, reasons: Mapping[str, str]) -> None:
        super().__init__(f"{corpus}: {'; '.join(f'{name} search: {why}' for name, why in sorted(reasons.items()))}")
        self.corpus = corpus
        self.reasons = dict(reasons)


class CorpusSearch:
    """A corpus: its index, what is known of all its documents, and those that were read.

    They are kept as long as the index stays as it is. `place` is the path that it was opened from.
    """

    def __init__(
        self, index: SearchIndex | str | Path, corpus: Corpus, context: ReadingContext, place: str = ""
    ) -> None:
        self.place = place
        self.index = index if isinstance(index, SearchIndex) else SearchIndex(index)
        self.corpus = corpus
        self._context = context
        config = RetrievalConfig(
            fusion=FusionConfig(weights={GRAPH: GRAPH_WEIGHT}, min_confidence=0.0),
            timeouts=dict.fromkeys(TIMEOUTS, PATIENCE),
        )
        self._orchestrator = QueryOrchestrator(self.index, config=config)
        self._kept: OrderedDict[str, ReadDocument] = OrderedDict()
        self._generation = -1
        self._topics: frozenset[str] | None = None

    async def hits(self, text: str, most: int = HITS) -> list[Passage]:
        """Return the best passages for a text, best first; none for one without words.

        Raises SearchIncomplete when a part of the search gave nothing: its result would not be the same another time.
        """
        if not text.strip():
            return []
        results = await self._orchestrator.query(text, top_k=max(most, HITS), top_n=most)
        if lost := {name: why for name, why in results.degraded.items() if name in ASKED}:
            raise SearchIncomplete(self.corpus.name, lost)
        if results.facts.generation != self._generation:
            self._generation = results.facts.generation
            self._kept.clear()
            self._topics = None
        return list(results.passages)

    async def search(self, text: str, most: int = HITS) -> list[ReadDocument]:
        """Return the whole documents of the best passages, best first."""
        paths = dict.fromkeys(hit.path for hit in await self.hits(text, most))
        return await self.read(list(paths))

    async def read(self, paths: Sequence[str]) -> list[ReadDocument]:
        """Return the documents of these paths, without those that are gone."""
        found = {path: self._kept[path] for path in paths if path in self._kept}  # the rest is awaited meanwhile
        if unread := [path for path in paths if path not in found]:
            read = await asyncio.to_thread(self._fetch, unread)
            found |= {path: document for path, document in zip(unread, read, strict=True) if document is not None}
        for path, document in found.items():
            self._kept[path] = document
            self._kept.move_to_end(path)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return [found[path] for path in paths if path in found]

    async def topics(self) -> frozenset[str]:
        """Return the names, in lower case, that most documents mention and none is about; a sample is read once.

        A corpus of few documents has none: each thing is named in most of them.
        """
        if self._topics is None:
            paths = sorted(await asyncio.to_thread(self.index.paths))
            sample = await self.read(paths[:: max(1, len(paths) // SAMPLED)][:SAMPLED])
            counted: Counter[str] = Counter()
            for document in sample:
                counted.update({name.casefold() for name in _NAME.findall(document.stored.text)})
            least = MOST_SHARE * len(sample) if len(paths) >= FEW_DOCUMENTS else math.inf
            own = {bare(path.rpartition("/")[2].split(".")[0]).casefold() for path in paths}
            own |= {name.casefold() for document in sample for name in document.names}
            self._topics = frozenset(name for name, count in counted.items() if count >= least and name not in own)
        return self._topics

    def _fetch(self, paths: Sequence[str]) -> list[ReadDocument | None]:
        read = [read_indexed(self.index, path, self.corpus, self._context).document for path in paths]
        return [
            None if document is None else ReadDocument(document, path)
            for path, document in zip(paths, read, strict=True)
        ]
