"""Fastest first, by the 95th percentile of the time to first content; unknown ones after the known."""

from __future__ import annotations

from collections.abc import Sequence

from smart_model_router.core.selection.selector import Candidate, View


class Fastest:
    """By p95 TTFT."""

    redistributes = False

    def order(self, candidates: Sequence[Candidate], view: View, now: float, roll: float) -> list[Candidate]:
        """By p95 TTFT, equals and unknowns by position."""
        ttft = {c.id: view.of(c.id).ttft_p95 for c in candidates}
        return sorted(candidates, key=lambda c: (ttft[c.id] is None, ttft[c.id] or 0.0, c.position))
