"""The interface of a strategy, and its results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from smart_model_router_scoring.retrieval.index import Snapshot


@dataclass(frozen=True, slots=True)
class Found:
    """One chunk. `relevance` (0..1) is its relevance to the question by itself; None: unknown."""

    chunk_id: str
    relevance: float | None = None


class Strategy(Protocol):
    """One way to search. It may raise anything: the query goes on without it."""

    @property
    def name(self) -> str:
        """Its name in weights, timeouts and explanations, and of its lane in the snapshot."""
        ...

    async def search(self, text: str, limit: int, snapshot: Snapshot) -> Sequence[Found]:
        """Up to `limit` chunks, best first. It looks at the index through its own lane of `snapshot` only."""
        ...


class NotAvailable(Exception):
    """A strategy that cannot take part here, and why."""
