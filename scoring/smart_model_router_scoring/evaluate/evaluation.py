"""Evaluations: judgements and runs as TREC files, one run judged, two compared, options tuned with a holdout."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import product
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from smart_model_router_scoring.confidence.confidence_index import as_number
from smart_model_router_scoring.evaluate.metrics import (
    METRICS,
    RESAMPLES,
    Dice,
    Interval,
    Metric,
    bootstrap,
    sign_flip_test,
)
from smart_model_router_scoring.fusion.hits import Facts, ranks_of, sums
from smart_model_router_scoring.fusion.pipeline import (
    RRF_K,
    TOP_N,
    Fusion,
    answered,
    check_top_n,
    fuse_results,
    split,
)
from smart_model_router_scoring.fusion.scales import RRF
from smart_model_router_scoring.options import ConfigError, Notes, check_number

Run = Mapping[str, Sequence[Any]]
"""Query -> ids, best first."""
Qrels = Mapping[str, Mapping[Any, float]]
"""Query -> id -> grade; above 0 is relevant."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The metrics of a run: by query, and their means with intervals.

    `unjudged` are queries of the run without any relevant id: nothing can be said of them. A judged query that the run
    does not have counts with 0. `metadata` describes the run, `updated_at` its time (ISO 8601; "" when unknown).
    """

    metrics: Mapping[str, Interval]
    per_query: Mapping[str, Mapping[str, float]]
    unjudged: tuple[str, ...]
    metadata: Mapping[str, object] = field(default_factory=dict)
    updated_at: str = ""


def evaluate(
    run: Run,
    qrels: Qrels,
    *,
    metrics: Mapping[str, Metric] = METRICS,
    seed: int = 0,
    resamples: int = RESAMPLES,
    metadata: Mapping[str, object] | None = None,
    now: datetime | None = None,
) -> Evaluation:
    """Every metric of `run`, with a 95 % bootstrap interval of its mean. The order of queries changes no bit."""
    judged = sorted(query for query, grades in qrels.items() if any(grade > 0 for grade in grades.values()))
    per_query = {
        name: MappingProxyType({query: metric(run.get(query, ()), qrels[query]) for query in judged})
        for name, metric in metrics.items()
    }
    return Evaluation(
        metrics=MappingProxyType(
            {
                name: bootstrap(list(values.values()), seed=seed, resamples=resamples)
                for name, values in per_query.items()
            }
        ),
        per_query=MappingProxyType(per_query),
        unjudged=tuple(sorted(set(run) - set(judged))),
        metadata=MappingProxyType({"queries": len(judged), "seed": seed, "resamples": resamples, **(metadata or {})}),
        updated_at="" if now is None else now.isoformat(),
    )


_QREL = "query 0 id grade"
_RUN = "query Q0 id rank score tag"


def parse_qrels(text: str, notes: Notes | None = None) -> Qrels:
    """Judgements, a line each: `query 0 id grade`; above 0 is relevant, and of a repeated pair the last line counts.

    A line that is none is left out with a note (`bad_line`).
    """
    qrels: dict[str, dict[str, float]] = {}
    for (query, _, key, _), grade in _lines(text, _QREL, 3, notes):
        qrels.setdefault(query, {})[key] = grade
    return qrels


def parse_run(text: str, notes: Notes | None = None) -> Run:
    """A run, a line each: `query Q0 id rank score tag`. The score orders, highest first; of equal ones the id does.

    The rank is not read, as trec_eval has it. A line that is none is left out with a note (`bad_line`).
    """
    found: dict[str, list[tuple[float, str]]] = {}
    for (query, _, key, *_), score in _lines(text, _RUN, 4, notes):
        found.setdefault(query, []).append((-score, key))
    return {query: [key for _, key in sorted(scored)] for query, scored in found.items()}


def _lines(text: str, form: str, number: int, notes: Notes | None) -> Iterator[tuple[list[str], float]]:
    """The fields of each line of this form, and that at `number` as a number."""
    told = notes if notes is not None else Notes()
    for place, line in enumerate(text.splitlines(), start=1):
        fields = line.split()
        if not fields:
            continue
        value = as_number(fields[number]) if len(fields) == len(form.split()) else None
        if value is None:
            told.add("bad_line", f"line {place}", f"not `{form}`")
        else:
            yield fields, value


@dataclass(frozen=True, slots=True)
class Delta:
    """The changes in the list of one query: ids that came, that went, and that moved (id -> rank before, after)."""

    entered: tuple[Any, ...]
    left: tuple[Any, ...]
    moved: Mapping[Any, tuple[int, int]]


def diff(run_a: Run, run_b: Run) -> Mapping[str, Delta]:
    """The queries whose lists differ, and how. Empty is what a change that changes nothing must give."""
    deltas: dict[str, Delta] = {}
    for query in sorted({*run_a, *run_b}):
        before, after = (_ranks(run.get(query, ())) for run in (run_a, run_b))
        moved = {key: (before[key], after[key]) for key in before if key in after and before[key] != after[key]}
        entered = tuple(key for key in after if key not in before)
        left = tuple(key for key in before if key not in after)
        if moved or entered or left:
            deltas[query] = Delta(entered, left, MappingProxyType(moved))
    return MappingProxyType(deltas)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Of one metric, B against A by query: wins, losses and ties of B, the mean of B - A with its interval, and p.

    `p` is that of a paired two-sided sign-flip test: how likely chance alone sets them as far apart.
    """

    metric: str
    wins: tuple[str, ...]
    losses: tuple[str, ...]
    ties: int
    difference: Interval
    p: float


def compare(run_a: Run, run_b: Run, qrels: Qrels, *, metric: str = "ndcg@10", seed: int = 0) -> Comparison:
    """Compare run B with run A. Raises KeyError for a metric that is not in `METRICS`."""
    chosen = {metric: METRICS[metric]}
    of_a, of_b = (evaluate(run, qrels, metrics=chosen, resamples=1).per_query[metric] for run in (run_a, run_b))
    differences = {query: of_b[query] - of_a[query] for query in of_a}
    values = list(differences.values())
    return Comparison(
        metric=metric,
        wins=tuple(query for query, value in differences.items() if value > 0),
        losses=tuple(query for query, value in differences.items() if value < 0),
        ties=values.count(0.0),
        difference=bootstrap(values, seed=seed),
        p=sign_flip_test(values, seed=seed),
    )


def _ranks(ids: Any) -> dict[Any, int]:
    return {key: rank for rank, key in enumerate(dict.fromkeys(ids), 1)}


_RankedLists = Mapping[str, Sequence[Any] | None]
"""Strategy -> ids, best first; None for a strategy without an answer."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A relevant id that was retrieved and not returned.

    `reason`: `disabled` (only strategies of weight 0 found it), `outranked` (its place is beyond `top_n`) or
    `unconfident` (its score is below `min_confidence`). `ranks` are its ranks in the strategies, `place` and `score`
    what fusion made of them: None when it was disabled.
    """

    query: str
    id: Any
    reason: str
    ranks: Mapping[str, int]
    place: int | None = None
    score: float | None = None


def diagnose(lists: Mapping[str, _RankedLists], qrels: Qrels, fusion: Fusion, *, top_n: int = TOP_N) -> list[Finding]:
    """Every such id of every judged query, in the order of queries, then of places, then of ids."""
    check_top_n(top_n)
    everything = Fusion(replace(fusion.config, min_confidence=0.0))
    findings: list[Finding] = []
    for query in sorted(qrels):
        ranks = {name: ranks_of(ids) for name, ids in split(lists.get(query, {}))[0].items()}
        places = _places(everything, lists.get(query, {}))
        lost: list[Finding] = []
        for key in sorted((key for key, grade in qrels[query].items() if grade > 0), key=str):
            found = {name: ranked[key] for name, ranked in ranks.items() if key in ranked}
            if not found:
                continue  # never retrieved: nothing that fusion could have done
            if key not in places:
                lost.append(Finding(query, key, "disabled", found))
                continue
            place, score = places[key]
            if place > top_n or score < fusion.config.min_confidence:
                reason = "outranked" if place > top_n else "unconfident"
                lost.append(Finding(query, key, reason, found, place, score))
        findings += sorted(lost, key=lambda finding: finding.place or math.inf)
    return findings


def _places(everything: Fusion, lists: _RankedLists) -> dict[Any, tuple[int, float]]:
    """Every id with its place and its score, uncut."""
    ids, scores = split(lists)
    basis = everything.basis(answered(lists), scores)
    ranks = {name: ranks_of(ids[name]) for name in basis.weights}
    totals = sums(ranks, scores, basis)
    hits = everything.best(totals, ranks, basis, Facts(), len(totals))
    return {hit.id: (place, hit.score) for place, hit in enumerate(hits, 1)}


Candidate = TypeVar("Candidate")
UNLIKELY = 0.1
"""The p of a two-sided test below which a gain counts as one: 0.05 for a gain, as only that is asked for."""


@dataclass(frozen=True, slots=True)
class Choice(Generic[Candidate]):
    """The best of the candidates on the training queries, and what it does to the held-out ones.

    `training` is its mean there, `default` that of the default. `holdout` compares it (B) with the default (A).
    """

    candidate: Candidate
    training: float
    default: float
    holdout: Comparison

    @property
    def better(self) -> bool:
        """True for a gain on the held-out queries that chance alone would hardly give: p below 0.1, two-sided."""
        return self.holdout.difference.mean > 0 and self.holdout.p < UNLIKELY


def choose(
    runs: Iterable[tuple[Candidate, Run]],
    default: Run,
    qrels: Qrels,
    *,
    metric: str = "ndcg@10",
    holdout: float = 0.3,
    seed: int = 0,
) -> Choice[Candidate]:
    """The candidate whose run is best on the training queries, the first of equals; the queries are those of `default`.

    `holdout` (0..1) is the share of judged queries kept aside, one at least. Raises ConfigError for fewer than two
    judged queries, and for no candidates.
    """
    check_number("holdout", holdout, 0, 1)
    judged = Dice(seed).shuffled(sorted(query for query in qrels if query in default))
    if len(judged) < 2:
        raise ConfigError("qrels", len(judged), "at least two queries with lists")
    aside = min(max(math.ceil(holdout * len(judged)), 1), len(judged) - 1)
    held, training = ({query: qrels[query] for query in part} for part in (judged[:aside], judged[aside:]))
    scored = [(_mean(run, training, metric), candidate, run) for candidate, run in runs]
    if not scored:
        raise ConfigError("weights", (), "at least one candidate")
    best, candidate, run = max(scored, key=lambda one: one[0])  # the first of equals
    comparison = compare(default, run, held, metric=metric, seed=seed)
    return Choice(candidate, best, _mean(default, training, metric), comparison)


def _mean(run: Run, qrels: Qrels, metric: str) -> float:
    return evaluate(run, qrels, metrics={metric: METRICS[metric]}, resamples=1).metrics[metric].mean


Lists = Mapping[str, Mapping[str, Sequence[Any]]]
"""Query -> strategy -> ids, best first, or (id, score)."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best weights, k and fusion on the training queries, and what they do to the held-out ones.

    `training` is its mean there. `holdout` compares it (B) with the defaults (A): all weights 1, k 60, by ranks. Take
    it only when that says so.
    """

    weights: Mapping[str, float]
    k: float
    training: float
    holdout: Comparison
    fusion: str = RRF


def tune(
    lists: Lists,
    qrels: Qrels,
    *,
    weights: Iterable[Mapping[str, float]] = ({},),
    ks: Iterable[float] = (RRF_K,),
    fusions: Iterable[str] = (RRF,),
    metric: str = "ndcg@10",
    holdout: float = 0.3,
    seed: int = 0,
) -> Tuned:
    """Tries every one of `weights` with every one of `ks` and `fusions`; the first of equals stays.

    `holdout` (0..1) is the share of judged queries kept aside, one at least. Raises ConfigError for fewer than two
    judged queries, and for no candidates.
    """

    def run(weight: Mapping[str, float], k: float, fusion: str) -> Run:
        fused = {query: fuse_results(lists[query], k, weight, fusion=fusion) for query in qrels if query in lists}
        return {query: [key for key, _ in found] for query, found in fused.items()}

    runs = ((one, run(*one)) for one in product(weights, ks, fusions))
    choice = choose(runs, run({}, RRF_K, RRF), qrels, metric=metric, holdout=holdout, seed=seed)
    chosen, k, fusion = choice.candidate
    return Tuned(dict(chosen), k, choice.training, choice.holdout, fusion)
