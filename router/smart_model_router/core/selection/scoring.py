"""Health of a target: 0.6 x success rate + 0.2 x speed + 0.2 x recency (routing.md section 2)."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from smart_model_router.core.selection.affinity import of_key
from smart_model_router.core.selection.selector import Candidate, View
from smart_model_router.domain.outcome import Snapshot

LATENCY_SCALE = 10.0
"""Seconds (to first content, or per 100 output tokens) at which speed scores 0."""
SPEED_WEIGHT = 0.2
RECENCY_SCALE = 3600.0
TIE = 0.05
NEWCOMER_OUTCOMES = 10
_POSITION = attrgetter("position")


def latency_of(snapshot: Snapshot, stream: bool) -> float | None:
    """The figure speed is judged by, None when unknown."""
    return snapshot.ttft_ema if stream else snapshot.seconds_per_100_tokens


def _merit(snapshot: Snapshot, latency: float | None) -> float:
    speed = 0.5 if latency is None else max(0.0, 1 - latency / LATENCY_SCALE)
    return 0.6 * snapshot.success_rate + SPEED_WEIGHT * speed


def health(snapshot: Snapshot, latency: float | None, now: float) -> float:
    """The score in [0, 1]; `latency` None (none in the tier is known) scores as an average one."""
    recency = 0.0
    if snapshot.last_success_at is not None:
        recency = max(0.0, 1 - max(0.0, now - snapshot.last_success_at) / RECENCY_SCALE)
    return _merit(snapshot, latency) + 0.2 * recency


def median(values: Sequence[float]) -> float:
    """The middle of at least one value; `statistics` would load decimals, fractions and a random generator for it."""
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def scores(candidates: Sequence[Candidate], view: View, now: float) -> dict[str, float]:
    """The health of every candidate; an unknown latency counts as the median of the known ones."""
    return {c.id: health(seen, latency, now) for c, seen, latency in _figures(candidates, view)}


def peers(candidates: Sequence[Candidate], view: View) -> list[Candidate]:
    """Those of some equals that are as good as the best, in their order: the time of their last call does not matter.

    A target with few outcomes in its window is among them: its quality is unknown, and its gate knows if it is down.
    """
    merit = {c.id: _merit(seen, latency) for c, seen, latency in _figures(candidates, view)}
    proven = {target: each for target, each in merit.items() if view.of(target).outcomes >= NEWCOMER_OUTCOMES}
    best = max(proven.values(), default=0.0)
    return [c for c in candidates if c.id not in proven or proven[c.id] >= best - TIE]


def _figures(candidates: Sequence[Candidate], view: View) -> list[tuple[Candidate, Snapshot, float | None]]:
    """Each candidate, its statistics and its latency: where it is unknown, the median of the known ones."""
    found = [(c, seen := view.of(c.id), latency_of(seen, view.stream)) for c in candidates]
    known = [latency for _, _, latency in found if latency is not None]
    if not known or len(known) == len(found):
        return found
    usual = median(known)
    return [(c, seen, usual if own is None else own) for c, seen, own in found]


def ranked(candidates: Sequence[Candidate], view: View, now: float) -> list[Candidate]:
    """Best first; near equals keep the configured order, or for a session go by its hash and its home.

    A target that was ever tried and has few outcomes in its window is judged by where it stands in the
    configuration, not by a handful of samples: that is how a recovered primary gets its share back, also one whose
    very first call failed. What keeps a dead one from being asked again and again is its gate.
    """
    score = scores(candidates, view, now)
    least = max(score.values()) - TIE
    equals = [c for c in candidates if score[c.id] >= least or _is_newcomer(c.id, view)]
    equals.sort(key=_POSITION)
    if view.session is not None:
        equals = of_key(view.session, view.home, equals, view.load)
    if len(equals) == len(candidates):
        return equals
    among = {c.id for c in equals}
    rest = sorted((c for c in candidates if c.id not in among), key=lambda c: (-score[c.id], c.position))
    return equals + rest


def _is_newcomer(target: str, view: View) -> bool:
    snapshot = view.of(target)
    known = target in view.tried or snapshot.last_success_at is not None
    return known and snapshot.outcomes < NEWCOMER_OUTCOMES
