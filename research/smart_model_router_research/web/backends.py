"""The search back-ends of research: the interface, queries, hits and failures. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from smart_model_router.domain.errors import SmartRouterError

HITS = 10
MOST_SNIPPET = 2_000
MOST_TITLE = 300
Exposure = Literal["local", "public"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendCaps:
    """The abilities and limits of a back-end.

    `exposure` is `public` where a query leaves this machine or network, else `local`. A query has `max_query_chars` at
    most. `domains` and `dates` say that it filters by `allow`, `deny`, `since` and `until` itself. Two calls are
    `seconds_apart`. `place` is the host that queries go to, for people.
    """

    exposure: Exposure = "public"
    max_query_chars: int = 2_000
    domains: bool = False
    dates: bool = False
    seconds_apart: float = 0.0
    place: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """A query: its text, the most hits, the domains it is limited to, or that are left out, and days, ISO 8601.

    A back-end that cannot filter ignores the filters; research looks at what it gives all the same.
    """

    text: str
    k: int = HITS
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A hit: an address with what the back-end says of it. Nothing of it is believed but that it is a place to look."""

    url: str
    title: str = ""
    snippet: str = ""
    score: float = 0.0
    published: str = ""


class SearchBackend(Protocol):
    """A search engine, or anything that gives addresses for a text."""

    @property
    def name(self) -> str:
        """The name in reports, events and `--backend`."""
        ...

    @property
    def caps(self) -> BackendCaps:
        """The abilities and limits."""
        ...

    async def search(self, query: SearchQuery) -> list[SearchHit]:
        """Return hits, the best first. Raises SearchFailed; any other error counts as one."""
        ...


class SearchFailed(SmartRouterError):
    """A back-end gave no hits: `backend`, `reason` in words (without a key), and the seconds to wait, None unknown.

    `is_lasting` says that another query would fail as well: a wrong key, a quota that is used up.
    """

    def __init__(
        self, backend: str, reason: str, *, retry_after: float | None = None, is_lasting: bool = False
    ) -> None:
        super().__init__(f"{backend}: {reason}")
        self.backend = backend
        self.reason = reason
        self.retry_after = retry_after
        self.is_lasting = is_lasting


def shortened(text: str, most: int) -> str:
    """Return a text of `most` characters at most, in whole words, with single spaces."""
    plain = " ".join(text.split())
    if len(plain) <= most:
        return plain
    return plain[: most + 1].rpartition(" ")[0] or plain[:most]


def hits_of(backend: str, answer: object, keys: Mapping[str, str], most: int) -> list[SearchHit]:
    """Return the rows of an answer, its `results`, as hits.

    `keys` are the names of url, title, snippet, score and published in a row. A row that is no mapping or has no
    address is left out; a value of another type is as if it were not there. Raises SearchFailed for another answer.
    """
    rows = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(rows, list):
        raise SearchFailed(backend, "it answers without a list of results")
    found = (_hit(row, keys) for row in rows)
    return [hit for hit in found if hit is not None][:most]


def _hit(row: object, keys: Mapping[str, str]) -> SearchHit | None:
    if not isinstance(row, dict):
        return None
    told: dict[str, Any] = {name: row.get(key) for name, key in keys.items()}
    url = told.get("url")
    if not isinstance(url, str) or not url.strip():
        return None
    score = told.get("score")
    is_number = isinstance(score, int | float) and not isinstance(score, bool) and abs(score) < 1e9
    return SearchHit(
        url=url.strip(),
        title=_text(told.get("title"), MOST_TITLE),
        snippet=_text(told.get("snippet"), MOST_SNIPPET),
        score=float(score) if is_number and score is not None else 0.0,
        published=_text(told.get("published"), 40),
    )


def _text(value: object, most: int) -> str:
    return " ".join(value.split())[:most] if isinstance(value, str) else ""


def merged(ranked: Iterable[list[SearchHit]]) -> list[SearchHit]:
    """Return the hits of several back-ends in turns: the first of each, then the second of each."""
    lists = list(ranked)
    longest = max((len(each) for each in lists), default=0)
    return [each[at] for at in range(longest) for each in lists if at < len(each)]
