"""SearXNG: a metasearch engine that users run themselves (https://docs.searxng.org/dev/search_api.html)."""

from __future__ import annotations

import ssl

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.deep.domains import host_of
from smart_model_router_research.web.backend_http import BackendHttp
from smart_model_router_research.web.backends import BackendCaps, SearchFailed, SearchHit, SearchQuery, hits_of

_KEYS = {"url": "url", "title": "title", "snippet": "content", "score": "score", "published": "publishedDate"}


class SearxngBackend:
    """An instance of SearXNG at `url`. Its settings need `json` among `search.formats`; it asks public engines."""

    def __init__(self, *, url: str, name: str = "searxng", tls: ssl.SSLContext | bool = True) -> None:
        self.name = name
        self._url = f"{base_url('url', url).removesuffix('/search')}/search"
        self.caps = BackendCaps(place=host_of(self._url))
        self._http = BackendHttp(name, tls=tls)

    async def search(self, query: SearchQuery) -> list[SearchHit]:
        """Return the hits of a query. Raises SearchFailed."""
        asked = {"q": query.text, "format": "json", **({"language": query.language} if query.language else {})}
        try:
            answer = await self._http.json("GET", self._url, query=asked)
        except SearchFailed as error:
            if "403" not in error.reason:
                raise
            reason = "it refuses JSON (403): `json` is needed in `search.formats` of its settings.yml"
            raise SearchFailed(self.name, reason, is_lasting=True) from None
        return hits_of(self.name, answer, _KEYS, query.k)


def base_url(key: str, url: str) -> str:
    """Return an address of a back-end, without a slash at its end. Raises ConfigurationError."""
    place = url.partition("://")[2].partition("/")[0]
    if not url.startswith(("http://", "https://")) or not place:
        raise ConfigurationError(key, url, "an http:// or https:// URL is needed")
    if "@" in place or "?" in url or "#" in url:
        raise ConfigurationError(key, "***", "a URL without a password and without a query is needed")
    return url.rstrip("/")
