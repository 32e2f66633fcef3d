"""Searches of a run: recorded where they are made, within its limits, and given again from the record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from smart_model_router_research.deep.claims import SourceTier
from smart_model_router_research.deep.corpus_search import HITS
from smart_model_router_research.deep.found_answers import ReadDocument
from smart_model_router_research.deep.lookups import Extent, Obstacle, QuestionLookup
from smart_model_router_research.deep.session import DocumentSearch
from smart_model_router_research.deep.tiers import SourcePolicy, operator_tier
from smart_model_router_research.engine.steps import described
from smart_model_router_research.pipeline.search_time import SearchTime
from smart_model_router_research.web.diary import WebDiary, WebSource

T = TypeVar("T")
Admits = Callable[[ReadDocument], bool]
Permits = Callable[[str], bool]
"""Returns whether the text of a search may be sent to a source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRecord:
    """One search: its place among the sources (from 0), its text, how many were asked for, the ids that it gave.

    `only` names the documents that were wanted of it ("" for all); `is_cut` says that a limit kept some away.
    """

    source: int
    text: str
    most: int
    documents: tuple[str, ...]
    only: str = ""
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalRecord:
    """The searches of a run so far, its documents (the name of their list), and the topics of each source.

    `further_searches` and `further_documents` count those of them that a model has added.
    """

    documents: str
    searches: tuple[SearchRecord, ...] = ()
    topics: tuple[tuple[str, ...], ...] = ()
    further_searches: int = 0
    further_documents: int = 0


@dataclass
class SearchLedger:
    """The searches and documents of a run, and what it may still have. What is known is free.

    `refused` counts searches and documents that a limit kept away, `late` searches that had no time to begin, `cut`
    those that were broken off, `failed` those that raised, by error; `blocked` are the ids of documents of tier C.
    `unsent` counts queries that would have told the web what stands in a private document; `web` is what web sources
    told of themselves. `topics` are those of each source as far as they are known. `answered` and `obstacles` are the
    searches that gave something, and what kept others away, since `begin`.
    """

    most_searches: int
    most_documents: int
    time: SearchTime
    policy: SourcePolicy = field(default_factory=SourcePolicy)
    topics: dict[int, frozenset[str]] = field(default_factory=dict)
    searches: dict[tuple[int, str, int, str], SearchRecord] = field(default_factory=dict)
    documents: dict[str, ReadDocument] = field(default_factory=dict)
    refused_searches: int = 0
    refused_documents: set[str] = field(default_factory=set)
    late: int = 0
    cut: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    made: int = 0
    unsent: int = 0
    web: WebDiary = field(default_factory=WebDiary)
    blocked: dict[str, str] = field(default_factory=dict)
    answered: int = 0
    obstacles: dict[Obstacle, None] = field(default_factory=dict)

    def apart(self, searches: int, documents: int) -> SearchLedger:
        """Return a ledger of the same searches and documents that may add so many: its failures are its own."""
        return SearchLedger(
            len(self.searches) + searches,
            len(self.documents) + documents,
            self.time,
            self.policy,
            self.topics,
            self.searches,
            self.documents,
            web=self.web,
            blocked=self.blocked,
        )

    def begin(self) -> None:
        """Begin with the searches for another question."""
        self.answered = 0
        self.obstacles.clear()

    def lookup(self, question_id: str) -> QuestionLookup:
        """Return how far the question was searched for, for which `begin` was called last."""
        extent = Extent.PART if self.answered else Extent.NONE
        return QuestionLookup(
            question_id=question_id,
            extent=extent if self.obstacles else Extent.WHOLE,
            obstacles=tuple(self.obstacles),
        )

    def hinder(self, obstacle: Obstacle) -> None:
        """Note what kept a search away, or part of what it gave."""
        self.obstacles[obstacle] = None

    def note(self, told: WebDiary) -> None:
        """Note what a web source tells: back-ends that failed, and pages that a limit kept away, hinder."""
        self.web.add(told)
        self.refused_documents |= told.unfetched
        if told.failures:
            self.hinder(Obstacle.SOURCE)
        if told.unread:
            self.hinder(Obstacle.PAGES)
        if told.unfetched:
            self.hinder(Obstacle.DOCUMENTS)

    @property
    def halt(self) -> str:
        """The reason by which no further round would find more: "deadline", "budget" or "failed"; "" for none.

        It is "failed" where no search of the step succeeded.
        """
        if self.late or self.cut:
            return "deadline"
        if self.refused_searches or self.refused_documents:
            return "budget"
        return "failed" if self.failed and not self.made else ""

    def admitted(self, found: Sequence[ReadDocument], admits: Admits) -> list[ReadDocument]:
        """Return the documents that the run may have, and keep them."""
        kept: list[ReadDocument] = []
        for document in (_judged(each, self.policy) for each in found):
            stored = document.stored
            if stored.id in self.documents:
                kept.append(self.documents[stored.id])
            elif stored.tier is SourceTier.C:
                self.blocked[stored.id] = stored.tier_reason
            elif not admits(document):
                continue
            elif len(self.documents) >= self.most_documents:
                self.refused_documents.add(stored.id)
                self.hinder(Obstacle.DOCUMENTS)
            else:
                self.documents[stored.id] = document
                kept.append(document)
        return kept


def _judged(document: ReadDocument, policy: SourcePolicy) -> ReadDocument:
    """Return the document in the tier that the policy of the run gives it: its source need not know the policy."""
    stored, verdict = document.stored, operator_tier(document.stored, policy)
    if verdict is None or verdict.tier is stored.tier:
        return document
    return ReadDocument(replace(stored, tier=verdict.tier, tier_reason=verdict.reason), document.path)


def _all(_: ReadDocument) -> bool:
    return True


def _any_text(_: str) -> bool:
    return True


class RecordingSearch:
    """A source whose searches are recorded. `admits` says which of its documents are wanted, and `only` names these.

    `permits` says which texts may be sent to it.

    A search that fails, or comes too late, gives nothing, and the ledger has it: what others find is not lost by it.
    """

    def __init__(
        self,
        source: int,
        search: DocumentSearch,
        ledger: SearchLedger,
        only: str = "",
        admits: Admits = _all,
        permits: Permits = _any_text,
    ) -> None:
        self._source = source
        self._only = only
        self._search = search
        self._ledger = ledger
        self._admits = admits
        self._permits = permits
        self._topics = ledger.topics.get(source)

    async def search(self, text: str, most: int = HITS) -> list[ReadDocument]:
        """Return the documents of the best passages; none once the searches of the run, or its time, are used up."""
        ledger, key = self._ledger, (self._source, text, most, self._only)
        if (known := ledger.searches.get(key)) is not None:
            ledger.answered += 1
            if known.is_cut:
                ledger.hinder(Obstacle.DOCUMENTS)
            return [ledger.documents[each] for each in known.documents]
        if not self._permits(text):
            ledger.unsent += 1
            ledger.hinder(Obstacle.PRIVATE)
            return []
        if len(ledger.searches) >= ledger.most_searches:
            ledger.refused_searches += 1
            ledger.hinder(Obstacle.SEARCHES)
            return []
        if ledger.time.is_over:
            ledger.late += 1
            ledger.hinder(Obstacle.TIME)
            return []
        given = await self._given(self._search.search(text, most))
        told = self._search.diary() if isinstance(self._search, WebSource) else WebDiary()
        ledger.note(told)
        if given is None:
            return []
        ledger.made += 1
        ledger.answered += 1
        found = ledger.admitted(given, self._admits)
        ledger.searches[key] = SearchRecord(
            source=self._source,
            text=text,
            most=most,
            documents=tuple(dict.fromkeys(document.stored.id for document in found)),
            only=self._only,
            is_cut=bool(told.unfetched) or any(one.stored.id in ledger.refused_documents for one in given),
        )
        return found

    async def topics(self) -> frozenset[str]:
        """Return the names that all its documents are about; none of a source that no search got an answer from."""
        if self._topics is None:
            if not any(source == self._source for source, *_ in self._ledger.searches):
                return frozenset()
            self._topics = await self._given(self._search.topics()) or frozenset()
        return self._topics

    async def _given(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Return what a source gives; None where it fails, or has no more time."""
        try:
            return await self._ledger.time.within(work)
        except TimeoutError:
            self._ledger.cut += 1
            self._ledger.hinder(Obstacle.TIME)
        except Exception as error:  # noqa: BLE001 - a source raises what it likes
            self._ledger.failed[described(error)] += 1
            self._ledger.hinder(Obstacle.SOURCE)
        return None


class RecordedSearch:
    """A source as a record has it: what it was not asked, it does not answer."""

    def __init__(self, source: int, record: RetrievalRecord, documents: Mapping[str, ReadDocument]) -> None:
        self._topics = frozenset(record.topics[source])
        self._known = {
            (each.text, each.most): [documents[one] for one in each.documents]
            for each in record.searches
            if each.source == source and not each.only
        }

    async def search(self, text: str, most: int = HITS) -> list[ReadDocument]:
        """Return the documents that this search gave."""
        return list(self._known.get((text, most), ()))

    async def topics(self) -> frozenset[str]:
        """Return the names that all its documents are about."""
        return self._topics
