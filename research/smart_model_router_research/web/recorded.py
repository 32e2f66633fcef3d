"""Recorded searches: hits that were written down, for tests and for runs that are to be repeated."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.web.backends import BackendCaps, SearchFailed, SearchHit, SearchQuery, hits_of

_KEYS = {name: name for name in ("url", "title", "snippet", "score", "published")}


class RecordedBackend:
    """Hits by the text of a query, in any case and with any white space; a text that is not there has none.

    `searches` is a mapping of texts to hits, or a JSON file of one, each hit a mapping with `url`, and `title`,
    `snippet`, `score` and `published` where they are known. `asked` are the texts that were searched for.
    """

    def __init__(
        self, *, searches: Mapping[str, Sequence[SearchHit]] | None = None, file: str = "", name: str = "recorded"
    ) -> None:
        self.name = name
        self.caps = BackendCaps(exposure="local", max_query_chars=20_000)
        self.asked: list[str] = []
        self._file = file
        self._searches = None if searches is None else {_key(text): list(hits) for text, hits in searches.items()}

    async def search(self, query: SearchQuery) -> list[SearchHit]:
        """Return the hits of a text. Raises ConfigurationError for a file that is none."""
        self.asked.append(query.text)
        if self._searches is None:
            self._searches = await asyncio.to_thread(_read, self._file)
        return self._searches.get(_key(query.text), [])[: query.k]


def _read(file: str) -> dict[str, list[SearchHit]]:
    wanted = "a JSON file with a mapping of texts to lists of hits is needed"
    try:
        told = json.loads(Path(file).expanduser().read_text(encoding="utf-8"))
        return {_key(text): hits_of(file, {"results": rows}, _KEYS, len(rows)) for text, rows in told.items()}
    except (OSError, ValueError, AttributeError, TypeError, SearchFailed) as error:
        raise ConfigurationError("file", file, f"{wanted} ({type(error).__name__})") from None


def _key(text: str) -> str:
    return " ".join(text.split()).casefold()
