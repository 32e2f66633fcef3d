"""Recency bias and adaptive floor, with values computed by hand."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from smart_model_router_scoring.options import ConfigError
from smart_model_router_scoring.recall.memory import Hit, Memory, Replaced, relative_recency, with_recency
from smart_model_router_scoring.recall.ranking import FloorConfig, adaptive_floor

NOW = datetime(2026, 1, 11, tzinfo=UTC)


def at(*times: Any) -> list[Hit]:
    """Hits of these times, with the score 0.5."""
    return [Hit(Memory(id=str(number), timestamp=time), 0.5) for number, time in enumerate(times)]


def test_recency_is_relative_to_the_hits_at_hand() -> None:
    """The oldest 0, the newest 1, in between by time."""
    assert relative_recency(at("2026-01-01", "2026-01-11", "2026-01-06"), NOW) == [0.0, 1.0, 0.5]


def test_a_time_to_come_is_now() -> None:
    """A meeting next year makes yesterday's note no older."""
    assert relative_recency(at("2027-01-01", "2026-01-11", "2026-01-01"), NOW) == [1.0, 1.0, 0.0]


def test_what_has_no_time_takes_no_part() -> None:
    """It neither gains nor shifts the others."""
    assert relative_recency(at(None, "2026-01-01", "soon", "2026-01-11"), NOW) == [None, 0.0, None, 1.0]


@pytest.mark.parametrize(
    "times",
    [
        [],
        ["2026-01-01"],
        ["2026-01-01", "2026-01-01"],
        [None, "soon"],
        ["2026-01-01", None],
        ["2027-01-01", "2028-01-01"],
    ],
)
def test_where_nothing_is_newer_nothing_changes(times: list[Any]) -> None:
    """One, equal ones, none with a time, all to come: the same hits come back."""
    hits = at(*times)
    assert relative_recency(hits, NOW) == [None] * len(times)
    assert all(one is other for one, other in zip(with_recency(hits, NOW, 0.1), hits, strict=True))


def test_the_weighted_recency_is_added_and_recorded() -> None:
    """0.5 + 0.1 x 0.5, as a component of its own."""
    old, new, between = with_recency(at("2026-01-01", "2026-01-11", "2026-01-06"), NOW, 0.1)
    assert (old.score, new.score) == (0.5, 0.6)
    assert between.score == pytest.approx(0.55, abs=1e-12)
    temporal = between.explanation.find("temporal")
    assert temporal is not None
    assert temporal.value == pytest.approx(0.05, abs=1e-12)
    assert [(part.name, part.value) for part in temporal.parts] == [("weight", 0.1), ("relative recency", 0.5)]
    assert (between.explanation.name, [part.name for part in between.explanation.parts]) == (
        "score",
        ["score", "temporal"],
    )
    assert between.explanation.recompose() == between.score
    assert old.explanation.find("temporal") is not None


def test_what_a_hit_stands_in_for_is_kept() -> None:
    """And so is the memory."""
    replaces = (Replaced("x", "EVOLVED_INTO"),)
    hits = [Hit(Memory(id="a", timestamp="2026-01-01"), 0.5, replaces), *at("2026-01-11")]
    assert with_recency(hits, NOW, 0.1)[0].replaces == replaces
    assert with_recency(hits, NOW, 0.1)[0].memory is hits[0].memory


def scores(*values: float) -> list[Hit]:
    """Hits of these scores."""
    return [Hit(Memory(id=str(number)), value) for number, value in enumerate(values)]


@pytest.mark.parametrize(
    ("values", "floor"),
    [
        ([0.9, 0.85, 0.3, 0.2], 0.85),
        ([0.9, 0.4, 0.35], 0.9),
        ([0.9, 0.7, 0.5], None),
        ([1.0, 0.75], 1.0),
        ([1.0, 0.751], None),
        ([1.0, 0.5, 0.0], 1.0),
        ([0.9], None),
        ([], None),
        ([0.5, 0.5], None),
        ([0.0, 0.0], None),
        ([0.0, -1.0], 0.0),
        ([-1.0, -1.3], -1.0),
        ([0.9, 0.8, math.nan], None),
    ],
)
def test_the_floor_is_above_the_widest_gap(values: list[float], floor: float | None) -> None:
    """If it is at least a quarter of the best score; of equal gaps the first."""
    assert adaptive_floor(scores(*values), FloorConfig()) == floor


def test_the_first_hits_stay_whatever_the_gaps() -> None:
    """With three to keep the gap after the first is none."""
    assert adaptive_floor(scores(0.9, 0.3, 0.2, 0.15), FloorConfig(keep=3)) is None
    assert adaptive_floor(scores(0.9, 0.8, 0.7, 0.1), FloorConfig(keep=3)) == 0.7
    assert adaptive_floor(scores(0.9, 0.3, 0.2), FloorConfig(keep=3)) is None


def test_how_wide_a_gap_must_be_is_the_configurations() -> None:
    """Half of the best."""
    assert adaptive_floor(scores(1.0, 0.6), FloorConfig(min_gap=0.5)) is None
    assert adaptive_floor(scores(1.0, 0.5), FloorConfig(min_gap=0.5)) == 1.0


@pytest.mark.parametrize(("field", "value"), [("min_gap", 0.0), ("min_gap", 1.1), ("keep", 0), ("keep", 1.5)])
def test_nonsense_is_refused_at_once(field: str, value: Any) -> None:
    """ConfigError names the field."""
    with pytest.raises(ConfigError) as refused:
        FloorConfig(**{field: value})
    assert refused.value.field == field


def test_the_ends_of_the_range_are_allowed() -> None:
    """A hundredth, and all of it."""
    FloorConfig(min_gap=0.01)
    FloorConfig(min_gap=1)
