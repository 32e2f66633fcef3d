"""Decay and recency windows by example."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from smart_model_router_scoring.decay import (
    DOMAIN_RECENCY_DAYS,
    get_recency_window,
    load_recency_windows,
    recency_decay,
    recency_score,
    recent_source_count,
)
from smart_model_router_scoring.options import ConfigError, Note, Notes
from tests.unit.scoring import exact

HALF = Fraction(1, 2)


def test_the_windows_of_the_domains() -> None:
    """The founding table, which nobody can write to."""
    assert dict(DOMAIN_RECENCY_DAYS) == {
        "ai_ml": 90,
        "cloud_infrastructure": 180,
        "ai_software": 120,
        "programming_languages": 365,
        "academic_research": 730,
        "default": 183,
    }
    with pytest.raises(TypeError):
        DOMAIN_RECENCY_DAYS["ai_ml"] = 1  # type: ignore[index]


@pytest.mark.parametrize(
    ("domain", "score"),
    [
        ("ai_ml", 0.0601),
        ("cloud_infrastructure", 0.2452),
        ("programming_languages", 0.5),
        ("academic_research", 0.7071),
    ],
)
def test_a_year_takes_what_the_half_life_says(domain: str, score: float) -> None:
    """0.5 ** (365 / days), to four digits as specified and to the last as computed in decimals."""
    found = recency_decay(365, domain=domain)
    assert found == pytest.approx(score, abs=5e-5)
    assert found == pytest.approx(exact.power(HALF, Fraction(365, DOMAIN_RECENCY_DAYS[domain])), rel=1e-14)


@pytest.mark.parametrize(("age", "score"), [(0, 1.0), (-5, 1.0), (183, 0.5), (366, 0.25), (1e9, 0.0)])
def test_each_half_life_halves(age: float, score: float) -> None:
    """1.0 at age 0, and before it; the default half-life is 183 days."""
    assert recency_decay(age) == score


@pytest.mark.parametrize("age", [math.nan, math.inf, -math.inf, None, "3", True, 10**400])
def test_an_age_that_is_no_number_is_not_fresh(age: Any) -> None:
    """0.0, and nothing raised."""
    assert recency_decay(age) == 0.0


def test_a_half_life_may_be_given() -> None:
    """It wins over the domain."""
    assert recency_decay(10, half_life_days=10, domain="ai_ml") == 0.5
    assert recency_decay(1, half_life_days=0.5) == 0.25


@pytest.mark.parametrize("half_life", [0, -1, math.nan, math.inf, True, "90"])
def test_a_half_life_that_cannot_be_is_refused(half_life: Any) -> None:
    """By name."""
    with pytest.raises(ConfigError, match=r"half_life_days: .* - a number above 0 is needed"):
        recency_decay(1, half_life_days=half_life)


def test_a_window_is_that_of_the_configuration_then_ours_then_the_default() -> None:
    """In that order; the default may be the configuration's."""
    assert get_recency_window() == 183
    assert get_recency_window("ai_ml") == 90
    assert get_recency_window("gardening") == 183
    config = {"ai_ml": 30, "gardening": 1_000, "default": 7}
    assert [
        get_recency_window(domain, config_windows=config) for domain in ("ai_ml", "gardening", "x", "ai_software")
    ] == [
        30,
        1_000,
        7,
        120,
    ]
    assert recency_decay(30, domain="ai_ml", config_windows=config) == 0.5


def loaded(windows: object) -> tuple[dict[str, int], Notes]:
    """The windows that an evaluation.yaml with this section gives, and what was noted."""
    notes = Notes()
    found = load_recency_windows({"evaluation": {"deep_research": {"recency_windows": windows}}}, notes)
    return dict(found), notes


def test_configured_windows_are_merged_over_ours() -> None:
    """A known domain changes, an unknown one is added, the others stay; nobody can write to the result."""
    found, notes = loaded({"ai_ml": 30, "gardening": 1})
    assert found == {**DOMAIN_RECENCY_DAYS, "ai_ml": 30, "gardening": 1}
    assert notes.kept == ()
    with pytest.raises(TypeError):
        load_recency_windows({})["ai_ml"] = 1  # type: ignore[index]


@pytest.mark.parametrize("days", [0, -1, 90.0, "90", True, None, [90]])
def test_a_window_that_is_none_is_ignored_with_a_note(days: object) -> None:
    """Only whole numbers above 0 count, and a bool is no number."""
    found, notes = loaded({"ai_ml": days, "x": days, "ai_software": 60})
    assert found == {**DOMAIN_RECENCY_DAYS, "ai_software": 60}
    assert notes.kept == (Note("bad_window", "ai_ml", repr(days)), Note("bad_window", "x", repr(days)))


@pytest.mark.parametrize(
    ("config", "place", "found"),
    [
        (3, "evaluation", "3"),
        (["evaluation"], "evaluation", "['evaluation']"),
        ({"evaluation": "x"}, "evaluation", "'x'"),
        ({"evaluation": {"deep_research": {"recency_windows": 3}}}, "evaluation.deep_research.recency_windows", "3"),
        ({"evaluation": {"deep_research": None}}, "evaluation.deep_research", "None"),
    ],
)
def test_a_section_that_is_none_is_ignored_with_a_note(config: object, place: str, found: str) -> None:
    """Whatever stands where a mapping should, the defaults hold."""
    notes = Notes()
    assert dict(load_recency_windows(config, notes)) == dict(DOMAIN_RECENCY_DAYS)
    assert notes.kept == (Note("bad_section", place, found),)


def test_a_missing_section_is_no_fault() -> None:
    """Nothing configured is nothing to note, with a collector and without."""
    notes = Notes()
    configs: list[object] = [{}, {"evaluation": {}}, {"evaluation": {"deep_research": {}}}, {"other": 1}]
    for config in configs:
        assert dict(load_recency_windows(config, notes)) == dict(DOMAIN_RECENCY_DAYS)
    assert notes.counts == {}
    assert load_recency_windows({"evaluation": 1}) == DOMAIN_RECENCY_DAYS


AGES = [0, 90, 91, -4, math.nan, 1_000]


def test_sources_within_the_window_are_counted() -> None:
    """The last day counts, a time to come counts, what is no number does not."""
    assert recent_source_count(AGES, domain="ai_ml") == 3
    assert recent_source_count(AGES, domain="ai_ml", config_windows={"ai_ml": 91}) == 4
    assert recent_source_count([]) == 0
    assert recent_source_count([183, 184]) == 1


def test_the_metric_is_a_share_or_a_mean_decay() -> None:
    """Binary unless told; neither is anything for no sources."""
    assert recency_score(AGES, domain="ai_ml") == 0.5
    assert recency_score(AGES, domain="ai_ml", config_windows={"ai_ml": 91}) == 4 / 6
    assert recency_score([0, 90, 180], mode="decay", domain="ai_ml") == pytest.approx((1 + 0.5 + 0.25) / 3)
    assert recency_score([45], mode="decay", domain="ai_ml", config_windows={"ai_ml": 45}) == 0.5
    assert recency_score([183], mode="decay") == 0.5
    assert [recency_score([], mode=mode) for mode in ("binary", "decay")] == [0.0, 0.0]
    with pytest.raises(ConfigError, match="recency_mode: 'linear' - one of binary, decay is needed"):
        recency_score([1], mode="linear")
