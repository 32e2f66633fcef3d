"""By configured weight: a share of the traffic each; weight 0 only when nobody else is left.

A session goes by weighted rendezvous hashing (Schindelhauer and Schomaker 2005): it stays while its target is there,
and comes back to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from smart_model_router.core.selection.affinity import rendezvous
from smart_model_router.core.selection.sampling import draw
from smart_model_router.core.selection.selector import Candidate, View


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
