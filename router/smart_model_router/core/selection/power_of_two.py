"""The less loaded of two drawn at random: nearly the best, without everyone choosing the same (Mitzenmacher 2001)."""

from __future__ import annotations

from collections.abc import Sequence

from smart_model_router.core.selection.affinity import of_key
from smart_model_router.core.selection.sampling import draw
from smart_model_router.core.selection.scoring import peers, ranked
from smart_model_router.core.selection.selector import Candidate, View


class PowerOfTwo:
    """The less loaded of two goes first, of equally loaded ones the healthier; the rest by health."""

    redistributes = True

    def order(self, candidates: Sequence[Candidate], view: View, now: float, roll: float) -> list[Candidate]:
        """Two equally likely candidates, the better one first; a session stays among the healthy ones."""
        by_health = ranked(candidates, view, now)
        equals = peers(candidates, view)
        healthy = {c.id for c in equals}
        if view.session is not None:
            stays = of_key(view.session, view.home, equals, view.load)
            return stays + [c for c in by_health if c.id not in healthy]
        rank = {c.id: 0 if c.id in healthy else place for place, c in enumerate(by_health, 1)}
        pair = draw(by_health, [1.0] * len(by_health), roll)[:2]

        def burden(candidate: Candidate) -> tuple[float, int, float]:
            share, chosen_at = view.load(candidate.id)
            return share, rank[candidate.id], chosen_at

        first = min(pair, key=burden)
        return [first, *(c for c in by_health if c.id != first.id)]
