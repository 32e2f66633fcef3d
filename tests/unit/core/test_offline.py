"""Being offline: when every remote became unreachable together it is us, and one request a second goes to see."""

from __future__ import annotations

import pytest

from smart_model_router.core.target_state import Connectivity


def test_the_last_of_all_is_withheld() -> None:
    """Of three, two opened a moment ago: the third's trip is not its fault."""
    connectivity = Connectivity(3)
    connectivity.moved("a", True, 0.0)
    assert not connectivity.withholds("c", 1.0)
    connectivity.moved("b", True, 1.0)
    assert connectivity.withholds("c", 2.0)


def test_a_lone_remote_is_never_withheld() -> None:
    """With one remote there is nobody to compare with."""
    assert not Connectivity(1).withholds("a", 0.0)


def test_without_remotes_nothing_is_withheld() -> None:
    """A router of local models is never offline."""
    assert not Connectivity(0).withholds("a", 0.0)


def test_a_providers_own_trip_does_not_count_for_itself() -> None:
    """The one that opened already and fails again is not 'the others'."""
    connectivity = Connectivity(2)
    connectivity.moved("a", True, 0.0)
    assert not connectivity.withholds("a", 1.0)
    assert connectivity.withholds("b", 1.0)


@pytest.mark.parametrize(("now", "withheld"), [(0.0, True), (10.0, True), (10.001, False)])
def test_together_means_within_ten_seconds(now: float, withheld: bool) -> None:
    """The first of the others opened at most ten seconds ago."""
    connectivity = Connectivity(3)
    connectivity.moved("a", True, 0.0)
    connectivity.moved("b", True, 0.0)
    assert connectivity.withholds("c", now) is withheld


def test_the_first_of_the_others_counts() -> None:
    """One that opened twenty seconds ago had its own reasons, however lately the other followed."""
    connectivity = Connectivity(3)
    connectivity.moved("a", True, 0.0)
    connectivity.moved("b", True, 19.0)
    assert not connectivity.withholds("c", 20.0)


@pytest.mark.parametrize(("answered_at", "withheld"), [(4.999, True), (5.0, False), (6.0, False)])
def test_a_remote_that_answered_meanwhile_shows_that_it_is_not_us(answered_at: float, withheld: bool) -> None:
    """An answer since the first trip: the last provider is at fault itself."""
    connectivity = Connectivity(2)
    connectivity.reached(answered_at)
    connectivity.moved("a", True, 5.0)
    assert connectivity.withholds("b", 7.0) is withheld


def test_a_closed_breaker_is_not_among_the_opened() -> None:
    """One that closed again is reachable; closing what was never open is nothing."""
    connectivity = Connectivity(2)
    connectivity.moved("a", True, 0.0)
    connectivity.moved("a", False, 1.0)
    connectivity.moved("a", False, 1.0)
    assert not connectivity.withholds("b", 2.0)


def test_while_offline_every_trip_is_withheld() -> None:
    """Until something answers nobody is to blame."""
    connectivity = Connectivity(2)
    assert connectivity.went_offline(0.0)
    assert connectivity.withholds("a", 1000.0)


def test_the_beginning_and_the_end_are_told_once() -> None:
    """Going offline and coming back are each True the first time only."""
    connectivity = Connectivity(2)
    assert not connectivity.reached(0.0)
    assert connectivity.went_offline(1.0)
    assert not connectivity.went_offline(2.0)
    assert connectivity.offline
    assert connectivity.reached(3.0)
    assert not connectivity.reached(4.0)
    assert not connectivity.offline


def test_one_request_a_second_passes() -> None:
    """The next pass is a second after the trip, and a second after each pass taken; online it is always now."""
    connectivity = Connectivity(2)
    assert connectivity.pass_at(100.0) == 100.0
    connectivity.went_offline(100.0)
    assert connectivity.pass_at(100.0) == 101.0
    assert connectivity.pass_at(101.0) == 101.0
    connectivity.take_pass(101.5)
    assert connectivity.pass_at(101.5) == 102.5
    assert connectivity.pass_at(110.0) == 110.0
    connectivity.reached(111.0)
    connectivity.take_pass(111.0)
    assert connectivity.pass_at(111.0) == 111.0
