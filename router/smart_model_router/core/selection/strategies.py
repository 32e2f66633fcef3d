"""The built-in strategies, and the ways to change an order: draw it by weight, spread it, avoid a failed domain."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from smart_model_router.core.selection.affinity import of_key, rendezvous
from smart_model_router.core.selection.scoring import peers, ranked
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
