"""arXiv: papers by their titles and abstracts (https://info.arxiv.org/help/api/user-manual.html)."""

from __future__ import annotations

import re
import ssl
from xml.etree import ElementTree

from smart_model_router_research.deep.fitting import LIGHT
from smart_model_router_research.deep.questions import STOP
from smart_model_router_research.web.backend_http import BackendHttp
from smart_model_router_research.web.backends import BackendCaps, SearchFailed, SearchHit, SearchQuery
from smart_model_router_research.web.searxng import base_url

URL = "https://export.arxiv.org/api/query"
SECONDS_APART = 3.0
"""The pause that the terms of use of arXiv's API ask for."""
_ATOM = "{http://www.w3.org/2005/Atom}"
_WORD = re.compile(r"[^\W_][\w.+-]*")
_LIGHT_WORDS = STOP | LIGHT
_MOST_WORDS = 12


class ArxivBackend:
    """The API of arXiv, which needs no key."""

    caps = BackendCaps(max_query_chars=300, seconds_apart=SECONDS_APART, place="export.arxiv.org")

    def __init__(self, *, name: str = "arxiv", url: str = URL, tls: ssl.SSLContext | bool = True) -> None:
        self.name = name
        self._url = base_url("url", url)
        self._http = BackendHttp(name, tls=tls)

    async def search(self, query: SearchQuery) -> list[SearchHit]:
        """Return the hits of a query, the papers with most of its words first. Raises SearchFailed."""
        words = [word for word in _WORD.findall(query.text) if word.lower() not in _LIGHT_WORDS][:_MOST_WORDS]
        if not words:
            return []
        asked = {
            "search_query": " OR ".join(f"all:{word}" for word in words),
            "start": "0",
            "max_results": str(query.k),
            "sortBy": "relevance",
        }
        return self._hits(await self._http.text("GET", self._url, query=asked))[: query.k]

    def _hits(self, feed: str) -> list[SearchHit]:
        if "<!" in feed:  # a feed has no document type, and only that can define entities without an end
            raise SearchFailed(self.name, "it answers with something else than a feed")
        try:
            root = ElementTree.fromstring(feed)  # noqa: S314 - without a document type there are no entities
        except ElementTree.ParseError:
            raise SearchFailed(self.name, "it answers with something else than a feed") from None
        if root.tag != f"{_ATOM}feed":
            raise SearchFailed(self.name, "it answers with something else than a feed")
        found = [_hit(entry) for entry in root.iter(f"{_ATOM}entry")]
        if len(found) == 1 and found[0].title == "Error":
            raise SearchFailed(self.name, f"it refuses the query: {found[0].snippet[:200]}")
        return [hit for hit in found if hit.url]


def _hit(entry: ElementTree.Element) -> SearchHit:
    def text(name: str) -> str:
        return " ".join((entry.findtext(f"{_ATOM}{name}") or "").split())

    return SearchHit(
        url=re.sub(r"^http://arxiv\.org/", "https://arxiv.org/", text("id")),
        title=text("title")[:300],
        snippet=text("summary")[:2_000],
        published=text("updated")[:10] or text("published")[:10],
    )
