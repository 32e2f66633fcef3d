"""Calibration by example: the founding numbers, the scale of what can be attained, and curves fitted to labels."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from smart_model_router_scoring.calibration import (
    Isotonic,
    Sigmoid,
    calibrate_score,
    fit,
    fit_isotonic,
    fit_platt,
    interpret,
)
from smart_model_router_scoring.explain import given
from smart_model_router_scoring.options import ConfigError
from tests.unit.scoring import exact


@pytest.mark.parametrize(("strategies", "score"), [(1, 0.057813), (2, 0.417762), (3, 0.893505)])
def test_the_founding_numbers(strategies: int, score: float) -> None:
    """Rank 1 of one, two and three strategies on the scale `raw`."""
    raw = Fraction(strategies, 61)
    assert calibrate_score(strategies / 61) == pytest.approx(exact.sigmoid(150 * (raw - Fraction(35, 1000))), abs=1e-12)
    assert calibrate_score(strategies / 61) == pytest.approx(score, abs=1e-6)


@pytest.mark.parametrize("raw", [0.0, 0.01, 0.035, 0.05, 1.0, -1.0])
def test_the_two_scales_agree_where_three_strategies_answer(raw: float) -> None:
    """`attainment` is `raw` at three strategies of weight 1."""
    assert Sigmoid().calibrate(raw, 3 / 61) == pytest.approx(Sigmoid(scale="raw").calibrate(raw, 3 / 61), abs=1e-12)


def test_the_numbers_of_the_scale_of_attainment() -> None:
    """0.711667 and 7.377049."""
    assert list(Sigmoid().parameters) == pytest.approx([0.711667, 7.377049], abs=1e-6)
    assert Sigmoid(scale="raw").parameters == (0.035, 150.0)
    assert Sigmoid(threshold=0.0, steepness=2).parameters == (0.0, 2)


def test_half_is_at_the_threshold() -> None:
    """Whatever the steepness."""
    assert calibrate_score(0.035) == 0.5
    assert calibrate_score(0.2, threshold=0.2, steepness=7) == 0.5
    assert calibrate_score(0.3, threshold=0.2, steepness=7) == pytest.approx(exact.sigmoid(Fraction(7, 10)), abs=1e-12)


@pytest.mark.parametrize(
    ("raw", "score"), [(math.inf, 1.0), (-math.inf, 0.0), (math.nan, 0.0), (1e300, 1.0), (-1e300, 0.0)]
)
def test_no_score_overflows(raw: float, score: float) -> None:
    """The ends of what a float can be are 0 and 1; what is no number is 0."""
    assert calibrate_score(raw) == score
    assert calibrate_score(raw, steepness=1e308) == score
    assert Sigmoid().calibrate(raw, 1.0) == score


def test_nothing_attainable_is_no_share() -> None:
    """Without any strategy every score is that of nothing."""
    assert Sigmoid().calibrate(0.5, 0.0) == Sigmoid().calibrate(0.0, 1.0)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"scale": "log"}, "scale"),
        ({"threshold": math.nan}, "threshold"),
        ({"threshold": math.inf}, "threshold"),
        ({"threshold": "0.5"}, "threshold"),
        ({"steepness": 0}, "steepness"),
        ({"steepness": -1.0}, "steepness"),
        ({"steepness": math.inf}, "steepness"),
        ({"steepness": True}, "steepness"),
    ],
)
def test_a_sigmoid_that_cannot_be_is_refused(settings: dict[str, Any], field: str) -> None:
    """By name."""
    with pytest.raises(ConfigError) as refused:
        Sigmoid(**settings)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("score", "word"),
    [
        (1.0, "excellent"),
        (0.9, "excellent"),
        (0.8999, "good"),
        (0.7, "good"),
        (0.6999, "moderate"),
        (0.5, "moderate"),
        (0.4999, "weak"),
        (0.3, "weak"),
        (0.2999, "noise"),
        (0.0, "noise"),
        (math.nan, "noise"),
    ],
)
def test_a_score_in_a_word(score: float, word: str) -> None:
    """Each bound belongs to the better word."""
    assert interpret(score) == word


def test_an_unfitted_curve_promises_no_probability() -> None:
    """It is a confidence index until labels say more."""
    assert Sigmoid().meaning == "confidence index"
    assert Sigmoid(fitted=True).meaning == "probability"
    assert Isotonic(knots=((0, 0.5),)).meaning == "probability"


SLOPE, MIDDLE = 6.0, 0.4
# 5 scores, at each of which the share of relevant ones is that of a sigmoid, as closely as 1,000 labels allow.
LABELS = [
    (step / 5, number < round(1_000 / (1 + math.exp(-SLOPE * (step / 5 - MIDDLE)))))
    for step in range(5)
    for number in range(1_000)
]


def test_platt_finds_the_sigmoid_the_labels_came_from() -> None:
    """Threshold and steepness to the precision that the shares have."""
    curve = fit_platt(LABELS)
    threshold, steepness = curve.parameters
    assert curve.fitted
    assert curve.scale == "attainment"
    assert threshold == pytest.approx(MIDDLE, abs=2e-4)
    assert steepness == pytest.approx(SLOPE, abs=2e-3)


@pytest.mark.parametrize(
    "counted",
    [
        {0.1: (0, 12), 0.2: (0, 12), 0.3: (12, 0), 0.4: (0, 12), 0.6: (12, 0)},
        {0.1: (1, 59), 5.0: (10, 0)},
        {0.0: (0, 1), 0.1: (29, 1), 0.2: (1, 29), 0.5: (29, 1)},
        {1e6: (20, 30), 1e6 + 1: (30, 20)},
    ],
)
def test_platt_is_at_the_summit_of_the_likelihood(counted: dict[float, tuple[int, int]]) -> None:
    """With Platt's targets the gradient is zero in both directions: fitted and given means agree."""
    labels = [(x, relevant) for x, (yes, no) in counted.items() for relevant in [True] * yes + [False] * no]
    curve = fit(labels, "platt", "raw")
    assert isinstance(curve, Sigmoid)
    positive = sum(relevant for _, relevant in labels)
    negative = len(labels) - positive
    targets = [(positive + 1) / (positive + 2) if relevant else 1 / (negative + 2) for _, relevant in labels]
    gaps = [curve.calibrate(x, 0.0) - target for (x, _), target in zip(labels, targets, strict=True)]
    assert math.fsum(gaps) == pytest.approx(0, abs=1e-6)
    assert math.fsum(gap * x for gap, (x, _) in zip(gaps, labels, strict=True)) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1e-9), (0.0, 1e-200), (0.0, 1e9), (1.0, 1.0 + 1e-9)])
def test_platt_knows_no_scale(low: float, high: float) -> None:
    """Two scores, however close or far: half is in the middle, and the curve goes through Platt's targets."""
    threshold, steepness = fit_platt([(low, False), (high, True)] * 50).parameters
    assert threshold - low == pytest.approx((high - low) / 2, rel=1e-6)
    assert steepness == pytest.approx(2 * math.log(51) / (high - low), rel=1e-6)


def test_platt_takes_a_slope_however_gentle() -> None:
    """50 of 100 and 55 of 100: with Platt's targets nearly ln(55/45) apart."""
    labels = [(0.0, number < 50) for number in range(100)] + [(1.0, number < 55) for number in range(100)]
    assert fit_platt(labels).parameters[1] == pytest.approx(math.log(55 / 45), abs=0.01)


def test_platt_ends_where_scores_can_hardly_be_told_apart() -> None:
    """Five irrelevant ones far off, and the others a billionth from each other: a curve, in no time."""
    labels = [(0.0, False)] * 5 + [(1 - 1e-9, False), (1.0, True)] * 50
    assert fit_platt(labels).calibrate(1.0, 1.0) > 0.4


def test_platt_does_not_make_a_cliff_of_separated_labels() -> None:
    """Two scores, 50 labels each, told apart perfectly: the curve goes through Platt's targets, 51/52 and 1/52."""
    curve = fit_platt([(0.0, False), (1.0, True)] * 50)
    assert curve.calibrate(1.0, 1.0) == pytest.approx(51 / 52, abs=1e-6)
    assert curve.calibrate(0.0, 1.0) == pytest.approx(1 / 52, abs=1e-6)


def test_the_order_of_labels_changes_no_bit() -> None:
    """Sums are rounded once."""
    labels = LABELS[::5]
    assert fit_platt(labels[::-1]).parameters == fit_platt(labels).parameters
    assert fit_isotonic(labels[::-1]).knots == fit_isotonic(labels).knots


def test_isotonic_pools_what_falls() -> None:
    """Shares .1 .5 .3 .9 at four scores: the two in the middle become .4, and lines join them."""
    shares = [(0.1, 1), (0.2, 5), (0.3, 3), (0.4, 9)]
    labels = [(x, number % 10 < tenths) for x, tenths in shares for number in range(250)]
    curve = fit(labels, "isotonic", "raw")
    assert isinstance(curve, Isotonic)
    assert curve.knots == ((0.1, 0.1), (0.2, 0.4), (0.3, 0.4), (0.4, 0.9))
    assert [curve.calibrate(x, 0.0) for x in (0.0, 0.1, 0.15, 0.25, 0.35, 0.4, 9.0)] == pytest.approx(
        [0.1, 0.1, 0.25, 0.4, 0.65, 0.9, 0.9]
    )


def test_isotonic_pools_equal_neighbours_and_goes_back() -> None:
    """A fall that reaches below earlier blocks takes them with it: .4 .6 .2 are .4 together; equals are one block."""
    shares = [(0.1, 4), (0.2, 6), (0.3, 2), (0.4, 4), (0.5, 10)]
    curve = fit_isotonic([(x, number % 10 < tenths) for x, tenths in shares for number in range(200)])
    assert curve.knots == ((0.1, 0.4), (0.4, 0.4), (0.5, 1.0))


@pytest.mark.parametrize(("method", "least"), [("platt", 50), ("isotonic", 1_000)])
def test_too_few_labels_are_refused(method: str, least: int) -> None:
    """50 and 1,000 are the fewest; scores that are no numbers do not count."""
    labels = [(number % 7 / 7, number % 7 > 3) for number in range(least)]
    with pytest.raises(ConfigError) as refused:
        fit([*labels[:-1], (math.nan, True)], method)
    assert (refused.value.field, refused.value.value, refused.value.allowed) == (
        "labels",
        least - 1,
        f"at least {least} labels",
    )
    assert fit(labels, method).meaning == "probability"
    assert isinstance(fit(labels), Sigmoid)


@pytest.mark.parametrize("relevant", [True, False])
@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_labels_of_one_kind_are_refused(method: str, relevant: bool) -> None:
    """They say nothing about where the other kind begins."""
    with pytest.raises(ConfigError, match=r"^labels: 2000 - both relevant and irrelevant labels is needed$"):
        fit([(number / 2_000, relevant) for number in range(2_000)], method)


@pytest.mark.parametrize(("method", "seen"), [("platt", r"slope -\d.+"), ("isotonic", "one level")])
def test_scores_that_do_not_rise_with_relevance_are_refused(method: str, seen: str) -> None:
    """A curve that falls would turn the order round; what was seen is told."""
    with pytest.raises(ConfigError, match=rf"^labels: '{seen}' - scores that rise with relevance is needed$"):
        fit([(0.5 + number / 2_000, number < 1_000) for number in range(2_000)], method)


@pytest.mark.parametrize(("method", "seen"), [("platt", r"slope -?\d.*"), ("isotonic", "one level")])
@pytest.mark.parametrize("relevant", [100, 200, 250, 400])
def test_scores_that_have_nothing_to_do_with_relevance_are_refused(method: str, seen: str, relevant: int) -> None:
    """So many of 500 at each of three scores: the best line is level, whichever way its sums are rounded."""
    labels = [(score, number < relevant) for score in (0.0, 0.3, 1.0) for number in range(500)]
    with pytest.raises(ConfigError, match=rf"^labels: '{seen}' - scores that rise with relevance is needed$"):
        fit(labels, method)


@pytest.mark.parametrize("method", ["platt", "isotonic"])
@pytest.mark.parametrize(("score", "relevant"), [(0.5, 1_900), (-1.0, 100), (0.0, 1_000)])
def test_one_score_says_nothing_about_relevance(method: str, score: float, relevant: int) -> None:
    """Whatever the share of relevant ones is, there is no curve through a single score."""
    with pytest.raises(ConfigError, match=r"^labels: 'one level' - scores that rise with relevance is needed$"):
        fit([(score, number < relevant) for number in range(2_000)], method)


def test_an_unknown_method_is_refused() -> None:
    """By name."""
    with pytest.raises(ConfigError, match="method: 'spline' - one of platt, isotonic is needed"):
        fit(LABELS, "spline")


def test_isotonic_knots_that_cannot_be_are_refused() -> None:
    """None at all, falling ones, and values outside 0..1."""
    for knots in (((0.1, 1.1),), ((math.nan, 0.5),)):
        with pytest.raises(ConfigError, match=r"^knots"):
            Isotonic(knots=knots)
    with pytest.raises(ConfigError, match=r"^knots: \(\) - at least one \(x, value\) is needed$"):
        Isotonic(knots=())
    for falling in (((0.1, 0.5), (0.2, 0.4)), ((0.2, 0.4), (0.1, 0.5))):
        with pytest.raises(ConfigError) as refused:
            Isotonic(knots=falling)
        assert str(refused.value) == f"knots: {falling!r} - x and value that never fall is needed"
    with pytest.raises(ConfigError, match=r"^scale"):
        Isotonic(knots=((0.1, 0.2),), scale="log")


def test_isotonic_survives_what_is_no_number() -> None:
    """NaN is 0, the infinities are the ends."""
    curve = Isotonic(knots=((0.2, 0.1), (0.6, 0.7)))
    found = [curve.calibrate(x, 1.0) for x in (math.nan, -math.inf, math.inf)]
    assert found == [0.0, 0.1, 0.7]


def test_a_line_between_knots_explains_itself_to_a_person() -> None:
    """Where it starts, how far beyond the score is, how steep it is; on the scale `raw` of the sum itself."""
    knots = ((0.25, 0.5), (0.75, 1.0))
    rest = [
        "score = 0.75 (sum; meaning: probability)",
        "  value at the knot = 0.5",
        "  rise = 0.25 (product)",
        "    slope = 1",
        "    past the knot = 0.25 (sum)",
    ]
    raw = Isotonic(knots=knots, scale="raw").explain(given("fused", 0.5), 8.0)
    assert list(raw.lines()) == [*rest, "      fused = 0.5", "      -knot = -0.25"]
    share = Isotonic(knots=knots).explain(given("fused", 4), 8.0)
    attained = ["      attainment = 0.5 (ratio)", "        fused = 4", "        attainable = 8", "      -knot = -0.25"]
    assert list(share.lines()) == [*rest, *attained]


def test_a_curve_may_jump() -> None:
    """Two knots at one x: up to it the lower value, from it on the higher one."""
    curve = Isotonic(knots=((0.1, 0.2), (0.1, 0.3), (0.5, 0.7)))
    assert [curve.calibrate(x, 1.0) for x in (0.05, 0.1)] == [0.2, 0.3]
    assert curve.calibrate(0.3, 1.0) == pytest.approx(0.5, abs=1e-12)
