"""What a selector sees and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from smart_model_router.outcome import EMPTY_SNAPSHOT, Snapshot
from smart_model_router.quick import quick


@dataclass(frozen=True, slots=True)
class Candidate:
    """One target of the tier being tried. `price` is USD per million tokens, None when unknown.

    `position` is its place in the configured order; `weight` (>= 0) its configured share.
    """

    id: str
    provider: str
    position: int
    domain: str = ""
    weight: float = 1.0
    price: float | None = None


@quick
@dataclass(frozen=True, slots=True)
class View:
    """The immutable statistics an order is made from. `session` asks to stay with one target among equals.

    `tried` are the targets that were called and have not succeeded yet.
    """

    snapshots: Mapping[str, Snapshot]
    stream: bool = False
    session: str | None = None
    tried: frozenset[str] = frozenset()

    def of(self, target: str) -> Snapshot:
        """The statistics of a target; those of an untried one when nothing is known."""
        return self.snapshots.get(target, EMPTY_SNAPSHOT)


class Selector(Protocol):
    """A routing strategy. `redistributes`: when its first choice refuses, the rest is drawn by free capacity."""

    @property
    def redistributes(self) -> bool:
        """Whether the rest is drawn anew when the first choice refuses."""
        ...

    def order(self, candidates: Sequence[Candidate], view: View, now: float, roll: float) -> list[Candidate]:
        """All candidates, best first. `roll` in [0, 1) is the only chance there is."""
        ...
