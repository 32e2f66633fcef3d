"""The metrics of a ranking and of its scores, and their intervals by resampling."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from smart_model_router_scoring.options import Notes, check_count, check_number, is_number

Grades = Mapping[Any, float]
Metric = Callable[[Sequence[Any], Grades], float]


def ndcg(ranking: Sequence[Any], grades: Grades, at: int = 10) -> float:
    """Normalised discounted cumulative gain: gain is the grade (as trec_eval has it), discount log2(rank + 1)."""
    best = sorted((grade for grade in grades.values() if grade > 0), reverse=True)
    ideal = _discounted(best[:at])
    found = [max(grades.get(key, 0.0), 0.0) for key in _first(ranking, at)]
    return _discounted(found) / ideal if ideal else 0.0


def reciprocal_rank(ranking: Sequence[Any], grades: Grades, at: int = 10) -> float:
    """1 / rank of the first relevant id among the first `at`; 0.0 without one. Its mean over queries is MRR."""
    ranks = (rank for rank, key in enumerate(_first(ranking, at), 1) if grades.get(key, 0.0) > 0)
    return next((1.0 / rank for rank in ranks), 0.0)


def recall(ranking: Sequence[Any], grades: Grades, at: int = 100) -> float:
    """The share of the relevant ids that are among the first `at`."""
    relevant = {key for key, grade in grades.items() if grade > 0}
    return len(relevant.intersection(_first(ranking, at))) / len(relevant) if relevant else 0.0


METRICS: Mapping[str, Metric] = MappingProxyType({"ndcg@10": ndcg, "mrr@10": reciprocal_rank, "recall@100": recall})
"""Metrics by their names."""


def _first(ranking: Sequence[Any], at: int) -> list[Any]:
    return list(dict.fromkeys(ranking))[:at]


def _discounted(gains: Sequence[float]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


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


def auroc(own: Sequence[float], away: Sequence[float]) -> float:
    """The chance that one of `own` scores above one of `away`; a tie counts half. 0.5 without any of a kind."""
    if not own or not away:
        return 0.5
    low = sorted(away)
    wins = sum(bisect_left(low, score) + bisect_right(low, score) for score in own)
    return wins / (2 * len(own) * len(away))


def threshold_keeping(own: Sequence[float], kept: float = 0.95, away: Sequence[float] = ()) -> float:
    """The highest threshold that keeps this share (0..1) of `own`, which is not empty.

    With `away`, scores that are better refused: the lowest one that accepts no more of them, which keeps more of `own`.
    """
    ordered = sorted(own)
    highest = ordered[min(int((1 - kept) * len(own) + 1e-9), len(own) - 1)]
    if not away:
        return highest
    refused = max((score for score in away if score < highest), default=-math.inf)
    return next(score for score in ordered if score > refused)


HALVES = 20
"""Splits of rows into two halves, for the ECE of what is fitted."""
Row = TypeVar("Row")


def over_halves(
    rows: Sequence[tuple[Row, bool]],
    fit: Callable[[Sequence[tuple[Row, bool]]], Callable[[Row], float]],
    *measures: Callable[[Sequence[tuple[float, bool]]], float],
    balanced: bool = False,
) -> list[float]:
    """The mean of each measure over curves that were fitted on one half of the rows and are judged on the other.

    `balanced` takes as many rows of the one label as of the other, by chance.
    """
    found: list[list[float]] = []
    for seed in range(HALVES):
        mixed = Dice(seed).shuffled(_evened(rows, seed) if balanced else rows)
        for half in (0, 1):
            curve = fit(mixed[half::2])
            judged = [(curve(row), label) for row, label in mixed[1 - half :: 2]]
            found.append([measure(judged) for measure in measures])
    return [math.fsum(values) / len(found) for values in zip(*found, strict=True)]


def _evened(rows: Sequence[tuple[Row, bool]], seed: int) -> list[tuple[Row, bool]]:
    kinds = [[row for row in rows if row[1] == label] for label in (True, False)]
    most = min(map(len, kinds))
    return [row for kind in kinds for row in Dice(seed).shuffled(kind)[:most]]


def _usable(judged: Judged, notes: Notes | None) -> list[tuple[float, bool]]:
    told = notes if notes is not None else Notes()
    usable: list[tuple[float, bool]] = []
    for confidence, relevant in judged:
        if is_number(confidence) and 0 <= confidence <= 1:
            usable.append((confidence, bool(relevant)))
        else:
            told.add("bad_confidence", detail=repr(confidence))
    return usable


RESAMPLES = 1_000
_EXACT_UP_TO = 12
"""Pairs that differ, up to which every assignment of signs (4,096 at most) is tried instead of a sample."""
_MASK = (1 << 64) - 1


Item = TypeVar("Item")


class Dice:
    """Numbers in a row that a seed decides: SplitMix64 (Steele, Lea and Flood 2014)."""

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def roll(self) -> int:
        """The next 64 bits."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def below(self, count: int) -> int:
        """A number of 0..count-1, each as likely as 64 bits allow."""
        return (self.roll() * count) >> 64

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """The items in an order of chance (Fisher and Yates)."""
        mixed = list(items)
        for last in range(len(mixed) - 1, 0, -1):
            other = self.below(last + 1)
            mixed[last], mixed[other] = mixed[other], mixed[last]
        return mixed


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and the interval that holds it at `level`. All are 0.0 of nothing."""

    mean: float
    low: float
    high: float
    level: float


def bootstrap(values: Sequence[float], *, seed: int = 0, resamples: int = RESAMPLES, level: float = 0.95) -> Interval:
    """The mean and its percentile interval over `resamples` (>= 1) draws with replacement (Efron 1979)."""
    check_count("resamples", resamples, 1)
    check_number("level", level, 0, 1)
    if not values:
        return Interval(0.0, 0.0, 0.0, level)
    dice, count = Dice(seed), len(values)
    means = sorted(math.fsum(values[dice.below(count)] for _ in range(count)) / count for _ in range(resamples))
    tail = (1 - level) / 2
    low, high = math.floor(tail * (resamples - 1)), math.ceil((1 - tail) * (resamples - 1))
    return Interval(math.fsum(values) / count, means[low], means[high], level)


def sign_flip_test(differences: Sequence[float], *, seed: int = 0, resamples: int = 10_000) -> float:
    """The two-sided p of paired differences, were each as likely to have the other sign (Fisher 1935).

    Exact up to 12 differences that are not 0; a sample of `resamples` beyond, which counts the observed one too.
    """
    check_count("resamples", resamples, 1)
    moved = [value for value in differences if value]
    # As far from 0 as observed, less what sums of other orders may differ by.
    observed = abs(math.fsum(moved)) * (1 - 1e-12)
    if len(moved) <= _EXACT_UP_TO:
        every = range(1 << len(moved))
        return sum(abs(_flipped(moved, signs)) >= observed for signs in every) / len(every)
    dice = Dice(seed)
    far = sum(abs(_flipped(moved, _signs(dice, len(moved)))) >= observed for _ in range(resamples))
    return (far + 1) / (resamples + 1)


def _signs(dice: Dice, count: int) -> int:
    """`count` bits of chance."""
    bits = 0
    for _ in range(0, count, 64):
        bits = (bits << 64) | dice.roll()
    return bits


def _flipped(values: Sequence[float], signs: int) -> float:
    return math.fsum(-value if signs >> place & 1 else value for place, value in enumerate(values))
