"""The default strategy: by health, near equals in the configured order, sessions sticky among them."""

from __future__ import annotations

from collections.abc import Sequence

from smart_model_router.core.selection.scoring import ranked
from smart_model_router.core.selection.selector import Candidate, View


class Health:
    """Best health first."""

    redistributes = True

    def order(self, candidates: Sequence[Candidate], view: View, now: float, roll: float) -> list[Candidate]:
        """By health; see scoring.ranked."""
        return ranked(candidates, view, now)
