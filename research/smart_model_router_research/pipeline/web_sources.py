"""The web sources of runs: their back-ends and the fetcher, and for each run what it may search and fetch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from smart_model_router.domain.ports import Clock
from smart_model_router_research.deep.readers import ReadingContext
from smart_model_router_research.pipeline.run_inputs import CORPUS, RunInputs
from smart_model_router_research.web.backends import BackendCaps, SearchBackend, SearchFailed, SearchHit, SearchQuery
from smart_model_router_research.web.guarded_backend import GuardedBackend
from smart_model_router_research.web.pages import WebPages
from smart_model_router_research.web.web_search import SeedSearch, WebSearch
from smart_model_router_scoring.options import ConfigError

if TYPE_CHECKING:
    from smart_model_router_research.web.fetcher import SafeFetcher


class LostBackend:
    """A back-end of a run that goes on, which is not configured any more: each search fails, and the run says so."""

    caps = BackendCaps()

    def __init__(self, name: str) -> None:
        self.name = name

    async def search(self, query: SearchQuery) -> list[SearchHit]:
        """Raise SearchFailed."""
        del query
        raise SearchFailed(self.name, "it is not configured any more", is_lasting=True)


class WebSources:
    """The back-ends of a process, by their names. Rests, turns of hosts and robots.txt are those of all its runs.

    Raises ConfigError for two back-ends of one name, and one that is called `corpus`.
    """

    def __init__(
        self,
        backends: Sequence[SearchBackend],
        clock: Clock,
        wall: Callable[[], float],
        fetcher: SafeFetcher | None = None,
    ) -> None:
        self._backends = {each.name: GuardedBackend(each, clock) for each in backends}
        if len(self._backends) < len(backends) or CORPUS in self._backends:
            raise ConfigError("backends", [each.name for each in backends], f"names of their own, and not {CORPUS},")
        self._fetcher = fetcher
        self._clock = clock
        self._wall = wall

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all back-ends."""
        return tuple(self._backends)

    @property
    def has_public(self) -> bool:
        """True where one of them sends queries to others."""
        return any(each.backend.caps.exposure == "public" for each in self._backends.values())

    def check(self, inputs: RunInputs) -> None:
        """Raise ConfigError where the inputs of a run name other back-ends."""
        for name in inputs.backends:
            if name != CORPUS and name not in self._backends:
                known = ", ".join((CORPUS, *self._backends))
                raise ConfigError("backends", name, f"one of those that there are ({known})")

    def of(self, inputs: RunInputs) -> tuple[WebSearch | SeedSearch, ...]:
        """Return the web sources of one run: its seeds, and a search by its back-ends; they share their pages."""
        lost = {name: GuardedBackend(LostBackend(name), self._clock) for name in inputs.backends if name != CORPUS}
        chosen = [(lost | self._backends)[name] for name in inputs.backends if name != CORPUS]
        if not chosen and not inputs.seed_urls:
            return ()
        context = ReadingContext(as_of=inputs.moment(), policy=inputs.policy())
        usable = math.floor(inputs.budget.fetches * (1.0 - inputs.budget.reserve))
        pages = WebPages(self._fetching(), context, most=usable, moment=self._moment)
        found: list[WebSearch | SeedSearch] = [SeedSearch(inputs.seed_urls, pages)] if inputs.seed_urls else []
        is_over = inputs.as_of < self._moment()[:10]
        filters = SearchQuery(
            text="", allow=inputs.policy().allow, deny=inputs.policy().block, until=inputs.as_of if is_over else ""
        )
        return (*found, *([WebSearch(chosen, pages, filters)] if chosen else []))

    def _fetching(self) -> SafeFetcher:
        """Return the fetcher, made with the first run that needs it: runs over corpora need no HTTP client."""
        if self._fetcher is None:
            from smart_model_router_research.web.fetcher import SafeFetcher  # noqa: PLC0415 - brings aiohttp

            self._fetcher = SafeFetcher(self._clock)
        return self._fetcher

    def _moment(self) -> str:
        return datetime.fromtimestamp(int(self._wall()), UTC).isoformat()
