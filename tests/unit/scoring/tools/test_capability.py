"""Capability match: the factor of a record, the ranking by the raw product."""

from __future__ import annotations

import math
from typing import Any

import pytest

from smart_model_router_scoring.options import ConfigError, Note
from smart_model_router_scoring.tools.suggestions import Record, ReliabilityConfig, match_capabilities, reliability


@pytest.mark.parametrize(
    ("runs", "successes", "factor"),
    [
        (0, 0, 1.0),
        (4, 0, 1.0),
        (5, 0, 0.1),
        (5, 2, 0.1),
        (10, 5, 1.0),
        (10, 9, 1.0),
        (100, 91, 1.2),
        (5, 5, 1.2),
        (4, 4, 1.0),
        (1000, 499, 0.1),
    ],
)
def test_the_factor_of_a_record(runs: int, successes: int, factor: float) -> None:
    """Below a half 0.1, above nine tenths 1.2, both strictly; 1.0 until five runs."""
    assert reliability(Record(runs, successes)) == factor


@pytest.mark.parametrize("record", [Record(10, 11), Record(10, -1)])
def test_an_impossible_record_is_worth_as_much_as_none(record: Record) -> None:
    """It is noted."""
    found = match_capabilities({"c": 0.5}, {"c": record})
    assert found.hits[0].raw == 0.5
    assert found.notes.kept == (Note("impossible_record", "c", str(record)),)


def test_a_perfect_record_is_possible() -> None:
    """All successes, or none, are no fault."""
    assert dict(match_capabilities({"a": 1, "b": 1}, {"a": Record(9, 9), "b": Record(9, 0)}).notes.counts) == {}


def test_the_raw_product_ranks_and_the_score_is_at_most_1() -> None:
    """0.95 x 1.2 beats 1.0, though both are reported as 1."""
    found = match_capabilities(
        {"fine": 1.0, "reliable": 0.95, "flaky": 0.99, "new": 0.3},
        {"reliable": Record(100, 95), "flaky": Record(10, 4), "fine": Record(10, 7)},
    )
    assert [hit.id for hit in found.hits] == ["reliable", "fine", "new", "flaky"]
    assert [hit.raw for hit in found.hits] == pytest.approx([1.14, 1.0, 0.3, 0.099], abs=1e-12)
    assert [hit.score for hit in found.hits][:2] == [1.0, 1.0]


def test_similarities_are_checked_and_limit_cuts() -> None:
    """NaN is 0 and noted."""
    found = match_capabilities({"a": math.nan, "b": 0.5}, {}, limit=1)
    assert [hit.id for hit in found.hits] == ["b"]
    assert found.notes.kept == (Note("not_a_number", "a", "nan"),)


def test_the_explanation_shows_similarity_factor_and_record() -> None:
    """Runs and successes stand beside the factor."""
    [hit] = match_capabilities({"a": 0.5}, {"a": Record(10, 4)}).hits
    similarity, factor = hit.explanation.parts
    assert hit.explanation.name == "match"
    assert (similarity.name, similarity.value) == ("similarity", 0.5)
    assert (factor.name, factor.value, dict(factor.facts)) == ("reliability", 0.1, {"runs": 10, "successes": 4})


def test_a_capability_without_a_record_was_never_run() -> None:
    """And its explanation says so."""
    [hit] = match_capabilities({"new": 0.5}, {}).hits
    assert dict(hit.explanation.parts[1].facts) == {"runs": 0, "successes": 0}


def test_the_configuration_decides() -> None:
    """Every number of it."""
    config = ReliabilityConfig(low=0.2, low_factor=0.0, high=0.3, high_factor=2.0, min_runs=1)
    assert [reliability(Record(10, good), config) for good in (1, 2, 3, 4)] == [0.0, 1.0, 1.0, 2.0]
    [hit] = match_capabilities({"a": 0.5}, {"a": Record(10, 4)}, config).hits
    assert hit.raw == 1.0
    assert hit.explanation.recompose() == 1.0
    both = match_capabilities({"a": 0.5, "b": 0.45}, {"b": Record(10, 4)}, config)
    assert [hit.id for hit in both.hits] == ["b", "a"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("low", -0.1),
        ("low", 1.1),
        ("low_factor", 1.1),
        ("low_factor", -0.1),
        ("high", 1.1),
        ("high", 0.4),
        ("high_factor", 0.9),
        ("high_factor", 10.1),
        ("min_runs", 0),
        ("min_runs", 1.5),
    ],
)
def test_nonsense_is_refused_at_once(field: str, value: Any) -> None:
    """ConfigError names the field."""
    with pytest.raises(ConfigError) as refused:
        ReliabilityConfig(**{field: value})
    assert refused.value.field == field


def test_the_ends_of_the_ranges_are_allowed() -> None:
    """One bound may meet the other."""
    ReliabilityConfig(low=0, low_factor=0, high=0, high_factor=1, min_runs=1)
    ReliabilityConfig(low=1, low_factor=1, high=1, high_factor=10)


def test_a_refusal_names_the_other_field() -> None:
    """What `high` may be depends on `low`."""
    with pytest.raises(ConfigError, match=r"^high: 0\.4 - a number of at least low, 0\.5, is needed$"):
        ReliabilityConfig(high=0.4)
