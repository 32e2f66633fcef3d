"""Measures of a confidence that separates answerable questions from others: AUROC, shares kept and accepted, ECE."""

from __future__ import annotations

import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import TypeVar

from smart_model_router_scoring.evaluate import expected_calibration_error
from smart_model_router_scoring.evaluate.metrics import Dice, Interval, bootstrap

T = TypeVar("T")
HALVES = 20
"""Splits of a collection's questions into two halves, for the ECE."""
Labelled = Sequence[tuple[float, bool]]
Fit = Callable[[Labelled], Callable[[float], float]]


def auroc(own: Sequence[float], away: Sequence[float]) -> float:
    """The chance that a question of `own` scores above one of `away`; a tie counts half."""
    low = sorted(away)
    wins = sum(bisect_left(low, score) + bisect_right(low, score) for score in own)
    return wins / (2 * len(own) * len(away))


def share(scores: Sequence[float], threshold: float) -> Interval:
    """The share of these scores at `threshold` or above, with its interval."""
    return bootstrap([float(score >= threshold) for score in scores])


def keeping(own: Sequence[float], kept: float = 0.95) -> float:
    """The highest threshold that keeps this share of `own`."""
    lost = int((1 - kept) * len(own) + 1e-9)
    return sorted(own)[lost]


def ece_over_halves(own: Sequence[float], away: Sequence[float], fit: Fit, *, balanced: bool = False) -> float:
    """The mean ECE (ten bins) of curves that were fitted on one half of all questions and are judged on the other.

    `balanced` takes as many of `own` as of `away`, by chance, and with them fewer questions.
    """
    most = min(len(own), len(away))
    found = []
    for seed in range(HALVES):
        chosen = (_mixed(own, seed)[:most], _mixed(away, seed)[:most]) if balanced else (own, away)
        mixed = _mixed(
            [(score, answered) for of, answered in zip(chosen, (True, False), strict=True) for score in of], seed
        )
        for half in (0, 1):
            curve = fit(mixed[half::2])
            judged = [(curve(score), answered) for score, answered in mixed[1 - half :: 2]]
            found.append(expected_calibration_error(judged))
    return statistics.fmean(found)


def _mixed(values: Sequence[T], seed: int) -> list[T]:
    return [values[int(at)] for at in Dice(seed).shuffled([str(at) for at in range(len(values))])]
