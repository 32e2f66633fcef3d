"""Scoring under whatever data: order independence to the bit, bounds, prefixes, monotony, explanations."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from smart_model_router_scoring import vectorised
from smart_model_router_scoring.calibration import (
    Calibration,
    Isotonic,
    Sigmoid,
    calibrate_score,
    fit_isotonic,
    fit_platt,
)
from smart_model_router_scoring.confidence import (
    Matrix,
    TwoTier,
    coalesce_best_round,
    compute_ci,
    explain_ci,
    regression,
    sensitivity,
)
from smart_model_router_scoring.decay import load_recency_windows, recency_decay, recency_score
from smart_model_router_scoring.evaluate import evaluate, expected_calibration_error, ndcg, recall, reciprocal_rank
from smart_model_router_scoring.fusion import EvidenceGate, Fusion, FusionConfig, best_evidence, fuse_results, minmax
from smart_model_router_scoring.options import ConfigError
from smart_model_router_scoring.vectorised import calibrate_scores

NOW = datetime(2026, 3, 1, tzinfo=UTC)
# Few ids, so that lists meet and repeat; text of every script among them.
IDS = st.sampled_from([*"abcdefgh", "é", "文", "\U0001f600", ""])
NAMES = ("vector", "keyword", "graph", "tags")
STRATEGIES = st.sampled_from(NAMES)
SCORES = st.sampled_from([0.0, 1.0, 0.5, -2.0, 3.25, 12.0, 1e300, -1e300, 5e-324, math.nan, None])
SCORED = st.lists(st.tuples(IDS, SCORES), max_size=12)
LISTS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    STRATEGIES, st.one_of(st.lists(IDS, max_size=12), SCORED), max_size=4
)
WEIGHTS = st.dictionaries(STRATEGIES, st.sampled_from([0, 0.1, 0.25, 1, 1 / 3, 2.5, 1e6]), max_size=4)
KS = st.sampled_from([0, 1, 60, 61.5, 1_000_000])
# Days before NOW at and about the limits, and what is no time at all.
TIMES: st.SearchStrategy[object] = st.one_of(
    st.sampled_from([-1.0, 0.0, 6.999, 7.0, 29.999, 30.0, 5_000.0]).map(lambda days: NOW.timestamp() - days * 86_400),
    st.sampled_from([None, "", "soon", math.nan, math.inf, True, 10**400, "2026-02-27", datetime(2026, 2, 1)]),  # noqa: DTZ001
)
EVIDENCE = st.one_of(st.sampled_from([0.0, 0.2, 0.4, 1.0, -1.0, math.nan, math.inf]), st.floats(0, 1))
NUMBERS = st.one_of(st.floats(), st.sampled_from([0.0, 1.0, 0.5, -0.0, 1e308, -1e308, 5e-324]))
SHARES = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.35, 0.4, 0.75, 0.8, 1.0]))
CURVES: st.SearchStrategy[Sigmoid | Isotonic] = st.sampled_from(
    [Sigmoid(), Sigmoid(scale="raw"), Isotonic(knots=((0.2, 0.1), (0.5, 0.4), (0.5, 0.6), (0.9, 0.9)))]
)
FACTS = st.fixed_dictionaries(
    {"modified_times": st.dictionaries(IDS, TIMES), "evidence": st.dictionaries(IDS, EVIDENCE), "now": st.just(NOW)}
)
FUSIONS = st.sampled_from(["rrf", "relative", "distribution"])


def _reachable(fusion: str, calibration: Sigmoid | Isotonic) -> bool:
    return fusion == "rrf" or calibration != Sigmoid(scale="raw")


CONFIGS = st.builds(
    FusionConfig,
    fusion=st.shared(FUSIONS, key="fusion"),
    k=KS,
    weights=WEIGHTS,
    calibration=st.shared(FUSIONS, key="fusion").flatmap(
        lambda fusion: CURVES.filter(lambda curve: _reachable(fusion, curve))
    ),
    min_confidence=st.just(0.0),
    evidence_gate=st.builds(
        EvidenceGate, threshold=st.sampled_from([0.0, 0.2, 0.5]), action=st.sampled_from(["scale", "drop"])
    ),
    tie_breaks=st.lists(st.sampled_from(["agreement", "best_rank", "newest"]), unique=True).map(tuple),
)


@given(LISTS, CONFIGS, FACTS, st.randoms(use_true_random=False))
def test_the_order_of_strategies_changes_no_bit(
    lists: dict[str, list[str]], config: FusionConfig, facts: dict[str, Any], chance: Any
) -> None:
    """The same lists in another order are the same answer, explanations included."""
    names = list(lists)
    chance.shuffle(names)
    fused = Fusion(config, strategies=NAMES).fuse(lists, **facts)
    turned = Fusion(config, strategies=NAMES).fuse({name: lists[name] for name in names}, **facts)
    assert turned == fused
    assert [hit.explain() for hit in turned.hits] == [hit.explain() for hit in fused.hits]


@given(LISTS, CONFIGS, FACTS)
def test_explanations_recompose(lists: dict[str, list[str]], config: FusionConfig, facts: dict[str, Any]) -> None:
    """Each score, computed again from the leaves of its explanation, is that score to 1e-12, and lies in 0..1."""
    for hit in Fusion(config, strategies=NAMES).fuse(lists, **facts).hits:
        assert abs(hit.explain().recompose() - hit.score) <= 1e-12
        assert 0.0 <= hit.score <= 1.0


def _distinct(listed: list[Any]) -> list[Any]:
    """The list without repetitions of an id: the first one counts."""
    keyed = {(one[0] if isinstance(one, tuple) else one): one for one in reversed(listed)}
    firsts = [keyed.pop(one[0] if isinstance(one, tuple) else one, None) for one in listed]
    return [one for one in firsts if one is not None]


@given(LISTS, CONFIGS, FACTS)
def test_repetitions_change_nothing(lists: dict[str, list[str]], config: FusionConfig, facts: dict[str, Any]) -> None:
    """A list with its repetitions is the list without."""
    once = {name: _distinct(ids) for name, ids in lists.items()}
    assert Fusion(config, strategies=NAMES).fuse(lists, **facts) == Fusion(config, strategies=NAMES).fuse(once, **facts)


@given(LISTS, CONFIGS, FACTS, st.integers(1, 15), st.integers(1, 15), st.sampled_from([0.0, 0.3, 0.6]))
def test_fewer_results_are_the_first_of_more(
    lists: dict[str, list[str]], config: FusionConfig, facts: dict[str, Any], a: int, b: int, least: float
) -> None:
    """The prefix property between two top_n, with a cut and without."""
    weights = {**config.weights, "vector": 1.0}
    settings: dict[str, Any] = {"fusion": config.fusion, "weights": weights, "evidence_gate": config.evidence_gate}
    fusion = Fusion(FusionConfig(min_confidence=least, **settings), strategies=NAMES)
    fewer, more = sorted((a, b))
    assert fusion.fuse(lists, top_n=fewer, **facts).hits == fusion.fuse(lists, top_n=more, **facts).hits[:fewer]


@given(LISTS, CONFIGS, FACTS, st.integers(1, 15))
def test_the_vectorised_twin_agrees(
    lists: dict[str, list[str]], config: FusionConfig, facts: dict[str, Any], top_n: int
) -> None:
    """To the bit, notes and all."""
    fusion = Fusion(config, strategies=NAMES)
    assert vectorised.fuse(fusion, lists, top_n=top_n, **facts) == fusion.fuse(lists, top_n=top_n, **facts)


@given(LISTS, WEIGHTS, st.sampled_from([2.0, 0.5, 8.0]))
def test_scaling_all_weights_changes_no_score(
    lists: dict[str, list[str]], weights: dict[str, float], factor: float
) -> None:
    """On the scale of what can be attained only proportions count. Powers of two: to the bit."""
    full = {name: weights.get(name, 1.0) for name in lists}
    scaled = {name: weight * factor for name, weight in full.items() if weight * factor <= 1e6}
    assume(len(scaled) == len(full) and any(full.values()))
    pairs = [
        Fusion(FusionConfig(weights=used, min_confidence=0), strategies=lists).fuse(lists).pairs
        for used in (full, scaled)
    ]
    assert pairs[0] == pairs[1]


GRADED = st.dictionaries(IDS, st.sampled_from([0.0, 0.25, 1.0, 3.0, 3.5, 12.0]), min_size=1, max_size=8)
SCORE_FUSIONS = st.sampled_from(["relative", "distribution"])


@given(GRADED, GRADED, IDS, st.sampled_from([0.125, 1.0, 40.0]), SCORE_FUSIONS)
def test_a_higher_score_never_lowers_a_total(
    scores: dict[str, float], others: dict[str, float], key: str, rise: float, fusion: str
) -> None:
    """The id whose score rises in one list keeps its total at least, and by `relative` its place, too."""
    assume(key in scores)
    before, after = (
        fuse_results({"keyword": list(of.items()), "vector": list(others.items())}, fusion=fusion)
        for of in (scores, {**scores, key: scores[key] + rise})
    )
    assert dict(after)[key] >= dict(before)[key] - 1e-12
    if fusion == "relative":
        places = [[id_ for id_, total in of if total > dict(of)[key] + 1e-12] for of in (before, after)]
        assert len(places[1]) <= len(places[0])


@given(GRADED, GRADED, st.sampled_from([0.5, 3.0, 1e6]), st.sampled_from([0.0, -7.0, 1e3]), SCORE_FUSIONS)
def test_the_scale_and_the_shift_of_a_list_change_nothing(
    scores: dict[str, float], others: dict[str, float], scale: float, shift: float, fusion: str
) -> None:
    """BM25 in other units, or with a constant added, fuses alike."""
    moved = [(key, scale * score + shift) for key, score in scores.items()]
    found, wanted = (
        dict(fuse_results({"keyword": of, "vector": list(others.items())}, fusion=fusion))
        for of in (moved, list(scores.items()))
    )
    assert found == pytest.approx(wanted, abs=1e-9)


@given(LISTS, CONFIGS)
def test_attainment_is_a_share(lists: dict[str, Any], config: FusionConfig) -> None:
    """0..1 by every method; 1 is what the best everywhere has."""
    for hit in Fusion(config, strategies=NAMES).fuse(lists, top_n=100).hits:
        assert 0.0 <= hit.attainment <= 1.0 + 1e-12
        assert abs(hit.explain_attainment().recompose() - hit.attainment) <= 1e-12


@given(st.dictionaries(STRATEGIES, st.lists(IDS, max_size=12), max_size=4), IDS, WEIGHTS)
def test_a_better_rank_never_lowers_a_score(lists: dict[str, list[str]], key: str, weights: dict[str, float]) -> None:
    """Whoever moves to the front of one list scores at least what it did."""
    used = {name: weights[name] for name in weights.keys() & lists.keys()}
    before = dict(fuse_results(lists, weights=used)).get(key, 0.0)
    for name, ids in lists.items():
        front = {**lists, name: [key, *ids]}
        assert dict(fuse_results(front, weights=used)).get(key, 0.0) >= before


@example([("a", 0.0), ("b", 5e-324)])
@given(st.lists(st.tuples(IDS, NUMBERS)))
def test_minmax_stays_within_its_bounds_and_keeps_the_order(pairs: list[tuple[str, float]]) -> None:
    """0..1 whatever comes in; of two numbers the greater stays the greater or equal."""
    stretched = [score for _, score in minmax(pairs)]
    assert all(0.0 <= score <= 1.0 for score in stretched)
    finite = [(score, new) for (_, score), new in zip(pairs, stretched, strict=True) if math.isfinite(score)]
    assert all(a[1] <= b[1] for a in finite for b in finite if a[0] <= b[0])


@given(NUMBERS, NUMBERS, CURVES, st.sampled_from([0.0, 1 / 61, 3 / 61, 1e6]))
def test_calibration_keeps_the_order(a: float, b: float, curve: Sigmoid | Isotonic, attainable: float) -> None:
    """Non-decreasing, within 0..1, and never an exception."""
    low, high = curve.calibrate(a, attainable), curve.calibrate(b, attainable)
    assert 0.0 <= low <= 1.0
    assert low <= high or not a <= b


@given(st.lists(NUMBERS), CURVES, st.sampled_from([0.0, 3 / 61, 1.0]))
def test_many_scores_are_calibrated_as_one(raw: list[float], curve: Sigmoid | Isotonic, attainable: float) -> None:
    """The vectorised twin, to 1e-12."""
    assume(curve != Isotonic(knots=((0.2, 0.1), (0.5, 0.4), (0.5, 0.6), (0.9, 0.9))) or 0.5 not in raw)
    found = calibrate_scores(curve, np.array(raw, dtype=float), attainable)
    assert found.tolist() == pytest.approx([curve.calibrate(score, attainable) for score in raw], abs=1e-12)


@given(NUMBERS, st.floats(-10, 10), st.floats(1e-3, 1e6))
def test_the_sigmoid_is_symmetric_about_its_threshold(raw: float, threshold: float, steepness: float) -> None:
    """What is as far below the threshold as another is above it has the complement of its score."""
    assume(math.isfinite(raw) and abs(raw) < 1e100)
    mirrored = 2 * threshold - raw
    assume(mirrored - threshold == threshold - raw)
    total = calibrate_score(raw, threshold, steepness) + calibrate_score(mirrored, threshold, steepness)
    assert total == pytest.approx(1.0, abs=1e-12)


def _fitted(fit: Callable[[Any], Calibration], labels: list[tuple[float, bool]]) -> Calibration | None:
    """The curve, or None when the labels were refused."""
    try:
        return fit(labels)
    except ConfigError:
        return None


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.5, 0.7, 1.0, math.nan]), st.booleans()), min_size=20, max_size=40)
)
def test_fitted_curves_rise(labels: list[tuple[float, bool]]) -> None:
    """Whatever the labels: a curve that rises, or a refusal by ConfigError."""
    for fit, times in ((fit_platt, 5), (fit_isotonic, 60)):
        curve = _fitted(fit, labels * times)
        if curve is None:
            continue
        values = [curve.calibrate(x / 20, 1.0) for x in range(21)]
        assert values == sorted(values)
        assert curve.meaning == "probability"


METRICS = st.fixed_dictionaries(dict.fromkeys(["a", "b", "c"], SHARES))
CI_WEIGHTS = st.fixed_dictionaries(dict.fromkeys(["a", "b", "c"], st.sampled_from([0, 0.05, 0.1, 0.25, 1 / 3, 1.0, 7])))


@given(METRICS, CI_WEIGHTS)
def test_the_index_lies_between_its_metrics(scores: dict[str, float], weights: dict[str, float]) -> None:
    """To the bit; the geometric one is never above the arithmetic one; both explain themselves."""
    assume(any(weights.values()))
    used = [scores[name] for name, weight in weights.items() if weight]
    arithmetic, geometric = (compute_ci(scores, weights, method) for method in ("arithmetic", "geometric"))
    assert min(used) <= arithmetic <= max(used)
    assert min(used) <= geometric <= arithmetic
    for method, value in (("arithmetic", arithmetic), ("geometric", geometric)):
        assert abs(explain_ci(scores, weights, method).recompose() - value) <= 1e-12


@given(METRICS, CI_WEIGHTS, st.sampled_from([0.0, 0.05, 0.5, 1.0]))
def test_sensitivity_bounds_its_perturbations(
    scores: dict[str, float], weights: dict[str, float], delta: float
) -> None:
    """Least and greatest are of the list, which has the index itself between them."""
    assume(any(weights.values()))
    found = sensitivity(scores, delta, weights=weights)
    assert found.min == min([found.ci, *found.perturbed.values()])
    assert found.max == max([found.ci, *found.perturbed.values()])
    assert all(0.0 <= value <= 1.0 for value in found.perturbed.values())


ANYTHING = st.one_of(
    st.none(), st.booleans(), NUMBERS, st.integers(), st.text(max_size=5), st.lists(st.none(), max_size=2)
)
OUTPUTS = st.dictionaries(
    st.sampled_from(
        "coverage source_quality agreement verification recency recent_source_count critical_contradictions".split()
    ),
    st.one_of(SHARES, ANYTHING),
)


@given(OUTPUTS, st.booleans())
def test_a_gate_judges_whatever_a_step_puts_out(outputs: dict[str, Any], regressed: bool) -> None:
    """It never raises, it passes only without a reason, and it leaves its input alone."""
    before = repr(outputs)
    for gate in (TwoTier(), Matrix()):
        result = gate.check(outputs, regressed=regressed)
        assert result.passed == (not result.reasons)
        assert len(result.reasons) >= len(result.floor_violations) + len(result.data_errors)
        assert math.isnan(result.ci) or not result.passed or result.ci >= 0.75
    assert repr(outputs) == before


@given(st.lists(st.one_of(ANYTHING, st.fixed_dictionaries({"gate_passed": ANYTHING, "ci_score": ANYTHING}))))
def test_the_best_round_is_one_of_them(rounds: list[object]) -> None:
    """Never an exception; None only when there is no round; a passed gate is never passed over."""
    best = coalesce_best_round(rounds)
    known = [found for found in rounds if isinstance(found, dict)]
    assert (best is None) == (not known)
    if best is not None:
        assert best["gate_passed"] is True or not any(found["gate_passed"] is True for found in known)


@given(st.lists(st.one_of(SHARES, ANYTHING)), st.integers(1, 4))
def test_more_patience_never_stops_earlier(indices: list[object], patience: int) -> None:
    """Whatever the indices are."""
    assert regression(indices, patience=patience).stop or not regression(indices, patience=patience + 1).stop


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0.5, 1e5))
def test_decay_falls_and_halves(a: float, b: float, half_life: float) -> None:
    """Older is never fresher, a half-life more is half as fresh, and it stays within 0..1."""
    younger, older = sorted((a, b))
    fresh = recency_decay(younger, half_life_days=half_life)
    assert 0.0 <= recency_decay(older, half_life_days=half_life) <= fresh <= 1.0
    assume(fresh > 1e-300)
    assert recency_decay(younger + half_life, half_life_days=half_life) == pytest.approx(fresh / 2, rel=1e-6)


@given(st.lists(st.one_of(NUMBERS, st.just(0.0))), st.sampled_from(["binary", "decay"]))
def test_the_metric_of_recency_is_a_share(ages: list[float], mode: str) -> None:
    """0..1 whatever the ages are; no older source makes it better."""
    score = recency_score(ages, mode=mode)
    assert 0.0 <= score <= 1.0
    assert recency_score([*ages, 1e9], mode=mode) <= score


@given(
    st.recursive(
        ANYTHING,
        lambda inner: st.dictionaries(
            st.sampled_from(["evaluation", "deep_research", "recency_windows", "ai_ml"]), inner
        ),
    )
)
def test_windows_are_loaded_from_whatever_is_there(config: object) -> None:
    """Never an exception, always whole numbers above 0."""
    windows = load_recency_windows(config)
    assert all(type(days) is int and days > 0 for days in windows.values())
    assert windows["default"] == 183


@given(st.dictionaries(STRATEGIES, st.dictionaries(IDS, EVIDENCE)))
def test_the_best_evidence_is_found_whatever_is_there(relevance: dict[str, dict[str, float]]) -> None:
    """The greatest finite one of each id."""
    best = best_evidence(relevance)
    for key, value in best.items():
        assert value == max(found[key] for found in relevance.values() if math.isfinite(found.get(key, math.nan)))


@given(st.lists(IDS, max_size=15), st.dictionaries(IDS, st.sampled_from([0, 1, 2, 4])))
def test_metrics_are_shares(ranking: list[str], grades: dict[str, float]) -> None:
    """0..1; the best order is 1.0 where anything is relevant."""
    assert all(0.0 <= metric(ranking, grades) <= 1.0 for metric in (ndcg, reciprocal_rank, recall))
    best = sorted(grades, key=lambda key: -grades[key])
    assume(any(grades.values()))
    assert [metric(best, grades) for metric in (ndcg, reciprocal_rank, recall)] == [1.0, 1.0, 1.0]
    found = evaluate({"q": ranking}, {"q": grades}, resamples=10).metrics["ndcg@10"]
    assert found.low == found.mean == found.high == ndcg(ranking, grades)


@given(st.lists(st.tuples(NUMBERS, st.booleans())), st.integers(1, 20))
def test_the_calibration_error_is_a_share(judged: list[tuple[float, bool]], bins: int) -> None:
    """0..1 whatever the confidences are."""
    assert 0.0 <= expected_calibration_error(judged, bins=bins) <= 1.0
