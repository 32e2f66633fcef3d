"""Adaptive thresholds: when they move, how far, for whom, and what is enough."""

from __future__ import annotations

import math
from typing import Any

import pytest

from smart_model_router_scoring.options import ConfigError
from smart_model_router_scoring.tools.learning import (
    AdaptiveThresholdManager,
    Decision,
    ThresholdConfig,
    ThresholdContext,
)

DEPLOY = ThresholdContext("deploy", "cloud", "high")
RIGHT, WRONG = (True, True), (True, False)
REFUSED, MISSED = (False, False), (False, True)


def told(
    records: list[tuple[bool, bool]], context: ThresholdContext | None = None, **config: Any
) -> AdaptiveThresholdManager:
    """A manager that was told how these decisions ended."""
    manager = AdaptiveThresholdManager(ThresholdConfig(**config))
    for accepted, good in records:
        manager.record(accepted=accepted, good=good, context=context)
    return manager


def test_it_starts_at_0_70() -> None:
    """For everybody."""
    assert AdaptiveThresholdManager().get_threshold() == 0.70
    assert AdaptiveThresholdManager().get_threshold(DEPLOY) == 0.70


def test_a_score_at_the_threshold_is_enough() -> None:
    """Just below it is not."""
    manager = AdaptiveThresholdManager()
    assert manager.decide(0.70) == Decision(True, 0.70, "global")
    assert manager.decide(math.nextafter(0.70, 0)) == Decision(False, 0.70, "global")


@pytest.mark.parametrize("score", [math.nan, math.inf, "0.9"])
def test_what_is_no_finite_number_is_never_enough(score: float) -> None:
    """An infinite score is a fault and not a certainty."""
    assert not AdaptiveThresholdManager().decide(score).accepted


def test_nothing_moves_before_the_twentieth_record() -> None:
    """Nineteen bad ones change nothing, the twentieth does; then every tenth."""
    for count, expected in ((10, 0.70), (19, 0.70), (20, 0.75), (29, 0.75), (30, 0.80), (40, 0.85)):
        assert told([WRONG] * count).get_threshold() == expected


def test_more_than_a_fifth_of_false_positives_raises() -> None:
    """Strictly: four of twenty are a fifth."""
    assert told([WRONG] * 4 + [RIGHT] * 16).get_threshold() == 0.70
    assert told([WRONG] * 5 + [RIGHT] * 15).get_threshold() == 0.75


def test_more_than_three_tenths_of_false_negatives_lowers() -> None:
    """Strictly: six of twenty are three tenths."""
    assert told([MISSED] * 6 + [REFUSED] * 14).get_threshold() == 0.70
    assert told([MISSED] * 7 + [REFUSED] * 13).get_threshold() == 0.65


def test_right_decisions_move_nothing() -> None:
    """Neither what was accepted and good, nor what was refused and bad."""
    assert told([RIGHT] * 10 + [REFUSED] * 10).get_threshold() == 0.70


def test_with_too_much_of_both_it_is_raised() -> None:
    """A bad suggestion costs more than one that was not made."""
    assert told([MISSED, WRONG] * 10).get_threshold() == 0.75


def test_it_stays_within_its_bounds() -> None:
    """0.90 and 0.40, exactly."""
    assert told([WRONG] * 200).get_threshold() == 0.90
    assert told([MISSED] * 200).get_threshold() == 0.40


def test_only_the_last_fifty_count() -> None:
    """Ten bad ones of the last fifty are no more than a fifth, eleven are; and what is older is forgotten."""
    assert told([RIGHT] * 50 + [WRONG] * 10).get_threshold() == 0.70
    assert told([RIGHT] * 49 + [WRONG] * 11).get_threshold() == 0.75
    after_bad_start = told([WRONG] * 11 + [RIGHT] * 9)
    assert after_bad_start.get_threshold() == 0.75
    for expected in (0.80, 0.85, 0.90, 0.90):
        for _ in range(10):
            after_bad_start.record(accepted=True, good=True)
        assert after_bad_start.get_threshold() == expected
    for _ in range(60):
        after_bad_start.record(accepted=False, good=True)
    assert after_bad_start.get_threshold() == 0.65


def test_a_context_speaks_for_itself_from_the_twentieth_record() -> None:
    """Until then the global threshold does, which every record moves."""
    manager = told([WRONG] * 19, DEPLOY)
    for _ in range(21):
        manager.record(accepted=True, good=True)
    assert manager.decide(0.72, DEPLOY) == Decision(False, 0.85, "global")
    manager.record(accepted=True, good=False, context=DEPLOY)
    assert manager.decide(0.75, DEPLOY) == Decision(True, 0.75, "context")


def test_contexts_do_not_disturb_each_other() -> None:
    """What differs in one word is another context."""
    manager = told([WRONG] * 20, DEPLOY)
    for _ in range(20):
        manager.record(accepted=True, good=True, context=ThresholdContext("deploy", "cloud", "low"))
    assert manager.get_threshold(DEPLOY) == 0.75
    assert manager.get_threshold(ThresholdContext("deploy", "cloud", "low")) == 0.70


def test_the_context_with_the_oldest_latest_record_is_forgotten_first() -> None:
    """Of three with room for two."""
    manager = AdaptiveThresholdManager(ThresholdConfig(max_contexts=2, min_records=1))
    for name in ("a", "b", "a", "c"):
        manager.record(accepted=True, good=True, context=ThresholdContext(name))
    assert [manager.decide(0.7, ThresholdContext(name)).source for name in "abc"] == ["context", "global", "context"]


def test_every_number_is_the_configurations() -> None:
    """Start, step, window, first record, rhythm, shares."""
    config: dict[str, Any] = {"start": 0.5, "step": 0.1, "window": 4, "min_records": 2, "every": 3}
    assert told([WRONG] * 2, **config).get_threshold() == 0.5
    assert told([WRONG] * 3, **config).get_threshold() == 0.6
    assert told([WRONG] * 3, max_false_positives=1.0, **config).get_threshold() == 0.5
    assert told([MISSED] * 3, max_false_negatives=1.0, **config).get_threshold() == 0.5
    assert told([MISSED] * 6, low=0.45, **config).get_threshold() == 0.45
    assert told([WRONG] * 6, high=0.55, **config).get_threshold() == 0.55


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("start", 0.39),
        ("start", 0.91),
        ("start", math.nan),
        ("low", -0.1),
        ("low", 0.71),
        ("high", 1.1),
        ("step", 1.1),
        ("step", -0.1),
        ("window", 0),
        ("min_records", 0),
        ("min_records", 51),
        ("every", 0),
        ("max_false_positives", 1.1),
        ("max_false_negatives", -0.1),
        ("max_contexts", 0),
    ],
)
def test_nonsense_is_refused_at_once(field: str, value: Any) -> None:
    """ConfigError names the field; a start out of bounds is the start's fault."""
    with pytest.raises(ConfigError) as refused:
        ThresholdConfig(**{field: value})
    assert refused.value.field == (field if field != "low" or value < 0 else "start")


def test_the_ends_of_the_ranges_are_allowed() -> None:
    """One record may be enough, and one threshold may be all there is."""
    ThresholdConfig(start=0, low=0, high=0, step=0, window=1, min_records=1, every=1, max_contexts=1)
    ThresholdConfig(start=1, low=1, high=1, step=1, max_false_positives=0, max_false_negatives=1, min_records=50)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"start": 0.3}, "start: 0.3 - a number from low, 0.4, to high, 0.9, is needed"),
        ({"min_records": 51}, "min_records: 51 - a whole number of at most window, 50, is needed"),
    ],
)
def test_a_refusal_names_the_other_field(config: dict[str, Any], words: str) -> None:
    """What one field may be depends on another."""
    with pytest.raises(ConfigError) as refused:
        ThresholdConfig(**config)
    assert str(refused.value) == words
