"""A memory, and a memory as a hit: with a score that explains itself, and what it stands in for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from smart_model_router_scoring.explain import Term, given

Timestamp = datetime | str | float | None
"""A datetime, ISO 8601 text or seconds since 1970; naive times are UTC. What is no time sorts as the oldest."""

Relation = Literal["INVALIDATED_BY", "EVOLVED_INTO"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Something remembered, with what ranking has to know of it."""

    id: str
    content: str = ""
    timestamp: Timestamp = None
    importance: float = 0.0
    """0 to 1; it decides between equal scores."""
    source_rank: int = 0
    """The rank of where it came from: of equal scores a lower one comes first."""
    original_score: float = 0.0
    """The confidence of its source; it decides next."""
    archived: bool = False
    """No longer valid by itself; it still leads to what replaced it."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """A memory that was left out for a newer one: its id, how it was first replaced, and whether the walk was cut."""

    id: str
    relation: Relation
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory with the number that ranks it. A score that comes from elsewhere needs no `why`: it is given.

    `why` makes the explanation on demand: of a hundred thousand hits five are shown.
    """

    memory: Memory
    score: float
    replaces: tuple[Replaced, ...] = ()
    why: Callable[[], Term] | None = field(default=None, compare=False, repr=False)

    @property
    def explanation(self) -> Term:
        """How the score came about; its value is the score."""
        return given("score", self.score) if self.why is None else self.why()
