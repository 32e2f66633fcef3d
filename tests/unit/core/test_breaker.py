"""The circuit breaker against routing.md section 3: when it opens, for how long, who probes, what a verdict moves."""

from __future__ import annotations

import pytest

from smart_model_router.core.breaker import (
    BreakerConfig,
    BreakerState,
    CircuitBreaker,
    Permit,
    Transition,
    Verdict,
)
from smart_model_router.outcome import Refusal

CLOSED, OPEN, HALF_OPEN, ISOLATED = (
    BreakerState.CLOSED,
    BreakerState.OPEN,
    BreakerState.HALF_OPEN,
    BreakerState.ISOLATED,
)


def granted(breaker: CircuitBreaker, now: float) -> Permit:
    """Take a permit that must be there."""
    got = breaker.try_acquire(now)
    assert isinstance(got, Permit)
    return got


def call(breaker: CircuitBreaker, verdict: Verdict, now: float, roll: float = 0.0) -> Transition | None:
    """One call that begins and ends at `now`."""
    return breaker.record(granted(breaker, now), verdict, now, roll=roll)


VERDICTS: dict[str, Verdict] = {"s": "success", "f": "failure", "i": "ignored"}


def calls(breaker: CircuitBreaker, verdicts: str, now: float) -> list[Transition | None]:
    """Calls one after the other at `now`: s(uccess), f(ailure), i(gnored)."""
    return [call(breaker, VERDICTS[letter], now) for letter in verdicts]


def tripped(now: float = 0.0, config: BreakerConfig | None = None) -> CircuitBreaker:
    """Make a breaker that five failures in a row opened at `now`."""
    breaker = CircuitBreaker(config)
    for _ in range(breaker.config.consecutive_failures):
        call(breaker, "failure", now)
    assert breaker.state(now) is OPEN
    return breaker


def reopened(times: int, roll: float = 0.0) -> tuple[CircuitBreaker, list[float]]:
    """Make a breaker whose first `times` probes failed as soon as due; also the lengths of its open times."""
    breaker, lengths = tripped(), [30.0]
    for _ in range(times):
        now = breaker.open_until
        assert now is not None
        moved = call(breaker, "failure", now, roll)
        assert moved is not None
        assert moved.open_until is not None
        lengths.append(moved.open_until - now)
    return breaker, lengths


# ------------------------------------------------------------------------------------------------ opening


def test_what_it_is_open_for_is_told_without_chance() -> None:
    """Base, half as long again for each failed probe, at most the cap."""
    assert CircuitBreaker().open_seconds == 30.0
    assert [reopened(times, roll=0.9)[0].open_seconds for times in (0, 1, 2, 20)] == [30.0, 45.0, 67.5, 600.0]


def test_a_new_breaker_is_closed_and_unused() -> None:
    """Nothing happened: calls pass, no instant is due, and it says nothing about health."""
    breaker = CircuitBreaker()
    assert breaker.state(0.0) is CLOSED
    assert breaker.is_closed
    assert breaker.open_until is None
    assert breaker.refusal(0.0) is None
    assert not breaker.used
    assert not breaker.probe_in_flight
    assert breaker.config == BreakerConfig()


def test_the_defaults_are_those_of_the_specification() -> None:
    """Section 3's figures: 30 s window of 10, five in a row, half of ten, 30 s x 1.5 up to 600 s."""
    assert BreakerConfig() == BreakerConfig(
        window=30.0,
        window_buckets=10,
        consecutive_failures=5,
        failure_ratio=0.5,
        minimum_calls=10,
        open=30.0,
        open_multiplier=1.5,
        open_cap=600.0,
        half_open_successes=1,
        slow_call=None,
        serialized_probes=True,
    )


def test_five_failures_in_a_row_open() -> None:
    """The fifth opens it, not the fourth, and says why and until when."""
    breaker = CircuitBreaker()
    assert calls(breaker, "ffff", 7.0) == [None] * 4
    assert call(breaker, "failure", 7.0) == Transition(CLOSED, OPEN, "consecutive_failures", 7.0, 1, 37.0)
    assert breaker.used
    assert breaker.open_until == 37.0
    assert not breaker.is_closed


def test_a_streak_is_not_bound_to_the_window() -> None:
    """Five in a row are five in a row, however long they took."""
    breaker = CircuitBreaker()
    moved = [call(breaker, "failure", 1000.0 * n) for n in range(5)]
    assert moved[:4] == [None] * 4
    assert moved[4] is not None


def test_a_success_breaks_a_streak() -> None:
    """Four failures, a success, four failures: closed."""
    breaker = CircuitBreaker()
    calls(breaker, "ffffsffff", 0.0)
    assert breaker.state(0.0) is CLOSED


def test_ignored_neither_breaks_nor_extends_a_streak() -> None:
    """Four failures, any number of ignored results: still closed; one more failure opens."""
    breaker = CircuitBreaker()
    calls(breaker, "ffff", 0.0)
    for _ in range(20):
        assert call(breaker, "ignored", 0.0) is None
    assert breaker.is_closed
    assert call(breaker, "failure", 0.0) is not None


def test_ignored_results_are_no_calls_of_the_window() -> None:
    """Nine ignored results do not make four failures and a success 'ten calls'."""
    breaker = CircuitBreaker(BreakerConfig(consecutive_failures=100))
    for _ in range(9):
        call(breaker, "ignored", 0.0)
    moved = calls(breaker, "fffffffff", 0.0)
    assert moved == [None] * 9
    assert call(breaker, "failure", 0.0) is not None


def test_exactly_half_of_exactly_ten_opens() -> None:
    """Five failures among ten calls are enough, and the reason is the ratio."""
    breaker = CircuitBreaker()
    assert calls(breaker, "fsfsfsfss", 0.0) == [None] * 9
    assert call(breaker, "failure", 1.0) == Transition(CLOSED, OPEN, "failure_ratio", 1.0, 1, 31.0)


def test_nine_calls_are_too_few_for_a_ratio() -> None:
    """Five of nine are more than half, and say nothing yet."""
    breaker = CircuitBreaker()
    assert calls(breaker, "fsfsfsfsf", 0.0) == [None] * 9
    assert breaker.is_closed


def test_less_than_half_does_not_open() -> None:
    """Five of eleven stay closed."""
    breaker = CircuitBreaker()
    assert calls(breaker, "ssfsfsfsfsf", 0.0) == [None] * 11
    assert breaker.is_closed


def test_a_ratio_is_compared_as_it_is_written() -> None:
    """Eleven of twenty are 55 %, although 0.55 x 20 is a little more than 11 as a float."""
    breaker = CircuitBreaker(BreakerConfig(failure_ratio=0.55, minimum_calls=20, consecutive_failures=100))
    for _ in range(9):
        call(breaker, "success", 0.0)
    for _ in range(10):
        assert call(breaker, "failure", 0.0) is None
    moved = call(breaker, "failure", 0.0)
    assert moved is not None
    assert moved.reason == "failure_ratio"


def test_only_a_failure_opens() -> None:
    """The tenth call opens nothing when it succeeds, although half of ten failed; the next failure does."""
    breaker = CircuitBreaker()
    assert calls(breaker, "ffffssssfs", 0.0) == [None] * 10
    assert breaker.is_closed
    assert call(breaker, "failure", 0.0) is not None


@pytest.mark.parametrize(("later", "opens"), [(29.999, True), (30.0, False), (30.001, False)])
def test_an_entry_leaves_the_window_at_its_age(later: float, opens: bool) -> None:
    """What is 29.999 s old counts, what is 30 s old does not."""
    breaker = CircuitBreaker()
    calls(breaker, "sssssffff", 100.0)
    calls(breaker, "sff", 100.0 + later)  # the success breaks the streak: the ratio alone decides
    assert (breaker.state(100.0 + later) is OPEN) is opens


@pytest.mark.parametrize(("later", "opens"), [(2.999, False), (3.0, True)])
def test_the_window_is_counted_in_tenths(later: float, opens: bool) -> None:
    """Calls within three seconds share a cell and leave together; from three seconds on they have their own."""
    breaker = CircuitBreaker(BreakerConfig(consecutive_failures=100))
    call(breaker, "success", 100.0)
    calls(breaker, "ffffffff", 100.0 + later)
    calls(breaker, "sf", 130.0)
    assert (breaker.state(130.0) is OPEN) is opens


# ------------------------------------------------------------------------------------------------ open, half-open


def test_open_refuses_with_the_instant_it_ends() -> None:
    """Until `open_until` everyone is refused and told when."""
    breaker = tripped(5.0)
    assert breaker.try_acquire(34.999) == Refusal("open", 35.0)
    assert breaker.refusal(5.0) == Refusal("open", 35.0)


def test_half_open_begins_at_open_until_probed_or_not() -> None:
    """At the instant itself it is HALF_OPEN, and stays so however late one asks."""
    breaker = tripped()
    assert breaker.state(29.999) is OPEN
    assert breaker.state(30.0) is HALF_OPEN
    assert breaker.state(1e9) is HALF_OPEN
    assert breaker.open_until == 30.0
    assert granted(breaker, 30.0).probe


def test_the_backoff_stops_growing_where_the_cap_is_reached_exactly() -> None:
    """30 s, then 60 s, which is the cap: the index stays at one, and is soon forgotten again."""
    breaker = tripped(0.0, BreakerConfig(open_multiplier=2.0, open_cap=60.0))
    call(breaker, "failure", 30.0)
    assert (breaker.backoff_index, breaker.open_until) == (1, 90.0)
    call(breaker, "failure", 90.0)
    assert (breaker.backoff_index, breaker.open_until) == (1, 150.0)


def test_fifty_acquires_of_an_expired_breaker_admit_one() -> None:
    """Fifty at once: one probe, forty-nine refused at once, with no instant to wait for."""
    breaker = tripped()
    got = [breaker.try_acquire(30.0) for _ in range(50)]
    assert isinstance(got[0], Permit)
    assert got[0].probe
    assert got[1:] == [Refusal("half_open")] * 49
    assert breaker.probe_in_flight


def test_a_successful_probe_closes_with_an_empty_window() -> None:
    """A second after the trip: neither the old streak nor the old failures count among the next nine calls."""
    breaker = tripped()
    breaker.make_due(1.0)
    assert call(breaker, "success", 1.0) == Transition(HALF_OPEN, CLOSED, "probe_succeeded", 1.0, 3)
    assert not breaker.probe_in_flight
    assert calls(breaker, "ffffsffff", 1.0) == [None] * 9


def test_a_failed_probe_reopens_for_longer() -> None:
    """The probe's failure starts 45 s from its own end, and the state before was HALF_OPEN."""
    breaker = tripped()
    probe = granted(breaker, 30.0)
    assert breaker.record(probe, "failure", 50.0) == Transition(HALF_OPEN, OPEN, "probe_failed", 50.0, 3, 95.0)
    assert breaker.refusal(94.999) == Refusal("open", 95.0)
    assert breaker.state(95.0) is HALF_OPEN


def test_a_cancelled_probe_gives_its_place_back() -> None:
    """A probe without a verdict leaves the breaker HALF_OPEN, and the next caller probes at once."""
    breaker = tripped()
    assert call(breaker, "ignored", 30.0) is None
    assert not breaker.probe_in_flight
    assert breaker.state(30.0) is HALF_OPEN
    assert granted(breaker, 30.0).probe


def test_several_successes_can_be_asked_for() -> None:
    """With `half_open_successes` 2 the first probe leaves it HALF_OPEN, the second closes."""
    breaker = tripped(config=BreakerConfig(half_open_successes=2))
    assert call(breaker, "success", 30.0) is None
    assert breaker.state(30.0) is HALF_OPEN
    moved = call(breaker, "success", 31.0)
    assert moved is not None
    assert moved.to_state is CLOSED


def test_successes_of_probes_are_counted_anew_after_a_reopening() -> None:
    """One success, then a failure, then one success is not two in this opening."""
    breaker = tripped(config=BreakerConfig(half_open_successes=2))
    call(breaker, "success", 30.0)
    call(breaker, "failure", 30.0)
    assert call(breaker, "success", 75.0) is None
    assert breaker.state(75.0) is HALF_OPEN


def test_make_due_lets_the_probe_go_at_once() -> None:
    """An OPEN breaker whose cause is known to be gone is probed now; a due one is not put off."""
    breaker = tripped()
    breaker.make_due(10.0)
    assert breaker.state(10.0) is HALF_OPEN
    breaker.make_due(20.0)
    assert breaker.open_until == 10.0


def test_make_due_is_about_open_breakers_only() -> None:
    """A closed or isolated one stays as it is."""
    closed, isolated = CircuitBreaker(), CircuitBreaker()
    isolated.isolate(0.0)
    for breaker in (closed, isolated):
        breaker.make_due(1.0)
        assert breaker.open_until is None
    assert closed.is_closed
    assert isolated.refusal(1.0) == Refusal("isolated")


def test_without_serialised_probes_everyone_passes_and_the_first_verdict_decides() -> None:
    """The founding measure switched off: no exclusion, but still one verdict for one opening."""
    breaker = tripped(config=BreakerConfig(serialized_probes=False))
    first, second = granted(breaker, 30.0), granted(breaker, 30.0)
    assert first.probe
    assert second.probe
    moved = breaker.record(first, "success", 31.0)
    assert moved is not None
    assert moved.to_state is CLOSED
    assert breaker.record(second, "failure", 32.0) is None
    assert breaker.is_closed


# ------------------------------------------------------------------------------------------------ how long


def test_open_time_grows_with_jitter_and_falls_with_health() -> None:
    """30 x 1.5^i, a tenth more by dice; after a close i falls by one for each 30 s of health."""
    assert reopened(3)[1] == pytest.approx([30.0, 45.0, 67.5, 101.25])
    breaker, lengths = reopened(2, roll=0.5)
    assert lengths == pytest.approx([30.0, 45.0 * 1.05, 67.5 * 1.05])
    due = breaker.open_until
    assert due is not None
    call(breaker, "success", due)  # closed, i = 2
    moved = calls(breaker, "fffff", due + 30.0)[-1]
    assert moved is not None
    assert moved.open_until == pytest.approx(due + 30.0 + 45.0)  # i = 1


@pytest.mark.parametrize(("healthy", "seconds"), [(0.0, 67.5), (29.999, 67.5), (30.0, 45.0), (60.0, 30.0), (9e5, 30.0)])
def test_the_index_falls_by_one_for_each_base_of_health(healthy: float, seconds: float) -> None:
    """From the second reopening: 67.5 s again before 30 s of health, never below the base."""
    breaker, _ = reopened(2)
    due = breaker.open_until
    assert due is not None
    call(breaker, "success", due)
    moved = calls(breaker, "fffff", due + healthy)[-1]
    assert moved is not None
    assert moved.open_until is not None
    assert moved.open_until - moved.at == pytest.approx(seconds)


def test_the_dice_spread_the_first_opening_too() -> None:
    """Routers that saw the same outage do not probe in step."""
    breaker = CircuitBreaker()
    moved = [call(breaker, "failure", 0.0, roll=0.999) for _ in range(5)][-1]
    assert moved is not None
    assert moved.open_until == pytest.approx(30.0 * 1.0999)


def test_open_time_is_capped() -> None:
    """However often probes fail, never longer than the cap, dice included; and the cap itself is reached."""
    _, lengths = reopened(40, roll=0.999)
    assert lengths[-1] == pytest.approx(600.0)
    assert max(lengths) == pytest.approx(600.0)
    assert lengths == sorted(lengths)


def test_the_index_does_not_grow_beyond_the_cap() -> None:
    """A hundred failed probes decay as fast as eight: the outage's length is no debt."""
    breaker, _ = reopened(100)
    due = breaker.open_until
    assert due is not None
    call(breaker, "success", due)  # i = 8: 30 x 1.5^8 is the first above 600
    moved = calls(breaker, "fffff", due + 30.0)[-1]
    assert moved is not None
    assert moved.open_until is not None
    assert moved.open_until - moved.at == pytest.approx(30.0 * 1.5**7)


# ------------------------------------------------------------------------------------------------ generations


def test_a_stale_success_from_before_the_trip_changes_nothing() -> None:
    """A call admitted while CLOSED that succeeds after the trip neither closes nor shortens anything."""
    breaker = CircuitBreaker()
    old = granted(breaker, 0.0)
    calls(breaker, "fffff", 1.0)
    assert breaker.record(old, "success", 2.0) is None
    assert breaker.refusal(2.0) == Refusal("open", 31.0)


def test_late_failures_never_extend_open() -> None:
    """Ten calls in flight at the trip that fail later give no second OPEN and move no instant."""
    breaker = CircuitBreaker()
    late = [granted(breaker, 0.0) for _ in range(10)]
    calls(breaker, "fffff", 1.0)
    assert [breaker.record(permit, "failure", 20.0) for permit in late] == [None] * 10
    assert breaker.open_until == 31.0


def test_a_call_from_before_the_trip_decides_nothing_during_the_probe() -> None:
    """While the probe is out neither verdict of an older call moves the breaker or frees the probe's place."""
    breaker = CircuitBreaker()
    one, other = granted(breaker, 0.0), granted(breaker, 0.0)
    calls(breaker, "fffff", 0.0)
    granted(breaker, 30.0)
    assert breaker.record(one, "success", 31.0) is None
    assert breaker.record(other, "failure", 31.0) is None
    assert breaker.refusal(31.0) == Refusal("half_open")


def test_a_call_from_before_an_outage_is_no_call_of_the_window_after_it() -> None:
    """Failures of calls admitted before trip and recovery count nothing afterwards."""
    breaker = CircuitBreaker()
    late = [granted(breaker, 0.0) for _ in range(5)]
    calls(breaker, "fffff", 0.0)
    call(breaker, "success", 30.0)
    assert [breaker.record(permit, "failure", 31.0) for permit in late] == [None] * 5
    assert breaker.is_closed


def test_a_second_record_of_a_permit_changes_nothing() -> None:
    """The first verdict counts, also when it was 'ignored'."""
    breaker = CircuitBreaker(BreakerConfig(consecutive_failures=2))
    permit = granted(breaker, 0.0)
    assert breaker.record(permit, "failure", 0.0) is None
    assert breaker.record(permit, "failure", 0.0) is None
    given_back = granted(breaker, 0.0)
    breaker.record(given_back, "ignored", 0.0)
    assert breaker.record(given_back, "failure", 0.0) is None
    assert breaker.is_closed


def test_an_earlier_probe_that_was_given_back_cannot_decide_for_the_next() -> None:
    """Recording a settled probe again does not move the breaker under the probe that followed it."""
    breaker = tripped()
    first = granted(breaker, 30.0)
    breaker.record(first, "ignored", 31.0)
    granted(breaker, 31.0)
    assert breaker.record(first, "success", 32.0) is None
    assert breaker.refusal(32.0) == Refusal("half_open")


def test_the_generation_grows_with_every_move_and_every_probe() -> None:
    """Trip, probe, close: three generations; a permit carries the one that granted it."""
    breaker = CircuitBreaker()
    assert granted(breaker, 0.0).generation == breaker.generation == 0
    calls(breaker, "fffff", 0.0)
    assert breaker.generation == 1
    probe = granted(breaker, 30.0)
    assert probe.generation == breaker.generation == 2
    breaker.record(probe, "success", 30.0)
    assert breaker.generation == 3


# ------------------------------------------------------------------------------------------------ the operator


def test_isolate_refuses_everything_until_close() -> None:
    """The operator's no has no instant and no probe, and is said once."""
    breaker = CircuitBreaker()
    assert breaker.isolate(1.0) == Transition(CLOSED, ISOLATED, "operator", 1.0, 1)
    assert breaker.isolate(2.0) is None
    assert breaker.state(1e9) is ISOLATED
    assert breaker.try_acquire(1e9) == Refusal("isolated")
    assert breaker.open_until is None
    assert breaker.close(3.0) == Transition(ISOLATED, CLOSED, "operator", 3.0, 2)


def test_isolate_wins_over_a_probe_in_flight() -> None:
    """A probe that succeeds after the operator's no does not close the breaker."""
    breaker = tripped()
    probe = granted(breaker, 30.0)
    moved = breaker.isolate(31.0)
    assert moved is not None
    assert moved.from_state is HALF_OPEN
    assert breaker.record(probe, "success", 32.0) is None
    assert breaker.state(32.0) is ISOLATED


def test_a_probe_that_the_operator_cut_short_does_not_hold_up_the_next() -> None:
    """Isolated while it was out: in the next outage somebody else probes although it never came back."""
    breaker = tripped()
    granted(breaker, 30.0)
    breaker.isolate(31.0)
    breaker.close(32.0)
    calls(breaker, "fffff", 32.0)
    assert not breaker.probe_in_flight
    assert granted(breaker, 62.0).probe


def test_close_wins_over_an_outage() -> None:
    """The operator's yes ends OPEN at once and forgets how often it reopened."""
    breaker, _ = reopened(3)
    moved = breaker.close(40.0)
    assert moved is not None
    assert (moved.from_state, moved.to_state, moved.reason) == (OPEN, CLOSED, "operator")
    again = calls(breaker, "fffff", 40.0)[-1]
    assert again is not None
    assert again.open_until == 70.0


def test_close_of_a_closed_breaker_empties_its_window() -> None:
    """Nothing moves, but old failures and calls in flight count no more."""
    breaker = CircuitBreaker()
    old = granted(breaker, 0.0)
    calls(breaker, "ffff", 0.0)
    assert breaker.close(1.0) is None
    assert breaker.record(old, "failure", 1.0) is None
    assert calls(breaker, "ffff", 1.0) == [None] * 4
    assert call(breaker, "failure", 1.0) is not None


# ------------------------------------------------------------------------------------------------ withheld trips


def test_a_withheld_trip_stays_closed_and_says_so() -> None:
    """With `hold` the failure that would open reports CLOSED -> CLOSED; without it the next one opens."""
    breaker = CircuitBreaker()
    calls(breaker, "ffff", 0.0)
    held = breaker.record(granted(breaker, 1.0), "failure", 1.0, hold=True)
    assert held == Transition(CLOSED, CLOSED, "withheld", 1.0, 0)
    assert breaker.is_closed
    assert call(breaker, "failure", 2.0) == Transition(CLOSED, OPEN, "consecutive_failures", 2.0, 1, 32.0)


def test_hold_withholds_nothing_that_was_not_due() -> None:
    """A failure that would not open is no withheld trip."""
    breaker = CircuitBreaker()
    assert breaker.record(granted(breaker, 0.0), "failure", 0.0, hold=True) is None
