"""Options: frozen, keyword-only, and nonsense is refused at construction with key, value and range."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, dataclass
from typing import Annotated, Any

import pytest

from smart_model_router.core.breaker import BreakerConfig
from smart_model_router.core.checked_options import (
    DAY,
    Count,
    CountOrZero,
    Interval,
    Options,
    Ratio,
    Seconds,
    SecondsOrZero,
    spell,
    within,
)
from smart_model_router.domain.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample(Options):
    """One option of each kind."""

    rest: Seconds = 1.0
    pause: SecondsOrZero = 0.0
    share: Ratio = 0.5
    calls: Count = 1
    retries: CountOrZero = 0
    slow: Seconds | None = None
    free: Annotated[float, Interval(ge=1, le=2)] = 1.5
    note: str = ""
    marked: Annotated[float, "no range"] = -1.0


GOOD = [
    ("rest", 1e-9), ("rest", DAY), ("rest", 30), ("pause", 0), ("pause", DAY), ("share", 1), ("share", 1e-9),
    ("calls", 1), ("calls", 1_000_000_000), ("retries", 0), ("slow", None), ("slow", 0.5), ("free", 1), ("free", 2.0),
]  # fmt: skip
BAD = [
    ("rest", 0), ("rest", -1.0), ("rest", DAY + 1), ("rest", math.nan), ("rest", math.inf), ("rest", "30"),
    ("rest", True), ("rest", None), ("rest", 10**400), ("pause", -1e-9), ("share", 0), ("share", 1.0000001),
    ("share", -math.inf), ("calls", 0), ("calls", 1.0), ("calls", 1_000_000_001), ("calls", None), ("retries", -1),
    ("slow", 0), ("slow", "fast"), ("free", 0.999), ("free", 2.001),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), GOOD)
def test_a_value_inside_its_range_is_taken_as_it_is(key: str, value: Any) -> None:
    """The ends of a range belong to it where they are said to."""
    assert getattr(Sample(**{key: value}), key) == value


@pytest.mark.parametrize(("key", "value"), BAD)
def test_nonsense_is_refused_by_name(key: str, value: Any) -> None:
    """Whatever is no number of the range is refused with its key, its value and what would be right."""
    with pytest.raises(ConfigurationError) as caught:
        Sample(**{key: value})
    assert caught.value.key == f"Sample.{key}"
    assert caught.value.value is value
    assert "is needed" in caught.value.expected


def test_the_first_of_its_class_is_checked_too() -> None:
    """Ranges are looked up once for each class, and not a moment too late."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Fresh(Options):
        rest: Seconds = 1.0
        slow: Seconds | None = None
        free: Annotated[float, Interval(ge=1, le=2)] = 1.5

    assert Fresh(free=2).slow is None
    wrongs: list[dict[str, Any]] = [{"rest": 0}, {"rest": None}, {"slow": 0}, {"free": 3}]
    for wrong in wrongs:
        with pytest.raises(ConfigurationError, match=rf"^Fresh\.{next(iter(wrong))}: "):
            Fresh(**wrong)


def test_the_refusal_spells_the_range() -> None:
    """The message is a sentence an owner can act on."""
    with pytest.raises(ConfigurationError) as caught:
        BreakerConfig(failing_share=1.5)
    assert str(caught.value) == "BreakerConfig.failing_share: 1.5 - a number above 0.05, at most 1 is needed"


def test_a_whole_number_is_asked_for_where_one_is_needed() -> None:
    """Half a call is refused as not whole."""
    with pytest.raises(ConfigurationError, match=r"BreakerConfig.odds: 2.5 - a whole number at least 1, at"):
        BreakerConfig(odds=2.5)  # type: ignore[arg-type]  # what an unchecked file would bring


def test_options_are_frozen() -> None:
    """What was decided by stays what it was."""
    options = Sample()
    with pytest.raises(FrozenInstanceError):
        options.rest = 2.0  # type: ignore[misc]  # the point


def test_options_are_named() -> None:
    """Positions mean nothing: options are given by name."""
    with pytest.raises(TypeError):
        Sample(2.0)  # type: ignore[call-arg]  # the point


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        (Interval(gt=0, le=1), "above 0, at most 1"),
        (Interval(ge=1, le=10), "at least 1, at most 10"),
        (Interval(gt=0), "above 0"),
        (Interval(le=5), "at most 5"),
    ],
)
def test_an_interval_is_spelled_in_words(interval: Interval, words: str) -> None:
    """Each bound has its own words, and a missing one has none."""
    assert spell(interval) == words


@pytest.mark.parametrize(
    ("value", "interval", "inside"),
    [
        (0.0, Interval(gt=0), False),
        (0.0, Interval(ge=0), True),
        (-1e300, Interval(le=5), True),
        (5, Interval(le=5), True),
        (5.1, Interval(le=5), False),
        (1e300, Interval(ge=0), True),
        (math.inf, Interval(ge=0), False),
        (-math.inf, Interval(le=5), False),
        (math.nan, Interval(), False),
    ],
)
def test_within_knows_open_and_closed_ends(value: float, interval: Interval, inside: bool) -> None:
    """An end belongs to the range only when the range says so; a missing end lets every finite number through."""
    assert within(value, interval) is inside


def test_an_interval_is_what_pydantic_reads() -> None:
    """Its marks are those of annotated-types: one range serves construction and files."""
    assert [type(mark).__name__ for mark in Interval(gt=0, le=5)] == ["Gt", "Le"]
    assert [type(mark).__name__ for mark in Interval(ge=1)] == ["Ge"]
