"""Interchangeable targets share the load: other keys, regions or deployments of one model (routing.md section 2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from smart_model_router.core.selection.affinity import of_key
from smart_model_router.core.selection.sampling import draw
from smart_model_router.core.selection.scoring import peers
from smart_model_router.core.selection.selector import Candidate, View


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
        block = blocks.pop(candidate.group, ())
        members = balanced(peers(block, view), view, roll) if len(block) > 1 else (candidate,)
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
