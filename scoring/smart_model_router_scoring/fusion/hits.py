"""The results of a fusion: hits with their facts, their ranks and their order."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from types import MappingProxyType
from typing import Any, Generic, TypeVar, cast

from smart_model_router_scoring.calibration import Calibration
from smart_model_router_scoring.decay import age_days, is_future
from smart_model_router_scoring.explain import Term, combined, given
from smart_model_router_scoring.fusion.scales import DISTRIBUTION, RELATIVE, RRF, ScoreScale
from smart_model_router_scoring.options import ConfigError, Note, check_choice, check_number, is_number

Id = TypeVar("Id", str, int)
ACTIONS = ("scale", "drop")


@dataclass(frozen=True, kw_only=True)
class EvidenceGate:
    """The treatment of a hit whose best relevance (a cosine, say) is below `threshold` (0..1; 0, the default, is off).

    `scale` multiplies its score by relevance / threshold; `drop` leaves it out. A hit of which no relevance is known
    passes: a link to it says nothing about its text.
    """

    threshold: float = 0.0
    action: str = "scale"

    def __post_init__(self) -> None:
        check_number("evidence_gate.threshold", self.threshold, 0, 1)
        check_choice("evidence_gate.action", self.action, ACTIONS)

    def factor(self, relevance: float | None) -> float | None:
        """Return the factor of a score: 1 at or above the gate, less below it; None leaves the hit out."""
        if relevance is None or not self.threshold or relevance >= self.threshold:
            return 1.0
        return max(relevance, 0.0) / self.threshold if self.action == "scale" else None


def best_evidence(relevance: Mapping[str, Mapping[Id, float]]) -> dict[Id, float]:
    """The best relevance of each id over all strategies (strategy -> id -> relevance). What is no number is skipped."""
    best: dict[Id, float] = {}
    for found in relevance.values():
        for key, value in found.items():
            if is_number(value):
                best[key] = max(value, best.get(key, value))
    return best


@dataclass(frozen=True, slots=True)
class Basis:
    """The data that all hits of one fusion share: the weight of each strategy that answered, `k`, the curve, the best.

    `attainable` is the sum an id would have that is first in every one of these strategies. `scales` are those of the
    lists that have scores, for a `fusion` that uses them.
    """

    weights: Mapping[str, float]
    k: float
    calibration: Calibration
    attainable: float
    fusion: str = RRF
    scales: Mapping[str, ScoreScale] = field(default_factory=dict)

    def rank_share(self, rank: int) -> float:
        """The share of a rank in a list without scores: its reciprocal rank as a share of that of rank 1."""
        return (self.k + 1) / (self.k + rank)


_SUMS: Mapping[str, str] = MappingProxyType(
    {RRF: "reciprocal ranks", RELATIVE: "relative scores", DISTRIBUTION: "distribution-based scores"}
)
"""Names of the sums that are explained."""


@dataclass(frozen=True, slots=True)
class Hit(Generic[Id]):
    """A result. `score` is calibrated (0..1), `fused` is what it was calibrated from: total x recency x evidence.

    `total` is the weighted sum of its reciprocal ranks or, by another `fusion`, of its shares of each list's scale.
    `ranks` are its ranks in the strategies that found it, `scores` the scores that they gave it (where the lists had
    any), `age_days` its age where known, `notes` the faults of its data.
    """

    id: Id
    score: float
    fused: float
    total: float
    recency: float
    evidence: float
    ranks: Mapping[str, int]
    age_days: float | None
    notes: tuple[Note, ...]
    basis: Basis = field(repr=False)
    scores: Mapping[str, float] = field(default_factory=dict)

    def explain(self) -> Term:
        """The computation of the score. It recomposes to `score`."""
        return self.basis.calibration.explain(self.explain_order(), self.basis.attainable)

    @property
    def attainment(self) -> float:
        """`total` as a share of the sum of an id that is first in every strategy that answered, 0..1."""
        return self.total / self.basis.attainable

    def explain_attainment(self) -> Term:
        """The computation of the attainment. It recomposes to `attainment`."""
        return combined("attainment", "ratio", [self.explain_total(), given("attainable", self.basis.attainable)])

    def explain_total(self) -> Term:
        """The sum over strategies. It recomposes to `total`."""
        one = self._reciprocal if self.basis.fusion == RRF else self._share
        parts = [one(strategy, given("weight", self.basis.weights[strategy])) for strategy in self.ranks]
        return combined(_SUMS[self.basis.fusion], "sum", parts)

    def _reciprocal(self, strategy: str, weight: Term) -> Term:
        return combined(strategy, "ratio", [weight, self._rank(strategy)])

    def _share(self, strategy: str, weight: Term) -> Term:
        scale = self.basis.scales.get(strategy)
        if scale is not None:
            share = scale.explain(self.scores.get(strategy))
        else:
            first = combined("k + 1", "sum", [given("k", self.basis.k), given("rank", 1)])
            share = combined("share", "ratio", [first, self._rank(strategy)])
        return combined(strategy, "product", [weight, share])

    def _rank(self, strategy: str) -> Term:
        told = {"score": self.scores[strategy]} if strategy in self.scores else {}
        return combined("k + rank", "sum", [given("k", self.basis.k), given("rank", self.ranks[strategy], **told)])

    def explain_order(self) -> Term:
        """The number by which hits are ordered. It recomposes to `fused`."""
        told = {} if self.age_days is None else {"age in days": round(self.age_days, 1)}
        parts = [self.explain_total(), given("recency", self.recency, **told), given("evidence", self.evidence)]
        return combined("fused", "product", parts)


@dataclass(frozen=True, slots=True)
class Fused(Generic[Id]):
    """Hits, best first. `degraded` are the strategies that gave no answer; `considered` counts the distinct ids."""

    hits: tuple[Hit[Id], ...]
    degraded: tuple[str, ...]
    considered: int

    @property
    def pairs(self) -> list[tuple[Id, float]]:
        """(id, score) of each hit."""
        return [(hit.id, hit.score) for hit in self.hits]

    @property
    def notes(self) -> tuple[Note, ...]:
        """The faults in the data of these hits."""
        return tuple(note for hit in self.hits for note in hit.notes)


RECENCY_STEPS = ((7.0, 1.2), (30.0, 1.1))
"""(days, multiplier), youngest first: the multiplier of what is strictly younger (docs/design/scoring.md section 1)."""
MOST = max(multiplier for _, multiplier in RECENCY_STEPS)


def multiplier_of_age(days: float | None) -> float:
    """1.2 below 7 days, 1.1 below 30, else 1.0, as for an unknown age."""
    if days is None:
        return 1.0
    return next((multiplier for limit, multiplier in RECENCY_STEPS if days < limit), 1.0)


def recency_multiplier(modified: object, now: datetime) -> float:
    """The multiplier of a time of modification (datetime, epoch seconds or ISO text; naive is UTC).

    A time to come counts as now; what is no time gives 1.0.
    """
    return multiplier_of_age(age_days(modified, now))


@dataclass(frozen=True, slots=True)
class Facts(Generic[Id]):
    """None: not asked for. An id that is not in a mapping: unknown.

    `modified_times` are datetimes, epoch seconds or ISO text; `evidence` is the best relevance (0..1); `scores` are
    those of the strategies. Raises ConfigError for times without `now`.
    """

    modified_times: Mapping[Id, object] | None = None
    now: datetime | None = None
    evidence: Mapping[Id, float] | None = None
    scores: Mapping[str, Mapping[Id, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.modified_times is not None and self.now is None:
            raise ConfigError("now", None, "the present time, where modified_times are given,")

    def age(self, key: Id) -> float | None:
        """The age in days; None when it is not known."""
        if self.modified_times is None or self.now is None:
            return None
        return age_days(self.modified_times.get(key), self.now)

    def recency(self, key: Id) -> float:
        """The multiplier for recency."""
        return multiplier_of_age(self.age(key))

    def relevance(self, key: Id) -> float | None:
        """The best relevance; None when it is not known."""
        value = None if self.evidence is None else self.evidence.get(key)
        return value if is_number(value) else None

    def scores_of(self, key: Id) -> Mapping[str, float]:
        """Strategy -> score of this id, without what is no number."""
        return {name: of[key] for name, of in sorted(self.scores.items()) if is_number(of.get(key))}

    def apply(self, sums: Mapping[Id, float], gate: EvidenceGate) -> Mapping[Id, float]:
        """Sums times recency times evidence, without what the gate leaves out."""
        if self.modified_times is None and self.evidence is None:
            return sums
        factors = {key: gate.factor(self.relevance(key)) for key in sums}
        return {key: sums[key] * self.recency(key) * factor for key, factor in factors.items() if factor is not None}

    def notes(self, key: Id) -> tuple[Note, ...]:
        """The faults in the data of this id."""
        found: list[Note] = []
        if self.modified_times is not None and self.now is not None:
            time = self.modified_times.get(key)
            if time is None:
                found.append(Note("missing_time", str(key)))
            elif self.age(key) is None:
                found.append(Note("bad_time", str(key), repr(time)))
            elif is_future(time, self.now):
                found.append(Note("future_time", str(key), repr(time)))
        if self.evidence is not None and key in self.evidence and not _is_share(self.evidence[key]):
            found.append(Note("bad_evidence", str(key), repr(self.evidence[key])))
        found += [
            Note("bad_score", str(key), f"{name}: {of[key]!r}")
            for name, of in sorted(self.scores.items())
            if key in of and not is_number(of[key])
        ]
        return tuple(found)


def _is_share(value: object) -> bool:
    return is_number(value) and 0 <= value <= 1


Listed = Sequence[Id] | Sequence[tuple[Id, float]]
"""The ids that a strategy found, best first, alone or each with its score there."""


def ids_and_scores(strategy: str, found: Listed[Id]) -> tuple[Sequence[Id], dict[Id, float]]:
    """The ids of a list, and their scores when it has pairs; the first of a repeated id counts.

    Raises ConfigError for a set (it has no order), for text, and for a list with pairs and other things.
    """
    if isinstance(found, AbstractSet | str | bytes):
        raise ConfigError(f"results.{strategy}", found, "a list, best first: a set has no order, and text no ids,")
    first = next(iter(found), None)
    if not isinstance(first, tuple | list):
        return cast("Sequence[Id]", found), {}
    scores: dict[Id, float] = {}
    pairs = cast("Sequence[Any]", found)
    for at, pair in enumerate(pairs):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ConfigError(f"results.{strategy}[{at}]", pair, "a pair (id, score), as the first one is,")
        scores.setdefault(pair[0], pair[1])
    return list(scores), scores


Ranks = Mapping[str, Mapping[Id, int]]
"""Strategy -> id -> rank. Strategies without weight or without an answer are not in it."""


def ranks_of(ids: Iterable[Id]) -> dict[Id, int]:
    """Ids with their ranks from 1. A repeated id counts once, at its best rank, and takes no rank from another."""
    return dict(zip(dict.fromkeys(ids), count(1), strict=False))


def reciprocal_sums(ranks: Ranks[Id], weights: Mapping[str, float], k: float) -> dict[Id, float]:
    """The sum of weight / (k + rank) of each id, correctly rounded: the order of strategies changes no bit."""
    terms: dict[Id, list[float]] = {}
    for strategy, ranked in ranks.items():
        weight = weights[strategy]
        for key, rank in ranked.items():
            found = terms.get(key)
            if found is None:
                terms[key] = [weight / (k + rank)]
            else:
                found.append(weight / (k + rank))
    return {key: math.fsum(parts) for key, parts in terms.items()}


def sums(ranks: Ranks[Id], scores: Mapping[str, Mapping[Id, float]], basis: Basis) -> dict[Id, float]:
    """The total of each id: the sum of weight x reciprocal rank, or of weight x share, correctly rounded."""
    if basis.fusion == RRF:
        return reciprocal_sums(ranks, basis.weights, basis.k)
    terms: dict[Id, list[float]] = {}
    for strategy, ranked in ranks.items():
        weight, scale = basis.weights[strategy], basis.scales.get(strategy)
        for key, rank in ranked.items():
            share = basis.rank_share(rank) if scale is None else scale.share(scores[strategy].get(key))
            terms.setdefault(key, []).append(weight * share)
    return {key: math.fsum(parts) for key, parts in terms.items()}


Keys = Callable[[Id], tuple[float, ...]]


def ordered(scores: Mapping[Id, float], top_n: int | None = None, ties: Keys[Id] | None = None) -> list[Id]:
    """Ids by score, highest first; then by `ties`, smallest first; then by id, numbers before text. `top_n` of them."""

    def rank(key: Id) -> tuple[float, tuple[float, ...], bool, Id]:
        return -scores[key], ties(key) if ties else (), isinstance(key, str), key

    if top_n is None or top_n >= len(scores):
        return sorted(scores, key=rank)
    lowest = heapq.nlargest(top_n, scores.values())[-1]
    return sorted((key for key, score in scores.items() if score >= lowest), key=rank)[:top_n]


TIE_BREAKS: Mapping[str, Callable[[Collection[int], float | None], float]] = MappingProxyType(
    {
        "agreement": lambda ranks, _: -len(ranks),
        "best_rank": lambda ranks, _: min(ranks),
        "newest": lambda _, age: math.inf if age is None else age,
    }
)
"""Of the ranks of a hit and its age in days, a number of which the smaller comes first: more strategies agree, a better
rank, a younger item."""
