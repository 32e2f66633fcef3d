"""Breakers and cooldowns that take over what another process, or this one before a restart, arrived at."""

from __future__ import annotations

import pytest

from smart_model_router.core.breaker import BreakerState, CircuitBreaker, Permit
from smart_model_router.core.cooldown import Cooldown, RestRecord
from smart_model_router.core.gate import Gate
from smart_model_router.core.lease import Lease
from smart_model_router.core.ratelimit import Cost, RateLimitTracker
from smart_model_router.core.target_state import Connectivity, ProviderState
from smart_model_router.domain.outcome import Failure, FailureClass, Refusal, RestReason, Wait

OPEN, HALF_OPEN, CLOSED = BreakerState.OPEN, BreakerState.HALF_OPEN, BreakerState.CLOSED


def probe_of(breaker: CircuitBreaker, now: float) -> Permit:
    """The probe, which must be free."""
    got = breaker.try_acquire(now)
    assert isinstance(got, Permit)
    assert got.probe
    return got


def test_an_open_breaker_with_time_left_comes_back_open() -> None:
    """It says until when, and that it was in use."""
    breaker = CircuitBreaker()
    moved = breaker.adopt(20.0, 0, 0.0, reason="shared")
    assert moved is not None
    assert (moved.from_state, moved.to_state, moved.reason, moved.open_until) == (CLOSED, OPEN, "shared", 20.0)
    assert moved.at == 0.0
    assert breaker.refusal(19.9) == Refusal("open", 20.0)
    assert breaker.used


def test_with_nothing_left_it_comes_back_half_open_never_closed() -> None:
    """A probe decides."""
    breaker = CircuitBreaker()
    breaker.adopt(-5.0, 0, 0.0, reason="shared")
    assert breaker.state(0.0) is HALF_OPEN
    probe_of(breaker, 0.0)
    assert breaker.refusal(0.0) == Refusal("half_open")


def test_the_backoff_goes_on_where_it_was() -> None:
    """The third reopening after a restart lasts as long as without one."""
    breaker = CircuitBreaker()
    breaker.adopt(0.0, 2, 0.0, reason="shared")
    assert breaker.backoff_index == 2
    moved = breaker.record(probe_of(breaker, 0.0), "failure", 0.0)
    assert moved is not None
    assert moved.open_until == 30.0 * 1.5**3


def test_an_open_breaker_takes_over_no_nearer_instant() -> None:
    """Nothing another process says shortens it; a farther one is not a second event."""
    breaker = CircuitBreaker()
    breaker.adopt(20.0, 0, 0.0, reason="shared")
    assert breaker.adopt(10.0, 0, 1.0, reason="shared") is None
    assert breaker.open_until == 20.0
    assert breaker.adopt(45.0, 1, 1.0, reason="shared") is None
    assert breaker.open_until == 45.0


def test_the_result_of_a_probe_that_lost_its_lease_changes_nothing() -> None:
    """Another process probed meanwhile, and its word counts."""
    breaker = CircuitBreaker()
    breaker.adopt(0.0, 0, 0.0, reason="shared")
    stale = probe_of(breaker, 0.0)
    breaker.adopt(50.0, 1, 40.0, reason="shared")
    assert breaker.record(stale, "success", 41.0) is None
    assert breaker.state(41.0) is OPEN
    probe_of(breaker, 50.0)


def test_every_word_of_another_process_is_a_generation() -> None:
    """One each: a verdict from before it is never taken for one from after it."""
    breaker = CircuitBreaker()
    seen = []
    for _ in range(3):
        breaker.adopt(20.0, 0, 0.0, reason="shared")
        seen.append(breaker.generation)
    assert seen == [1, 2, 3]


def test_the_operators_no_is_not_overruled() -> None:
    """An isolated breaker stays so."""
    breaker = CircuitBreaker()
    breaker.isolate(0.0)
    assert breaker.isolated
    assert breaker.adopt(20.0, 0, 0.0, reason="shared") is None
    assert breaker.state(0.0) is BreakerState.ISOLATED


def test_while_another_process_probes_nobody_does_here() -> None:
    """Until its lease ends, or is said to have ended."""
    breaker = CircuitBreaker()
    breaker.adopt(0.0, 0, 0.0, reason="shared")
    breaker.probed_elsewhere(30.0)
    assert breaker.elsewhere_until == 30.0
    assert breaker.refusal(29.9) == Refusal("half_open")
    probe_of(breaker, 30.0)


RECORDS = [
    RestRecord("cooldown", 45.0, False, None, 2),
    RestRecord("wait", 3.0, True, FailureClass.RATE_LIMITED, 0),
    RestRecord("wait", 60.0, False, FailureClass.RATE_LIMITED, 4),
    RestRecord("wall", 3_600.0, True, FailureClass.QUOTA, 0),
    RestRecord("off", 900.0, False, FailureClass.AUTH, 2),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.reason} {record.until:g}")
def test_a_rest_survives_as_it_was(record: RestRecord) -> None:
    """Taken over and written down again it is the same, and in force until its instant."""
    rests = Cooldown()
    assert rests.adopt(record, 0.0)
    assert rests.records() == (record,)
    in_force = rests.advice(record.until - 0.1) or rests.law(record.until - 0.1)
    assert in_force == Refusal(record.reason, record.until)
    assert not rests.adopt(record, 0.0)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.reason} {record.until:g}")
def test_a_rest_that_ran_out_before_the_restart_returns_on_probation(record: RestRecord) -> None:
    """One call at a time until one has succeeded."""
    rests = Cooldown()
    rests.adopt(record, record.until + 100.0)
    assert rests.on_probation(record.until + 100.0)
    assert rests.succeeded(record.until + 101.0, record.until + 102.0)
    assert rests.records() == ()


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.reason} {record.until:g}")
def test_only_a_wait_is_forgiven_where_something_has_just_succeeded(record: RestRecord) -> None:
    """A success five seconds before its end is proof enough; after any other rest a call on probation is due."""
    rests = Cooldown()
    rests.adopt(record, 0.0)
    rests.succeeded(-1.0, record.until - 5.0)
    rests.adopt(record, record.until - 5.0)
    assert rests.on_probation(record.until) is (record.reason != "wait")


def test_a_guess_gives_way_to_the_hint_of_another_process() -> None:
    """Also to a shorter one; a hint gives way to a longer hint alone."""
    rests = Cooldown()
    rests.adopt(RestRecord("wait", 60.0, False, None, 1), 0.0)
    assert rests.adopt(RestRecord("wait", 3.0, True, None, 0), 0.0)
    assert not rests.adopt(RestRecord("wait", 2.0, True, None, 0), 0.0)
    assert not rests.adopt(RestRecord("wait", 60.0, False, None, 0), 0.0)
    assert rests.adopt(RestRecord("wait", 5.0, True, None, 0), 0.0)


def test_the_ladders_go_on_where_they_were() -> None:
    """The third cooldown in a row after a restart is the third, not the first."""
    rests = Cooldown()
    rests.adopt(RestRecord("cooldown", 0.0, False, None, 2), 1.0)
    rests.adopt(RestRecord("cooldown", 1.0, False, None, 2), 1.0)
    rest = rests.failed(
        Failure(FailureClass.TIMEOUT), admitted_at=2.0, sent_seq=1, now=32.0, roll=0.0, paced=False, advise=True
    )
    assert rest is not None
    assert rest.until == 32.0 + 30.0 * 1.5**2


def test_processes_share_the_pauses_between_probes_where_no_other_target_is_free() -> None:
    """Each word of another process is a probe that failed: 1, 2, 4, then 5 s, whatever the open time is."""
    breaker, pauses = CircuitBreaker(), []
    for n in range(5):
        breaker.adopt(600.0, n, 10.0 * n, reason="shared")
        pauses.append(breaker.eager_at - 10.0 * n)
    assert pauses == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert breaker.refusal(44.0, eager=True) == Refusal("open", 45.0)
    assert breaker.refusal(45.0) == Refusal("open", 600.0)


def test_a_probe_is_not_put_off_beyond_the_open_time_of_another_process() -> None:
    """Half a second is left of it: half a second."""
    breaker = CircuitBreaker()
    breaker.adopt(10.5, 0, 10.0, reason="shared")
    assert breaker.eager_at == 10.5


@pytest.mark.parametrize("reason", ["cooldown", "wait", "wall", "off"])
def test_a_rest_that_another_process_saw_end_has_ended(reason: RestReason) -> None:
    """By its success: no probation follows. Of one that is not there nothing ends."""
    rests = Cooldown()
    assert not rests.end(reason)
    rests.adopt(RestRecord(reason, 60.0, False, None, 1), 0.0)
    assert rests.end(reason)
    assert rests.records() == ()
    assert not rests.returning
    assert not rests.on_probation(100.0)


def test_the_end_of_one_rest_leaves_the_others() -> None:
    """Each has its own reason."""
    rests = Cooldown()
    rests.adopt(RestRecord("wait", 60.0, False, None, 1), 0.0)
    rests.adopt(RestRecord("off", 900.0, False, FailureClass.AUTH, 1), 0.0)
    rests.end("off")
    assert rests.law(1.0) == Refusal("wait", 60.0)
    assert rests.returning


def test_a_probe_that_another_process_has_is_withdrawn_without_a_trace() -> None:
    """Slot, tokens and the place of the probe are free again, and no bucket was charged."""
    provider = ProviderState("a", slots=1, remote=True, connectivity=Connectivity(2))
    gate = Gate("a/m", provider, limits=RateLimitTracker(60))
    gate.breakers["whole"].adopt(0.0, 0, 0.0, reason="shared")
    lease = gate.try_admit(Cost(0, 0), 0.0, 0.0)
    assert isinstance(lease, Lease)
    assert lease.probes_breaker
    lease.withdraw(0.0)
    assert provider.bulkhead.in_flight == gate.in_flight == 0
    assert not provider.probe_in_flight
    requests = gate.limits.requests
    assert requests is not None
    assert requests.level(0.0) == 60.0


def test_a_wait_that_was_hinted_elsewhere_is_replaced_by_our_own_later_hint() -> None:
    """Whoever is told last by the provider knows best."""
    rests = Cooldown()
    rests.adopt(RestRecord("wait", 60.0, True, None, 0), 0.0)
    rest = rests.failed(
        Failure(FailureClass.RATE_LIMITED, wait=Wait(3.0)),
        admitted_at=1.0,
        sent_seq=1,
        now=1.0,
        roll=0.0,
        paced=False,
        advise=True,
    )
    assert rest is not None
    assert rest.until == 4.0
