"""The built-in strategies: each orders the candidates of a tier."""

from __future__ import annotations

import math
from collections.abc import Sequence

from smart_model_router.core.selection.affinity import of_key, rendezvous
from smart_model_router.core.selection.ordering import draw
from smart_model_router.core.selection.scoring import peers, ranked
from smart_model_router.core.selection.selector import Candidate, View


class Ordered:
    """As configured."""

    redistributes = False

    def order(self, candidates: Sequence[Candidate], view: View, now: float, roll: float) -> list[Candidate]:
        """By position."""
        return sorted(candidates, key=lambda c: c.position)


class Health:
    """Best health first."""

    redistributes = True

    def order(self, candidates: Sequence[Candidate], view: View, now: float, roll: float) -> list[Candidate]:
        """By health; see scoring.ranked."""
        return ranked(candidates, view, now)


class Cheapest:
    """By price per million tokens."""

    redistributes = False

    def order(self, candidates: Sequence[Candidate], view: View, now: float, roll: float) -> list[Candidate]:
        """By price, equals and unknowns by position."""
        return sorted(candidates, key=lambda c: (c.price is None, c.price or 0.0, c.position))


class Fastest:
    """By p95 TTFT."""

    redistributes = False

    def order(self, candidates: Sequence[Candidate], view: View, now: float, roll: float) -> list[Candidate]:
        """By p95 TTFT, equals and unknowns by position."""
        ttft = {c.id: view.of(c.id).ttft_p95 for c in candidates}
        return sorted(candidates, key=lambda c: (ttft[c.id] is None, ttft[c.id] or 0.0, c.position))


class Weighted:
    """Drawn without replacement by weight; for a session by the hash of it, weighted."""

    redistributes = True

    def order(self, candidates: Sequence[Candidate], view: View, now: float, roll: float) -> list[Candidate]:
        """Drawn by weight."""
        if (session := view.session) is not None:
            return sorted(candidates, key=lambda c: (-_draw_of(session, c), c.position))
        return draw(candidates, [c.weight for c in candidates], roll)


def _draw_of(session: str, candidate: Candidate) -> float:
    """The session's draw for a target: the highest of several is each target's with a chance of its weight."""
    drawn = ((int.from_bytes(rendezvous(session, candidate.id)) >> 11) + 0.5) / 2.0**53  # as a float below 1
    return candidate.weight / -math.log(drawn)


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
