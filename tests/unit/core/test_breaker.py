"""The circuit breaker against routing.md section 3: when it opens, for how long, who probes, what a verdict moves."""

from __future__ import annotations

import pytest

from smart_model_router.core.breaker import (
    BreakerConfig,
    BreakerSnapshot,
    BreakerState,
    CircuitBreaker,
    Permit,
    Transition,
    Verdict,
)
from smart_model_router.domain.outcome import Refusal

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


def call(
    breaker: CircuitBreaker,
    verdict: Verdict,
    now: float,
    roll: float = 0.0,
    *,
    down: bool = True,
    lost: float | None = None,
    eager: bool = False,
) -> Transition | None:
    """One call that ends at `now`; a failure loses an unknown time, but for what is given."""
    permit = breaker.try_acquire(now, eager=eager)
    assert isinstance(permit, Permit)
    return breaker.record(permit, verdict, now, roll=roll, down=down, lost=lost)


VERDICTS: dict[str, Verdict] = {"s": "success", "f": "failure", "i": "ignored"}


def calls(breaker: CircuitBreaker, verdicts: str, now: float) -> list[Transition | None]:
    """Calls one after the other at `now`: s(uccess), f(ailure), i(gnored)."""
    return [call(breaker, VERDICTS[letter], now) for letter in verdicts]


def tripped(
    now: float = 0.0, config: BreakerConfig | None = None, *, lost: float | None = None, roll: float = 0.0
) -> CircuitBreaker:
    """Make a breaker that five failures in a row opened at `now`."""
    breaker = CircuitBreaker(config)
    for _ in range(breaker.config.consecutive_failures):
        call(breaker, "failure", now, roll, lost=lost)
    assert breaker.state(now) is OPEN
    return breaker


def due(breaker: CircuitBreaker) -> float:
    """When the probe of an OPEN breaker is due."""
    assert breaker.open_until is not None
    return breaker.open_until


def reopened(times: int, roll: float = 0.0, *, lost: float | None = None) -> tuple[CircuitBreaker, list[float]]:
    """Make a breaker whose first `times` probes failed as soon as due; also the lengths of its open times."""
    breaker = tripped(lost=lost)
    lengths = [due(breaker)]
    for _ in range(times):
        now = due(breaker)
        call(breaker, "failure", now, roll, lost=lost)
        lengths.append(due(breaker) - now)
    return breaker, lengths


# ------------------------------------------------------------------------------------------------ opening


def test_what_it_is_open_for_is_told_without_chance() -> None:
    """Base, half as long again for each failed probe, at most the cap."""
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
    """Five in a row that are down (99 % failing, odds of 1000 or 20 a call), 5 to 30 s x 1.5 up to 600 s."""
    assert BreakerConfig() == BreakerConfig(
        consecutive_failures=5,
        failing_share=0.99,
        odds=1000,
        odds_per_call=20,
        open=30.0,
        open_minimum=5.0,
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


def test_a_streak_is_not_bound_in_time() -> None:
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


@pytest.mark.parametrize("failures", [5, 50])
def test_a_streak_that_is_not_called_down_leaves_it_closed(failures: int) -> None:
    """A target that fails often fails five times in a row by chance: the evidence has to say that it is down."""
    breaker = CircuitBreaker()
    assert [call(breaker, "failure", 0.0, down=False) for _ in range(failures)] == [None] * failures
    moved = call(breaker, "failure", 0.0)
    assert moved is not None
    assert moved.reason == "consecutive_failures"


def test_four_failures_that_are_called_down_are_too_few() -> None:
    """Whatever the evidence says, five in a row are needed."""
    breaker = CircuitBreaker()
    assert calls(breaker, "ffffsffff", 0.0) == [None] * 9


def test_half_of_all_calls_failing_does_not_open() -> None:
    """No ratio opens it: fifty failures in a hundred calls, never five in a row."""
    breaker = CircuitBreaker()
    assert calls(breaker, "ffffsfssss" * 10, 0.0) == [None] * 100
    assert breaker.is_closed


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


def test_a_successful_probe_closes_and_forgets_the_streak() -> None:
    """A second after the trip: the old failures do not count among the next four."""
    breaker = tripped()
    breaker.make_due(1.0)
    assert call(breaker, "success", 1.0) == Transition(HALF_OPEN, CLOSED, "probe_succeeded", 1.0, 3)
    assert not breaker.probe_in_flight
    assert calls(breaker, "ffff", 1.0) == [None] * 4


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
    closed_at = due(breaker)
    call(breaker, "success", closed_at)  # closed, i = 2
    moved = calls(breaker, "fffff", closed_at + 30.0)[-1]
    assert moved is not None
    assert moved.open_until == pytest.approx(closed_at + 30.0 + 45.0)  # i = 1


@pytest.mark.parametrize(("healthy", "seconds"), [(0.0, 67.5), (29.999, 67.5), (30.0, 45.0), (60.0, 30.0), (9e5, 30.0)])
def test_the_index_falls_by_one_for_each_base_of_health(healthy: float, seconds: float) -> None:
    """From the second reopening: 67.5 s again before 30 s of health, never below the base."""
    breaker, _ = reopened(2)
    closed_at = due(breaker)
    call(breaker, "success", closed_at)
    moved = calls(breaker, "fffff", closed_at + healthy)[-1]
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
    closed_at = due(breaker)
    call(breaker, "success", closed_at)  # i = 8: 30 x 1.5^8 is the first above 600
    moved = calls(breaker, "fffff", closed_at + 30.0)[-1]
    assert moved is not None
    assert moved.open_until is not None
    assert moved.open_until - moved.at == pytest.approx(30.0 * 1.5**7)


# ------------------------------------------------------------------------------------------------ what a failure costs


@pytest.mark.parametrize(
    ("lost", "lengths"),
    [
        (0.05, [5.0, 7.5, 11.25, 15.0, 15.0, 15.0]),
        (0.75, [7.5, 11.25, 15.0, 15.0]),
        (2.0, [20.0, 30.0, 40.0, 40.0]),
        (30.0, [30.0, 45.0, 67.5, 101.25, 151.875, 227.8125, 341.71875, 512.578125, 600.0, 600.0]),
        (None, [30.0, 45.0, 67.5]),
    ],
    ids=["50 ms", "750 ms", "2 s", "30 s", "unknown"],
)
def test_what_a_failure_costs_sets_how_long_it_is_open(lost: float | None, lengths: list[float]) -> None:
    """Ten times the loss, from 5 to 30 s, x 1.5 each, at most 20 times the loss, at least 15 s, at most 600 (D7)."""
    assert reopened(len(lengths) - 1, lost=lost)[1] == pytest.approx(lengths)


def test_a_cheap_probe_after_a_dear_failure_does_not_shorten_the_open_time() -> None:
    """A trip at 30 s a call, then a probe that fails in milliseconds: 30 s again, not 7.5 (I5)."""
    breaker = tripped(lost=30.0)
    call(breaker, "failure", 30.0, lost=0.05)
    assert due(breaker) == 60.0


def test_the_largest_loss_of_an_outage_caps_its_open_times() -> None:
    """One probe hung for 30 s: later ones that fail in milliseconds grow from their own base beyond 15 s."""
    breaker = tripped(lost=0.05)
    lengths = []
    for lost in (30.0, *[0.05] * 5):
        now = due(breaker)
        call(breaker, "failure", now, lost=lost)
        lengths.append(due(breaker) - now)
    assert lengths == pytest.approx([45.0, 45.0, 45.0, 45.0, 45.0, 56.953125])


def test_the_next_outage_costs_what_it_costs() -> None:
    """After a close the loss and the length of the last outage are forgotten: 5 s again, and 15 s at most."""
    breaker, _ = reopened(1, lost=30.0)
    closed_at = due(breaker)
    call(breaker, "success", closed_at)
    for _ in range(5):
        call(breaker, "failure", closed_at + 60.0, lost=0.05)
    assert due(breaker) == closed_at + 65.0


def test_dice_do_not_lift_the_open_time_above_its_cap() -> None:
    """Fifteen seconds are fifteen, whatever the roll."""
    assert reopened(5, roll=0.999, lost=0.05)[1][3:] == pytest.approx([15.0, 15.0, 15.0])


def test_an_owner_who_opens_for_less_than_the_minimum_gets_that() -> None:
    """`open` below `open_minimum` is the base, whatever a failure costs."""
    assert due(tripped(config=BreakerConfig(open=2.0), lost=0.05)) == 2.0
    assert due(tripped(config=BreakerConfig(open=2.0), lost=30.0)) == 2.0


def test_an_owner_can_set_the_minimum() -> None:
    """A second for what fails in milliseconds."""
    assert due(tripped(config=BreakerConfig(open_minimum=1.0), lost=0.05)) == 1.0


def test_an_outage_that_is_over_costs_the_next_one_nothing() -> None:
    """Neither its open times nor its largest loss: half a second again, and at most 15 s."""
    breaker = tripped(config=BreakerConfig(open=0.5), lost=30.0)
    breaker.close(1.0)
    lengths = []
    for n in range(20):
        now = 1.0 if n < 5 else due(breaker)
        call(breaker, "failure", now, lost=0.01)
        lengths.append(due(breaker) - now if n >= 4 else 0.5)
    assert lengths[4] == 0.5
    assert lengths[-1] == 15.0


def test_the_index_does_not_grow_beyond_the_cap_of_what_a_failure_costs() -> None:
    """A hundred probes that failed in milliseconds decay as fast as three: 5 x 1.5^3 is the first above 15."""
    breaker, _ = reopened(100, lost=0.05)
    assert breaker.backoff_index == 3


def test_an_outage_of_a_day_is_survived() -> None:
    """A probe every 15 s for a day."""
    assert reopened(5760, lost=0.05)[1][-1] == 15.0


# ------------------------------------------------------------------------------------------------ nobody else is free


def test_where_no_other_target_is_free_probes_come_due_by_back_off() -> None:
    """After 1, 2, 4, 5 and 5 s instead of the open time; whoever has another target waits for that (D4)."""
    breaker = tripped(lost=30.0)
    now, pauses = 0.0, []
    for _ in range(5):
        assert breaker.refusal(now, eager=True) == Refusal("open", breaker.eager_at)
        pauses.append(breaker.eager_at - now)
        now = breaker.eager_at
        assert breaker.state(now) is OPEN
        assert breaker.try_acquire(now) == Refusal("open", breaker.open_until)
        call(breaker, "failure", now, lost=30.0, eager=True)
    assert pauses == [1.0, 2.0, 4.0, 5.0, 5.0]


def test_the_back_off_between_eager_probes_is_spread_by_dice() -> None:
    """By up to a fifth, earlier."""
    assert tripped(roll=0.5).eager_at == pytest.approx(0.9)


def test_an_eager_probe_is_never_due_later_than_the_open_time() -> None:
    """A breaker that may be probed anyway is not put off."""
    assert tripped(config=BreakerConfig(open=0.25)).eager_at == 0.25


def test_eager_probes_are_serialised_too() -> None:
    """One at a time, whoever asks (I1)."""
    breaker = tripped()
    probe = breaker.try_acquire(1.0, eager=True)
    assert isinstance(probe, Permit)
    assert probe.probe
    assert breaker.try_acquire(1.0, eager=True) == Refusal("half_open")
    assert breaker.try_acquire(30.0) == Refusal("half_open")


def test_an_eager_probe_that_succeeds_closes() -> None:
    """And the next outage's first eager probe is due after a second again."""
    breaker = tripped()
    call(breaker, "failure", 1.0, eager=True)
    moved = call(breaker, "success", 3.0, eager=True)
    assert moved == Transition(HALF_OPEN, CLOSED, "probe_succeeded", 3.0, 5)
    calls(breaker, "fffff", 10.0)
    assert breaker.eager_at == 11.0


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


def test_a_call_from_before_an_outage_does_not_count_after_it() -> None:
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


def test_close_of_a_closed_breaker_forgets_its_streak() -> None:
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


def test_a_snapshot_is_what_verdicts_move() -> None:
    """The generation, whether it is CLOSED, when a probe is due, the failures in a row, a probe in flight."""
    failed = CircuitBreaker()
    call(failed, "failure", 0.0)
    assert failed.snapshot() == BreakerSnapshot(0, True, None, 1, False)
    breaker = tripped()
    assert breaker.snapshot() == BreakerSnapshot(1, False, 30.0, 0, False)
    breaker.try_acquire(30.0)
    assert breaker.snapshot() == BreakerSnapshot(2, False, 30.0, 0, True)
