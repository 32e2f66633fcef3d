"""The better of two drawn at random: nearly the best, without everyone choosing the same (Mitzenmacher 2001)."""

from __future__ import annotations

from collections.abc import Sequence

from smart_model_router.core.selection.base import Candidate, View
from smart_model_router.core.selection.draw import draw
from smart_model_router.core.selection.scoring import ranked


class PowerOfTwo:
    """The healthier of two goes first, the rest by health."""

    redistributes = True

    def order(self, candidates: Sequence[Candidate], view: View, now: float, roll: float) -> list[Candidate]:
        """Two equally likely candidates, the better one first."""
        by_health = ranked(candidates, view, now)
        pair = {c.id for c in draw(by_health, [1.0] * len(by_health), roll)[:2]}
        first = next(c for c in by_health if c.id in pair)
        return [first, *(c for c in by_health if c.id != first.id)]
