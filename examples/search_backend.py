"""A search back-end of your own for research: the pages of a company's handbook, found by their titles.

A back-end is a name, its capabilities and one method, which gives addresses. Research fetches them itself, from public
addresses alone, and checks every answer against the pages; nothing of a hit is believed but that it is a place to look.
The configuration names it as `{kind: "package.module:Class"}` or by an entry point of `smart_model_router.search`.
"""

from __future__ import annotations

import asyncio

from smart_model_router_research import DeepResearch
from smart_model_router_research.web import BackendCaps, SearchBackend, SearchHit, SearchQuery

HANDBOOK = {
    "How to ask for leave": "https://handbook.example.com/leave",
    "Expenses and travel": "https://handbook.example.com/expenses",
    "Security of laptops": "https://handbook.example.com/laptops",
}


class HandbookSearch:
    """Titles that share words with a query. The index is here: nothing is sent to others, so exposure is local."""

    name = "handbook"
    caps = BackendCaps(exposure="local")

    async def search(self, query: SearchQuery) -> list[SearchHit]:
        """Return the pages whose titles share words with the query, the most first."""
        asked = set(query.text.lower().split())
        shared = {title: len(asked & set(title.lower().split())) for title in HANDBOOK}
        best = sorted((title for title in HANDBOOK if shared[title]), key=lambda title: -shared[title])
        return [SearchHit(url=HANDBOOK[title], title=title, score=shared[title]) for title in best[: query.k]]


async def main() -> None:
    """Ask the back-end alone; `research.run("...")` would ask it, fetch what it finds, and answer."""
    backend: SearchBackend = HandbookSearch()
    for hit in await backend.search(SearchQuery(text="expenses of a trip")):
        print(f"{hit.title}: {hit.url}")
    async with DeepResearch(backends=[backend]):
        print("research asks:", backend.name)


if __name__ == "__main__":
    asyncio.run(main())
