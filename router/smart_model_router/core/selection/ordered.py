"""The written order, always."""

from __future__ import annotations

from collections.abc import Sequence

from smart_model_router.core.selection.selector import Candidate, View


class Ordered:
    """As configured."""

    redistributes = False

    def order(self, candidates: Sequence[Candidate], view: View, now: float, roll: float) -> list[Candidate]:
        """By position."""
        return sorted(candidates, key=lambda c: c.position)
