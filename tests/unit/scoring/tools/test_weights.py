"""Online weights: learning in the shadow, a fair comparison, promotion and its way back."""

from __future__ import annotations

import math
from typing import Any

import pytest

from smart_model_router_scoring.options import ConfigError
from smart_model_router_scoring.tools.learning import LearningConfig, OnlineWeights
from smart_model_router_scoring.tools.suggestions import NextStepConfig

STATIC = {"cooccurrence": 0.6, "community": 0.3, "recency": 0.1}
LN2 = 0.6931471805599453


def only_recency_counts(samples: int, **config: Any) -> OnlineWeights:
    """Weights after feedback in which a suggestion was right exactly when it was recent."""
    weights = OnlineWeights(STATIC, LearningConfig(**config))
    for at in range(samples):
        features = {"cooccurrence": (at % 5) / 4, "community": float(at % 3 == 0), "recency": float(at % 2)}
        weights.update(features, good=bool(at % 2))
    return weights


def test_before_any_feedback_the_learned_weights_are_the_static_ones() -> None:
    """The prior is where learning starts."""
    weights = OnlineWeights(STATIC)
    assert dict(weights.active) == STATIC
    assert dict(weights.learned) == pytest.approx(STATIC, abs=1e-12)


def test_the_first_step_of_adagrad_is_the_learning_rate() -> None:
    """Its first accumulator is the gradient's own square: every weight that had a gradient moves by 0.1, up for good.

    2 x (0.7, 0.4, 0.1) / 2.4 is what is learned of 2 and 1, when only the first two had a feature above 0.
    """
    weights = OnlineWeights({"a": 0.6, "b": 0.3, "c": 0.1})
    assert weights.update({"a": 1.0, "b": 0.5}, good=True)
    assert dict(weights.learned) == pytest.approx({"a": 0.7 / 1.2, "b": 0.4 / 1.2, "c": 0.1 / 1.2}, abs=1e-9)


def test_two_steps_computed_by_hand() -> None:
    """One weight of 1 and its offset, x = 1, good twice; no prior.

    p1 = sigmoid(1) = 0.7310585786, g1 = -0.2689414214: both step to (0.1, 1.1). p2 = sigmoid(1.2) = 0.7685247835,
    g2 = -0.2314752165: the step is 0.1 x 0.2314752165 / sqrt(0.2689414214^2 + 0.2314752165^2) = 0.0652341... for both.
    """
    weights = OnlineWeights({"a": 1.0}, LearningConfig(prior_strength=0.0))
    weights.update({"a": 1.0}, good=True)
    weights.update({"a": 1.0}, good=True)
    first, second = math.log1p(math.exp(-1.0)), math.log1p(math.exp(-1.2))
    assert weights.promote().learned_loss == pytest.approx((first + second) / 2, abs=1e-9)
    weights.update({"a": 1.0}, good=True)
    step = 0.1 * 0.2314752165 / math.sqrt(0.2689414214**2 + 0.2314752165**2)
    third = math.log1p(math.exp(-(1.2 + 2 * step)))
    assert weights.promote().learned_loss == pytest.approx((first + second + third) / 3, abs=1e-9)


def test_a_bad_suggestion_moves_the_other_way() -> None:
    """Down by the learning rate; its loss is that of the other answer."""
    weights = OnlineWeights({"a": 0.6, "b": 0.4}, LearningConfig(learning_rate=0.2))
    weights.update({"a": 1.0}, good=False)
    assert dict(weights.learned) == pytest.approx({"a": 0.5, "b": 0.5}, abs=1e-9)
    assert weights.promote().learned_loss == pytest.approx(math.log1p(math.exp(0.6)), abs=1e-12)


def test_the_prior_pulls_back() -> None:
    """With full strength and a feature that stays 0, a weight that was moved returns; without, it stays."""
    for strength, back in ((0.5, True), (0.0, False)):
        weights = OnlineWeights({"a": 0.5, "b": 0.5}, LearningConfig(prior_strength=strength))
        weights.update({"a": 1.0}, good=True)
        moved = weights.learned["a"]
        for _ in range(50):
            weights.update({}, good=True)
        assert (weights.learned["a"] < moved - 0.01) is back


def test_what_decides_is_found_out() -> None:
    """Feedback that only recency explains ends at recency alone; the sum stays that of the static weights."""
    learned = only_recency_counts(600).learned
    assert learned["recency"] > 0.8
    assert math.fsum(learned.values()) == pytest.approx(1.0, abs=1e-12)
    assert min(learned.values()) >= 0.0


def test_learned_weights_fit_a_configuration() -> None:
    """None is above the whole, by however little."""
    for samples in (1, 100, 600):
        NextStepConfig(**only_recency_counts(samples).learned)


def test_when_every_weight_has_gone_the_static_ones_stand() -> None:
    """Suggestions that are always bad say nothing about proportions."""
    weights = OnlineWeights({"a": 0.6, "b": 0.4}, LearningConfig(learning_rate=1.0))
    for _ in range(5):
        weights.update({"a": 1.0, "b": 1.0}, good=False)
    assert dict(weights.learned) == {"a": 0.6, "b": 0.4}


def test_the_weights_in_use_change_by_promotion_only() -> None:
    """Learning happens in the shadow."""
    weights = only_recency_counts(600)
    assert dict(weights.active) == STATIC
    decision = weights.promote()
    assert decision.done
    assert decision.samples == 600
    assert decision.learned_loss < decision.static_loss - 0.01
    assert dict(weights.active) == dict(weights.learned)


def test_a_promotion_is_taken_back_one_at_a_time() -> None:
    """To the weights before it, in the end the static ones, and no further."""
    weights = only_recency_counts(600)
    weights.promote()
    first = dict(weights.active)
    for _ in range(50):
        weights.update({"community": 1.0}, good=True)
    assert weights.promote().done
    assert dict(weights.active) != first
    assert weights.rollback()
    assert dict(weights.active) == first
    assert weights.rollback() is True
    assert dict(weights.active) == STATIC
    assert weights.rollback() is False


def test_too_few_samples_promote_nothing() -> None:
    """One fewer than needed is too few."""
    assert not only_recency_counts(99, min_samples=100).promote().done
    assert only_recency_counts(100, min_samples=100).promote().done


def test_before_the_first_sample_there_is_no_figure_and_no_promotion() -> None:
    """Infinite losses say so."""
    decision = OnlineWeights(STATIC).promote()
    assert (decision.done, decision.samples, decision.learned_loss) == (False, 0, math.inf)


def test_a_better_calibration_alone_wins_nothing() -> None:
    """Feedback that the static proportions explain: they get slope and offset as well, and nothing is better."""
    weights = OnlineWeights({"a": 0.5, "b": 0.5}, LearningConfig(min_samples=10))
    for at in range(400):
        share = (at % 4) / 3
        weights.update({"a": share, "b": share}, good=share > 0.5)
    assert not weights.promote().done


def test_an_improvement_below_the_margin_is_chance() -> None:
    """The same history with a margin it cannot reach."""
    assert not only_recency_counts(600, margin=1.0).promote().done
    assert only_recency_counts(600, margin=0.0).promote().done


def test_only_the_window_is_compared() -> None:
    """The loss of the last sample alone: without features it is ln(1 + e^-offset)."""
    weights = OnlineWeights({"a": 1.0}, LearningConfig(window=1, prior_strength=0.0))
    weights.update({}, good=True)
    assert weights.promote().learned_loss == pytest.approx(LN2, abs=1e-12)
    assert weights.promote().static_loss == pytest.approx(LN2, abs=1e-12)
    weights.update({}, good=True)
    assert weights.promote().learned_loss == pytest.approx(math.log1p(math.exp(-0.1)), abs=1e-9)
    assert weights.promote().static_loss == pytest.approx(math.log1p(math.exp(-0.1)), abs=1e-9)


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.1, 1.1, "1", True])
def test_a_feature_that_cannot_be_teaches_nothing(value: float) -> None:
    """It is noted, and no sample."""
    weights = OnlineWeights(STATIC)
    assert weights.update({"recency": value}, good=True) is False
    assert dict(weights.notes.counts) == {"bad_feature": 1}
    assert str(value) in weights.notes.kept[0].detail
    assert weights.promote().samples == 0


def test_a_feature_without_a_weight_teaches_nothing() -> None:
    """It is noted by name."""
    weights = OnlineWeights(STATIC)
    assert weights.update({"recency": 1.0, "luck": 1.0}, good=True) is False
    assert [(note.code, note.detail) for note in weights.notes.kept] == [("unknown_feature", "['luck']")]


def test_the_ends_of_the_range_are_features() -> None:
    """0 and 1, as ints too."""
    assert OnlineWeights(STATIC).update({"recency": 0, "community": 1}, good=True) is True


def test_what_is_handed_out_is_read_only() -> None:
    """Nobody changes the weights in use by accident; the static ones are a copy."""
    given = dict(STATIC)
    weights = OnlineWeights(given)
    given["recency"] = 9.0
    assert weights.active["recency"] == 0.1
    with pytest.raises(TypeError):
        weights.active["recency"] = 1.0  # type: ignore[index]  # the point of the test


@pytest.mark.parametrize(
    ("static", "field"), [({}, "static"), ({"a": 0.0}, "static.a"), ({"a": 1.0, "b": math.nan}, "static.b")]
)
def test_static_weights_are_numbers_above_0(static: dict[str, float], field: str) -> None:
    """ConfigError names the one that is not."""
    with pytest.raises(ConfigError) as refused:
        OnlineWeights(static)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("learning_rate", 0),
        ("prior_strength", -0.1),
        ("prior_strength", 1.1),
        ("window", 0),
        ("min_samples", 0),
        ("margin", -0.1),
    ],
)
def test_nonsense_is_refused_at_once(field: str, value: Any) -> None:
    """ConfigError names the field."""
    with pytest.raises(ConfigError) as refused:
        LearningConfig(**{field: value})
    assert refused.value.field == field


def test_the_ends_of_the_ranges_are_allowed() -> None:
    """One sample may be enough."""
    LearningConfig(learning_rate=5, prior_strength=1, window=1, min_samples=1, margin=0)


def test_weights_that_are_none_are_refused_in_words() -> None:
    """The message says what is needed."""
    with pytest.raises(ConfigError, match=r"^static: \{\} - at least one weight is needed$"):
        OnlineWeights({})


def test_the_sum_of_the_static_weights_is_kept_whatever_it_is() -> None:
    """Both moved up by 0.1, then brought back to a sum of 2."""
    weights = OnlineWeights({"a": 1.2, "b": 0.8})
    weights.update({"a": 1.0, "b": 1.0}, good=True)
    assert dict(weights.learned) == pytest.approx({"a": 1.3 / 2.2 * 2, "b": 0.9 / 2.2 * 2}, abs=1e-12)


def test_the_shadow_has_an_offset_of_its_own() -> None:
    """The second step by hand: the logit is 0.1 + 0.7, with the offset that the first step moved."""
    weights = OnlineWeights({"a": 0.6, "b": 0.4}, LearningConfig(prior_strength=0.0))
    weights.update({"a": 1.0}, good=True)
    weights.update({"a": 1.0}, good=True)
    first, second = (1 / (1 + math.exp(-logit)) - 1 for logit in (0.6, 0.8))
    moved = 0.7 - 0.1 * second / math.hypot(first, second)
    assert weights.learned["a"] == pytest.approx(moved / (moved + 0.4), abs=1e-12)


def test_an_improvement_of_exactly_the_margin_is_enough() -> None:
    """One weight has no proportions: both losses are the same, and a margin of nothing is reached."""
    weights = OnlineWeights({"a": 1.0}, LearningConfig(min_samples=1, margin=0.0))
    weights.update({"a": 1.0}, good=True)
    assert weights.promote().done
