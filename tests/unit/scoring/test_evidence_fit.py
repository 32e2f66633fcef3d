"""The fit of the evidence's weights, and the measures that it is judged by."""

from __future__ import annotations

import random

import pytest
from benchmarks.search.collections import cranfield_grade
from benchmarks.search.fit import logistic
from benchmarks.search.measures import auroc, keeping, share

from smart_model_router_scoring.evidence import Null


def test_weights_find_what_tells_and_leave_out_what_misleads() -> None:
    """A feature that rises with answers gets a weight, one that falls gets 0 and not less."""
    chance = random.Random(7)
    rows = {
        label: [{"window": chance.random() + label, "heading": chance.random() - label} for _ in range(200)]
        for label in (True, False)
    }
    fitted = logistic(("window", "heading"), [(Null(), rows[label], label) for label in (True, False)])
    assert fitted.weights["window"] > 0.5
    assert fitted.weights["heading"] == 0.0
    middle = -fitted.bias / fitted.weights["window"]
    assert middle == pytest.approx(1.0, abs=0.1)


def test_each_kind_of_question_counts_alike() -> None:
    """A thousand of the one and ten of the other: the middle stays where it is."""
    few = [{"window": 1.0}] * 10
    for many in (10, 1000):
        fitted = logistic(("window",), [(Null(), few, True), (Null(), [{"window": 0.0}] * many, False)])
        assert -fitted.bias / fitted.weights["window"] == pytest.approx(0.5, abs=0.01)


def test_the_measures_of_a_confidence_by_hand() -> None:
    """AUROC counts a tie half; the threshold that keeps 95 % of twenty loses one; a share includes its threshold."""
    assert auroc([0.9, 0.5], [0.5, 0.1]) == pytest.approx(3.5 / 4)
    assert keeping([number / 20 for number in range(20)]) == 1 / 20
    assert share([0.1, 0.3, 0.5], 0.3).mean == pytest.approx(2 / 3)


@pytest.mark.parametrize(("code", "grade"), [(-1, 0.0), (1, 4.0), (2, 3.0), (3, 2.0), (4, 1.0)])
def test_a_code_of_cranfield_is_a_grade(code: int, grade: float) -> None:
    """-1 is of no interest, and not the best."""
    assert cranfield_grade(code) == grade
