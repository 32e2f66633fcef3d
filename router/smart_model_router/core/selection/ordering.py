"""Change an order of targets: draw it by weight, spread it over equal targets, avoid the domain of a failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from smart_model_router.core.selection.affinity import of_key
from smart_model_router.core.selection.scoring import peers
from smart_model_router.core.selection.selector import Candidate, View
from smart_model_router.domain.outcome import FailureClass, NextTarget

_DRAWS = 8
"""After so many draws the rest of a roll is not random any more."""


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


def spread(order: Sequence[Candidate], view: View, roll: float) -> list[Candidate]:
    """The same order, but for the members of each group: the first of them stands for all that are as healthy.

    Among those a request without a key goes to the less loaded of two drawn ones; see `of_key` for one with a key.
    """
    blocks: dict[str, list[Candidate]] = {}
    for candidate in order:
        if candidate.group:
            blocks.setdefault(candidate.group, []).append(candidate)
    found: dict[str, Candidate] = {}
    for candidate in order:
        members = balanced(peers(blocks.pop(candidate.group, ()), view), view, roll)
        found.update((member.id, member) for member in members if member.id not in found)
        found.setdefault(candidate.id, candidate)
    return list(found.values())


def balanced(members: Iterable[Candidate], view: View, roll: float) -> list[Candidate]:
    """Equal targets, the one to ask first at the head."""
    equals = list(members)
    if view.key is not None:
        return of_key(view.key, view.home, equals, view.load)
    drawn = draw(equals, [1.0] * len(equals), roll)
    return sorted(drawn[:2], key=lambda c: view.load(c.id)) + sorted(drawn[2:], key=lambda c: view.load(c.id))


_SHARED_CAUSES = frozenset(
    {FailureClass.SERVER_ERROR, FailureClass.OVERLOADED, FailureClass.TRANSPORT, FailureClass.TIMEOUT}
)
_NEAR = 0.1


def elsewhere_first(
    candidates: Sequence[Candidate], failed: Candidate, cause: FailureClass, health: Mapping[str, float]
) -> list[Candidate]:
    """The same candidates, those of another failure domain first when nearly as healthy as the best.

    Overload and transport faults belong to the provider: its other keys come last.
    """
    order = list(candidates)
    if cause in _SHARED_CAUSES and order:
        best = max(health[c.id] for c in order)
        order.sort(key=lambda c: c.domain == failed.domain or health[c.id] < best - _NEAR)
    if cause.policy.next is NextTarget.OTHER_PROVIDERS_FIRST:
        order.sort(key=lambda c: c.provider == failed.provider)
    return order
