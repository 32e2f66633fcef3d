"""By configured weight: a share of the traffic each; weight 0 only when nobody else is left."""

from __future__ import annotations

from collections.abc import Sequence

from smart_model_router.core.selection.base import Candidate, View
from smart_model_router.core.selection.draw import draw


class Weighted:
    """Drawn without replacement by weight."""

    redistributes = True

    def order(self, candidates: Sequence[Candidate], view: View, now: float, roll: float) -> list[Candidate]:
        """Drawn by weight."""
        return draw(candidates, [c.weight for c in candidates], roll)
