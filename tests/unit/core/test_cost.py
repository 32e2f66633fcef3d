"""The cost of a failure sets how often a target is asked again (routing.md section 0a, D7)."""

from __future__ import annotations

import math

import pytest

from smart_model_router.core.rest_seconds import base_seconds, cap_seconds, grown


@pytest.mark.parametrize(
    ("lost", "seconds"),
    [(0.0, 5.0), (0.05, 5.0), (0.5, 5.0), (0.51, 5.1), (2.0, 20.0), (3.0, 30.0), (30.0, 30.0), (None, 30.0)],
)
def test_the_base_is_ten_times_the_loss_within_its_bounds(lost: float | None, seconds: float) -> None:
    """At least 5 s, at most 30 s; an unknown loss may be any."""
    assert base_seconds(lost, 5.0, 30.0) == seconds


@pytest.mark.parametrize("lost", [0.0, 2.0, 30.0])
def test_a_least_above_the_most_is_the_base(lost: float) -> None:
    """An owner who sets `failure` above `timeout` gets `failure`."""
    assert base_seconds(lost, 60.0, 30.0) == 60.0


@pytest.mark.parametrize(
    ("largest", "seconds"),
    [(0.0, 15.0), (0.05, 15.0), (0.75, 15.0), (1.0, 20.0), (29.0, 580.0), (30.0, 600.0), (60.0, 600.0), (None, 600.0)],
)
def test_the_cap_is_twenty_times_the_largest_loss(largest: float | None, seconds: float) -> None:
    """At least 15 s, at most the owner's cap, which also holds where the loss is unknown."""
    assert cap_seconds(largest, 5.0, 600.0) == seconds


def test_an_owners_cap_below_fifteen_seconds_holds() -> None:
    """The owner's word comes last."""
    assert cap_seconds(0.05, 5.0, 7.0) == 7.0


@pytest.mark.parametrize(("largest", "seconds"), [(0.05, 60.0), (3.0, 60.0), (4.0, 80.0)])
def test_an_owners_least_above_fifteen_seconds_holds(largest: float, seconds: float) -> None:
    """A base of 60 s is not cut to 20 times the loss."""
    assert cap_seconds(largest, 60.0, 600.0) == seconds


@pytest.mark.parametrize(("times", "seconds"), [(0, 5.0), (1, 7.5), (2, 11.25), (3, 15.0), (10**9, 15.0)])
def test_growth_ends_at_the_cap(times: int, seconds: float) -> None:
    """x 1.5 each time; any number of times is a number still."""
    assert grown(5.0, 1.5, times, 15.0) == seconds


def test_the_largest_growth_is_ten_to_the_300() -> None:
    """Ten times that 10^8 times over would be no float."""
    assert grown(1.0, 10.0, 299, math.inf) == 10.0**299
    assert grown(1.0, 10.0, 10**9, math.inf) == 10.0**300
