"""Cheapest first; an unknown price is unknown, never 0, and comes after every known one."""

from __future__ import annotations

from collections.abc import Sequence

from smart_model_router.core.selection.selector import Candidate, View


class Cheapest:
    """By price per million tokens."""

    redistributes = False

    def order(self, candidates: Sequence[Candidate], view: View, now: float, roll: float) -> list[Candidate]:
        """By price, equals and unknowns by position."""
        return sorted(candidates, key=lambda c: (c.price is None, c.price or 0.0, c.position))
