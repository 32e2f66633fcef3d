"""Tavily: a search API for programs (https://docs.tavily.com/documentation/api-reference/endpoint/search)."""

from __future__ import annotations

import re
import ssl
from typing import Any

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.deep.domains import host_of
from smart_model_router_research.web.backend_http import BackendHttp
from smart_model_router_research.web.backends import (
    BackendCaps,
    SearchHit,
    SearchQuery,
    hits_of,
    shortened,
)
from smart_model_router_research.web.searxng import base_url

MOST_CHARACTERS = 400
URL = "https://api.tavily.com"
_KEYS = {"url": "url", "title": "title", "snippet": "content", "score": "score", "published": "published_date"}
_OPERATOR = re.compile(r"(?i)(?<!\w)-?site:\S*")
_MOST_DOMAINS = 100


class TavilyBackend:
    """Tavily, with a key that goes into a header and nowhere else. It knows no operators such as `site:`."""

    def __init__(
        self, *, api_key: str, name: str = "tavily", url: str = URL, tls: ssl.SSLContext | bool = True
    ) -> None:
        if not api_key.strip() or not api_key.isascii() or not api_key.strip().isprintable():
            raise ConfigurationError("api_key", "***", "a key of Tavily, in ASCII, is needed")
        self.name = name
        self._url = f"{base_url('url', url)}/search"
        place = host_of(self._url)
        self.caps = BackendCaps(max_query_chars=MOST_CHARACTERS, domains=True, dates=True, place=place)
        self._headers = {"Authorization": f"Bearer {api_key.strip()}"}
        self._http = BackendHttp(name, tls=tls)

    async def search(self, query: SearchQuery) -> list[SearchHit]:
        """Return the hits of a query. Raises SearchFailed."""
        asked: dict[str, Any] = {
            "query": shortened(_OPERATOR.sub(" ", query.text), MOST_CHARACTERS),
            "max_results": min(query.k, 20),
            "search_depth": "basic",
            "include_answer": False,
        }
        asked |= {"include_domains": list(query.allow)[:_MOST_DOMAINS]} if query.allow else {}
        asked |= {"exclude_domains": list(query.deny)[:_MOST_DOMAINS]} if query.deny else {}
        asked |= {"start_date": query.since} if query.since else {}
        asked |= {"end_date": query.until} if query.until else {}
        answer = await self._http.json("POST", self._url, headers=self._headers, body=asked)
        return hits_of(self.name, answer, _KEYS, query.k)
