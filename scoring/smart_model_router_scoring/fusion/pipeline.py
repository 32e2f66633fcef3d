"""Fusion from lists to hits: its options, its steps, and the functions under their founding names."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeVar

from smart_model_router_scoring.calibration import RAW_STEEPNESS, RAW_THRESHOLD, Calibration, Sigmoid
from smart_model_router_scoring.fusion.hits import (
    MOST,
    TIE_BREAKS,
    Basis,
    EvidenceGate,
    Facts,
    Fused,
    Hit,
    Listed,
    Ranks,
    ids_and_scores,
    ordered,
    ranks_of,
    sums,
)
from smart_model_router_scoring.fusion.scales import METHODS, RRF, SCALES, ScoreScale
from smart_model_router_scoring.options import ConfigError, check_choice, check_count, check_number, is_number

Id = TypeVar("Id", str, int)
Scores = Mapping[str, Mapping[Any, float]]
"""Strategy -> id -> score, of the lists that have scores."""

RRF_K = 60
"""The constant of Cormack, Clarke and Buettcher (2009), the authors of reciprocal rank fusion."""
LARGEST = 1_000_000
"""Of `k` and of a weight: far beyond use, and far from where sums overflow."""
STRATEGIES = ("vector", "keyword", "graph")
"""Those of `retrieval`."""
TOP_N = 5
TOP_N_MAX = 100
MIN_CONFIDENCE = 0.3


@dataclass(frozen=True, kw_only=True)
class FusionConfig:
    """The rules for fusing lists. Raises ConfigError for invalid values.

    `k` (0..1,000,000) damps the first ranks. `weights` (0..1,000,000) are those of strategies; one that is not named
    weighs 1.0, and 0 disables one. A hit whose calibrated score is below `min_confidence` (0..1) is left out; 0 keeps
    all. `tie_breaks` names what decides between equal scores, before the id does: keys of `TIE_BREAKS`.

    `fusion` says what is added up, each times the weight of its strategy:

    - `rrf`: reciprocal ranks, 1 / (k + rank). Scores count for nothing.
    - `relative`: a score as a share of the way from the lowest of its list (0) to the highest (1).
    - `distribution`: a score as a share of the way from three standard deviations below the mean of its list (0) to
      three above (1); an outlier may be above 1.

    By the latter two the scores of a list count and not its order. The scores of one hit or of equal ones are 1.0 each
    (`relative`) or 0.5 (`distribution`); what is no finite number is 0.0 and noted. A list without scores (plain ids,
    or no finite number in it) gives (k + 1) / (k + rank): its first has 1.0. The scale `raw` of a sigmoid that has no
    threshold and steepness of its own is for sums of reciprocal ranks, and refused.
    """

    fusion: str = RRF
    k: float = RRF_K
    weights: Mapping[str, float] = field(default_factory=dict)
    calibration: Calibration = field(default_factory=Sigmoid)
    min_confidence: float = MIN_CONFIDENCE
    evidence_gate: EvidenceGate = field(default_factory=EvidenceGate)
    tie_breaks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_choice("fusion", self.fusion, METHODS)
        curve = self.calibration
        if self.fusion != RRF and isinstance(curve, Sigmoid) and curve.scale == "raw" and None in curve.given:
            allowed = f"a threshold and a steepness of the sums of `{self.fusion}`, or the scale attainment,"
            raise ConfigError("score_calibration_scale", "raw", allowed)
        check_number("k", self.k, 0, LARGEST)
        for name, weight in self.weights.items():
            check_number(f"weights.{name}", weight, 0, LARGEST)
        check_number("min_confidence", self.min_confidence, 0, 1)
        for name in self.tie_breaks:
            check_choice("tie_breaks", name, tuple(TIE_BREAKS))
        object.__setattr__(self, "weights", MappingProxyType(dict(self.weights)))

    def weight(self, strategy: str) -> float:
        """The weight of a strategy; 1.0 unless `weights` says otherwise."""
        return self.weights.get(strategy, 1.0)


def check_top_n(top_n: int) -> None:
    """Refuse (ConfigError, which is a ValueError) a number of results that is not one of 1..100."""
    check_count("top_n", top_n, 1, TOP_N_MAX)


def retrieval_depth(top_k: int, top_n: int) -> int:
    """The number of results that each strategy is asked for: `top_k`, and never fewer than are to be returned."""
    return max(top_k, top_n)


def check_names(weights: Mapping[str, float], strategies: Iterable[str]) -> None:
    """Refuse (ConfigError) a weight that is neither of one of `strategies` nor of one of ours: its name is misspelt."""
    known = {*strategies, *STRATEGIES}
    for name, weight in weights.items():
        if name not in known:
            raise ConfigError(f"weights.{name}", weight, f"the name of a strategy ({', '.join(sorted(known))})")


class UnreachableConfidence(UserWarning):
    """Even a hit that is first everywhere and new would be below `min_confidence`: every answer would be empty."""


class Fusion:
    """Fuses ranked lists as its configuration says. It has no state: one may be shared.

    `strategies` are the names that will run (vector, keyword, graph and those with a weight, unless given). A
    `min_confidence` that no hit of theirs could reach is warned of (UnreachableConfidence) at once.
    """

    def __init__(self, config: FusionConfig | None = None, *, strategies: Iterable[str] = ()) -> None:
        self.config = config or FusionConfig()
        self._strategies = tuple(strategies)
        basis = self.basis(self._strategies or {*STRATEGIES, *self.config.weights})
        best = self.config.calibration.calibrate(basis.attainable * MOST, basis.attainable)
        if best < self.config.min_confidence:
            message = f"min_confidence {self.config.min_confidence} cannot be reached: the best score is {best:.4f}"
            warnings.warn(message, UnreachableConfidence, stacklevel=2)

    def fuse(
        self,
        results: Mapping[str, Listed[Id] | None],
        *,
        modified_times: Mapping[Id, object] | None = None,
        now: datetime | None = None,
        evidence: Mapping[Id, float] | None = None,
        top_n: int = TOP_N,
    ) -> Fused[Id]:
        """The best `top_n` (1..100) of `results` (strategy -> ids, best first; None for a strategy without an answer).

        A list may have (id, score) pairs instead of ids. Fewer hits of the same lists are the first of more. Raises
        ConfigError for `top_n`, for `modified_times` without `now`, for results without an order (a set), and for a
        weight whose name is no strategy's; nothing in the data raises.
        """
        check_top_n(top_n)
        self.check(results)
        ids, scores = split(results)
        basis = self.basis(answered(results), scores)
        facts = Facts(modified_times, now, evidence, scores)
        ranks = {name: ranks_of(ids[name]) for name in basis.weights}
        totals = sums(ranks, scores, basis)
        return Fused(tuple(self.best(totals, ranks, basis, facts, top_n)), without_answer(results), len(totals))

    def check(self, results: Iterable[str]) -> None:
        """Refuse (ConfigError) a weight whose name is no strategy's, these included."""
        check_names(self.config.weights, {*self._strategies, *results})

    def basis(self, strategies: Iterable[str], scores: Scores = MappingProxyType({})) -> Basis:
        """Return the shared data of hits of these strategies, without those of weight 0. Sorted like explanations.

        `scores` are those of the lists that have any.
        """
        config = self.config
        weights = {name: config.weight(name) for name in sorted(strategies) if config.weight(name)}
        if config.fusion == RRF:
            attainable = math.fsum(weight / (config.k + 1) for weight in weights.values())
            return Basis(weights, config.k, config.calibration, attainable)
        found = {name: SCALES[config.fusion](scores[name].values()) for name in weights if name in scores}
        scales: dict[str, ScoreScale] = {name: scale for name, scale in found.items() if scale is not None}
        best = (weight * (scales[name].best if name in scales else 1.0) for name, weight in weights.items())
        return Basis(weights, config.k, config.calibration, math.fsum(best), config.fusion, scales)

    def best(
        self, totals: Mapping[Id, float], ranks: Ranks[Id], basis: Basis, facts: Facts[Id], top_n: int
    ) -> list[Hit[Id]]:
        """The best hits by total, ordered, then cut at `min_confidence` (a calibration never changes an order)."""
        gate, tie_breaks = self.config.evidence_gate, self.config.tie_breaks
        scores = facts.apply(totals, gate)

        def ranks_in(key: Id) -> dict[str, int]:
            return {name: ranked[key] for name, ranked in ranks.items() if key in ranked}

        def ties(key: Id) -> tuple[float, ...]:
            found, age = ranks_in(key).values(), facts.age(key)
            return tuple(TIE_BREAKS[name](found, age) for name in tie_breaks)

        hits: list[Hit[Id]] = []
        for key in ordered(scores, top_n, ties if tie_breaks else None):
            score = basis.calibration.calibrate(scores[key], basis.attainable)
            if score < self.config.min_confidence:
                break
            hits.append(
                Hit(
                    id=key,
                    score=score,
                    fused=scores[key],
                    total=totals[key],
                    recency=facts.recency(key),
                    evidence=gate.factor(facts.relevance(key)) or 0.0,
                    ranks=ranks_in(key),
                    age_days=facts.age(key),
                    notes=facts.notes(key),
                    basis=basis,
                    scores=facts.scores_of(key),
                )
            )
        return hits


def split(results: Mapping[str, Listed[Id] | None]) -> tuple[dict[str, Sequence[Id]], dict[str, dict[Id, float]]]:
    """The ids of each list, and the scores of those that have pairs. Raises ConfigError as `ids_and_scores` does."""
    told = {name: ids_and_scores(name, found) for name, found in results.items() if found is not None}
    scores = {name: of for name, (_, of) in told.items() if of}
    return {name: ids for name, (ids, _) in told.items()}, scores


def answered(results: Mapping[str, object]) -> list[str]:
    """The strategies that gave an answer, an empty one included."""
    return [name for name, ids in results.items() if ids is not None]


def without_answer(results: Mapping[str, object]) -> tuple[str, ...]:
    """The strategies that gave none, sorted."""
    return tuple(sorted(name for name, ids in results.items() if ids is None))


def fuse_results(
    results: Mapping[str, Listed[Id]],
    k: float = RRF_K,
    weights: Mapping[str, float] | None = None,
    modified_times: Mapping[Id, object] | None = None,
    *,
    now: datetime | None = None,
    fusion: str = RRF,
) -> list[tuple[Id, float]]:
    """Every id with its fused, uncalibrated score: its total times recency. Highest first, then by id.

    Raises ConfigError as `FusionConfig` and `Fusion.fuse` do.
    """
    config = FusionConfig(k=k, weights=weights or {}, fusion=fusion, min_confidence=0.0)
    check_names(config.weights, results)
    ids, scored = split(results)
    basis = Fusion(config, strategies=ids).basis(ids, scored)
    facts = Facts(modified_times, now)
    totals = sums({name: ranks_of(ids[name]) for name in basis.weights}, scored, basis)
    scores = facts.apply(totals, config.evidence_gate)
    return [(key, scores[key]) for key in ordered(scores)]


def normalize_scores(
    fused_results: Sequence[tuple[Id, float]], threshold: float = RAW_THRESHOLD, steepness: float = RAW_STEEPNESS
) -> list[tuple[Id, float]]:
    """The same list with each score calibrated on the scale `raw`. An answer of one result is not 1.0 for that."""
    curve = Sigmoid(scale="raw", threshold=threshold, steepness=steepness)
    return [(key, curve.calibrate(score, 0.0)) for key, score in fused_results]


def minmax(fused_results: Sequence[tuple[Id, float]]) -> list[tuple[Id, float]]:
    """The same list with scores stretched over 0..1; all 1.0 when they are equal or there is one.

    Version 1.5 of the document. It says where a hit stands within one answer and nothing about how good it is: never
    compare it with a threshold. A score that is no number becomes 0.0.
    """
    finite = [score for _, score in fused_results if is_number(score)]
    if not finite:
        return [(key, 0.0) for key, _ in fused_results]
    low, high = min(finite), max(finite)
    return [(key, _share(score, low, high)) for key, score in fused_results]


def _share(score: float, low: float, high: float) -> float:
    if not is_number(score):
        return 0.0
    if low == high:
        return 1.0
    if math.isinf(high - low):  # the difference of two finite numbers may be too large, that of their halves is not
        score, low, high = score / 2, low / 2, high / 2
    return (score - low) / (high - low)
