"""Adaptive throttling: the literal formula, what counts as a request, what is forgotten and when."""

from __future__ import annotations

import pytest

from smart_model_router.core.capacity import AdaptiveThrottle, ThrottleConfig, ThrottleSnapshot, rejection_probability


def fed(accepted: int, rejected: int, now: float = 0.0, config: ThrottleConfig | None = None) -> AdaptiveThrottle:
    """Make a throttle that saw so many outcomes at `now`."""
    throttle = AdaptiveThrottle(config)
    for _ in range(accepted):
        throttle.record(True, now)
    for _ in range(rejected):
        throttle.record(False, now)
    return throttle


@pytest.mark.parametrize(
    ("requests", "accepts", "k", "expected"),
    [
        (0, 0, 2.0, 0.0),
        (10, 10, 2.0, 0.0),
        (10, 5, 2.0, 0.0),
        (10, 4, 2.0, 2 / 11),
        (10, 0, 2.0, 10 / 11),
        (99, 0, 2.0, 0.99),
        (10, 4, 1.1, 5.6 / 11),
        (10, 4, 3.0, 0.0),
    ],
)
def test_the_formula_is_the_literal_one(requests: float, accepts: float, k: float, expected: float) -> None:
    """max(0, (requests - K x accepts) / (requests + 1))."""
    assert rejection_probability(requests, accepts, k) == pytest.approx(expected)


def test_k_is_two_unless_said_otherwise() -> None:
    """Ten requests with four accepts leave two too many."""
    assert rejection_probability(10, 4) == pytest.approx(2 / 11)


def test_a_new_throttle_refuses_nobody() -> None:
    """Nothing known, nothing refused, whatever the dice say."""
    throttle = AdaptiveThrottle()
    assert throttle.probability(0.0) == 0.0
    assert throttle.try_pass(0.0, 0.0)


def test_below_twenty_known_outcomes_nothing_is_refused() -> None:
    """Of nineteen outcomes with six accepted nothing is refused; the twentieth makes it 8 of 21."""
    assert fed(6, 13).probability(0.0) == 0.0
    assert fed(6, 14).probability(0.0) == pytest.approx(8 / 21)


def test_the_probability_never_exceeds_nine_tenths() -> None:
    """Somebody must find out that it is better again."""
    assert fed(0, 1000).probability(0.0) == 0.9


def test_a_provider_that_accepts_half_is_sent_everything() -> None:
    """K = 2: up to twice what was accepted is sent."""
    assert fed(10, 10).probability(0.0) == 0.0
    assert fed(10, 11).probability(0.0) == pytest.approx(1 / 22)


def test_the_toss_refuses_below_the_probability_only() -> None:
    """At p = 0.9 a roll of 0.9 passes and one just below is refused."""
    throttle = fed(0, 1000)
    assert throttle.try_pass(0.0, 0.9)
    assert not throttle.try_pass(0.0, 0.8999)


def test_its_own_refusals_count_as_requests() -> None:
    """Each refusal by the throttle is one more request that was not accepted."""
    throttle = fed(8, 12)
    assert throttle.probability(0.0) == pytest.approx(4 / 21)
    assert not throttle.try_pass(0.0, 0.0)
    assert throttle.probability(0.0) == pytest.approx(5 / 22)


def test_a_call_in_flight_counts_as_neither() -> None:
    """Fifty agents that start together are all let through: nothing is known of them until they end."""
    throttle = AdaptiveThrottle()
    assert all(throttle.try_pass(0.0, 0.0) for _ in range(50))
    assert throttle.probability(0.0) == 0.0
    throttle.record(True, 20.0)
    assert throttle.probability(20.0) == 0.0


@pytest.mark.parametrize(("later", "probability"), [(119.999, 8 / 21), (120.0, 0.0), (121.0, 0.0), (1e6, 0.0)])
def test_a_cell_is_forgotten_after_120_seconds(later: float, probability: float) -> None:
    """What happened in second 0 counts until second 120 begins."""
    assert fed(6, 14).probability(later) == pytest.approx(probability)


def test_cells_are_forgotten_one_by_one() -> None:
    """Second 0 accepts most, second 1 rejects 12 of 20: at 120 only those twenty are left, at 121 nothing."""
    throttle = fed(20, 5)
    for n in range(20):
        throttle.record(n < 8, 1.5)
    assert throttle.probability(119.0) == 0.0
    assert throttle.probability(120.0) == pytest.approx(4 / 21)
    assert throttle.probability(121.0) == 0.0


def test_accepts_are_forgotten_with_their_cell() -> None:
    """Old accepts do not excuse new rejections."""
    throttle = fed(12, 0)
    for n in range(20):
        throttle.record(n < 4, 60.0)
    assert throttle.probability(60.0) == 0.0
    assert throttle.probability(120.0) == pytest.approx(12 / 21)


def test_a_cell_is_used_again_after_it_was_emptied() -> None:
    """Second 120 takes the place of second 0 and starts from nothing."""
    throttle = fed(0, 50)
    for n in range(20):
        throttle.record(n < 5, 120.0)
    assert throttle.probability(120.0) == pytest.approx(10 / 21)


def test_an_instant_from_before_is_counted_in_the_newest_cell() -> None:
    """Time that comes out of order neither crashes nor resurrects what was forgotten."""
    throttle = fed(6, 13, now=200.0)
    throttle.record(False, 10.0)
    assert throttle.probability(319.0) == pytest.approx(8 / 21)
    assert throttle.probability(320.0) == 0.0


def test_reset_forgets_everything() -> None:
    """A breaker of the provider closed: the past is no evidence any more, the future is."""
    throttle = fed(0, 50)
    throttle.reset()
    assert throttle.snapshot() == ThrottleSnapshot(requests=0, accepts=0)
    assert throttle.probability(0.0) == 0.0
    for n in range(20):
        throttle.record(n < 5, 0.0)
    assert throttle.snapshot() == ThrottleSnapshot(requests=20, accepts=5)
    assert throttle.probability(0.0) == pytest.approx(10 / 21)


def test_every_figure_can_be_configured() -> None:
    """K, the window, the minimum and the maximum are options."""
    config = ThrottleConfig(k=1.0, cells=2, minimum_requests=1, max_probability=0.5)
    throttle = fed(0, 1, config=config)
    assert throttle.probability(1.0) == 0.5
    assert throttle.probability(2.0) == 0.0
    assert fed(2, 1, config=config).probability(0.0) == pytest.approx(1 / 4)


def test_the_defaults_are_those_of_the_specification() -> None:
    """K = 2, 120 cells, 20 requests, 0.9."""
    assert ThrottleConfig() == ThrottleConfig(k=2.0, cells=120, minimum_requests=20, max_probability=0.9)


@pytest.mark.parametrize("accepting", [1, 2, 5, 8])
def test_sent_tends_to_k_times_accepted(accepting: int) -> None:
    """Under overload, of twenty calls a second with `accepting` taken, about twice that is sent (I8)."""
    throttle = AdaptiveThrottle()
    sent = taken = 0
    for second in range(1200):
        room = accepting
        for n in range(20):
            if throttle.try_pass(float(second), (n * 7 + second * 3) % 20 / 20):
                accepted = room > 0
                room -= accepted
                throttle.record(accepted, float(second))
                sent += second >= 600
                taken += accepted and second >= 600
    assert sent / taken == pytest.approx(2.0, rel=0.1)


def test_recovery_after_a_total_outage_is_bounded() -> None:
    """Two minutes of rejections, then everything is accepted: five minutes later nobody is refused (I8)."""
    throttle = AdaptiveThrottle()
    for second in range(120):
        for n in range(20):
            if throttle.try_pass(float(second), n / 20):
                throttle.record(False, float(second))
    for second in range(120, 420):
        for n in range(20):
            if throttle.try_pass(float(second), n / 20):
                throttle.record(True, float(second))
    assert throttle.probability(420.0) == 0.0
