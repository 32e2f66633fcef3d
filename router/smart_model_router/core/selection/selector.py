"""The interface of a strategy: its candidates, its view of them, the order it returns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from smart_model_router.domain.fast_dataclass import quick
from smart_model_router.domain.outcome import EMPTY_SNAPSHOT, Snapshot


@dataclass(frozen=True, slots=True)
class Candidate:
    """One target of the tier being tried. `price` is USD per million tokens, None when unknown.

    `position` is its place in the configured order; `weight` (>= 0) its configured share. Candidates of one `group` are
    interchangeable; one of the group "" is interchangeable with no other.
    """

    id: str
    provider: str
    position: int
    domain: str = ""
    weight: float = 1.0
    price: float | None = None
    group: str = ""


class Load(NamedTuple):
    """The load of a target. The less loaded one is the lesser; of equal shares the one chosen longest ago.

    `share` is the part of its capacity that is in use, from 0; `chosen_at` an instant, -inf for never.
    """

    share: float = 0.0
    chosen_at: float = -math.inf


_IDLE = Load()


@quick
@dataclass(frozen=True, slots=True)
class View:
    """The immutable statistics an order is made from. `session` asks to stay with one target among equals.

    `tried` are the targets that were called and have not succeeded yet. `key` is the session, or what stands for it
    among interchangeable targets; `home` is the target that served the key last. `load` tells how busy a target is.
    """

    snapshots: Mapping[str, Snapshot]
    stream: bool = False
    session: str | None = None
    tried: frozenset[str] = frozenset()
    key: str | None = None
    home: str | None = None
    load: Callable[[str], Load] = lambda _: _IDLE

    def of(self, target: str) -> Snapshot:
        """The statistics of a target; those of an untried one when nothing is known."""
        return self.snapshots.get(target, EMPTY_SNAPSHOT)


@runtime_checkable
class Selector(Protocol):
    """A routing strategy."""

    @property
    def redistributes(self) -> bool:
        """Return whether the rest is drawn at random, by free capacity, when the first choice refuses."""
        ...

    def order(self, candidates: Sequence[Candidate], view: View, now: float, roll: float) -> list[Candidate]:
        """All candidates, best first. `roll` in [0, 1) is the only chance there is."""
        ...
