"""Overload lowers the load (routing.md 0a: D5b): providers of eight calls at once behind slots of fifty."""

from __future__ import annotations

import math
from statistics import median

import pytest

from smart_model_router.domain.events import BreakerChanged
from tests.simulation.storms import (
    ERROR,
    OVERLOADED,
    Behaviour,
    Storm,
    WorkloadRequest,
    away,
    looped,
    losing,
    narrow,
    poisson,
    routed,
    share_served,
)
from tests.world import virtual

CALLS = 8
SECONDS = 2.0
SLOTS = 50
EIGHT = narrow(CALLS, SECONDS, spread=0.5)


def opened(storm: Storm) -> set[str]:
    """The targets and providers whose breakers opened."""
    return {event.owner for event in storm.world.sink.of(BreakerChanged) if event.to_state == "open"}


def four(**others: Behaviour) -> Storm:
    """Four providers of eight calls at once in one tier, some of them as `others` say."""
    behaviour = dict.fromkeys("abcd", EIGHT) | others
    return Storm([f"{name}/x" for name in behaviour], behaviour=behaviour, slots=SLOTS)


def typical_seconds(asked: list[WorkloadRequest], start: float = 0.0) -> float:
    """The median of the seconds that served requests took; infinite when none was served."""
    return median([one.seconds for one in asked if one.target is not None and one.at >= start] or [math.inf])


@pytest.mark.parametrize("dead", ["a", "d"])
@virtual
async def test_three_providers_carry_the_load_of_a_fourth_that_dies(dead: str) -> None:
    """16 calls offered to four of eight, one of which dies after a minute: 99 % served, and only its breaker opens."""
    storm = four(**{dead: away(60.0, 600.0, ERROR, otherwise=EIGHT)})
    asked = await storm.play(poisson(8.0, 180.0), timeout=60.0)
    served, seconds = share_served(asked), typical_seconds(asked, 60.0)
    assert served >= 0.99
    assert seconds <= 3.0
    assert opened(storm) <= {f"{dead}/x"}


@virtual
async def test_four_providers_serve_two_thirds_of_what_they_can() -> None:
    """22 calls offered to four of eight: at least 98 % are served, and no breaker opens."""
    storm = four()
    asked = await storm.play(poisson(11.0, 180.0), timeout=60.0)
    served = share_served(asked)
    assert served >= 0.98
    assert opened(storm) == set()


@pytest.mark.parametrize("times", [1.5, 3.0])
def test_more_than_one_provider_can_take_costs_only_what_is_too_much(times: float) -> None:
    """One of eight at 1.5 and 3 times its capacity: no less served than by the loop, no breaker opens, few refusals."""
    arrivals = poisson(times * CALLS / SECONDS, 90.0)
    storm = Storm(["a/x"], behaviour={"a": narrow(CALLS, SECONDS)}, slots=SLOTS)
    ours = routed(storm, arrivals)
    theirs = looped([narrow(CALLS, SECONDS)], arrivals)
    assert ours.served >= theirs.floor
    assert ours.calls_per_served <= 2.0
    assert opened(storm) == set()


@virtual
async def test_a_provider_that_is_overloaded_at_random_keeps_its_load() -> None:
    """529s that do not depend on the calls in flight (30 %, 20 a second) move no limit: all are served, in 3 s."""
    storm = Storm(["a/x"], behaviour={"a": losing(0.3, OVERLOADED)}, slots=60)
    asked = await storm.play(poisson(20.0, 60.0))
    served, seconds = share_served(asked), typical_seconds(asked)
    assert served >= 0.97
    assert seconds <= 3.0
    assert opened(storm) == set()


@virtual
async def test_a_provider_carries_its_full_load_again_when_it_has_room() -> None:
    """Eight at once for a minute, then room for all: within half a minute 16 calls offered take their two seconds."""
    room = narrow(SLOTS, SECONDS)

    storm = Storm(
        ["a/x"],
        behaviour={"a": lambda arrival: (EIGHT if arrival.elapsed < 60.0 else room)(arrival)},
        slots=SLOTS,
    )
    asked = await storm.play(poisson(8.0, 180.0))
    late = [one for one in asked if one.at >= 120.0]
    served, seconds = share_served(late), typical_seconds(late)
    assert served >= 0.99
    assert seconds <= 3.0
