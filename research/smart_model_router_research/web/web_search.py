"""The web as sources of documents: back-ends and the pages that they find, and pages whose addresses were given."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from smart_model_router_research.deep.corpus_search import HITS
from smart_model_router_research.deep.fitting import telling_words
from smart_model_router_research.deep.found_answers import ReadDocument
from smart_model_router_research.deep.matching import stems_of
from smart_model_router_research.web.backends import SearchFailed, SearchHit, SearchQuery, merged
from smart_model_router_research.web.diary import FoundHit, WebDiary
from smart_model_router_research.web.fetch_rules import canonical, shown
from smart_model_router_research.web.guarded_backend import GuardedBackend
from smart_model_router_research.web.pages import WebPages

PAGES = 4
"""Pages that are read of the hits of one search."""
MORE_PAGES = 8
"""Pages of a search that asks for more than usual."""
SEED = "seed"


class WebSearch:
    """A source of the pages that back-ends find. `filters` has what all its queries have in common.

    A text is put to the back-ends once; those that fail are asked again when it comes again.
    """

    def __init__(self, backends: Sequence[GuardedBackend], pages: WebPages, filters: SearchQuery) -> None:
        self._backends = backends
        self._pages = pages
        self._filters = filters
        self.is_public = any(each.backend.caps.exposure == "public" for each in backends)
        self._known: dict[tuple[str, str], list[SearchHit]] = {}
        self._diary = WebDiary()

    def diary(self) -> WebDiary:
        """Return what happened since this was called last."""
        told, self._diary = self._diary, WebDiary()
        told.add(self._pages.diary())
        return told

    async def search(self, text: str, most: int = HITS) -> list[ReadDocument]:
        """Return the pages of the first hits that can be read. Raises SearchFailed when no back-end answers."""
        if not text.strip():
            return []
        hits = await self._hits(" ".join(text.split()))
        found = await self._read(hits, min(most, PAGES) if most <= HITS else MORE_PAGES)
        self._diary.unread += bool(hits and not found)
        return found

    def since(self, day: str) -> WebSearch:
        """Return the search for what was published since a day, ISO 8601, where a back-end can tell."""
        return WebSearch(self._backends, self._pages, replace(self._filters, since=day))

    async def topics(self) -> frozenset[str]:
        """Return no names: pages of the web are about anything."""
        return frozenset()

    async def _hits(self, text: str) -> list[SearchHit]:
        found = await asyncio.gather(*(self._asked(each, text) for each in self._backends))
        lists = [hits for hits in found if isinstance(hits, list)]
        failures = [each for each in found if isinstance(each, SearchFailed)]
        if failures and not lists:
            reasons = "; ".join(each.message for each in failures)
            raise SearchFailed("web", f"no back-end answers: {reasons}")
        self._diary.failures.update(each.message for each in failures)
        once: dict[str, SearchHit] = {}
        for hit in merged(lists):
            once.setdefault(canonical(hit.url), hit)
        return list(once.values())

    async def _asked(self, backend: GuardedBackend, text: str) -> list[SearchHit] | SearchFailed:
        key = (backend.name, text)
        if key not in self._known:
            try:
                found = await backend.search(replace(self._filters, text=text))
            except SearchFailed as error:
                return error
            self._known[key] = found
            for hit in found:
                self._pages.vouch(hit.url, backend.name)
                self._diary.hits.append(FoundHit(backend=backend.name, query=text, url=shown(hit.url), title=hit.title))
        return self._known[key]

    async def _read(self, hits: Sequence[SearchHit], most: int) -> list[ReadDocument]:
        """Return so many pages of the hits in their order; where one is refused the next one takes its place."""
        waiting, found = list(hits), dict[str, ReadDocument]()
        while waiting and len(found) < most:
            now, waiting = waiting[: most - len(found)], waiting[most - len(found) :]
            read = await asyncio.gather(*(self._pages.document(hit.url) for hit in now))
            found |= {each.stored.id: each for each in read if each is not None and each.stored.id not in found}
        return list(found.values())


class SeedSearch:
    """A source of pages whose addresses the inputs of a run name. Nothing is sent to search it but their addresses."""

    is_public = False

    def __init__(self, urls: Sequence[str], pages: WebPages) -> None:
        self._urls = tuple(dict.fromkeys(map(canonical, urls)))
        self._pages = pages
        self._documents: list[ReadDocument] | None = None
        self._reading = asyncio.Lock()
        for url in self._urls:
            pages.vouch(url, SEED)

    def diary(self) -> WebDiary:
        """Return what happened since this was called last."""
        return self._pages.diary()

    async def search(self, text: str, most: int = HITS) -> list[ReadDocument]:
        """Return the pages that share words with a text, the most first. Raises SearchFailed when none can be read."""
        documents = await self._all()
        asked = frozenset(telling_words(text)) or stems_of(text)
        shared = [(len(asked & stems_of(f"{one.stored.title}\n{one.stored.text}")), one) for one in documents]
        return [one for count, one in sorted(shared, key=lambda pair: -pair[0]) if count][:most]

    async def topics(self) -> frozenset[str]:
        """Return no names: the pages are about different things."""
        return frozenset()

    async def _all(self) -> list[ReadDocument]:
        async with self._reading:
            if self._documents is None:
                read = await asyncio.gather(*(self._pages.document(url) for url in self._urls))
                found = {each.stored.id: each for each in read if each is not None}
                if not found:
                    raise SearchFailed(SEED, f"none of {len(self._urls)} addresses could be read")
                self._documents = list(found.values())
            return self._documents
