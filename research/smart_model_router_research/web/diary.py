"""The diary of a web source: what it found, fetched and refused since it was last read. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundHit:
    """A hit of a back-end for a query, and its address."""

    backend: str
    query: str
    url: str
    title: str = ""


@dataclass
class WebDiary:
    """A diary. `failures` are those of back-ends beside others that answered, by their text.

    `refused` are addresses that were not fetched or not taken, with the reason; `kinds` counts them by the kind of
    reason. `notes` are what reading a page says of it. `unfetched` are addresses that the limit of fetches kept away,
    `unread` counts searches with hits of which no page could be read.
    """

    hits: list[FoundHit] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)
    refused: dict[str, str] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    notes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unfetched: set[str] = field(default_factory=set)
    unread: int = 0

    def add(self, other: WebDiary) -> None:
        """Add what another diary has."""
        self.hits += other.hits
        self.failures.update(other.failures)
        self.refused |= other.refused
        self.kinds.update(other.kinds)
        self.notes |= other.notes
        self.unfetched |= other.unfetched
        self.unread += other.unread


@runtime_checkable
class WebSource(Protocol):
    """A source of documents that leaves this machine, and keeps a diary of it."""

    @property
    def is_public(self) -> bool:
        """True where the text of a search is sent to others."""
        ...

    def diary(self) -> WebDiary:
        """Return what happened since this was called last."""
        ...
