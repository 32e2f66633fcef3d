"""Exploration: a target that lost its place by its statistics alone is called once in a while, as they grow old (I14).

Breakers and rests have probes of their own. A target that is only slow, or fails now and then, has none: it gets no
calls any more, so its statistics never change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from smart_model_router.core.selection.scoring import LATENCY_SCALE, SPEED_WEIGHT, TIE, latency_of
from smart_model_router.core.selection.selector import Candidate, View
from smart_model_router.domain.fast_dataclass import quick

INTERVAL = 30.0
"""Seconds from the loss of a place to the first exploration, as long as a breaker is open the first time."""
GROWTH = 1.5
CAP = 300.0
"""Seconds between two explorations at most: after so many a figure without a sample is unknown in any case."""


@quick
@dataclass(frozen=True, slots=True)
class ExplorationCall:
    """A call that finds out whether a target is as good as before again.

    It is when the answer is not slower than `latency`: seconds to first content (streams), or per 100 output tokens.
    """

    target: str
    stream: bool
    latency: float


@dataclass(slots=True)
class _Lost:
    """A target out of its place. `due` is its next exploration, `back_at` when it was back in it (None: not yet)."""

    due: float = 0.0
    looks: int = 0
    back_at: float | None = None


class Exploration:
    """The targets out of their place, streams and whole answers apart.

    Call `due`, then `began`, then (after a good answer) `ended`.
    """

    __slots__ = ("_lost",)

    def __init__(self) -> None:
        self._lost: dict[tuple[str, bool], _Lost] = {}

    def due(self, order: Sequence[Candidate], view: View, now: float) -> ExplorationCall | None:
        """The exploration that is due for longest among candidates (at least one) ordered by health."""
        first = order[0]
        lost = [candidate.id for candidate in order if candidate.position < first.position]
        if not (lost or self._lost):
            return None
        self._has_its_place(first.id, view.stream, now)
        for target in lost:
            self._has_lost_it(target, view.stream, now)
        if not lost:
            return None
        longest, target = min((self._lost[target, view.stream].due, target) for target in lost)
        return ExplorationCall(target, view.stream, _as_quick_as(first, view)) if longest <= now else None

    def began(self, look: ExplorationCall, now: float) -> None:
        """Note that the exploration was admitted: the next one is due later, and later each time."""
        entry = self._lost[look.target, look.stream]
        entry.looks += 1
        entry.due = now + _interval(entry.looks)

    def ended(self, look: ExplorationCall, latency: float | None, now: float) -> bool:
        """Take in a good answer with this `latency` (None: unknown); True when the target is back."""
        back = latency is None or latency <= look.latency
        if back and (entry := self._lost.get((look.target, look.stream))) is not None:
            entry.back_at = now
        return back

    def _has_its_place(self, target: str, stream: bool, now: float) -> None:
        """Note that it is called first. Its configured place alone proves nothing: other models may miss it."""
        entry = self._lost.get((target, stream))
        if entry is None:
            return
        if entry.back_at is None:
            entry.back_at = now
        elif now - entry.back_at >= entry.looks * INTERVAL:
            del self._lost[target, stream]

    def _has_lost_it(self, target: str, stream: bool, now: float) -> None:
        entry = self._lost.setdefault((target, stream), _Lost(now + INTERVAL))
        if entry.back_at is not None:  # out again: what it proved meanwhile counts
            entry.looks = max(0, entry.looks - int((now - entry.back_at) / INTERVAL))
            entry.due, entry.back_at = now + _interval(entry.looks), None


def _interval(looks: int) -> float:
    return min(CAP, INTERVAL * GROWTH**looks)


def _as_quick_as(first: Candidate, view: View) -> float:
    """The latency that would tie with the first one's: a target need not be faster than the one called instead."""
    best = latency_of(view.of(first.id), view.stream)
    return math.inf if best is None else best + TIE / SPEED_WEIGHT * LATENCY_SCALE
