"""The reliability of scores: calibration error, Brier score, and the share of wrong ones that pass."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from smart_model_router_scoring.notes import Notes
from smart_model_router_scoring.options import check_count, is_number

Judged = Iterable[tuple[float, bool]]
"""A confidence (0..1), and whether the hit was relevant. Pairs without a usable confidence are noted and skipped."""


def expected_calibration_error(judged: Judged, *, bins: int = 10, notes: Notes | None = None) -> float:
    """The mean gap between confidence and share of relevant ones, over `bins` (>= 1) equal widths, by their counts."""
    check_count("bins", bins, 1)
    filled: dict[int, list[tuple[float, bool]]] = {}
    pairs = _usable(judged, notes)
    for confidence, relevant in pairs:
        filled.setdefault(min(int(confidence * bins), bins - 1), []).append((confidence, relevant))
    gaps = (abs(math.fsum(confidence - relevant for confidence, relevant in found)) for found in filled.values())
    return math.fsum(gaps) / len(pairs) if pairs else 0.0


def brier_score(judged: Judged, *, notes: Notes | None = None) -> float:
    """The mean square of confidence less outcome: 0 is perfect, 0.25 is what always saying 0.5 gets."""
    pairs = _usable(judged, notes)
    return math.fsum((confidence - relevant) ** 2 for confidence, relevant in pairs) / len(pairs) if pairs else 0.0


def false_accept_rate(best_scores: Sequence[float], threshold: float) -> float:
    """Of queries about something else (the best score of each; 0.0 for no hit), the share at `threshold` or above."""
    return sum(score >= threshold for score in best_scores) / len(best_scores) if best_scores else 0.0


def _usable(judged: Judged, notes: Notes | None) -> list[tuple[float, bool]]:
    told = notes if notes is not None else Notes()
    usable: list[tuple[float, bool]] = []
    for confidence, relevant in judged:
        if is_number(confidence) and 0 <= confidence <= 1:
            usable.append((confidence, bool(relevant)))
        else:
            told.add("bad_confidence", detail=repr(confidence))
    return usable
