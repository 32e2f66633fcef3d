"""Second looks: whoever lost its place to its figures alone is asked once in a while, as figures grow old (I14).

Breakers and rests have probes of their own. A target that is only slow, or fails now and then, has none: nobody calls
it any more, so nothing new is ever known of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from smart_model_router.core.selection.scoring import LATENCY_SCALE, SPEED_WEIGHT, TIE, latency_of
from smart_model_router.core.selection.selector import Candidate, View
from smart_model_router.domain.fast_dataclass import quick

INTERVAL = 30.0
"""Seconds from the loss of a place to the first look, as long as a breaker is open the first time."""
GROWTH = 1.5
CAP = 300.0
"""Seconds between two looks at most: after so many a figure without a sample is unknown in any case."""


@quick
@dataclass(frozen=True, slots=True)
class ExplorationCall:
    """A call that is to find out whether a target is its old self again.

    It is when the answer was not slower than `latency`: seconds to first content (streams), or per 100 output tokens.
    """

    target: str
    stream: bool
    latency: float


@dataclass(slots=True)
class _Lost:
    """One target out of its place. `due` is the next look, `back_at` when it had its place again (None: not yet)."""

    due: float = 0.0
    looks: int = 0
    back_at: float | None = None


class Exploration:
    """Who lost its place, streams and whole answers apart: `due`, then `began`, then (of a good answer) `ended`."""

    __slots__ = ("_lost",)

    def __init__(self) -> None:
        self._lost: dict[tuple[str, bool], _Lost] = {}

    def due(self, order: Sequence[Candidate], view: View, now: float) -> ExplorationCall | None:
        """The look that is due for longest among candidates (at least one) ordered by health."""
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
        """The look was admitted: the next one is due later, and later each time."""
        entry = self._lost[look.target, look.stream]
        entry.looks += 1
        entry.due = now + _interval(entry.looks)

    def ended(self, look: ExplorationCall, latency: float | None, now: float) -> bool:
        """The look was answered well, with this `latency` (None: nobody can tell); whether the target is back."""
        back = latency is None or latency <= look.latency
        if back and (entry := self._lost.get((look.target, look.stream))) is not None:
            entry.back_at = now
        return back

    def _has_its_place(self, target: str, stream: bool, now: float) -> None:
        """It is asked first. Who only stands where it is configured to proves nothing: other models may miss it."""
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
    """The latency that would be tied with that of the first: nobody need be quicker than who is asked instead."""
    best = latency_of(view.of(first.id), view.stream)
    return math.inf if best is None else best + TIE / SPEED_WEIGHT * LATENCY_SCALE
