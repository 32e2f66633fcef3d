"""The Confidence Index by example: the mean, the gates, the rounds, the words."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from smart_model_router_scoring.confidence import (
    DEFAULT_WEIGHTS,
    GATES,
    GateResult,
    Matrix,
    Regression,
    TwoTier,
    as_count,
    as_flag,
    as_number,
    coalesce_best_round,
    compute_ci,
    confidence_level,
    data_errors,
    explain_ci,
    quality_metadata,
    regression,
    sensitivity,
    tier_of,
)
from smart_model_router_scoring.options import ConfigError
from tests.unit.scoring import exact

GOOD: dict[str, Any] = {
    "coverage": 0.85,
    "source_quality": 0.82,
    "agreement": 0.78,
    "verification": 0.9,
    "recency": 0.8,
}
COUNTS: dict[str, Any] = {"recent_source_count": 10, "critical_contradictions": 0}
ROUND = {**GOOD, **COUNTS}
FOUNDING = {"coverage": 25, "source_quality": 20, "agreement": 20, "verification": 20, "recency": 15}
NOTHING: list[Any] = [None, math.nan, math.inf, "", "high", "nan", "1_0", -0.01, 1.01, True, [0.5], 10**400]


def scores(value: float, **others: object) -> dict[str, Any]:
    """Every metric at `value` but for `others`."""
    return {**dict.fromkeys(DEFAULT_WEIGHTS, value), **others}


def test_the_weights_are_the_founding_ones_and_read_only() -> None:
    """.25 .20 .20 .20 .15."""
    assert dict(DEFAULT_WEIGHTS) == {name: weight / 100 for name, weight in FOUNDING.items()}
    with pytest.raises(TypeError):
        DEFAULT_WEIGHTS["coverage"] = 0.99  # type: ignore[index]


def test_the_index_is_the_weighted_mean() -> None:
    """Computed in fractions."""
    wanted = sum(Fraction(weight, 100) * Fraction(str(GOOD[name])) for name, weight in FOUNDING.items())
    assert compute_ci(GOOD) == pytest.approx(float(wanted), abs=1e-15)


def test_the_geometric_index_is_the_weighted_product_of_powers() -> None:
    """Computed in decimals."""
    wanted = math.prod(
        exact.power(Fraction(str(GOOD[name])), Fraction(weight, 100)) for name, weight in FOUNDING.items()
    )
    assert compute_ci(GOOD, method="geometric") == pytest.approx(wanted, abs=1e-12)


def test_weights_are_divided_by_their_sum() -> None:
    """Only their proportions matter, a weight of 0 takes its metric out, and other metrics are not looked at."""
    assert compute_ci({"a": 0.2, "b": 0.8}, {"a": 1, "b": 3}) == pytest.approx(0.65)
    assert compute_ci({"a": 0.2, "b": 0.8, "c": 0.1}, {"a": 0, "b": 7}) == 0.8
    assert compute_ci({"a": 0.25, "b": 1.0}, {"a": 2, "b": 2}, "geometric") == pytest.approx(0.5)
    assert compute_ci({"a": 0.0, "b": 0.7}, {"a": 0, "b": 2}, "geometric") == 0.7


def test_one_metric_near_zero_drags_the_geometric_index_down() -> None:
    """The founding example: verification 0.10 counts 0.10 ** 0.20, about 0.63; at 0 nothing is left."""
    low = compute_ci(scores(1.0, verification=0.1), method="geometric")
    assert low == pytest.approx(exact.power(Fraction(1, 10), Fraction(1, 5)), abs=1e-12)
    assert low == pytest.approx(0.63, abs=1e-2)
    assert compute_ci(scores(1.0, verification=0), method="geometric") == 0.0
    assert compute_ci(scores(1.0, verification=0)) == pytest.approx(0.8)


@pytest.mark.parametrize("value", NOTHING, ids=repr)
@pytest.mark.parametrize("method", ["arithmetic", "geometric"])
def test_a_metric_that_is_no_share_is_a_data_error(value: object, method: str) -> None:
    """It is never clamped into a good score: there is no index."""
    bad = scores(0.9, agreement=value)
    assert math.isnan(compute_ci(bad, method=method))
    assert data_errors(bad) == ("agreement",)


def test_a_missing_metric_is_a_data_error() -> None:
    """Named in the order of the weights; the explanation names it too."""
    assert math.isnan(compute_ci({}))
    assert data_errors({}) == tuple(DEFAULT_WEIGHTS)
    assert data_errors({"a": 0.5, "b": 2}, {"a": 1, "b": 0}) == ("b",)
    explained = explain_ci({"a": 0.5}, {"a": 1, "b": 1, "c": 1})
    assert (explained.name, math.isnan(explained.value), explained.facts) == ("ci", True, {"errors": "b, c"})


@pytest.mark.parametrize("weights", [{"a": -1}, {"a": math.nan}, {"a": 0}, {}, {"a": True}, {"a": 1_000_001}])
def test_weights_that_cannot_be_are_refused(weights: dict[str, Any]) -> None:
    """Negative ones, what is no number, and none above 0."""
    with pytest.raises(ConfigError, match=r"^weights"):
        compute_ci({"a": 0.5}, weights)


@pytest.mark.parametrize("weights", [{}, {"a": 0, "b": 0.0}])
def test_weights_without_weight_are_refused_in_words(weights: dict[str, float]) -> None:
    """What was given, and what is needed."""
    with pytest.raises(ConfigError) as refused:
        data_errors({"a": 0.5}, weights)
    assert str(refused.value) == f"weights: {weights!r} - a weight above 0 is needed"


def test_an_unknown_method_is_refused() -> None:
    """By name, and none of it is explained."""
    for asked in (compute_ci, explain_ci):
        with pytest.raises(ConfigError, match="method: 'harmonic' - one of arithmetic, geometric is needed"):
            asked(GOOD, method="harmonic")


@pytest.mark.parametrize("method", ["arithmetic", "geometric"])
def test_the_index_explains_itself(method: str) -> None:
    """One term a metric, and the index again."""
    term = explain_ci(GOOD, {"coverage": 3, "recency": 1, "agreement": 0}, method)
    assert [part.name for part in term.parts] == ["coverage", "recency"]
    assert [[(leaf.name, leaf.value) for leaf in part.parts] for part in term.parts] == [
        [("score", 0.85), ("weight", 0.75)],
        [("score", 0.8), ("weight", 0.25)],
    ]
    assert (term.name, term.facts) == ("ci", {"method": method})
    assert explain_ci({"a": 0.5}, {"a": 1}, method).value == 0.5
    assert term.recompose() == pytest.approx(
        compute_ci(GOOD, {"coverage": 3, "recency": 1, "agreement": 0}, method), abs=1e-12
    )


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("0.80", 0.8),
        (" 12.0 ", 12.0),
        ("-3e2", -300.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("+1E-1", 0.1),
        (7, 7.0),
        (0.25, 0.25),
    ],
)
def test_numbers_are_read_strictly(value: object, number: float) -> None:
    """Decimal notation and nothing else."""
    assert as_number(value) == number


@pytest.mark.parametrize(
    "value",
    ["", " ", "nan", "inf", "-infinity", "1_000", "0x10", "1,5", "50%", "1e999", "1.2.3", "e5", ".", "\u0663", True],
)
def test_what_is_no_number_is_none(value: object) -> None:
    """Text that Python's float would take included."""
    assert as_number(value) is None


def test_flags_are_read_strictly() -> None:
    """Text is not true for being there."""
    assert [as_flag(value) for value in (True, False, "true", "FALSE", " True ")] == [True, False, True, False, True]
    others: list[object] = ["yes", "", 1, 0, None, []]
    assert [as_flag(value) for value in others] == [None] * 6


def test_counts_are_read_strictly() -> None:
    """A list counts its items, a flag is 0 or 1, half an item is none."""
    assert [as_count(value) for value in (12, "12.0", 3.0, "0", 0)] == [12, 12, 3, 0, 0]
    assert [as_count(value) for value in (["x", "y"], [], {"a": 1}, "false", True)] == [2, 0, 1, 0, 1]
    assert [as_count(value) for value in (-1, "2.5", "many", None, math.nan, "")] == [None] * 6


def test_a_good_round_passes_both_gates() -> None:
    """Nothing violated, no reasons, and the index with it."""
    for gate in GATES.values():
        result = gate().check(ROUND)
        assert result == GateResult(True, (), (), (), compute_ci(GOOD), result.tiers)
        assert result.tiers == {
            "coverage": "High",
            "source_quality": "High",
            "agreement": "High",
            "verification": "Elite",
            "recency": "High",
        }


def test_the_strings_of_a_step_are_read() -> None:
    """What a workflow hands on as text counts as what it says."""
    texts = {name: f"{value:.2f}" for name, value in GOOD.items()}
    outputs = {**texts, "recent_source_count": "12.0", "critical_contradictions": "false"}
    assert TwoTier().check(outputs).passed
    assert TwoTier().check({**outputs, "critical_contradictions": []}).passed
    refused = TwoTier().check({**outputs, "critical_contradictions": ["a", "b"]})
    assert (refused.passed, refused.reasons) == (False, ("critical contradictions: 2",))


@pytest.mark.parametrize(
    ("name", "floor"),
    [("source_quality", 0.40), ("verification", 0.40), ("coverage", 0.35), ("agreement", 0.35), ("recency", 0.30)],
)
def test_no_metric_is_bought_off_by_the_others(name: str, floor: float) -> None:
    """Just below its floor it fails although the index is far above its target; at the floor it passes."""
    below = TwoTier(target_ci=0.5).check({**scores(1.0, **{name: math.nextafter(floor, 0)}), **COUNTS})
    assert (below.passed, below.floor_violations) == (False, (name,))
    assert below.reasons == (f"{name} {floor:g} is below its floor {floor:g}",)
    assert TwoTier(target_ci=0.5).check({**scores(1.0, **{name: floor}), **COUNTS}).passed


def test_the_compensability_vulnerability_is_closed() -> None:
    """verification 0.10 and 0.90 elsewhere do not pass (ADR-003, validation plan)."""
    result = TwoTier().check({**scores(0.9, verification=0.1), **COUNTS})
    assert (result.passed, result.floor_violations) == (False, ("verification",))


def test_the_index_must_reach_its_target() -> None:
    """0.80 passes, even when its sum is a rounding below; less does not."""
    exactly = {
        "coverage": 0.7,
        "source_quality": 0.9,
        "agreement": 0.8,
        "verification": 0.8,
        "recency": 0.8 + 0.05 / 1.5,
    }
    assert compute_ci(exactly) == pytest.approx(0.8, abs=1e-15)
    assert TwoTier().check({**exactly, **COUNTS}).passed
    below = TwoTier().check({**scores(0.79), **COUNTS})
    assert (below.passed, below.floor_violations) == (False, ())
    assert below.reasons == ("the index 0.790 is below its target 0.8",)
    assert TwoTier(target_ci=0.79).check({**scores(0.79), **COUNTS}).passed


def test_the_index_of_a_gate_is_that_of_its_settings() -> None:
    """Weights and method are the gate's."""
    gate = TwoTier(weights={"coverage": 1, "recency": 1}, method="geometric")
    outputs = {**scores(0.9, coverage=0.81, recency=1.0), **COUNTS}
    assert gate.check(outputs).ci == pytest.approx(0.9)
    assert gate.check(outputs).tiers == {"coverage": "High", "recency": "Elite"}


def test_ten_recent_sources_are_needed() -> None:
    """By both policies; it is a floor like the others. Another number may be set."""
    for gate in GATES.values():
        few = gate().check({**ROUND, "recent_source_count": 9})
        assert (few.passed, few.floor_violations) == (False, ("recent_source_count",))
        assert few.reasons == ("recent_source_count 9 is below its floor 10",)
    assert TwoTier(min_recent_sources=3).check({**ROUND, "recent_source_count": 3}).passed
    assert not TwoTier(min_recent_sources=3).check({**ROUND, "recent_source_count": 2}).passed


def test_a_critical_contradiction_fails_both_gates() -> None:
    """One is enough, however it is written."""
    for gate in GATES.values():
        for one in (1, "1", ["x"], True, "true"):
            assert gate().check({**ROUND, "critical_contradictions": one}).reasons == ("critical contradictions: 1",)


def test_a_data_error_fails_the_gate() -> None:
    """A metric or a count that cannot be read is named, once, and no floor is said to be violated."""
    for gate in GATES.values():
        result = gate().check({**ROUND, "coverage": 1.5, "recency": None, "recent_source_count": "ten"})
        assert not result.passed
        assert result.floor_violations == ()
        assert result.data_errors == ("coverage", "recency", "recent_source_count")
        assert result.reasons == (
            "coverage is missing or cannot be read: 1.5",
            "recency is missing or cannot be read: None",
            "recent_source_count is missing or cannot be read: 'ten'",
        )
        assert math.isnan(result.ci)
        assert set(result.tiers) == {"source_quality", "agreement", "verification"}
        assert gate().check(GOOD).data_errors == ("recent_source_count", "critical_contradictions")


def test_a_floor_needs_its_metric_even_without_a_weight() -> None:
    """What has a floor must be there."""
    gate = TwoTier(weights={"coverage": 1})
    result = gate.check({"coverage": 0.9, "recency": 0.9, "agreement": 0.9, "verification": 0.9, **COUNTS})
    assert (result.passed, result.data_errors) == (False, ("source_quality",))
    assert result.ci == 0.9


@pytest.mark.parametrize(
    ("score", "tier"),
    [(1, "Elite"), (0.9, "Elite"), (0.89, "High"), (0.75, "High"), (0.74, "Medium"), (0.5, "Medium"), (0.49, "Low")],
)
def test_the_tiers(score: float, tier: str) -> None:
    """Each bound belongs to the better tier."""
    assert tier_of(score) == tier


def test_the_tiers_have_thresholds_of_ones_own() -> None:
    """Of a score alone, and in the results of both gates."""
    thresholds = (0.9, 0.8, 0.7)
    assert [tier_of(score, thresholds) for score in (0.9, 0.8, 0.7, 0.69)] == ["Elite", "High", "Medium", "Low"]
    for gate in (TwoTier(tier_thresholds=thresholds), Matrix(tier_thresholds=thresholds)):
        assert set(gate.check({**scores(0.78), **COUNTS}).tiers.values()) == {"Medium"}


@pytest.mark.parametrize(
    "thresholds", [(0.9, 0.5), (0.9, 0.9, 0.5), (0.5, 0.7, 0.9), (1.1, 0.7, 0.5), (0.9, 0.7, -0.1)]
)
@pytest.mark.parametrize("gate", [TwoTier, Matrix])
def test_thresholds_that_are_none_are_refused(gate: type[TwoTier | Matrix], thresholds: tuple[float, ...]) -> None:
    """Three scores, each below the one before."""
    with pytest.raises(ConfigError, match="tier_thresholds"):
        gate(tier_thresholds=thresholds)


def test_the_matrix_asks_for_high_everywhere() -> None:
    """0.75 in each dimension passes although the index is below 0.80; 0.74 in one does not."""
    assert Matrix().check({**scores(0.75), **COUNTS}).passed
    result = Matrix().check({**scores(1.0, agreement=0.74), **COUNTS})
    assert (result.passed, result.floor_violations) == (False, ("agreement",))
    assert result.reasons == ("agreement 0.74 is below its floor 0.75",)


def test_the_matrix_takes_its_bounds() -> None:
    """How high is high and how many sources are enough are settings."""
    outputs = {**dict.fromkeys(DEFAULT_WEIGHTS, 0.7), "recent_source_count": 2, "critical_contradictions": 0}
    assert not Matrix().check(outputs).passed
    assert Matrix(high=0.7, min_recent_sources=2).check(outputs).passed
    with pytest.raises(ConfigError, match="high"):
        Matrix(high=2)


def test_the_matrix_refuses_a_regression() -> None:
    """A round that is worse than the one before does not pass; the other policy does not ask."""
    assert Matrix().check(ROUND, regressed=True).reasons == ("the round is worse than the one before",)
    assert TwoTier().check(ROUND, regressed=True).passed


@pytest.mark.parametrize(
    "settings",
    [
        {"floors": {"coverage": 1.1}},
        {"floors": {"coverage": -0.1}},
        {"min_recent_sources": -1},
        {"min_recent_sources": 2.0},
        {"target_ci": 1.1},
        {"target_ci": -0.1},
        {"method": "harmonic"},
        {"weights": {"coverage": -1}},
        {"weights": {}},
    ],
)
def test_a_gate_that_cannot_be_is_refused(settings: dict[str, Any]) -> None:
    """By the name of the setting."""
    with pytest.raises(ConfigError, match=rf"^{next(iter(settings))}"):
        TwoTier(**settings)


def test_a_gate_keeps_its_own_settings() -> None:
    """What the caller does to his dictionaries afterwards changes nothing."""
    floors, weights = {"coverage": 0.5}, {"coverage": 1.0}
    gate = TwoTier(floors=floors, weights=weights, min_recent_sources=0, target_ci=0)
    floors["coverage"] = weights["coverage"] = 0.0
    assert (dict(gate.floors), dict(gate.weights)) == ({"coverage": 0.5}, {"coverage": 1.0})


def rounds(*pairs: tuple[object, object]) -> list[object]:
    """Rounds of (gate_passed, ci_score), numbered from 1."""
    return [{"gate_passed": passed, "ci_score": ci, "number": number} for number, (passed, ci) in enumerate(pairs, 1)]


@pytest.mark.parametrize(
    ("given", "best"),
    [
        (rounds((True, 0.80), (True, 0.85), (True, 0.85)), 2),
        (rounds((False, 0.99), (True, 0.80)), 2),
        (rounds((False, 0.5), (False, 0.7), (False, 0.6)), 2),
        (rounds((True, math.nan), (True, 0.1)), 2),
        (rounds((True, None), (False, 0.9)), 1),
        (rounds((False, None), (False, math.nan), (False, 0.0)), 3),
        (rounds((False, None), (False, math.nan)), 1),
        (rounds(("false", "0.9"), ("true", "0.1")), 2),
        (rounds((1, 0.9), (True, 0.1)), 2),
        (rounds(("0.9", "0.81"), (None, "0.82")), 2),
    ],
)
def test_the_best_round_is_delivered(given: list[object], best: int) -> None:
    """A passed gate first, then the index, then the earlier round; no index comes last."""
    found = coalesce_best_round(given)
    assert found is given[best - 1]


def test_what_is_no_round_is_skipped() -> None:
    """None and text among the rounds; nothing left is None."""
    only = {"ci_score": 0.1}
    assert coalesce_best_round([None, "round", 3, only]) is only
    assert coalesce_best_round([None, "round"]) is None
    assert coalesce_best_round([]) is None
    assert coalesce_best_round([{}]) == {}


@pytest.mark.parametrize(
    ("indices", "patience", "wanted"),
    [
        ([], 2, Regression(0, stop=False)),
        ([0.7], 2, Regression(0, stop=False)),
        ([0.7, 0.6], 2, Regression(1, stop=False)),
        ([0.7, 0.6], 1, Regression(1, stop=True)),
        ([0.7, 0.6, 0.5], 2, Regression(2, stop=True)),
        ([0.7, 0.6, 0.65, 0.6], 2, Regression(1, stop=False)),
        ([0.7, 0.6, 0.6, 0.5], 2, Regression(2, stop=True)),
        ([0.7, 0.6, 0.6], 2, Regression(1, stop=False)),
        ([0.5, 0.6, 0.7], 1, Regression(0, stop=False)),
        ([0.7, 0.6, 0.5, 0.9], 2, Regression(2, stop=True)),
        ([0.7, None, 0.6], 2, Regression(0, stop=False)),
        ([0.7, math.nan], 1, Regression(1, stop=True)),
        ([0.0, None], 1, Regression(1, stop=True)),
        ([-3.0, None], 1, Regression(1, stop=True)),
        (["0.7", "0.6"], 1, Regression(1, stop=True)),
    ],
)
def test_regressions_in_a_row_stop_the_rounds(indices: list[object], patience: int, wanted: Regression) -> None:
    """Each round is compared with the one before; an improvement begins anew, an equal round does nothing."""
    assert regression(indices, patience=patience) == wanted


def test_two_regressions_stop_unless_told() -> None:
    """The patience of the default policy; none at all is refused."""
    assert not regression([0.7, 0.6]).stop
    assert regression([0.7, 0.6, 0.5]).stop
    with pytest.raises(ConfigError, match=r"^patience: 0"):
        regression([0.7], patience=0)


@pytest.mark.parametrize(
    ("ci", "passed", "level"),
    [
        (0.8, True, "full"),
        (0.8 - 1e-15, True, "full"),
        (0.95, False, "moderate"),
        (0.7999, True, "moderate"),
        (0.65, False, "moderate"),
        (0.6499, True, "low"),
        (0.5, False, "low"),
        (0.4999, True, "insufficient"),
        (0.0, False, "insufficient"),
        (math.nan, True, "insufficient"),
        (None, True, "insufficient"),
    ],
)
def test_the_words_of_delivery(ci: float | None, passed: bool, level: str) -> None:
    """Full confidence needs the index and the gate."""
    assert confidence_level(ci, passed) == level


def test_every_answer_carries_its_quality() -> None:
    """The founding example, with a metric that could not be read among the failing ones."""
    found = quality_metadata(
        {**GOOD, "verification": 0.55, "recency": math.nan, "agreement": 0.75},
        best_ci=0.74,
        gate_passed=False,
        selected_round=2,
        rounds_completed=4,
    )
    assert found == {
        "confidence_level": "moderate",
        "best_ci_achieved": 0.74,
        "target_ci": 0.80,
        "selected_round": 2,
        "rounds_completed": 4,
        "failing_metrics": [{"verification": 0.55}, {"recency": None}],
        "passing_metrics": [{"coverage": 0.85}, {"source_quality": 0.82}, {"agreement": 0.75}],
    }
    passed = quality_metadata(GOOD, best_ci=0.9, gate_passed=True, selected_round=1, rounds_completed=1, target_ci=0.9)
    assert (passed["confidence_level"], passed["target_ci"]) == ("full", 0.9)


def test_sensitivity_moves_each_weight_both_ways() -> None:
    """Weights 1 and 1, scores 1 and 0, delta 0.5: 1.5/2.5, 0.5/1.5 and their mirror images."""
    found = sensitivity({"a": 1.0, "b": 0.0}, 0.5, weights={"a": 1, "b": 1}, target_ci=0.3)
    assert dict(found.perturbed) == pytest.approx({"a+": 0.6, "a-": 1 / 3, "b+": 0.4, "b-": 2 / 3})
    assert (found.ci, found.min, found.max) == pytest.approx((0.5, 1 / 3, 2 / 3))
    assert found.gate_stable
    assert not sensitivity({"a": 1.0, "b": 0.0}, 0.5, weights={"a": 1, "b": 1}, target_ci=0.4).gate_stable
    assert sensitivity({"a": 1.0, "b": 0.0}, 0.5, weights={"a": 1, "b": 1}, target_ci=0.7).gate_stable


def test_sensitivity_uses_five_hundredths_unless_told() -> None:
    """And the default weights, method and target."""
    found = sensitivity(scores(0.8, coverage=1.0))
    assert found.ci == pytest.approx(0.85)
    assert found.perturbed["coverage+"] == pytest.approx(0.8 + 0.2 * 0.30 / 1.05)
    assert found.perturbed["recency-"] == pytest.approx(0.8 + 0.2 * 0.25 / 0.95)
    assert len(found.perturbed) == 10
    assert found.gate_stable
    assert not sensitivity(scores(0.79, coverage=0.83)).gate_stable
    geometric = sensitivity({"a": 0.25, "b": 1.0}, 0, weights={"a": 1, "b": 1}, method="geometric")
    assert dict(geometric.perturbed) == pytest.approx(dict.fromkeys(("a+", "a-", "b+", "b-"), 0.5))


def test_a_weight_is_perturbed_to_nothing_and_not_beyond() -> None:
    """Below 0 it stays at 0; a perturbation that leaves no weight is left out."""
    found = sensitivity({"a": 1.0, "b": 0.0}, 1.0, weights={"a": 0.5, "b": 0.5})
    assert found.perturbed["b-"] == 1.0
    only = sensitivity({"a": 0.9}, 1.0, weights={"a": 1.0})
    assert dict(only.perturbed) == {"a+": 0.9}


def test_sensitivity_of_what_cannot_be_read_is_not_stable() -> None:
    """Every number is NaN."""
    found = sensitivity({"a": None}, weights={"a": 1.0})
    assert math.isnan(found.ci)
    assert math.isnan(found.min)
    assert not found.gate_stable
    for delta in (-0.1, 1.1, math.nan):
        with pytest.raises(ConfigError, match=r"^delta"):
            sensitivity(GOOD, delta)


def test_the_errors_of_a_gate_are_those_of_its_own_weights() -> None:
    """A metric of one's own is missed, and the founding ones are not, where neither has a floor."""
    gate = TwoTier(weights={"novelty": 1}, floors={}, min_recent_sources=0, target_ci=0.5)
    assert gate.check(COUNTS).data_errors == ("novelty",)
    assert gate.check({**COUNTS, "novelty": 0.6}).passed


def test_a_metric_of_zero_explains_itself() -> None:
    """It counts as what it is, by either method."""
    for method, index in (("arithmetic", 0.75), ("geometric", 0.0)):
        term = explain_ci({"a": 0.0, "b": 1.0}, {"a": 1, "b": 3}, method)
        assert (term.value, term.recompose()) == (index, index)


def test_a_level_forgives_the_rounding_of_a_sum_and_no_more() -> None:
    """A part in 10^12 below it is reached, two are not."""
    assert confidence_level(0.80 - 1e-12, gate_passed=True) == "full"
    assert confidence_level(0.80 - 2e-12, gate_passed=True) == "moderate"


def test_the_index_of_a_sensitivity_is_by_its_method() -> None:
    """The one in the middle, too."""
    found = sensitivity({"a": 0.25, "b": 1.0}, weights={"a": 1, "b": 1}, method="geometric")
    assert found.ci == pytest.approx(0.5, abs=1e-12)
