"""Sampling without replacement from one roll of the dice, and what is drawn when a first choice refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from smart_model_router.core.selection.base import Candidate


def draw(candidates: Sequence[Candidate], weights: Sequence[float], roll: float) -> list[Candidate]:
    """All candidates in an order drawn by weight; those of weight 0 come last, in the configured order.

    One uniform number is enough for all draws: what is left of it after a draw is uniform again.
    """
    pool = [(c, w) for c, w in zip(candidates, weights, strict=True) if w > 0]
    drawn: list[Candidate] = []
    while pool:
        point = roll * sum(weight for _, weight in pool)
        index = 0
        while point >= pool[index][1] and index < len(pool) - 1:
            point -= pool[index][1]
            index += 1
        candidate, weight = pool.pop(index)
        roll = point / weight
        drawn.append(candidate)
    left = {c.id for c in drawn}
    return drawn + sorted((c for c in candidates if c.id not in left), key=lambda c: c.position)


def redistribute(
    candidates: Sequence[Candidate], health: Mapping[str, float], free: Mapping[str, float], roll: float
) -> list[Candidate]:
    """The order of the rest when a first choice refused: by health x free capacity (x weight).

    Free capacity is shared by a provider's targets, so that many names of one provider draw no more than one.
    """
    siblings = Counter(c.provider for c in candidates)
    weights = [c.weight * health[c.id] * free[c.id] / siblings[c.provider] for c in candidates]
    return draw(candidates, weights, roll)
