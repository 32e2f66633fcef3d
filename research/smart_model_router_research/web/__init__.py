"""The web as a source of research: search back-ends, and a fetcher that reaches public addresses alone.

Names are imported when asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router.domain.lazy_names import lazy_names

if TYPE_CHECKING:
    from smart_model_router_research.web.arxiv import ArxivBackend
    from smart_model_router_research.web.backends import (
        BackendCaps,
        SearchBackend,
        SearchFailed,
        SearchHit,
        SearchQuery,
    )
    from smart_model_router_research.web.fetch_rules import FetchedPage, FetchLimits, FetchRefusal, FetchRefused
    from smart_model_router_research.web.fetcher import SafeFetcher
    from smart_model_router_research.web.recorded import RecordedBackend
    from smart_model_router_research.web.searxng import SearxngBackend
    from smart_model_router_research.web.tavily import TavilyBackend

__all__ = [
    "ArxivBackend",
    "BackendCaps",
    "FetchLimits",
    "FetchRefusal",
    "FetchRefused",
    "FetchedPage",
    "RecordedBackend",
    "SafeFetcher",
    "SearchBackend",
    "SearchFailed",
    "SearchHit",
    "SearchQuery",
    "SearxngBackend",
    "TavilyBackend",
]

_HOMES = {
    "smart_model_router_research.web.arxiv": ("ArxivBackend",),
    "smart_model_router_research.web.backends": (
        "BackendCaps",
        "SearchBackend",
        "SearchFailed",
        "SearchHit",
        "SearchQuery",
    ),
    "smart_model_router_research.web.fetch_rules": ("FetchLimits", "FetchRefusal", "FetchRefused", "FetchedPage"),
    "smart_model_router_research.web.fetcher": ("SafeFetcher",),
    "smart_model_router_research.web.recorded": ("RecordedBackend",),
    "smart_model_router_research.web.searxng": ("SearxngBackend",),
    "smart_model_router_research.web.tavily": ("TavilyBackend",),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals())
