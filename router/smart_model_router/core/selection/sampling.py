"""Sampling without replacement from one roll of the dice, and what is drawn when a first choice refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from smart_model_router.core.selection.selector import Candidate

_DRAWS = 8
"""What is left of a roll after so many draws is no chance any more."""


def draw(candidates: Sequence[Candidate], weights: Sequence[float], roll: float) -> list[Candidate]:
    """All candidates, the first ones drawn by weight; the others in the configured order, those of weight 0 last.

    One uniform number is enough for these draws: what is left of it after a draw is uniform again.
    """
    pool = [(c, w) for c, w in zip(candidates, weights, strict=True) if w > 0]
    drawn: list[Candidate] = []
    while pool and len(drawn) < _DRAWS:
        point = roll * sum(weight for _, weight in pool)
        index = 0
        while point >= pool[index][1] and index < len(pool) - 1:
            point -= pool[index][1]
            index += 1
        candidate, weight = pool.pop(index)
        roll = point / weight
        drawn.append(candidate)
    drawn += sorted((c for c, _ in pool), key=_position)
    among = {c.id for c in drawn}
    return drawn + sorted((c for c in candidates if c.id not in among), key=_position)


def _position(candidate: Candidate) -> int:
    return candidate.position


def redistribute(
    candidates: Sequence[Candidate], health: Mapping[str, float], free: Mapping[str, float], roll: float
) -> list[Candidate]:
    """The order of the rest when a first choice refused: by health x free capacity (x weight).

    Free capacity is shared by a provider's targets, so that many names of one provider draw no more than one.
    """
    siblings = Counter(c.provider for c in candidates)
    weights = [c.weight * health[c.id] * free[c.id] / siblings[c.provider] for c in candidates]
    return draw(candidates, weights, roll)
