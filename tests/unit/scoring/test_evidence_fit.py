"""The fit of the evidence's weights, and the measures that it is judged by."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import pytest
from benchmarks.search.collections import cranfield_grade
from benchmarks.search.measures import share

from smart_model_router_scoring.evaluate import auroc, brier_score, over_halves, threshold_keeping
from smart_model_router_scoring.evidence import Logistic, Null
from smart_model_router_scoring.fitting import LEAST, RIDGE, Refit, fit_logistic, refit


def test_weights_find_what_tells_and_leave_out_what_misleads() -> None:
    """A feature that rises with answers gets a weight, one that falls gets 0 and not less."""
    chance = random.Random(7)
    rows = {
        label: [{"window": chance.random() + label, "heading": chance.random() - label} for _ in range(200)]
        for label in (True, False)
    }
    fitted = fit_logistic(("window", "heading"), [(Null(), rows[label], label) for label in (True, False)])
    assert fitted.weights["window"] > 0.5
    assert fitted.weights["heading"] == 0.0
    middle = -fitted.bias / fitted.weights["window"]
    assert middle == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(("value", "agree", "differ"), [(1.0, 1, 0), (3.0, 1, 0), (3.0, 3, 2)])
def test_a_fit_ends_where_the_slope_of_its_loss_is_0(value: float, agree: int, differ: int) -> None:
    """Where one more weight gains no more than RIDGE takes; the bias of what is alike on both sides is 0."""
    high, low = {"window": value}, {"window": -value}
    kinds = [(Null(), [*[high] * agree, *[low] * differ], True), (Null(), [*[low] * agree, *[high] * differ], False)]
    fitted = fit_logistic(("window",), kinds)
    weight, share = fitted.weights["window"], agree / (agree + differ)
    wrong = 1 / (1 + math.exp(value * weight))
    assert value * (share * wrong - (1 - share) * (1 - wrong)) == pytest.approx(2 * RIDGE * weight, abs=2e-3)
    assert fitted.bias == 0.0


def test_features_are_fitted_as_they_are_scored() -> None:
    """In spreads above the null of their rows."""
    null = Null({"window": (0.5, 0.25)})
    labelled = rows(40, 0.4)
    raw = [[row for row, label in labelled if label == kind] for kind in (True, False)]
    above = [[{"window": null.above("window", row["window"])} for row in of] for of in raw]
    fits = [
        fit_logistic(("window",), [(by, of, kind) for of, kind in zip(some, (True, False), strict=True)])
        for by, some in ((null, raw), (Null(), above))
    ]
    assert fits[0] == fits[1]


def test_each_kind_of_question_counts_alike() -> None:
    """A thousand of the one and ten of the other: the middle stays where it is."""
    few = [{"window": 1.0}] * 10
    for many in (10, 1000):
        fitted = fit_logistic(("window",), [(Null(), few, True), (Null(), [{"window": 0.0}] * many, False)])
        assert -fitted.bias / fitted.weights["window"] == pytest.approx(0.5, abs=0.01)


def test_the_measures_of_a_confidence_by_hand() -> None:
    """AUROC counts a tie half; the threshold that keeps 95 % of twenty loses one; a share includes its threshold."""
    assert auroc([0.9, 0.5], [0.5, 0.1]) == pytest.approx(3.5 / 4)
    assert threshold_keeping([number / 20 for number in range(20)]) == 1 / 20
    assert share([0.1, 0.3, 0.5], 0.3).mean == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("away", "threshold"),
    [([], 0.4), ([0.1], 0.2), ([0.3], 0.4), ([0.2], 0.4), ([0.4], 0.2), ([0.1, 0.9], 0.2)],
)
def test_a_threshold_gives_up_no_question_that_others_do_not_cost(away: list[float], threshold: float) -> None:
    """It is as low as it can be for the number of others that the highest one accepts."""
    assert threshold_keeping([0.2, 0.4, 0.8], 0.6, away) == threshold


@pytest.mark.parametrize(("code", "grade"), [(-1, 0.0), (1, 4.0), (2, 3.0), (3, 2.0), (4, 1.0)])
def test_a_code_of_cranfield_is_a_grade(code: int, grade: float) -> None:
    """-1 is of no interest, and not the best."""
    assert cranfield_grade(code) == grade


def test_an_auroc_without_one_kind_tells_nothing() -> None:
    """Neither better nor worse than chance; a threshold of one question is its own."""
    assert auroc([], [0.1]) == auroc([0.1], []) == 0.5
    assert threshold_keeping([0.4], 0.0) == 0.4


def rows(count: int, gap: float, seed: int = 3) -> list[tuple[dict[str, float], bool]]:
    """Rows of both labels, apart by so much."""
    chance = random.Random(seed)
    return [({"window": chance.random() + gap * label}, bool(label)) for _ in range(count) for label in (0, 1)]


def test_each_row_counts_alike_where_proportions_are_to_be_kept() -> None:
    """Three times as many of the one: without any difference between them, that share is the score."""
    kinds = [(Null(), [{"window": 0.5}] * 300, True), (Null(), [{"window": 0.5}] * 100, False), (Null(), [], False)]
    assert fit_logistic(("window",), kinds, evenly=False).score({"window": 0.5}, Null()) == pytest.approx(
        0.75, abs=0.01
    )
    assert fit_logistic(("window",), kinds).score({"window": 0.5}, Null()) == pytest.approx(0.5, abs=0.01)


def test_halves_judge_what_they_did_not_fit() -> None:
    """A curve that learns its rows by heart gains nothing by it."""
    labelled = rows(40, 0.0)
    at_heart: list[int] = []

    def learn(some: Sequence[tuple[dict[str, float], bool]]) -> Callable[[dict[str, float]], float]:
        known = {row["window"]: float(label) for row, label in some}
        at_heart.append(len(known))
        return lambda row: known.get(row["window"], 0.5)

    assert over_halves(labelled, learn, brier_score) == [0.25]
    assert set(at_heart) == {40}
    more = [row for row in rows(40, 0.0, seed=4) if not row[1]]
    over_halves([*labelled, *more], learn, brier_score, balanced=True)
    assert set(at_heart) == {40}


def test_a_refit_is_better_only_where_both_errors_are_smaller() -> None:
    """One that was off is replaced; one that is right stays; too few rows of a label are none."""
    off, right = Logistic(weights={"window": 0.1}, bias=2.0), fit_logistic(("window",), [(Null(), [
        row for row, label in rows(2_000, 0.8) if label == kind], kind) for kind in (True, False)])  # fmt: skip
    replaced, kept = (refit(one, Null(), rows(200, 0.8)) for one in (off, right))
    assert replaced is not None
    assert kept is not None
    assert (replaced.better, replaced.positive, replaced.negative) == (True, 200, 200)
    assert replaced.ece[1] < replaced.ece[0]
    assert not kept.better
    assert refit(off, Null(), rows(LEAST - 1, 0.8)) is None
    assert refit(off, Null(), rows(LEAST, 0.8)) is not None
    more = [row for row in rows(2 * LEAST, 0.8) if row[1]]
    assert refit(off, Null(), [*more, *rows(LEAST - 1, 0.8)]) is None


@pytest.mark.parametrize(
    ("ece", "brier", "better"),
    [
        ((0.2, 0.1), (0.2, 0.1), True),
        ((0.1, 0.1), (0.2, 0.1), False),
        ((0.2, 0.1), (0.1, 0.1), False),
        ((0.1, 0.2), (0.2, 0.1), False),
    ],
)
def test_an_error_that_is_no_smaller_replaces_nothing(
    ece: tuple[float, float], brier: tuple[float, float], better: bool
) -> None:
    """Of either kind; equal is not smaller."""
    assert Refit(Logistic(weights={"window": 1.0}, bias=0.0), 50, 50, ece, brier).better == better


def test_a_refit_keeps_the_proportions_of_its_rows() -> None:
    """Three of four are right and nothing tells them apart: that is the score."""
    alike = [({"window": 0.5}, number % 4 > 0) for number in range(4 * LEAST)]
    found = refit(Logistic(weights={"window": 1.0}, bias=0.0), Null(), alike)
    assert found is not None
    assert found.fitted.score({"window": 0.5}, Null()) == pytest.approx(0.75, abs=0.01)


def test_the_base_rate_is_no_better_than_a_function_that_tells() -> None:
    """Its ECE is 0 and its Brier score is not: where nothing tells, the function in force stays."""
    found = refit(Logistic(weights={"window": 0.0}, bias=0.0), Null(), rows(100, 0.0))
    assert found is not None
    assert not found.better


def test_a_fit_that_does_not_settle_ends_with_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last step is what it gives."""
    kinds = [(Null(), [row for row, label in rows(20, 0.5) if label == kind], kind) for kind in (True, False)]
    settled = fit_logistic(("window",), kinds)
    monkeypatch.setattr("smart_model_router_scoring.fitting.STEPS", 2)
    assert 0 < fit_logistic(("window",), kinds).weights["window"] < settled.weights["window"]
