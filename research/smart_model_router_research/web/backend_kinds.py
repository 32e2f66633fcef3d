"""Search back-ends by the kind that a configuration names: shipped ones, and plug-ins by entry point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.import_path import imported, reference_of
from smart_model_router.domain.suggest import did_you_mean
from smart_model_router_research.web.backends import SearchBackend

GROUP = "smart_model_router.search"
"""The group of entry points: each is a class or function that is called with the options of its section."""
_WEB = "smart_model_router_research.web"
KINDS: Mapping[str, str] = {
    "searxng": f"{_WEB}.searxng:SearxngBackend",
    "tavily": f"{_WEB}.tavily:TavilyBackend",
    "arxiv": f"{_WEB}.arxiv:ArxivBackend",
    "recorded": f"{_WEB}.recorded:RecordedBackend",
}


def backend_of(kind: str, options: Mapping[str, Any], key: str = "backends") -> SearchBackend:
    """Return the back-end of a kind, made with these options. Raises ConfigurationError, which names `key`."""
    reference = KINDS.get(kind) or reference_of(kind, GROUP)
    if reference is None:
        wanted = f"a kind of back-end, an entry point of {GROUP} or package.module:Class is needed"
        raise ConfigurationError(f"{key}.kind", kind, f"{wanted} ({did_you_mean(kind, KINDS)})")
    try:
        made: Any = imported(reference)
    except Exception as error:
        raise ConfigurationError(
            f"{key}.kind", kind, f"an importable one is needed ({type(error).__name__})"
        ) from error
    try:
        found: SearchBackend = made(**options)
    except ConfigurationError as error:
        raise ConfigurationError(f"{key}.{error.key}", error.value, error.expected) from None
    except TypeError as error:
        needed = str(error).partition(") ")[2] or str(error)
        raise ConfigurationError(key, kind, f"other options are needed: {needed}") from None
    if not callable(getattr(found, "search", None)) or not hasattr(found, "caps") or not hasattr(found, "name"):
        raise ConfigurationError(f"{key}.kind", kind, "a back-end with name, caps and search is needed")
    return found
