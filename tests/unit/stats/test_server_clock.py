"""The time of a server: the shortest round trip tells, a clock that was set is noticed, a far server is said to be."""

from __future__ import annotations

import pytest

from smart_model_router.domain.shared_state import ClockReading
from smart_model_router_stats.row_server import LONGEST_ROUND_TRIP
from smart_model_router_stats.server_clock import STEP_SECONDS, ServerClock

ALONE = ClockReading("this boot", 5.0, 1_700_000_000.0)
SERVER = 1_800_000_000.0
"""The server's time when the local clock is 0."""


class Local:
    """A local clock, moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def answer(clock: ServerClock, local: Local, *, there: float = 0.0, back: float = 0.0, late: float = 0.0) -> bool:
    """A question that takes so long on its way; the server's clock is `late` ahead of SERVER."""
    sent = local.now
    at = SERVER + sent + there + late
    local.now = sent + there + back
    return clock.heard("1-a", at, sent, local.now)


@pytest.fixture
def local() -> Local:
    """One for each test."""
    return Local()


@pytest.fixture
def clock(local: Local) -> ServerClock:
    """One that has not heard of a server."""
    return ServerClock(local, lambda: ALONE)


def test_before_a_server_is_heard_the_hosts_clock_counts(clock: ServerClock) -> None:
    """No server's epoch is claimed."""
    assert clock() == ALONE
    assert clock.round_trip is None
    assert clock.far == 0


def test_the_shortest_round_trip_tells_the_time(clock: ServerClock, local: Local) -> None:
    """Slow answers come lopsided, and are off by half of their round trip."""
    answer(clock, local, there=0.15, back=0.01)
    answer(clock, local, there=0.002, back=0.002)
    answer(clock, local, there=0.01, back=0.18)
    now = clock()
    assert now.boot == "1-a"
    assert now.boottime == now.wall == pytest.approx(SERVER + local.now, abs=0.002)
    assert clock.round_trip == pytest.approx(0.004)


def test_what_was_measured_a_minute_ago_counts_no_more(clock: ServerClock, local: Local) -> None:
    """Clocks drift: an offset of yesterday is none."""
    answer(clock, local, there=0.001, back=0.001)
    local.now += 61
    answer(clock, local, there=0.03, back=0.03, late=0.2)
    assert clock().wall == pytest.approx(SERVER + local.now + 0.2)


@pytest.mark.parametrize(("late", "stepped"), [(STEP_SECONDS + 0.1, True), (-STEP_SECONDS - 0.1, True), (0.3, False)])
def test_a_clock_that_was_set_is_noticed(clock: ServerClock, local: Local, late: float, stepped: bool) -> None:
    """Until the server has begun a new epoch its time goes on as it was measured."""
    answer(clock, local, there=0.001, back=0.001)
    assert answer(clock, local, there=0.001, back=0.001, late=late) is stepped
    assert clock().wall == pytest.approx(SERVER + local.now, abs=0.01)


def test_a_slow_answer_is_no_clock_that_was_set(clock: ServerClock, local: Local) -> None:
    """It is off by half of its round trip at most."""
    answer(clock, local, there=0.001, back=0.001)
    assert not answer(clock, local, there=2.0, back=0.0)


def test_a_new_epoch_begins_with_its_first_answer(clock: ServerClock, local: Local) -> None:
    """Nothing that was measured before counts."""
    answer(clock, local, there=0.001, back=0.001)
    assert not clock.heard("2-b", 500.0, local.now, local.now)
    assert clock() == ClockReading("2-b", 500.0, 500.0)


def test_a_server_that_is_too_far_away_is_named(clock: ServerClock, local: Local) -> None:
    """One quick answer within the minute is enough."""
    answer(clock, local, there=LONGEST_ROUND_TRIP, back=0.01)
    assert clock.far == pytest.approx(LONGEST_ROUND_TRIP + 0.01)
    answer(clock, local, there=0.05, back=0.05)
    assert clock.far == 0
