"""The bulkhead: slots of a provider, learned down by 429s about concurrency, grown back with success."""

from __future__ import annotations

import pytest

from smart_model_router.core.capacity import Bulkhead


def filled(slots: int, in_flight: int) -> Bulkhead:
    """Make a bulkhead with so many calls in flight."""
    bulkhead = Bulkhead(slots)
    for _ in range(in_flight):
        bulkhead.enter()
    return bulkhead


def test_a_full_bulkhead_refuses_at_once() -> None:
    """With every slot taken none is free; asking does not wait, and a slot given back is free at once."""
    bulkhead = filled(2, 2)
    assert (bulkhead.free, bulkhead.returned_by) == (0, 0.0)
    bulkhead.leave()
    assert bulkhead.free == 1
    assert bulkhead.in_flight == 1


@pytest.mark.parametrize(("granted", "free"), [(None, 3), (9, 3), (5, 1), (3, 0)])
def test_what_other_processes_need_is_not_free(granted: int | None, free: int) -> None:
    """Four of seven slots are taken: the grant binds where it is less than the slots there are."""
    bulkhead = filled(7, 4)
    bulkhead.granted = granted
    assert bulkhead.free == free


def test_shrinking_leaves_one_less_than_were_in_flight() -> None:
    """Seven in flight were one too many: six."""
    bulkhead = filled(20, 7)
    bulkhead.shrink(0.0)
    assert bulkhead.limit == 6
    assert bulkhead.free == 0


@pytest.mark.parametrize("in_flight", [0, 1, 2])
def test_shrinking_leaves_at_least_one(in_flight: int) -> None:
    """A provider that may be asked at all may be asked by one."""
    bulkhead = filled(20, in_flight)
    bulkhead.shrink(0.0)
    assert bulkhead.limit == 1


@pytest.mark.parametrize(
    ("after", "limit"), [(0.0, 4), (9.999, 4), (10.0, 5), (19.999, 5), (20.0, 6), (159.0, 19), (160.0, 20), (1e6, 20)]
)
def test_a_learned_limit_grows_by_one_each_ten_seconds_of_success(after: float, limit: int) -> None:
    """Four slots grow back, one for each ten seconds, up to what is configured."""
    bulkhead = filled(20, 5)
    bulkhead.shrink(100.0)
    bulkhead.succeeded(100.0 + after)
    assert bulkhead.limit == limit


def test_growth_keeps_its_remainder() -> None:
    """Successes at 15 s and 20 s after the complaint: two slots, not one for each success."""
    bulkhead = filled(20, 5)
    bulkhead.shrink(100.0)
    bulkhead.succeeded(115.0)
    assert bulkhead.limit == 5
    bulkhead.succeeded(119.0)
    assert bulkhead.limit == 5
    bulkhead.succeeded(120.0)
    assert bulkhead.limit == 6


def test_time_alone_does_not_grow_it() -> None:
    """Without a success a learned limit stays."""
    bulkhead = filled(20, 5)
    bulkhead.shrink(0.0)
    assert bulkhead.limit == 4


def test_a_new_complaint_starts_the_growth_anew() -> None:
    """A second complaint at 9 s: nothing grows at 10 s, one at 19 s."""
    bulkhead = filled(20, 5)
    bulkhead.shrink(0.0)
    bulkhead.shrink(9.0)
    bulkhead.succeeded(10.0)
    assert bulkhead.limit == 4
    bulkhead.succeeded(19.0)
    assert bulkhead.limit == 5


def test_what_was_grown_back_is_forgotten() -> None:
    """Once the configured number is reached, raising the configuration raises the limit."""
    bulkhead = filled(5, 5)
    bulkhead.shrink(0.0)
    bulkhead.succeeded(10.0)
    bulkhead.resize(50)
    assert bulkhead.limit == 50


def test_success_without_a_complaint_changes_nothing() -> None:
    """There is nothing to grow back."""
    bulkhead = filled(20, 5)
    bulkhead.succeeded(1e6)
    assert bulkhead.limit == 20


def test_a_shrink_never_blocks() -> None:
    """Ten in flight and room for three: nothing free until eight have left (I10)."""
    bulkhead = filled(10, 10)
    bulkhead.resize(3)
    assert bulkhead.in_flight == 10
    assert bulkhead.free == 0
    for _ in range(8):
        bulkhead.leave()
    assert bulkhead.free == 1


def test_a_learned_limit_never_exceeds_the_configured_one() -> None:
    """Shrunk to nine, then configured to three: three; and the ninth is not lost when it is raised again."""
    bulkhead = filled(20, 10)
    bulkhead.shrink(0.0)
    bulkhead.resize(3)
    assert bulkhead.limit == 3
    bulkhead.resize(20)
    assert bulkhead.limit == 9


@pytest.mark.parametrize(("shrunk_at", "grows_at"), [(0.0, 100.0), (95.0, 105.0)])
def test_a_limit_that_is_not_used_is_tried_again_once(shrunk_at: float, grows_at: float) -> None:
    """Answers with fewer in flight say nothing of one call more: with all in flight it grows by one, as it was due."""
    bulkhead = filled(20, 5)
    bulkhead.shrink(shrunk_at)
    bulkhead.leave()
    bulkhead.leave()
    bulkhead.succeeded(100.0)
    assert bulkhead.limit == 4
    bulkhead.enter()
    bulkhead.succeeded(grows_at - 0.001)
    assert bulkhead.limit == 4
    bulkhead.succeeded(grows_at)
    assert bulkhead.limit == 5


def test_what_the_host_has_granted_bounds_what_is_free() -> None:
    """While others need the rest; never more than the limit, and nothing is cut off."""
    bulkhead = Bulkhead(4)
    bulkhead.enter()
    bulkhead.granted = 2
    assert (bulkhead.free, bulkhead.limit) == (1, 4)
    bulkhead.granted = 9
    assert bulkhead.free == 3
    bulkhead.granted = 0
    assert bulkhead.free == 0
    bulkhead.granted = None
    assert bulkhead.free == 3
