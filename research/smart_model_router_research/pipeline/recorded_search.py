"""Searches of a run: recorded where they are made, within its limits, and given again from the record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from smart_model_router_research.deep.claims import SourceTier
from smart_model_router_research.deep.corpus_search import HITS
from smart_model_router_research.deep.found_answers import ReadDocument
from smart_model_router_research.deep.offline import DocumentSearch

Admits = Callable[[ReadDocument], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRecord:
    """One search: its place among the sources (from 0), its text, how many were asked for, the ids that it gave."""

    source: int
    text: str
    most: int
    documents: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalRecord:
    """The searches of a run so far, its documents (the name of their list), and the topics of each source."""

    documents: str
    searches: tuple[SearchRecord, ...] = ()
    topics: tuple[tuple[str, ...], ...] = ()


@dataclass
class SearchLedger:
    """The searches and documents of a run, and what it may still have. What is known is free.

    `refused` counts searches and documents that a limit kept away, `blocked` the ids of documents of tier C.
    """

    most_searches: int
    most_documents: int
    searches: dict[tuple[int, str, int], SearchRecord] = field(default_factory=dict)
    documents: dict[str, ReadDocument] = field(default_factory=dict)
    refused_searches: int = 0
    refused_documents: set[str] = field(default_factory=set)
    blocked: dict[str, str] = field(default_factory=dict)

    def admitted(self, found: Sequence[ReadDocument], admits: Admits) -> list[ReadDocument]:
        """Return the documents that the run may have, and keep them."""
        kept: list[ReadDocument] = []
        for document in found:
            stored = document.stored
            if stored.id in self.documents:
                kept.append(self.documents[stored.id])
            elif stored.tier is SourceTier.C:
                self.blocked[stored.id] = stored.tier_reason
            elif not admits(document):
                continue
            elif len(self.documents) >= self.most_documents:
                self.refused_documents.add(stored.id)
            else:
                self.documents[stored.id] = document
                kept.append(document)
        return kept


def _all(_: ReadDocument) -> bool:
    return True


class RecordingSearch:
    """A source whose searches are recorded. `admits` says which of its documents the run may have."""

    def __init__(self, source: int, search: DocumentSearch, ledger: SearchLedger, admits: Admits = _all) -> None:
        self._source = source
        self._search = search
        self._ledger = ledger
        self._admits = admits

    async def search(self, text: str, most: int = HITS) -> list[ReadDocument]:
        """Return the documents of the best passages; none once the searches of the run are used up."""
        ledger, key = self._ledger, (self._source, text, most)
        if key in ledger.searches:
            return [ledger.documents[each] for each in ledger.searches[key].documents]
        if len(ledger.searches) >= ledger.most_searches:
            ledger.refused_searches += 1
            return []
        found = ledger.admitted(await self._search.search(text, most), self._admits)
        ids = tuple(dict.fromkeys(document.stored.id for document in found))
        ledger.searches[key] = SearchRecord(source=self._source, text=text, most=most, documents=ids)
        return found

    async def topics(self) -> frozenset[str]:
        """Return the names that all its documents are about."""
        return await self._search.topics()


class RecordedSearch:
    """A source as a record has it: what it was not asked, it does not answer."""

    def __init__(self, source: int, record: RetrievalRecord, documents: Mapping[str, ReadDocument]) -> None:
        self._topics = frozenset(record.topics[source])
        self._known = {
            (each.text, each.most): [documents[one] for one in each.documents]
            for each in record.searches
            if each.source == source
        }

    async def search(self, text: str, most: int = HITS) -> list[ReadDocument]:
        """Return the documents that this search gave."""
        return list(self._known.get((text, most), ()))

    async def topics(self) -> frozenset[str]:
        """Return the names that all its documents are about."""
        return self._topics
