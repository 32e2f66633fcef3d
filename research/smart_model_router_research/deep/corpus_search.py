"""The two phases of a search in a corpus: hits lead to whole documents, and the documents are read.

The index is asked by keywords and links, and with no least confidence: vectors of hashes would lose passages that words
find, and what answers a question is for the reader of the documents to say.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from smart_model_router_research.deep.claims import SourceTier
from smart_model_router_research.deep.found_answers import ReadDocument
from smart_model_router_research.deep.naming import bare
from smart_model_router_research.deep.page_outline import outline_of_page
from smart_model_router_research.deep.sources import DateConfidence, SourceDate, StoredDocument, sha256_of
from smart_model_router_scoring.fusion import FusionConfig
from smart_model_router_scoring.retrieval import (
    IndexedDocument,
    Passage,
    QueryOrchestrator,
    RetrievalConfig,
    SearchIndex,
    UnknownDocument,
)
from smart_model_router_scoring.retrieval.orchestrator import GRAPH, GRAPH_WEIGHT

HITS = 16
SAMPLED = 24
MOST_SHARE = 0.75
"""A name that this share of the sampled documents has is one that all are about."""
_NAME = re.compile(r"\b[A-Z][\w.+#-]*\w")
MOST_KEPT = 512
"""Documents that are kept read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusFacts:
    """The origin of a corpus's documents and the trust in them; the defaults are those of a folder that the user names.

    `as_of` is the day of which everything in it speaks, ISO 8601; "" for an unknown one.
    """

    name: str
    publisher: str = ""
    tier: SourceTier = SourceTier.A
    alone_suffices: bool = True
    as_of: str = ""
    base_url: str = ""


class CorpusSearch:
    """A corpus: its index, and the documents of it that were read, kept as long as the index stays as it is."""

    def __init__(self, index: SearchIndex | str | Path, facts: CorpusFacts | None = None) -> None:
        self.index = index if isinstance(index, SearchIndex) else SearchIndex(index)
        self.facts = facts or CorpusFacts(name=Path(self.index.facts().root).name)
        config = RetrievalConfig(fusion=FusionConfig(weights={GRAPH: GRAPH_WEIGHT}, min_confidence=0.0))
        self._orchestrator = QueryOrchestrator(self.index, config=config)
        self._kept: OrderedDict[str, ReadDocument] = OrderedDict()
        self._generation = -1
        self._topics: frozenset[str] | None = None

    async def hits(self, text: str, most: int = HITS) -> list[Passage]:
        """Return the best passages for a text, best first; none for one without words."""
        if not text.strip():
            return []
        results = await self._orchestrator.query(text, top_k=max(most, HITS), top_n=most)
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
        unread = [path for path in paths if path not in self._kept]
        if unread:
            for path, document in zip(unread, await asyncio.to_thread(self._fetch, unread), strict=True):
                if document is not None:
                    self._kept[path] = document
        found = [self._kept[path] for path in paths if path in self._kept]
        for path in paths:
            if path in self._kept:
                self._kept.move_to_end(path)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return found

    async def topics(self) -> frozenset[str]:
        """Return the names, in lower case, that most documents mention and none is about; a sample is read once."""
        if self._topics is None:
            paths = sorted(await asyncio.to_thread(self.index.paths))
            sample = await self.read(paths[:: max(1, len(paths) // SAMPLED)][:SAMPLED])
            counted: Counter[str] = Counter()
            for document in sample:
                counted.update({name.casefold() for name in _NAME.findall(document.stored.text)})
            least = max(MOST_SHARE * len(sample), min(len(sample), 3))
            own = {bare(path.rpartition("/")[2].split(".")[0]).casefold() for path in paths}
            own |= {name.casefold() for document in sample for name in document.names}
            self._topics = frozenset(name for name, count in counted.items() if count >= least and name not in own)
        return self._topics

    def _fetch(self, paths: Sequence[str]) -> list[ReadDocument | None]:
        found: list[ReadDocument | None] = []
        for path in paths:
            try:
                found.append(ReadDocument(stored_document(self.index.fetch(path), self.facts), path))
            except UnknownDocument:
                found.append(None)
        return found


def stored_document(document: IndexedDocument, facts: CorpusFacts) -> StoredDocument:
    """Return a document of an index as a run stores it. Its id is the name of its corpus and its path."""
    text = outline_of_page(document.text) if document.path.endswith((".html", ".htm")) else document.text
    dated = SourceDate(day=facts.as_of, signal="corpus", confidence=DateConfidence.HIGH) if facts.as_of else None
    heading = next((chunk.heading for chunk in document.chunks if chunk.heading), "")
    return StoredDocument(
        id=f"{facts.name}/{document.path}",
        text=text,
        sha256=sha256_of(text),
        title=bare(heading.split(" > ")[0]),
        url=f"{facts.base_url.rstrip('/')}/{document.path}" if facts.base_url else "",
        publisher=facts.publisher or facts.name,
        tier=facts.tier,
        tier_reason=f"corpus {facts.name}",
        published=dated,
        backend="corpus",
        corpus=facts.name,
        alone_suffices=facts.alone_suffices,
    )
