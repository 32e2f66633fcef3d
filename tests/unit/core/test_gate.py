"""The gate of one target: everything a call needs or the first refusal, and a lease that gives everything back once."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from smart_model_router.core.breaker import BreakerConfig, BreakerState, Transition
from smart_model_router.core.capacity import AdaptiveConfig, ThrottleConfig
from smart_model_router.core.cooldown import CooldownConfig, Rest, RestRecord
from smart_model_router.core.flow_config import GateConfig, Measures
from smart_model_router.core.gate import Gate, Pacing
from smart_model_router.core.lease import Lease, LeaseSnapshot, Settlement
from smart_model_router.core.ratelimit import Cost, RateLimitTracker
from smart_model_router.core.target_state import Connectivity, Kind, Moved, ProviderState
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.outcome import (
    POLICIES,
    BreakerCount,
    BucketReading,
    Failure,
    FailureClass,
    LimitReading,
    Refusal,
    Scope,
    Usage,
    Wait,
)

COST = Cost(100, 100)
CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN
NOTHING = Settlement()


def make_provider(
    slots: int = 20,
    *,
    name: str = "p",
    remote: bool = True,
    connectivity: Connectivity | None = None,
    config: GateConfig | None = None,
) -> ProviderState:
    """Make a provider; its connectivity is that of a lone remote."""
    return ProviderState(name, slots=slots, remote=remote, connectivity=connectivity or Connectivity(1), config=config)


def make_gate(
    provider: ProviderState | None = None, *, limits: RateLimitTracker | None = None, target: str = "p/m", key: int = 0
) -> Gate:
    """Make a gate of a provider of its own, but for what is given."""
    return Gate(target, provider or make_provider(), limits=limits, credential=key)


def known(rpm: float | None = None, tpm: float | None = None) -> RateLimitTracker:
    """Make limits that an answer has shown: buckets that are full."""
    limits = RateLimitTracker(rpm=rpm, tpm=tpm)
    limits.update(LimitReading((BucketReading("requests", int(rpm or 1), int(rpm or 1)),)), 0, 0.0)
    return limits


def failure(
    failure_class: FailureClass, hint: float | None = None, scope: Scope = "minute", *, wide: bool = False
) -> Failure:
    """Make a failure; with a hint, one that names a wait."""
    return Failure(failure_class, wait=None if hint is None else Wait(hint, scope), credential_wide=wide)


def ask(
    gate: Gate, now: float, *, roll: float = 0.5, stream: bool = False, pacing: Pacing = "off", cost: Cost = COST
) -> Lease | Refusal:
    """Ask for admission."""
    return gate.try_admit(cost, now, roll, stream=stream, pacing=pacing)


def admit(gate: Gate, now: float, *, stream: bool = False, pacing: Pacing = "off", last_resort: bool = False) -> Lease:
    """Get a lease that must be there; the dice are kind."""
    got = gate.try_admit(COST, now, 0.999, stream=stream, pacing=pacing, last_resort=last_resort)
    assert isinstance(got, Lease)
    return got


def call(gate: Gate, now: float, failed: FailureClass | Failure | None = None, *, stream: bool = False) -> Settlement:
    """One call that begins and ends at `now`, although the target is ill."""
    ended = Failure(failed) if isinstance(failed, FailureClass) else failed
    return admit(gate, now, stream=stream, pacing="eager").settle(ended, now)


LOST = 3.0
"""Seconds that a failure takes here: ten times that is the first open time, 30 s."""


def tripped(gate: Gate, now: float = 0.0, *, stream: bool = False) -> Gate:
    """Open the breaker of one kind for 30 s, by five calls of a target of which nothing else is known."""
    gate.evidence.clear()
    for lease in [admit(gate, now - LOST, stream=stream) for _ in range(5)]:
        lease.settle(failure(FailureClass.SERVER_ERROR), now)
    assert gate.breakers["stream" if stream else "whole"].state(now) is OPEN
    return gate


def cooled(gate: Gate, now: float = 0.0) -> Gate:
    """Start a cooldown of 10 s, by two failures in a row of a target of which nothing else is known."""
    gate.evidence.clear()
    for _ in range(2):
        call(gate, now, FailureClass.SERVER_ERROR)
    assert gate.cooldown.advice(now) == Refusal("cooldown", now + 10.0)
    return gate


def choke(gate: Gate, now: float = 0.0) -> Gate:
    """Have the throttle see two hundred calls turned away: it refuses nine of ten."""
    for _ in range(200):
        gate.count(False, now)
    assert gate.throttle.probability(now) == 0.9
    return gate


def cut_off(provider: ProviderState, gate: Gate, now: float = 0.0) -> None:
    """Open the provider's transport breaker for 30 s, by five transport faults and no history."""
    provider.evidence.clear()
    for lease in [admit(gate, now - LOST) for _ in range(5)]:
        lease.settle(failure(FailureClass.TRANSPORT), now)
    assert provider.transport.state(now) is OPEN


# ------------------------------------------------------------------------------------------------ taking and giving


def test_an_admitted_call_holds_a_slot_and_its_tokens() -> None:
    """One slot, one request, the estimated tokens: taken together."""
    gate = make_gate(limits=RateLimitTracker(rpm=60, tpm=6000))
    lease = admit(gate, 5.0)
    assert gate.in_flight == gate.provider.bulkhead.in_flight == 1
    assert gate.limits.requests is not None
    assert gate.limits.tokens is not None
    assert (gate.limits.requests.level(5.0), gate.limits.tokens.level(5.0)) == (59.0, 5800.0)
    assert (lease.admitted_at, lease.sequence, lease.stream, lease.probe, lease.settled) == (
        5.0,
        1,
        False,
        False,
        False,
    )


ENDINGS = [None, *FailureClass]


@pytest.mark.parametrize("ending", ENDINGS, ids=str)
@pytest.mark.parametrize("stream", [False, True])
def test_a_lease_is_settled_once(ending: FailureClass | None, stream: bool) -> None:
    """Success and every class of failure free the slot; a second settlement changes nothing at all (I2)."""
    gate = make_gate(limits=RateLimitTracker(rpm=60, tpm=6000))
    lease = admit(gate, 0.0, stream=stream)
    ended = None if ending is None else Failure(ending)
    lease.settle(ended, 1.0, usage=Usage(100, 50))
    assert lease.settled
    assert gate.in_flight == gate.provider.bulkhead.in_flight == 0
    assert gate.limits.tokens is not None
    level = gate.limits.tokens.level(1.0)
    assert lease.settle(failure(FailureClass.SERVER_ERROR), 1.0) == NOTHING
    assert lease.settle(None, 1.0, usage=Usage(0, 0)) == NOTHING
    assert lease.release(1.0) == NOTHING
    assert lease.prove(1.0) == NOTHING
    assert gate.in_flight == gate.provider.bulkhead.in_flight == 0
    assert gate.limits.tokens.level(1.0) == level


def test_release_gives_everything_back_without_a_verdict() -> None:
    """A cancelled call counts nowhere: not in the breaker, not in the throttle, no rest."""
    gate = make_gate()
    for _ in range(50):
        assert admit(gate, 0.0).release(0.0) == NOTHING
    assert gate.in_flight == 0
    assert gate.provider.throttle.probability(0.0) == 0.0
    assert ask(gate, 0.0, roll=0.0) is not None
    assert gate.breakers["whole"].is_closed


def test_real_usage_corrects_the_estimate() -> None:
    """A call that used 50 of 200 gives 150 back; one that was never sent gives its request back as well."""
    gate = make_gate(limits=RateLimitTracker(rpm=60, tpm=6000))
    assert gate.limits.requests is not None
    assert gate.limits.tokens is not None
    admit(gate, 0.0).settle(None, 0.0, usage=Usage(30, 20))
    assert (gate.limits.requests.level(0.0), gate.limits.tokens.level(0.0)) == (59.0, 5950.0)
    admit(gate, 0.0).settle(Failure(FailureClass.TRANSPORT, unsent=True), 0.0)
    assert (gate.limits.requests.level(0.0), gate.limits.tokens.level(0.0)) == (59.0, 5950.0)


@pytest.mark.parametrize("status", [400, 500])
def test_an_http_error_costs_a_request_and_no_tokens(status: int) -> None:
    """A provider that answers with errors again and again does not drain our own token bucket."""
    gate = make_gate(limits=RateLimitTracker(rpm=60, tpm=6000))
    assert gate.limits.requests is not None
    assert gate.limits.tokens is not None
    admit(gate, 0.0).settle(Failure(FailureClass.SERVER_ERROR, status=status), 0.0)
    assert (gate.limits.requests.level(0.0), gate.limits.tokens.level(0.0)) == (59.0, 6000.0)
    admit(gate, 0.0).settle(Failure(FailureClass.TIMEOUT), 0.0)
    assert gate.limits.tokens.level(0.0) == 5800.0


def test_a_target_without_a_number_has_the_first_credential() -> None:
    """Most providers have one key."""
    provider = make_provider()
    assert Gate("p/m", provider).credential is make_gate(provider, key=0).credential


def test_a_provider_knows_how_many_may_wait_for_it() -> None:
    """As its owner said; nobody said anything: no number."""
    queued = ProviderState("p", slots=1, remote=False, connectivity=Connectivity(1), queue=3)
    assert (queued.queue, make_provider().queue) == (3, None)


def test_all_of_a_gates_parts_decide_by_its_options() -> None:
    """Five seconds of cooldown, six for a refused key; a throttle that begins with the first refusal."""
    config = GateConfig(cooldown=CooldownConfig(failure=5.0, auth=6.0), throttle=ThrottleConfig(minimum_requests=1))
    gate = make_gate(make_provider(config=config))
    call(gate, 0.0, FailureClass.OVERLOADED)
    assert gate.throttle.probability(0.0) == gate.provider.throttle.probability(0.0) == 0.5
    gate.close(0.0)
    for _ in range(2):
        call(gate, 0.0, FailureClass.SERVER_ERROR)
    assert ask(gate, 0.0) == Refusal("cooldown", 5.0)
    call(gate, 0.0, failure(FailureClass.AUTH, wide=True))
    assert ask(gate, 0.0) == Refusal("off", 6.0)


def test_sequence_numbers_follow_the_order_of_admission_across_a_provider() -> None:
    """Targets that share a credential can tell which of their calls was sent later."""
    provider = make_provider()
    one, other = make_gate(provider), make_gate(provider, target="p/n")
    assert [admit(gate, 0.0).sequence for gate in (one, other, one)] == [1, 2, 3]


# ------------------------------------------------------------------------------------------------ who refuses first


def test_a_refused_caller_holds_nothing() -> None:
    """All or none: a call refused by the last check has taken nothing from the first ones (I12)."""
    gate = make_gate(make_provider(slots=2), limits=RateLimitTracker(rpm=60, tpm=600))
    too_large = Cost(721, 0)
    for _ in range(100):
        assert ask(gate, 0.0, cost=too_large) == Refusal("too_large")
    assert gate.provider.throttle.probability(0.0) == 0.0
    assert gate.limits.free_share(0.0) == 1.0
    assert gate.provider.bulkhead.free == 2
    assert not gate.breakers["whole"].used


def test_a_full_bulkhead_refuses_at_once() -> None:
    """It ends by an event: a slot that is given back."""
    gate = make_gate(make_provider(slots=1))
    lease = admit(gate, 0.0)
    assert ask(gate, 0.0) == Refusal("bulkhead")
    lease.release(0.0)
    assert isinstance(ask(gate, 0.0), Lease)


def test_a_bulkhead_is_shared_by_a_providers_targets() -> None:
    """The slots belong to the provider."""
    provider = make_provider(slots=1)
    admit(make_gate(provider), 0.0)
    assert ask(make_gate(provider, target="p/n"), 0.0) == Refusal("bulkhead")


def test_a_target_is_full_where_it_lacks_a_slot_and_nothing_else() -> None:
    """Not while one is free, nor where something else is told first: then the gate has to be asked."""
    gate = make_gate(make_provider(slots=1))
    assert not gate.is_full(0.0, stream=False)
    lease = admit(gate, 0.0)
    assert gate.is_full(0.0, stream=False)
    assert gate.is_full(0.0, stream=True)
    gate.breakers["stream"].isolate(1.0)
    assert gate.is_full(1.0, stream=False)
    assert not gate.is_full(1.0, stream=True)
    gate.isolate(1.0)
    assert not gate.is_full(1.0, stream=False)
    gate.close(2.0)
    lease.release(2.0)
    assert not gate.is_full(2.0, stream=False)


@pytest.mark.parametrize(("slots", "has_slot"), [(1, False), (2, True)])
def test_a_provider_has_a_slot_until_all_are_taken(slots: int, has_slot: bool) -> None:
    """One call is in flight."""
    gate = make_gate(make_provider(slots=slots))
    admit(gate, 0.0)
    assert gate.provider.has_slot is has_slot


@pytest.mark.parametrize("with_its_provider", [False, True])
def test_a_target_that_returned_until_just_now_is_not_full_but_starts_slowly(with_its_provider: bool) -> None:
    """Slow start is told before the slot that is lacking as well; once it is over, the slot alone is."""
    gate = make_gate(make_provider(slots=1))
    if with_its_provider:
        gate.provider.returned_at = 0.0
    else:
        gate.begin_slow_start(0.0)
    admit(gate, 9.0)
    assert not gate.is_full(9.9, stream=False)
    assert gate.is_full(10.0, stream=False)


def test_without_cascade_prevention_a_target_is_never_full() -> None:
    """Slots bind nothing then."""
    gate = make_gate(make_provider(slots=1, config=GateConfig(measures=Measures(cascade_prevention=False))))
    admit(gate, 0.0)
    assert gate.provider.has_slot
    assert not gate.is_full(0.0, stream=False)


def test_empty_buckets_refuse_with_their_instant() -> None:
    """One request a minute: the second in 60 s."""
    gate = make_gate(limits=RateLimitTracker(rpm=1))
    admit(gate, 0.0)
    assert ask(gate, 0.0) == Refusal("requests", 60.0)


def test_a_law_tells_its_reason_and_instant() -> None:
    """The provider's 3 s are refused as a wait, to the instant."""
    gate = make_gate()
    call(gate, 0.0, failure(FailureClass.RATE_LIMITED, 3.0))
    assert ask(gate, 2.999) == Refusal("wait", 3.0)
    assert isinstance(ask(gate, 3.0), Lease)


def test_advice_is_refused_as_a_cooldown() -> None:
    """The second failure in a row of an unknown target: refused for 10 s, while another one is free."""
    gate = make_gate()
    assert call(gate, 0.0, FailureClass.SERVER_ERROR) == NOTHING
    settled = call(gate, 0.0, FailureClass.SERVER_ERROR)
    assert settled == Settlement(rest=Rest("cooldown", 10.0, hinted=False))
    assert ask(gate, 9.999) == Refusal("cooldown", 10.0)


def test_isolated_comes_before_everything() -> None:
    """The operator's word is the reason told, whatever else is wrong."""
    gate = make_gate()
    call(gate, 0.0, failure(FailureClass.RATE_LIMITED, 3.0))
    moved = gate.isolate(1.0)
    assert [(m.kind, m.transition.to_state) for m in moved] == [
        ("whole", BreakerState.ISOLATED),
        ("stream", BreakerState.ISOLATED),
    ]
    assert gate.isolate(1.0) == ()
    for stream in (False, True):
        assert ask(gate, 1.0, stream=stream) == Refusal("isolated")


def test_the_longer_of_a_wait_and_an_open_breaker_is_told() -> None:
    """A probe is due at the later of both; asking in between says so."""
    gate = tripped(make_gate())
    assert ask(gate, 0.0) == Refusal("open", 30.0)
    late = make_gate()
    held = admit(late, 0.0)
    tripped(late)
    held.settle(failure(FailureClass.RATE_LIMITED, 50.0), 1.0)
    assert ask(late, 1.0) == Refusal("wait", 51.0)
    assert ask(late, 30.0) == Refusal("wait", 51.0)
    soon = make_gate()
    held = admit(soon, 0.0)
    tripped(soon)
    held.settle(failure(FailureClass.RATE_LIMITED, 3.0), 1.0)
    assert ask(soon, 1.0) == Refusal("open", 30.0)


def test_a_wait_is_told_before_a_breaker_that_is_open_as_long() -> None:
    """The provider's own word of the two."""
    gate = make_gate()
    held = admit(gate, 0.0)
    tripped(gate)
    held.settle(failure(FailureClass.RATE_LIMITED, 29.0), 1.0)
    assert ask(gate, 1.0) == Refusal("wait", 30.0)


def test_an_instant_is_told_before_what_ends_by_an_event() -> None:
    """A probe is under way in a sibling or here, and a wait or an open breaker ends at an instant, however near."""
    config = GateConfig(breaker=BreakerConfig(open=0.25))
    provider = make_provider(config=config)
    gate, sibling = make_gate(provider), make_gate(provider, target="p/n")
    waiting, *late = [admit(gate, 0.0) for _ in range(6)]
    cut_off(provider, sibling)
    for lease in late:
        lease.settle(failure(FailureClass.SERVER_ERROR), 0.5)
    admit(sibling, 0.5)
    assert ask(gate, 0.5) == Refusal("open", 0.75)
    waiting.settle(failure(FailureClass.RATE_LIMITED, 0.375), 0.5)
    assert ask(gate, 0.75) == Refusal("wait", 0.875)


def test_asked_without_more_it_is_asked_for_a_whole_answer_and_judges() -> None:
    """Streams are another kind; pacing is asked for."""
    gate = tripped(make_gate(), stream=True)
    assert gate.refusal(COST, 0.0) is None
    cooled(gate)
    assert gate.refusal(COST, 0.0) == gate.try_admit(COST, 0.0, 0.5) == Refusal("cooldown", 10.0)


def test_law_binds_a_probe_that_is_due() -> None:
    """A breaker that is due does not get around the provider's word."""
    gate = make_gate()
    held = admit(gate, 0.0)
    tripped(gate)
    held.settle(failure(FailureClass.RATE_LIMITED, 300.0), 1.0)
    assert ask(gate, 40.0) == Refusal("wait", 301.0)
    assert gate.due_since(40.0, stream=False) is None
    assert admit(gate, 301.0).probe


def test_a_wall_is_told_although_a_breaker_is_open_for_longer() -> None:
    """Nobody waits for a wall: that reason comes first."""
    gate = make_gate()
    held = admit(gate, 0.0)
    tripped(gate)
    held.settle(failure(FailureClass.RATE_LIMITED, 5.0, "day"), 1.0)
    assert ask(gate, 1.0) == Refusal("wall", 6.0)


@pytest.mark.parametrize("wide_first", [False, True])
def test_what_switches_off_comes_before_a_wait_of_target_or_credential(wide_first: bool) -> None:
    """A wait of an hour on one, 15 minutes off on the other: off, and out of system health, whichever way round."""
    gate = make_gate()
    waiting, off = admit(gate, 0.0), admit(gate, 0.0)
    waiting.settle(failure(FailureClass.RATE_LIMITED, 3600.0, wide=not wide_first), 0.0)
    off.settle(failure(FailureClass.AUTH, wide=wide_first), 0.0)
    assert ask(gate, 0.0) == Refusal("off", 900.0)
    assert not gate.enabled(0.0)


@pytest.mark.parametrize(("own", "shared"), [(3.0, 7.0), (7.0, 3.0)])
def test_the_longer_wait_of_target_and_credential_is_told(own: float, shared: float) -> None:
    """Both must be over."""
    gate = make_gate()
    one, other = admit(gate, 0.0), admit(gate, 0.0)
    one.settle(failure(FailureClass.RATE_LIMITED, own), 0.0)
    other.settle(failure(FailureClass.RATE_LIMITED, shared, wide=True), 0.0)
    assert ask(gate, 0.0) == Refusal("wait", 7.0)


def test_a_credential_is_shared_by_its_targets_only() -> None:
    """A 401 takes every target of the key out, a 403 its own target; another key goes on."""
    provider = make_provider()
    one, two, other_key = make_gate(provider), make_gate(provider, target="p/n"), make_gate(provider, key=1)
    call(one, 0.0, failure(FailureClass.AUTH, wide=True))
    assert ask(one, 0.0) == ask(two, 0.0) == Refusal("off", 900.0)
    assert isinstance(ask(other_key, 0.0), Lease)
    call(other_key, 0.0, failure(FailureClass.AUTH))
    same_key = make_gate(provider, target="p/n#2", key=1)
    assert ask(other_key, 0.0) == Refusal("off", 900.0)
    assert isinstance(ask(same_key, 0.0), Lease)


# ------------------------------------------------------------------------------------------------ the breaker's column


@pytest.mark.parametrize("failure_class", list(FailureClass))
def test_the_table_decides_what_opens_the_breaker(failure_class: FailureClass) -> None:
    """Twenty of a class, one after the other: only classes with 'yes' (or three in a row) open the target's breaker."""
    counts = POLICIES[failure_class].breaker in (BreakerCount.YES, BreakerCount.THIRD_IN_A_ROW)
    gate = make_gate()
    for lease in [admit(gate, n / 100) for n in range(20)]:
        lease.settle(failure(failure_class), 1.0)
    assert (gate.breakers["whole"].state(0.0) is OPEN) is counts
    assert gate.breakers["stream"].is_closed


def test_a_429_never_opens_the_breaker() -> None:
    """A thousand refusals, hinted or not, whole or streaming: being asked to slow down is not being broken."""
    gate = make_gate(make_provider(slots=1000))
    for n, lease in enumerate([admit(gate, 0.0, stream=n % 2 == 0) for n in range(1000)]):
        settled = lease.settle(failure(FailureClass.RATE_LIMITED, 1.0 if n % 3 else None), 0.0)
        assert settled.moved == ()
    assert all(breaker.is_closed for breaker in gate.breakers.values())
    assert gate.provider.transport.is_closed


@pytest.mark.parametrize(("kind", "stream"), [("stream", True), ("whole", False)])
def test_a_trip_is_told_with_its_kind(kind: Kind, stream: bool) -> None:
    """The fifth failure's settlement says which breaker opened, from where and until when; the other stays closed."""
    gate = make_gate()
    leases = [admit(gate, 0.0, stream=stream) for _ in range(5)]
    settled = [lease.settle(failure(FailureClass.TIMEOUT), 2.0) for lease in leases][-1]
    transition = Transition(CLOSED, OPEN, "consecutive_failures", 2.0, 1, 22.0)
    assert settled.moved == (Moved(kind, transition),)
    assert settled.rest is None
    assert gate.cooldown.advice(2.0) is None
    assert ask(gate, 2.0, stream=stream) == Refusal("open", 22.0)
    assert isinstance(ask(gate, 2.0, roll=0.999, stream=not stream), Lease)


def test_a_transport_fault_neither_breaks_nor_extends_a_targets_row() -> None:
    """Four failures, a connection that broke, the fifth failure: open."""
    gate = make_gate()
    for ending in (*[FailureClass.OVERLOADED] * 4, FailureClass.TRANSPORT):
        call(gate, 0.0, ending)
    assert gate.breakers["whole"].is_closed
    assert call(gate, 0.0, FailureClass.OVERLOADED).moved[0].transition.to_state is OPEN


def hasty(failures: int) -> GateConfig:
    """Make options by which so many failures in a row open the breaker, without any further evidence."""
    return GateConfig(breaker=BreakerConfig(consecutive_failures=failures, odds=1, odds_per_call=1))


def test_a_success_starts_the_count_of_empty_answers_anew() -> None:
    """Two, a success, two: none of them counts."""
    gate = make_gate(make_provider(config=hasty(1)))
    empty = FailureClass.EMPTY
    for now, ending in enumerate((empty, empty, None, empty, empty)):
        assert call(gate, float(now), ending).moved == ()
    assert call(gate, 5.0, empty).moved


def test_three_empty_answers_in_a_row_are_one_failure() -> None:
    """Fourteen in a row leave it closed, the fifteenth opens; a success or another failure starts the count anew."""
    gate = make_gate()
    for _ in range(14):
        call(gate, 0.0, FailureClass.EMPTY)
    assert gate.breakers["whole"].is_closed
    assert call(gate, 0.0, FailureClass.EMPTY).moved
    for between in (None, FailureClass.TRUNCATED):
        mixed = make_gate(make_provider(config=hasty(2)))
        for now, ending in enumerate((FailureClass.EMPTY,) * 2 + (between,) + (FailureClass.EMPTY,) * 2):
            call(mixed, float(now), ending)
        assert mixed.breakers["whole"].is_closed


def test_a_slow_success_counts_as_a_failure_of_the_breaker_alone() -> None:
    """Five slow ones in a row open it; the throttle saw five accepted calls."""
    gate = make_gate()
    for lease in [admit(gate, 0.0) for _ in range(5)]:
        lease.settle(None, 60.0, slow=True)
    assert gate.breakers["whole"].state(60.0) is OPEN
    assert gate.provider.throttle.probability(60.0) == 0.0


def test_five_impatient_callers_do_not_open_a_healthy_breaker() -> None:
    """Callers who leave count nowhere; the same five as timeouts would open."""
    gate = make_gate()
    for lease in [admit(gate, 0.0) for _ in range(5)]:
        assert lease.settle(failure(FailureClass.CANCELLED), 1.0) == NOTHING
    assert gate.breakers["whole"].is_closed
    assert isinstance(ask(gate, 1.0, roll=0.0), Lease)


# ------------------------------------------------------------------------------------------------ probes


def test_one_probe_at_a_time_for_a_target() -> None:
    """At open_until fifty ask: one lease, a probe; forty-nine are refused until it ends."""
    gate = tripped(make_gate())
    got = [ask(gate, 30.0) for _ in range(50)]
    assert isinstance(got[0], Lease)
    assert got[0].probe
    assert got[1:] == [Refusal("half_open")] * 49


def test_one_probe_at_a_time_for_a_provider() -> None:
    """Two targets and both kinds are due: one probe in flight among all of them (I1)."""
    provider = make_provider()
    one, other = make_gate(provider), make_gate(provider, target="p/n")
    for gate in (one, other):
        for stream in (False, True):
            tripped(gate, stream=stream)
    probe = admit(one, 30.0)
    assert [ask(gate, 30.0, stream=s) for gate in (one, other) for s in (False, True)] == [Refusal("half_open")] * 4
    assert other.due_since(30.0, stream=True) is None
    probe.settle(None, 31.0)
    assert not provider.probe_in_flight
    assert other.due_since(31.0, stream=True) == 30.0
    assert admit(other, 31.0, stream=True).probe


def test_a_probe_in_flight_does_not_stop_healthy_targets() -> None:
    """Targets of the provider whose breakers are closed are asked as always."""
    provider = make_provider()
    broken, healthy = tripped(make_gate(provider)), make_gate(provider, target="p/n")
    admit(broken, 30.0)
    assert isinstance(ask(healthy, 30.0), Lease)


def test_without_serialised_probes_targets_probe_side_by_side() -> None:
    """The founding measure switched off: several targets of a provider may probe at once."""
    provider = make_provider(config=GateConfig(measures=Measures(serialized_probes=False)))
    one, other = tripped(make_gate(provider)), tripped(make_gate(provider, target="p/n"))
    assert admit(one, 30.0).probe
    assert admit(other, 30.0).probe


def test_a_cancelled_probe_gives_its_place_back() -> None:
    """The next caller probes at once, and the breaker has not moved."""
    gate = tripped(make_gate())
    assert admit(gate, 30.0).release(31.0) == NOTHING
    assert gate.breakers["whole"].open_until == 30.0
    assert admit(gate, 31.0).probe


@pytest.mark.parametrize("failure_class", [FailureClass.TIMEOUT, FailureClass.SERVER_ERROR, FailureClass.TRANSPORT])
def test_a_failed_probe_reopens(failure_class: FailureClass) -> None:
    """Also a transport fault, which otherwise is the provider's affair: 45 s from its end, by dice a tenth more."""
    gate = tripped(make_gate())
    settled = admit(gate, 30.0).settle(failure(failure_class), 40.0, roll=0.5)
    assert settled.moved[0].transition.reason == "probe_failed"
    assert settled.moved[0].transition.open_until == pytest.approx(40.0 + 45.0 * 1.05)
    assert not gate.provider.probe_in_flight


@pytest.mark.parametrize("failure_class", [c for c in FailureClass if POLICIES[c].breaker is BreakerCount.NO], ids=str)
def test_a_probe_whose_class_says_nothing_is_given_back(failure_class: FailureClass) -> None:
    """A 429, a 401, a caller's 400: no verdict on the breaker, and its law applies."""
    gate = tripped(make_gate())
    settled = admit(gate, 30.0).settle(failure(failure_class), 31.0)
    assert settled.moved == ()
    assert gate.breakers["whole"].state(31.0) is HALF_OPEN
    assert not gate.provider.probe_in_flight
    assert (gate.cooldown.law(31.0) is not None) is (POLICIES[failure_class].cooldown in ("warming", "off", "wall"))


def test_advice_does_not_hold_up_a_probe() -> None:
    """While a breaker is not closed it alone decides among advice."""
    gate = make_gate()
    late = [admit(gate, 0.0, stream=True) for _ in range(2)]
    tripped(gate)
    gate.evidence.clear()
    for lease in late:
        lease.settle(failure(FailureClass.SERVER_ERROR), 29.0)
    assert ask(gate, 29.5, stream=True) == Refusal("cooldown", 59.0)
    probe = admit(gate, 30.0)
    assert (probe.probe, probe.snapshot().trials) == (True, ())


def test_a_trip_ends_the_targets_advice() -> None:
    """Two failures start a cooldown, three more trip: from then on it is open, and due at open_until."""
    gate = cooled(make_gate())
    for _ in range(3):
        call(gate, 0.0, FailureClass.SERVER_ERROR)
    assert gate.cooldown.advice(0.0) is None
    assert ask(gate, 0.0) == Refusal("open", 5.0)
    assert gate.due_since(5.0, stream=False) == 5.0


def test_a_probe_passes_untossed() -> None:
    """A throttle that refuses nine of ten does not refuse the probe that would end it."""
    gate = choke(tripped(make_gate()), 30.0)
    assert isinstance(ask(gate, 30.0, roll=0.0), Lease)


def test_a_call_on_probation_passes_untossed() -> None:
    """After a wait the one call that may show recovery is not left to the dice."""
    gate = make_gate()
    for lease in [admit(gate, 0.0) for _ in range(20)]:
        lease.settle(failure(FailureClass.OVERLOADED, 5.0), 0.0)
    assert gate.throttle.probability(5.0) == 0.9
    assert isinstance(ask(gate, 5.0, roll=0.0), Lease)


def test_twenty_requests_at_the_end_of_a_cooldown_make_one_call() -> None:
    """One is admitted, on probation; nineteen are refused with no instant until it has delivered."""
    gate = cooled(make_gate())
    got = [ask(gate, 10.0) for _ in range(20)]
    assert isinstance(got[0], Lease)
    assert got[0].probe
    assert got[1:] == [Refusal("probation")] * 19
    assert got[0].settle(None, 11.0).recovered


@pytest.mark.parametrize(
    "ending",
    [failure(FailureClass.RATE_LIMITED, 3.0), failure(FailureClass.AUTH), failure(FailureClass.QUOTA)],
    ids=["429", "auth", "quota"],
)
def test_twenty_requests_at_the_end_of_a_law_make_one_call(ending: Failure) -> None:
    """A wait without a bucket, an off, a wall: the same."""
    gate = make_gate()
    rest = call(gate, 0.0, ending).rest
    assert rest is not None
    got = [ask(gate, rest.until) for _ in range(20)]
    assert isinstance(got[0], Lease)
    assert got[1:] == [Refusal("probation")] * 19


def test_a_probe_is_due_by_the_kind_asked_for() -> None:
    """Streams broke at 0 s, whole answers at 10 s: at 30 s a stream may probe, a whole answer may not."""
    gate = tripped(tripped(make_gate(), 0.0, stream=True), 10.0)
    assert gate.due_since(30.0, stream=True) == 30.0
    assert gate.due_since(30.0, stream=False) is None


def test_a_steady_target_is_one_that_has_nothing_to_prove() -> None:
    """Neither a probe nor a call on probation; while it cools nobody is admitted who could prove anything."""
    gate = make_gate()
    assert gate.steady(0.0, stream=False)
    cooled(gate)
    assert gate.steady(9.9, stream=False)
    assert not gate.steady(10.0, stream=False)


def test_a_target_is_away_while_a_call_would_only_find_out_whether_it_is_back() -> None:
    """A breaker that the call meets is open, or the network is away; a cooling target is not away."""
    assert not cooled(make_gate()).away(stream=False)
    gate = tripped(make_gate())
    assert (gate.away(stream=False), gate.away(stream=True)) == (True, False)
    connectivity = Connectivity(2)
    remote, local = make_provider(connectivity=connectivity), make_provider(remote=False, connectivity=connectivity)
    connectivity.went_offline(0.0)
    assert [make_gate(provider).away(stream=False) for provider in (remote, local)] == [True, False]


def test_a_credentials_probation_is_shared_by_its_targets() -> None:
    """A key that comes back is tried by one call, whichever target makes it."""
    provider = make_provider()
    one, two = make_gate(provider), make_gate(provider, target="p/n")
    call(one, 0.0, failure(FailureClass.AUTH, wide=True))
    trial = admit(one, 900.0)
    assert ask(two, 900.0) == Refusal("probation")
    trial.settle(None, 901.0)
    assert isinstance(ask(two, 901.0), Lease)


def test_a_failed_trial_lets_the_next_one_go() -> None:
    """Neither verdict nor cancellation leaves the place taken."""
    gate = make_gate()
    call(gate, 0.0, FailureClass.QUOTA)
    admit(gate, 3600.0).release(3600.0)
    admit(gate, 3600.0).settle(failure(FailureClass.INVALID_REQUEST), 3600.0)
    assert ask(gate, 3600.0) != Refusal("probation")


def test_a_probe_is_due_since_its_instant() -> None:
    """A breaker since open_until, a rest since its end, the earlier of both; otherwise never."""
    gate = make_gate()
    assert gate.due_since(0.0, stream=False) is None
    tripped(gate)
    assert gate.due_since(29.999, stream=False) is None
    assert gate.due_since(30.0, stream=False) == 30.0
    assert gate.due_since(99.0, stream=False) == 30.0
    assert gate.due_since(99.0, stream=True) is None
    resting = make_gate()
    call(resting, 0.0, failure(FailureClass.RATE_LIMITED, 12.0))
    assert resting.due_since(50.0, stream=True) == 12.0
    paced = make_gate(limits=known(rpm=60))
    call(paced, 0.0, failure(FailureClass.RATE_LIMITED, 12.0))
    assert paced.due_since(50.0, stream=True) is None


# ------------------------------------------------------------------------------------------------ proof by a stream


def test_a_streaming_probe_that_proves_itself_closes_and_is_exchanged() -> None:
    """Ten seconds of content: closed, others may ask; a later cut is a failure of the closed breaker."""
    gate = tripped(make_gate(), stream=True)
    probe = admit(gate, 30.0, stream=True)
    proof = probe.prove(40.0)
    assert [(m.kind, m.transition.reason) for m in proof.moved] == [("stream", "probe_succeeded")]
    assert proof.recovered
    assert not gate.provider.probe_in_flight
    assert probe.prove(41.0) == NOTHING
    assert gate.in_flight == 1
    admit(gate, 50.0, stream=True).release(50.0)
    gate.evidence.clear()
    cut = probe.settle(failure(FailureClass.TRUNCATED), 50.0)
    assert cut.moved == ()
    for _ in range(3):
        assert call(gate, 60.0, FailureClass.SERVER_ERROR, stream=True).moved == ()
    assert call(gate, 60.0, FailureClass.SERVER_ERROR, stream=True).moved[0].transition.to_state is OPEN


def test_a_stream_on_probation_that_proves_itself_lets_others_in() -> None:
    """Its proof is the recovery, with slow start; its end is no second one."""
    gate = make_gate()
    call(gate, 0.0, FailureClass.QUOTA)
    trial = admit(gate, 3600.0, stream=True)
    proof = trial.prove(3610.0)
    assert proof == Settlement(recovered=True)
    assert ask(gate, 3610.0, stream=True) == Refusal("slow_start")
    assert trial.settle(None, 3640.0) == NOTHING


def test_a_proven_stream_is_one_success() -> None:
    """It was answered: that raises the share by which the target is paced, once."""
    gate = make_gate()
    call(gate, 0.0, FailureClass.QUOTA)
    call(gate, 3600.0, FailureClass.SERVER_ERROR)
    trial = admit(gate, 3600.0, stream=True)
    trial.prove(3610.0)
    trial.settle(None, 3640.0)
    assert gate.evidence.success_share(3640.0) == 0.5


def test_an_ordinary_stream_has_nothing_to_prove() -> None:
    """Proof of a call that decides over no return changes nothing."""
    gate = make_gate()
    lease = admit(gate, 0.0, stream=True)
    assert lease.prove(10.0) == NOTHING
    assert gate.in_flight == 1


def comes_back_unproven(gate: Gate, now: float) -> bool:
    """Whether a call must go alone after a rate limit of three seconds: nothing succeeded in the ten before its end."""
    call(gate, now, failure(FailureClass.RATE_LIMITED, 3.0))
    return admit(gate, now + 3.0).probe


def test_a_proof_is_a_sign_of_life() -> None:
    """The stream went through a moment ago: the wait that follows ends without probation."""
    gate = tripped(make_gate(), stream=True)
    admit(gate, 30.0, stream=True).prove(50.0)
    assert not comes_back_unproven(gate, 55.0)


@pytest.mark.parametrize("wide", [False, True])
def test_a_success_is_a_sign_of_life_of_target_and_credential(wide: bool) -> None:
    """Answered five seconds before the end of a wait of either: it ends without probation."""
    gate = make_gate()
    call(gate, 5.0)
    call(gate, 6.0, failure(FailureClass.RATE_LIMITED, 4.0, wide=wide))
    assert not admit(gate, 10.0).probe


@pytest.mark.parametrize("again", [50.0, 60.0])
def test_a_proof_is_one_sign_of_life_however_often_it_is_given(again: float) -> None:
    """The first counts, at its instant; an ordinary stream gives none before its end."""
    gate = tripped(make_gate(), stream=True)
    probe = admit(gate, 30.0, stream=True)
    probe.prove(40.0)
    ordinary = admit(gate, 50.0, stream=True)
    ordinary.prove(again)
    probe.prove(again)
    assert comes_back_unproven(gate, 60.0)


def test_a_stream_that_has_ended_proves_nothing() -> None:
    """It was given up on probation: whoever comes next is on probation still."""
    gate = make_gate()
    call(gate, 0.0, FailureClass.QUOTA)
    trial = admit(gate, 3600.0, stream=True)
    trial.release(3610.0)
    assert trial.prove(3620.0) == NOTHING
    assert admit(gate, 3630.0).probe


def test_a_proof_reaches_the_provider() -> None:
    """The others were lost before it: what is lost after it is lost alone, and we are not offline."""
    connectivity = Connectivity(2)
    here, there = (make_provider(name=name, connectivity=connectivity) for name in ("here", "there"))
    gate = tripped(make_gate(here), stream=True)
    probe = admit(gate, 30.0, stream=True)
    cut_off(there, make_gate(there), 35.0)
    probe.prove(40.0)
    cut_off(here, make_gate(here, target="here/n"), 41.0)
    assert not connectivity.offline


def test_the_end_of_a_proven_stream_counts_on_the_transport() -> None:
    """Its connection breaks: the first of five in a row."""
    provider = make_provider()
    gate = tripped(make_gate(provider), stream=True)
    probe = admit(gate, 30.0, stream=True)
    probe.prove(40.0)
    probe.settle(failure(FailureClass.TRANSPORT), 50.0)
    other = make_gate(provider, target="p/n")
    for _ in range(3):
        call(other, 50.0, FailureClass.TRANSPORT)
    assert provider.transport.state(50.0) is CLOSED
    call(other, 50.0, FailureClass.TRANSPORT)
    assert provider.transport.state(50.0) is OPEN


def test_a_call_that_connected_proves_the_transport_alone() -> None:
    """It may take hours: the targets of its provider do not wait for it, and its outcome is still its own breaker's."""
    provider = make_provider()
    path, model = make_gate(provider, target="p/path"), make_gate(provider)
    cut_off(provider, model)
    probe = admit(path, 30.0)
    assert ask(model, 30.0) == Refusal("half_open")
    reached = probe.connected(31.0)
    assert [(m.kind, m.transition.to_state) for m in reached.moved] == [("transport", CLOSED)]
    assert probe.connected(32.0) == NOTHING
    assert isinstance(ask(model, 32.0), Lease)
    assert probe.settle(failure(FailureClass.SERVER_ERROR), 33.0).moved == ()
    assert probe.connected(34.0) == NOTHING
    assert provider.transport.is_closed


def test_a_probe_of_its_own_breaker_that_connected_holds_up_no_other() -> None:
    """Its breaker stays half open until it ends; another target may be probed meanwhile."""
    provider = make_provider()
    path, model = tripped(make_gate(provider, target="p/path")), tripped(make_gate(provider))
    probe = admit(path, 30.0)
    assert ask(model, 30.0) == Refusal("half_open")
    assert probe.connected(31.0) == NOTHING
    assert admit(model, 31.0).probe
    assert ask(path, 31.0) == Refusal("half_open")
    assert probe.settle(failure(FailureClass.TRANSPORT), 32.0).moved[0].transition.to_state is OPEN
    assert provider.probe_in_flight
    assert provider.evidence.share_of_failures(32.0) == 0.05


def test_a_probe_that_has_ended_leaves_the_place_of_the_next_alone() -> None:
    """The word that it has connected comes too late."""
    provider = make_provider()
    path, model = tripped(make_gate(provider, target="p/path")), tripped(make_gate(provider))
    probe = admit(path, 30.0)
    probe.settle(failure(FailureClass.SERVER_ERROR), 31.0)
    admit(model, 31.0)
    assert probe.connected(32.0) == NOTHING
    assert provider.probe_in_flight


def test_a_probe_tells_how_long_its_breaker_stays_open() -> None:
    """That of the kind it asks for: the other one has a history of its own."""
    gate = tripped(make_gate())
    admit(gate, 30.0).settle(failure(FailureClass.SERVER_ERROR), 30.0 + LOST)
    assert admit(gate, 80.0).open_seconds == 45.0
    assert admit(tripped(make_gate(), stream=True), 30.0, stream=True).open_seconds == 30.0


def test_a_failed_probe_is_a_probe_after_its_settlement() -> None:
    """Its request looks after the settlement: a failed probe uses up no attempt."""
    probe = admit(tripped(make_gate()), 30.0)
    probe.settle(failure(FailureClass.SERVER_ERROR), 30.0 + LOST)
    assert probe.probes_breaker


def test_the_end_of_a_proven_stream_leaves_anothers_probe_alone() -> None:
    """It is no probe any more; that of a sibling is under way, and still the only one of its provider."""
    provider = make_provider()
    gate, sibling = tripped(make_gate(provider), stream=True), tripped(make_gate(provider, target="p/n"))
    proven = admit(gate, 30.0, stream=True)
    proven.prove(40.0)
    assert not proven.probes_breaker
    admit(sibling, 41.0)
    third = tripped(make_gate(provider, target="p/o"), 0.0)
    proven.settle(None, 50.0)
    assert ask(third, 50.0) == Refusal("half_open")


def test_a_proof_takes_no_second_probe() -> None:
    """Two successes are needed: the proof is one, the end of the same call is no other, the next call probes."""
    config = GateConfig(breaker=BreakerConfig(half_open_successes=2))
    gate = tripped(make_gate(make_provider(config=config)), stream=True)
    first = admit(gate, 30.0, stream=True)
    first.prove(40.0)
    assert first.settle(None, 41.0).moved == ()
    assert gate.breakers["stream"].state(41.0) is HALF_OPEN
    assert admit(gate, 41.0, stream=True).settle(None, 42.0).moved[0].transition.to_state is CLOSED
    late = tripped(make_gate(make_provider(config=config)), stream=True)
    stream = admit(late, 30.0, stream=True)
    stream.prove(40.0)
    late.close(50.0)
    assert stream.settle(failure(FailureClass.TRUNCATED), 60.0) == NOTHING


def test_a_proof_takes_no_probe_of_a_transport_that_broke_meanwhile() -> None:
    """Other calls opened the transport while the stream ran: its proof and its end leave that probe to others."""
    provider = make_provider()
    gate = tripped(make_gate(provider), stream=True)
    probe = admit(gate, 30.0, stream=True)
    cut_off(provider, make_gate(provider, target="p/n"), 30.0)
    assert [m.kind for m in probe.prove(60.0).moved] == ["stream"]
    assert not provider.transport.probe_in_flight
    assert probe.settle(failure(FailureClass.TRANSPORT), 61.0).moved == ()
    assert provider.transport.open_until == 60.0
    assert admit(gate, 61.0, stream=True).probe


@pytest.mark.parametrize("proves", [Lease.prove, Lease.connected])
def test_a_proof_of_the_transport_brings_the_network_back(proves: Callable[[Lease, float], Settlement]) -> None:
    """A stream that goes through while we are offline ends that, at its proof; so does a long call that connects."""
    connectivity = Connectivity(2)
    here = make_provider(name="here", connectivity=connectivity)
    gate = make_gate(here)
    cut_off(here, gate)
    connectivity.went_offline(0.0)
    probe = admit(gate, 30.0, stream=True)
    proof = proves(probe, 40.0)
    assert proof.offline is False
    assert [(m.kind, m.transition.to_state) for m in proof.moved] == [("transport", CLOSED)]
    assert not connectivity.offline


# ------------------------------------------------------------------------------------------------ slow start


@pytest.mark.parametrize(
    ("after", "allowed"), [(0.0, 1), (4.999, 5), (5.0, 6), (5.001, 6), (9.999, 10), (10.0, 11), (100.0, 11)]
)
def test_slow_start_allows_one_and_a_share_of_the_rest(after: float, allowed: int) -> None:
    """1 + (slots - 1) x t / 10: with eleven slots one at first, one more each second, all after ten."""
    gate = tripped(make_gate(make_provider(slots=11)))
    admit(gate, 30.0).settle(None, 40.0)
    admitted = [ask(gate, 40.0 + after) for _ in range(12)]
    assert [isinstance(got, Lease) for got in admitted] == [True] * allowed + [False] * (12 - allowed)
    assert admitted[-1] == Refusal("bulkhead" if after >= 10.0 else "slow_start")


def test_a_transport_that_came_back_starts_slowly_with_all_its_targets() -> None:
    """One probe of one target closes it; the others do not take full load at once either, and say when they will."""
    provider = make_provider(slots=11)
    gate, sibling = make_gate(provider), make_gate(provider, target="p/n")
    cut_off(provider, gate)
    call(gate, 100.0)
    assert provider.transport.is_closed
    admit(sibling, 100.0)
    assert ask(sibling, 100.0) == Refusal("slow_start")
    assert sibling.ready_at(Refusal("slow_start")) == pytest.approx(101.0)
    admit(sibling, 101.0)
    assert ask(sibling, 101.0) == Refusal("slow_start")
    sibling.close(101.0)
    admit(sibling, 101.0)


def test_a_transport_that_breaks_starts_nothing() -> None:
    """What is still in flight from before does not hold up the probe that may bring it back."""
    provider = make_provider(config=GateConfig(slow_start=100.0))
    gate = make_gate(provider)
    for _ in range(10):
        admit(gate, 0.0)
    cut_off(provider, gate)
    assert admit(gate, 30.0).probe


def test_a_slow_start_tells_when_the_next_may_come() -> None:
    """The instant is exact: who looks again then is admitted."""
    gate = tripped(make_gate(make_provider(slots=11)), 1e6)
    admit(gate, 1e6 + 30.0).settle(None, 1e6 + 40.1)
    for n in range(1, 10):
        admit(gate, 1e6 + 40.1 + n - 1)
        refusal = ask(gate, 1e6 + 40.1 + n - 1)
        assert refusal == Refusal("slow_start")
        assert gate.ready_at(Refusal("slow_start")) == pytest.approx(1e6 + 40.1 + n)
        assert gate.refusal(COST, gate.ready_at(Refusal("slow_start")) or 0.0) is None


def test_a_slow_start_of_two_slots_tells_when_the_second_is_there() -> None:
    """One in flight already: after the whole of the ten seconds."""
    gate = tripped(make_gate(make_provider(slots=5)))
    gate.provider.bulkhead.resize(2)
    admit(gate, 30.0).settle(None, 40.0)
    admit(gate, 40.0)
    assert gate.ready_at(Refusal("slow_start")) == 50.0


def test_other_refusals_are_ready_at_their_own_instant() -> None:
    """Only slow start is computed; a single slot gets no second call however long one waits."""
    gate = make_gate()
    assert gate.ready_at(Refusal("wait", 3.0)) == 3.0
    assert gate.ready_at(Refusal("bulkhead")) is None
    single = tripped(make_gate(make_provider(slots=5)))
    single.provider.bulkhead.resize(1)
    admit(single, 30.0).settle(None, 40.0)
    assert single.ready_at(Refusal("slow_start")) is None


def test_a_recovery_from_probation_starts_slowly() -> None:
    """After the trial's success one call, not twenty."""
    gate = make_gate()
    call(gate, 0.0, FailureClass.QUOTA)
    admit(gate, 3600.0).settle(None, 3601.0)
    admit(gate, 3601.0)
    assert ask(gate, 3601.0) == Refusal("slow_start")


def test_a_paced_bucket_returns_without_probation_or_slow_start() -> None:
    """Sixty a minute: at the end of the wait one call a second, each as the bucket allows."""
    gate = make_gate(limits=known(rpm=60))
    call(gate, 0.0, failure(FailureClass.RATE_LIMITED, 10.0))
    assert ask(gate, 9.999) == Refusal("wait", 10.0)
    assert not admit(gate, 10.0).probe
    assert ask(gate, 10.0) == Refusal("requests", 11.0)
    admit(gate, 11.0)
    assert gate.in_flight == 2
    busy = make_gate(limits=known(rpm=6_000))
    call(busy, 0.0, failure(FailureClass.RATE_LIMITED, 10.0))
    assert admit(busy, 10.0).settle(None, 10.0).recovered
    assert [admit(busy, 10.1).probe for _ in range(9)] == [False] * 9


def test_a_shorter_hint_shortens_the_buckets_hold_too() -> None:
    """A guess of 30 s replaced by a hint of 2: the bucket trickles from then on, not after the guess."""
    gate = make_gate(limits=known(rpm=600))
    late = admit(gate, 0.0)
    for now in (0.0, 2.0, 5.0):
        call(gate, now, FailureClass.RATE_LIMITED)
    assert ask(gate, 5.0) == Refusal("wait", 35.0)
    late.settle(failure(FailureClass.RATE_LIMITED, 2.0), 6.0)
    assert ask(gate, 6.0) == Refusal("wait", 8.0)
    admit(gate, 8.0)
    assert ask(gate, 8.0) == Refusal("requests", 8.0 + 1 / 10)


def test_too_many_at_once_empties_no_bucket() -> None:
    """Concurrency with a wait: binds as long as it says, then one call on probation finds a full bucket."""
    gate = make_gate(limits=known(rpm=60))
    leases = [admit(gate, 0.0) for _ in range(5)]
    leases[0].settle(failure(FailureClass.RATE_LIMITED, 2.0, "concurrency"), 0.0)
    assert gate.provider.bulkhead.limit == 4
    assert ask(gate, 0.0) == Refusal("wait", 2.0)
    assert ask(gate, 2.0) == Refusal("bulkhead")
    leases[1].release(2.0)
    assert admit(gate, 2.0).probe


def test_too_many_at_once_shrinks_the_bulkhead_and_success_regrows_it() -> None:
    """One less than were in flight, at once; one more for each ten seconds of success."""
    gate = make_gate()
    leases = [admit(gate, 0.0) for _ in range(5)]
    leases[0].settle(failure(FailureClass.RATE_LIMITED, 0.0, "concurrency"), 0.0)
    assert gate.provider.bulkhead.limit == 4
    assert ask(gate, 0.0) == Refusal("bulkhead")
    leases[1].settle(None, 10.0)
    assert gate.provider.bulkhead.limit == 5


# ------------------------------------------------------------------------------------------------ the throttle


@pytest.mark.parametrize("failure_class", list(FailureClass))
def test_the_table_decides_what_the_throttle_counts(failure_class: FailureClass) -> None:
    """Twenty of a class: nine of ten refused when not accepted, none when accepted or when it says nothing."""
    expected = {True: 0.0, None: 0.0, False: 0.9}[POLICIES[failure_class].accepted]
    gate = make_gate()
    for lease in [admit(gate, 0.0) for _ in range(20)]:
        lease.settle(failure(failure_class), 0.0)
    assert gate.throttle.probability(0.0) == gate.provider.throttle.probability(0.0) == expected


def test_a_throttled_call_comes_back_in_a_second() -> None:
    """The toss is lost: nothing was taken, and a second later it may be tried again."""
    gate = choke(make_gate(limits=RateLimitTracker(rpm=60)), 7.0)
    assert ask(gate, 7.0, roll=0.89) == Refusal("throttle", 8.0)
    assert gate.in_flight == 0
    assert gate.limits.free_share(7.0) == 1.0
    assert isinstance(ask(gate, 7.0, roll=0.95), Lease)


def test_a_lost_toss_holds_only_while_the_throttle_tosses() -> None:
    """A gate says whether its throttle, or that of the provider where several targets turn away, refuses any call."""
    provider = make_provider()
    gate, sibling = make_gate(provider), make_gate(provider, target="p/n")
    assert not gate.tosses(0.0)
    for _ in range(40):
        sibling.count(False, 0.0)
    assert not gate.tosses(0.0)
    gate.count(False, 0.0)
    assert gate.tosses(0.0)
    gate.reset_throttle()
    assert not gate.tosses(0.0)


def test_only_the_throttles_own_refusals_count() -> None:
    """A thousand refusals by a full bulkhead leave the throttle as it was."""
    gate = make_gate(make_provider(slots=1))
    lease = admit(gate, 0.0)
    for _ in range(1000):
        ask(gate, 0.0, roll=0.0)
    lease.settle(None, 0.0)
    assert gate.provider.throttle.probability(0.0) == 0.0


def test_a_breaker_that_closes_resets_the_throttle() -> None:
    """The rejections of the outage are no evidence against the recovered provider."""
    gate = choke(tripped(make_gate()), 30.0)
    admit(gate, 30.0).settle(None, 31.0)
    assert gate.throttle.empty
    assert gate.provider.throttle.empty


def test_without_cascade_prevention_neither_throttle_nor_bulkhead_refuses() -> None:
    """The founding measure switched off: everything else still holds."""
    gate = make_gate(make_provider(slots=1, config=GateConfig(measures=Measures(cascade_prevention=False))))
    choke(gate)
    assert [isinstance(ask(gate, 0.0, roll=0.0), Lease) for _ in range(3)] == [True] * 3
    call(gate, 0.0, failure(FailureClass.RATE_LIMITED, 3.0))
    assert ask(gate, 0.0) == Refusal("wait", 3.0)


def test_without_rate_limit_awareness_hints_are_not_honoured() -> None:
    """The founding measure switched off: a Retry-After of 3 rests the flat 120 s."""
    gate = make_gate(make_provider(config=GateConfig(measures=Measures(rate_limit_awareness=False))))
    assert call(gate, 0.0, failure(FailureClass.RATE_LIMITED, 3.0)).rest == Rest("wait", 120.0, hinted=False)


# ------------------------------------------------------------------------------------------------ the last resort


def test_a_last_resort_is_refused_for_want_of_a_slot_alone() -> None:
    """Open, throttled and out of requests: still asked, until its slots are taken."""
    gate = make_gate(make_provider(slots=5), limits=RateLimitTracker(rpm=5))
    choke(tripped(gate))
    leases = [admit(gate, 0.0, last_resort=True) for _ in range(5)]
    assert gate.try_admit(COST, 0.0, 0.0, last_resort=True) == Refusal("bulkhead")
    leases[0].release(0.0)
    assert isinstance(gate.try_admit(COST, 0.0, 0.0, last_resort=True), Lease)


def test_a_last_resort_is_never_outside_the_operators_no() -> None:
    """Isolated is isolated."""
    gate = make_gate()
    gate.isolate(0.0)
    assert gate.try_admit(COST, 0.0, 0.0, last_resort=True) == Refusal("isolated")


@pytest.mark.parametrize("stream", [False, True])
def test_a_last_resort_is_no_probe(stream: bool) -> None:
    """It decides over no return, streaming or not."""
    lease = admit(make_gate(), 0.0, stream=stream, last_resort=True)
    assert (lease.stream, lease.probe, lease.paced) == (stream, False, False)


@pytest.mark.parametrize("ending", ENDINGS, ids=str)
def test_a_last_resorts_ending_moves_nothing(ending: FailureClass | None) -> None:
    """No breaker, no throttle, no rest: it is asked again the next time."""
    gate = make_gate()
    for _ in range(20):
        lease = admit(gate, 0.0, last_resort=True)
        assert lease.settle(None if ending is None else Failure(ending), 0.0) == NOTHING
    assert gate.in_flight == 0
    assert gate.breakers["whole"].is_closed
    assert gate.provider.throttle.probability(0.0) == 0.0
    assert gate.cooldown.law(0.0) is None
    assert gate.cooldown.advice(0.0) is None


# ------------------------------------------------------------------------------------------------ transport, offline


def test_transport_faults_count_on_the_provider() -> None:
    """Five of them open its transport breaker for every target; the target's own breaker is closed."""
    provider = make_provider()
    gate, other = make_gate(provider), make_gate(provider, target="p/n")
    cut_off(provider, gate)
    assert gate.breakers["whole"].is_closed
    assert gate.cooldown.advice(0.0) is None
    assert ask(gate, 0.0) == ask(other, 0.0, stream=True) == Refusal("open", 30.0)
    assert other.due_since(30.0, stream=False) == 30.0
    probe = admit(other, 30.0)
    assert probe.probe
    assert ask(gate, 30.0) == Refusal("half_open")
    assert [m.kind for m in probe.settle(None, 31.0).moved] == ["transport"]
    assert isinstance(ask(gate, 31.0), Lease)


def test_a_transports_open_time_is_spread_by_dice() -> None:
    """Half a roll is a twentieth more."""
    provider = make_provider()
    for lease in [admit(make_gate(provider), -LOST) for _ in range(5)]:
        lease.settle(failure(FailureClass.TRANSPORT), 0.0, roll=0.5)
    assert provider.transport.open_until == pytest.approx(31.5)


@pytest.mark.parametrize("failure_class", list(FailureClass))
def test_an_answer_of_any_kind_proves_the_transport(failure_class: FailureClass) -> None:
    """A probe of the transport that is answered closes it; one that timed out or was left says nothing."""
    provider = make_provider()
    cut_off(provider, make_gate(provider))
    admit(make_gate(provider, target="p/n"), 30.0).settle(failure(failure_class), 31.0)
    silent = failure_class in (FailureClass.TIMEOUT, FailureClass.CANCELLED)
    expected = OPEN if failure_class is FailureClass.TRANSPORT else HALF_OPEN if silent else CLOSED
    assert provider.transport.state(31.0) is expected


def test_the_later_of_two_open_breakers_is_told() -> None:
    """The target's until 30, its provider's transport until 35: come back at 35."""
    provider = make_provider()
    gate = make_gate(provider)
    late = [admit(gate, 0.0) for _ in range(5)]
    tripped(gate)
    for lease in late:
        lease.settle(failure(FailureClass.TRANSPORT), 5.0)
    assert ask(gate, 6.0) == Refusal("open", 35.0)


def together() -> tuple[ProviderState, ProviderState, Connectivity]:
    """Make two remote providers of which the first has just lost its transport."""
    connectivity = Connectivity(2)
    one, other = (make_provider(name=name, connectivity=connectivity) for name in ("one", "other"))
    cut_off(one, make_gate(one, target="one/m"), 0.0)
    return one, other, connectivity


def test_when_every_remote_is_lost_together_the_last_trip_is_withheld() -> None:
    """It is us: offline is told once, no breaker moves, and one request a second goes to see."""
    _, other, connectivity = together()
    gate = make_gate(other, target="other/m")
    leases = [admit(gate, 1.0 + n / 10) for n in range(7)]
    settled = [lease.settle(failure(FailureClass.TRANSPORT), 2.0) for lease in leases]
    assert [s.offline for s in settled] == [None] * 4 + [True, None, None]
    assert all(s.moved == () for s in settled)
    assert other.transport.is_closed
    assert connectivity.offline
    assert ask(gate, 2.0) == Refusal("offline", 3.0)


def test_offline_lets_one_request_a_second_pass() -> None:
    """One at the second, the others a second later."""
    connectivity = Connectivity(2)
    gate = make_gate(make_provider(connectivity=connectivity))
    connectivity.went_offline(10.0)
    assert ask(gate, 10.999) == Refusal("offline", 11.0)
    assert isinstance(ask(gate, 11.5), Lease)
    assert ask(gate, 11.5) == Refusal("offline", 12.5)


def test_local_targets_do_not_care_about_being_offline() -> None:
    """They are asked as always, and their answers do not end it."""
    connectivity = Connectivity(2)
    gate = make_gate(make_provider(remote=False, connectivity=connectivity))
    connectivity.went_offline(10.0)
    assert call(gate, 10.9) == NOTHING
    assert connectivity.offline
    remote = make_gate(make_provider(name="remote", connectivity=connectivity))
    assert isinstance(ask(remote, 11.0), Lease)


def test_a_local_provider_is_never_withheld() -> None:
    """Its transport faults are its own, also while we are offline."""
    connectivity = Connectivity(2)
    provider = make_provider(remote=False, connectivity=connectivity)
    connectivity.went_offline(0.0)
    cut_off(provider, make_gate(provider), 10.0)


def test_the_first_remote_answer_ends_being_offline() -> None:
    """Success or an error that was answered: told once."""
    for ending in (None, failure(FailureClass.SERVER_ERROR)):
        connectivity = Connectivity(2)
        gate = make_gate(make_provider(connectivity=connectivity))
        connectivity.went_offline(0.0)
        assert admit(gate, 1.0).settle(ending, 2.0).offline is False
        assert admit(gate, 2.0).settle(ending, 2.0).offline is None


def test_while_offline_no_target_cools() -> None:
    """The faults are ours: when the network is back nobody has to sit out a cooldown."""
    connectivity = Connectivity(2)
    gate = make_gate(make_provider(connectivity=connectivity))
    leases = [admit(gate, 0.0) for _ in range(3)]
    connectivity.went_offline(0.0)
    for lease in leases:
        assert lease.settle(failure(FailureClass.TRANSPORT), 1.0).rest is None
    assert gate.cooldown.advice(1.0) is None


def test_an_answer_between_two_losses_says_that_they_are_two() -> None:
    """The others were lost before it: what is lost after it is lost alone, and we are not offline."""
    connectivity = Connectivity(2)
    here, there = (make_provider(name=name, connectivity=connectivity) for name in ("here", "there"))
    gate = make_gate(here)
    cut_off(there, make_gate(there), 35.0)
    call(gate, 40.0)
    cut_off(here, make_gate(here, target="here/n"), 41.0)
    assert not connectivity.offline


def test_a_connection_between_two_losses_says_that_they_are_two() -> None:
    """As an answer does: a probe of its own breaker has connected when the other provider was lost already."""
    connectivity = Connectivity(2)
    here, there = (make_provider(name=name, connectivity=connectivity) for name in ("here", "there"))
    gate = tripped(make_gate(here))
    cut_off(there, make_gate(there), 35.0)
    admit(gate, 36.0).connected(40.0)
    cut_off(here, make_gate(here, target="here/n"), 41.0)
    assert not connectivity.offline


def test_a_recovered_transport_is_lost_and_found_by_its_connectivity() -> None:
    """A closed transport is not among the opened ones any more: the other's trip is its own."""
    one, other, connectivity = together()
    admit(make_gate(one, target="one/m"), 30.0).settle(None, 31.0)
    cut_off(other, make_gate(other, target="other/m"), 31.0)
    assert not connectivity.offline


def test_a_transport_that_the_operator_closed_is_not_among_the_lost_ones() -> None:
    """The other provider's trip is its own then: we are not offline."""
    one, other, connectivity = together()
    make_gate(one, target="one/m").close(1.0)
    cut_off(other, make_gate(other, target="other/m"), 1.0)
    assert not connectivity.offline


# ------------------------------------------------------------------------------------------------ the operator, health


def test_close_is_the_operators_yes() -> None:
    """Breakers closed, rests and holds forgotten, full speed."""
    gate = make_gate(limits=RateLimitTracker(rpm=60))
    held = admit(gate, 0.0)
    tripped(gate)
    held.settle(failure(FailureClass.RATE_LIMITED, 300.0, wide=True), 0.0)
    call(make_gate(gate.provider, target="p/n", key=1), 0.0, FailureClass.RATE_LIMITED)
    assert [(m.kind, m.transition.to_state) for m in gate.close(1.0)] == [("whole", CLOSED)]
    assert ask(gate, 2.0, roll=0.0) != Refusal("slow_start")
    assert gate.provider.throttle.probability(1.0) == 0.0
    assert gate.close(1.0) == ()
    assert gate.in_flight == 1


def test_a_target_is_open_when_every_kind_in_use_is() -> None:
    """Unused breakers say nothing; due and half-open are not OPEN."""
    gate = make_gate()
    assert not gate.is_open(0.0)
    tripped(gate)
    assert gate.is_open(29.999)
    assert not gate.is_open(30.0)
    used = make_gate()
    call(used, 0.0, stream=True)
    tripped(used)
    assert not used.is_open(0.0)
    tripped(used, stream=True)
    assert used.is_open(0.0)


@pytest.mark.parametrize(
    ("ending", "counted"),
    [
        (failure(FailureClass.RATE_LIMITED, 300.0), True),
        (failure(FailureClass.RATE_LIMITED, 300.0, "day"), False),
        (failure(FailureClass.QUOTA), False),
        (failure(FailureClass.AUTH), False),
        (failure(FailureClass.AUTH, wide=True), False),
        (failure(FailureClass.MODEL_GONE), False),
        (failure(FailureClass.SERVER_ERROR), True),
    ],
    ids=["wait", "day", "quota", "forbidden", "unauthorised", "gone", "error"],
)
def test_walled_and_off_targets_do_not_count_in_system_health(ending: Failure, counted: bool) -> None:
    """A wait is no wall; isolation takes out, the operator's yes brings back."""
    gate = make_gate()
    call(gate, 0.0, ending)
    assert gate.enabled(0.0) is counted
    gate.isolate(0.0)
    assert not gate.enabled(0.0)
    gate.close(0.0)
    assert gate.enabled(0.0)


def test_the_free_share_is_that_of_the_tightest() -> None:
    """One of four slots taken, half of the requests: a half; then no slot: nothing."""
    gate = make_gate(make_provider(slots=4), limits=RateLimitTracker(rpm=2))
    assert gate.free_share(0.0) == 1.0
    admit(gate, 0.0)
    assert gate.free_share(0.0) == 0.5
    unlimited = make_gate(gate.provider, target="p/n")
    assert unlimited.free_share(0.0) == 0.75
    for _ in range(3):
        admit(unlimited, 0.0)
    assert unlimited.free_share(0.0) == 0.0


def test_a_gate_refuses_nonsense() -> None:
    """Its own options are checked like all others."""
    with pytest.raises(ConfigurationError, match=r"GateConfig.slow_start: 0 - a number above 0"):
        GateConfig(slow_start=0)


def test_a_gate_knows_whether_it_ever_admitted_a_call() -> None:
    """Streams and whole answers both count; a refusal does not."""
    whole, streamed, never = make_gate(), make_gate(), make_gate()
    admit(whole, 0.0)
    admit(streamed, 0.0, stream=True)
    never.isolate(0.0)
    ask(never, 0.0)
    assert (whole.tried, streamed.tried, never.tried) == (True, True, False)


def test_the_operators_yes_closes_the_providers_breaker_too() -> None:
    """A target closed by hand is reachable at once, although its provider could not be reached before."""
    gate = make_gate()
    cut_off(gate.provider, gate)
    moved = gate.close(1.0)
    assert [(m.kind, m.transition.to_state) for m in moved] == [("transport", BreakerState.CLOSED)]
    assert ask(gate, 1.0) is not None
    assert gate.refusal(COST, 1.0) is None


# ------------------------------------------------------------------------------------------------ law under any pacing


PACINGS: list[Pacing] = ["off", "on", "eager"]


def advised(gate: Gate, until: float = 1000.0) -> Gate:
    """Have the target cool until an instant that another process told."""
    gate.cooldown.adopt(RestRecord("cooldown", until, False, None, 1), 0.0)
    return gate


def seen(gate: Gate, successes: int, failures: int, at: float = 0.0) -> Gate:
    """Have the evidence know so many outcomes; failures took a second."""
    for _ in range(failures):
        gate.evidence.failed(at - 1.0, at, stream=False, patience=30.0)
    for _ in range(successes):
        gate.evidence.succeeded(at - 1.0, at, stream=False)
    gate.evidence.tripped()
    return gate


LAWS = [
    (failure(FailureClass.RATE_LIMITED, 3.0), Refusal("wait", 3.0)),
    (failure(FailureClass.SERVER_ERROR, 3.0), Refusal("wait", 3.0)),
    (failure(FailureClass.WARMING), Refusal("wait", 1.0)),
    (failure(FailureClass.RATE_LIMITED, 3.0, "day"), Refusal("wall", 3.0)),
    (failure(FailureClass.QUOTA), Refusal("wall", 3600.0)),
    (failure(FailureClass.AUTH, wide=True), Refusal("off", 900.0)),
    (failure(FailureClass.MODEL_GONE), Refusal("off", 3600.0)),
]


@pytest.mark.parametrize("pacing", PACINGS)
@pytest.mark.parametrize(("ending", "refusal"), LAWS, ids=range(len(LAWS)))
def test_law_refuses_under_any_pacing(ending: Failure, refusal: Refusal, pacing: Pacing) -> None:
    """A provider's own word binds, also where no other target is free (D3)."""
    gate = make_gate()
    call(gate, 0.0, ending)
    assert ask(gate, 0.5, pacing=pacing) == gate.refusal(COST, 0.5, pacing=pacing) == refusal


@pytest.mark.parametrize("pacing", PACINGS)
def test_slots_buckets_and_the_operator_refuse_under_any_pacing(pacing: Pacing) -> None:
    """They are no judgement of ours."""
    full, empty, isolated = make_gate(make_provider(slots=1)), make_gate(limits=RateLimitTracker(rpm=1)), make_gate()
    admit(full, 0.0)
    admit(empty, 0.0)
    isolated.isolate(0.0)
    answers = [ask(gate, 0.0, pacing=pacing) for gate in (full, empty, isolated)]
    assert answers == [Refusal("bulkhead"), Refusal("requests", 60.0), Refusal("isolated")]


def test_an_unhinted_429_rests_a_known_bucket_only() -> None:
    """Buckets that no answer has shown are unknown, also when the configuration names them: the caller backs off."""
    seen_before, configured = make_gate(limits=known(rpm=60)), make_gate(limits=RateLimitTracker(rpm=60))
    assert call(seen_before, 0.0, FailureClass.RATE_LIMITED).rest == Rest("wait", 1.0, hinted=False)
    assert call(configured, 0.0, FailureClass.RATE_LIMITED) == NOTHING
    assert isinstance(ask(configured, 0.0), Lease)


# ------------------------------------------------------------------------------------------------ judgement paces


def test_while_another_target_is_free_judgement_excludes_and_else_it_paces() -> None:
    """Advice, probation and slow start: a refusal when pacing is off, a call when it is on (D3)."""
    cooling, on_probation, returned = advised(make_gate()), cooled(make_gate()), tripped(make_gate())
    admit(on_probation, 100.0)
    call(returned, 100.0)
    admit(returned, 100.0)
    gates = (cooling, on_probation, returned)
    assert [ask(gate, 100.0) for gate in gates] == [
        Refusal("cooldown", 1000.0),
        Refusal("probation"),
        Refusal("slow_start"),
    ]
    seen(on_probation, successes=20, failures=0)
    seen(returned, successes=20, failures=0)
    for pacing in ("on", "eager"):
        assert [admit(gate, 100.0, pacing=pacing).paced for gate in gates] == [True] * 3


@pytest.mark.parametrize(
    ("successes", "failures", "admitted"),
    [(0, 0, 20), (0, 20, 1), (1, 19, 5), (2, 18, 10), (3, 17, 15), (4, 16, 20), (10, 10, 20), (1, 99, 5)],
)
def test_paced_calls_in_flight_are_slots_by_success_share(successes: int, failures: int, admitted: int) -> None:
    """Slots x min(1, s / 0.2), at least one; s is 1 while nothing is known, else of the newest twenty (D4)."""
    gate = seen(advised(make_gate(make_provider(slots=20))), successes, failures)
    got = [ask(gate, 0.5, pacing="on") for _ in range(21)]
    assert [isinstance(one, Lease) for one in got] == [True] * admitted + [False] * (21 - admitted)
    assert got[-1] == Refusal("paced")


@pytest.mark.parametrize("pacing", PACINGS)
def test_pacing_refuses_nothing_that_is_admitted_without_it(pacing: Pacing) -> None:
    """Five seconds of ten into a slow start of 20 slots ten calls are let in, although the success share says one."""
    gate = seen(make_gate(make_provider(slots=20)), successes=0, failures=20)
    gate.begin_slow_start(100.0)
    got = [ask(gate, 105.0, roll=0.999, pacing=pacing) for _ in range(11)]
    assert [isinstance(one, Lease) for one in got] == [True] * 10 + [False]


def test_a_call_that_outlives_failures_lets_another_paced_one_go() -> None:
    """Failures took a second: after it the call in flight is one success of twenty-one, worth 4.76 slots."""
    gate = seen(advised(make_gate(make_provider(slots=20))), successes=0, failures=20)
    admit(gate, 10.0, pacing="on")
    assert ask(gate, 10.999, pacing="on") == Refusal("paced")
    got = [ask(gate, 11.0, pacing="on") for _ in range(4)]
    assert [isinstance(one, Lease) for one in got] == [True, True, True, False]


def test_paced_calls_never_exceed_the_learned_limit() -> None:
    """Two were borne: the third finds no slot, however healthy the target is."""
    gate = advised(make_gate())
    assert gate.learned is not None
    gate.learned.limit = 2
    assert [isinstance(ask(gate, 0.0, pacing="on"), Lease) for _ in range(2)] == [True, True]
    assert ask(gate, 0.0, pacing="on") == Refusal("bulkhead")


def test_a_paced_call_feeds_the_verdicts() -> None:
    """A success ends the cooldown and is a recovery; a failure counts towards the breaker."""
    gate = cooled(make_gate())
    trial = admit(gate, 1.0, pacing="on")
    assert (trial.probe, trial.paced, trial.probes_breaker) == (True, True, False)
    assert trial.settle(None, 2.0).recovered
    assert gate.cooldown.advice(2.0) is None
    ill = cooled(make_gate())
    moved = [call(ill, 1.0, FailureClass.SERVER_ERROR).moved for _ in range(3)]
    assert [len(each) for each in moved] == [0, 0, 1]


def test_a_cooling_target_that_is_asked_paced_is_on_probation_at_its_end() -> None:
    """The paced call in flight is the trial: nothing else is admitted until it has its verdict."""
    gate = cooled(make_gate())
    trial = admit(gate, 9.0, pacing="on")
    assert ask(gate, 10.0) == Refusal("probation")
    trial.release(10.0)
    assert isinstance(ask(gate, 10.0), Lease)


def test_a_call_that_nothing_refuses_is_not_paced() -> None:
    """Nor is a probe: both would have been admitted beside another target."""
    assert not admit(make_gate(), 0.0, pacing="on").paced
    assert not admit(tripped(make_gate()), 30.0, pacing="on").paced


def test_a_call_of_a_slow_start_is_not_paced_while_another_target_is_free() -> None:
    """It is admitted by judgement: its success ends no paced spell."""
    gate = make_gate()
    gate.begin_slow_start(0.0)
    assert not admit(gate, 1.0).paced
    assert not gate.in_paced_spell


def test_offline_lets_one_call_a_second_pass_under_any_pacing() -> None:
    """It is us: more would be no use."""
    for pacing in PACINGS:
        connectivity = Connectivity(2)
        gate = make_gate(make_provider(connectivity=connectivity))
        connectivity.went_offline(10.0)
        admit(gate, 11.0, pacing=pacing)
        assert ask(gate, 11.0, pacing=pacing) == Refusal("offline", 12.0)


# ------------------------------------------------------------------------------------------------ eager probes


def test_an_open_target_is_excluded_unless_nothing_else_can_answer() -> None:
    """Paced by other targets it stays OPEN; eager, the next probe is due after a second."""
    gate = tripped(make_gate())
    assert ask(gate, 1.0) == ask(gate, 1.0, pacing="on") == Refusal("open", 30.0)
    assert ask(gate, 0.999, pacing="eager") == gate.refusal(COST, 0.999, pacing="eager") == Refusal("open", 1.0)
    probe = admit(gate, 1.0, pacing="eager")
    assert probe.probes_breaker
    assert [ask(gate, 1.0, pacing=pacing) for pacing in PACINGS] == [
        Refusal("open", 30.0),
        Refusal("open", 30.0),
        Refusal("half_open"),
    ]


@pytest.mark.parametrize("transport", [False, True])
def test_eager_probes_come_due_by_back_off(transport: bool) -> None:
    """Of a target, and of a provider that cannot be reached: after 1, 2, 4, 5 and 5 s."""
    gate, now, pauses = make_gate(), 0.0, []
    failed = FailureClass.TRANSPORT if transport else FailureClass.SERVER_ERROR
    cut_off(gate.provider, gate) if transport else tripped(gate)
    for _ in range(5):
        refusal = ask(gate, now, pacing="eager")
        assert isinstance(refusal, Refusal)
        assert refusal.retry_at is not None
        pauses.append(refusal.retry_at - now)
        now = refusal.retry_at
        call(gate, now, failed)
    assert pauses == [1.0, 2.0, 4.0, 5.0, 5.0]


def test_an_eager_probe_that_succeeds_brings_the_target_back() -> None:
    """Long before its open time; slow start follows."""
    gate = tripped(make_gate())
    settled = admit(gate, 1.0, pacing="eager").settle(None, 2.0)
    assert [m.transition.reason for m in settled.moved] == ["probe_succeeded"]
    assert settled.recovered
    admit(gate, 2.0)
    assert ask(gate, 2.0) == Refusal("slow_start")


def test_eager_probes_of_a_provider_are_serialised() -> None:
    """Two of its targets are down: one probe at a time (I1)."""
    provider = make_provider()
    one, other = tripped(make_gate(provider)), tripped(make_gate(provider, target="p/n"))
    admit(one, 1.0, pacing="eager")
    assert ask(other, 1.0, pacing="eager") == Refusal("half_open")


def test_law_binds_an_eager_probe() -> None:
    """The provider said 20 s: its word comes before our back-off."""
    gate = make_gate()
    held = admit(gate, 0.0)
    tripped(gate)
    held.settle(failure(FailureClass.RATE_LIMITED, 20.0), 0.0)
    assert ask(gate, 5.0, pacing="eager") == Refusal("wait", 20.0)
    assert admit(gate, 20.0, pacing="eager").probe


# ------------------------------------------------------------------------------------------------ warming up


@pytest.mark.parametrize("pacing", PACINGS)
@pytest.mark.parametrize("wide", [False, True])
def test_a_model_that_warms_up_is_asked_by_one_call_at_a_time(wide: bool, pacing: Pacing) -> None:
    """After its second of law, under any pacing, until one succeeds; a failure of another kind does not end it."""
    gate = make_gate()
    call(gate, 0.0, failure(FailureClass.WARMING, wide=wide))
    for ending in (failure(FailureClass.CONTENT_FILTERED), None):
        one = admit(gate, 1.0, pacing=pacing)
        assert ask(gate, 1.0, pacing=pacing) == Refusal("probation")
        assert one.settle(ending, 2.0).recovered is (ending is None)
    assert [isinstance(ask(gate, 20.0, pacing=pacing), Lease) for _ in range(2)] == [True, True]


def test_warming_up_counts_neither_as_request_nor_as_ill() -> None:
    """Fifty in a row: no breaker, no throttle, no evidence."""
    gate = make_gate()
    for n in range(50):
        assert call(gate, 2.0 * n, FailureClass.WARMING).moved == ()
    assert gate.throttle.empty
    assert gate.evidence.success_share(100.0) == 1.0


# ------------------------------------------------------------------------------------------------ load is no illness


def test_a_529_while_others_are_served_is_load() -> None:
    """A hundred of them beside one call in flight: no breaker, no rest, no share; the throttle counts them."""
    gate = make_gate(make_provider(config=GateConfig(adaptive=AdaptiveConfig(enabled=False))))
    admit(gate, 0.0)
    for n in range(100):
        assert call(gate, n / 10, FailureClass.OVERLOADED) == NOTHING
    assert gate.evidence.success_share(10.0) == 1.0
    assert gate.breakers["whole"].is_closed
    assert gate.cooldown.advice(10.0) is None
    assert gate.throttle.probability(10.0) == 0.9


@pytest.mark.parametrize(("other_sent_at", "now"), [(5.001, 5.0), (5.0, 35.0)], ids=["sent later", "silent"])
def test_a_529_is_no_load_where_nothing_speaks_for_the_target(other_sent_at: float, now: float) -> None:
    """The other call was sent after it, or is silent for patience: the target failed."""
    gate = make_gate()
    refused = admit(gate, 5.0)
    admit(gate, other_sent_at)
    refused.settle(failure(FailureClass.OVERLOADED), now, patience=30.0)
    assert gate.evidence.share_of_failures(now) == 0.05


@pytest.mark.parametrize("pacing", ["off", "on", "eager"])
def test_in_a_storm_of_refusals_one_call_asks_after_a_pause(pacing: Pacing) -> None:
    """75 calls are turned away with nothing served: one a second, then after 2, 4 and 5 s, until one is answered."""
    gate = make_gate(make_provider(slots=80))
    for lease in [admit(gate, 0.0) for _ in range(75)]:
        lease.settle(failure(FailureClass.RATE_LIMITED), 0.01)
    assert ask(gate, 1.0, pacing=pacing) == Refusal("paced", 1.01)
    one = admit(gate, 1.01, pacing=pacing)
    assert ask(gate, 1.01, pacing=pacing) == Refusal("paced")
    one.settle(failure(FailureClass.RATE_LIMITED), 1.02)
    assert ask(gate, 3.0, pacing=pacing) == Refusal("paced", 3.02)
    admit(gate, 3.02, pacing=pacing).settle(None, 4.0)
    assert [admit(gate, 4.0, pacing=pacing).settled for _ in range(80)] == [False] * 80


def test_a_hint_of_a_529_binds_although_it_is_load() -> None:
    """The provider's word is law; the breaker hears nothing."""
    gate = make_gate()
    admit(gate, 0.0)
    settled = call(gate, 1.0, failure(FailureClass.OVERLOADED, 4.0, "overload"))
    assert settled == Settlement(rest=Rest("wait", 5.0, hinted=True))
    assert gate.evidence.success_share(1.0) == 1.0


def test_a_probe_that_meets_load_is_given_back() -> None:
    """A call from before the trip is still being served: the probe's 529 decides nothing."""
    gate = make_gate()
    admit(gate, 20.0)
    tripped(gate, 20.0)
    assert admit(gate, 40.0, pacing="eager").settle(failure(FailureClass.OVERLOADED), 40.5) == NOTHING
    assert gate.breakers["whole"].open_until == 50.0
    assert not gate.provider.probe_in_flight


@pytest.mark.parametrize("failure_class", [FailureClass.RATE_LIMITED, FailureClass.WARMING, FailureClass.CANCELLED])
def test_answers_that_say_later_do_not_count_in_the_success_share(failure_class: FailureClass) -> None:
    """A busy provider is not an ill one (D4)."""
    gate = make_gate()
    call(gate, 0.0, failure_class)
    assert gate.evidence.success_share(0.0) == 1.0


def test_a_call_from_before_a_close_is_no_evidence() -> None:
    """Its verdict belongs to another generation (I3)."""
    gate = make_gate()
    old = admit(gate, 0.0)
    gate.close(1.0)
    assert old.settle(failure(FailureClass.SERVER_ERROR), 2.0).rest is None
    assert gate.evidence.success_share(2.0) == 1.0
    assert gate.evidence.share_of_failures(2.0) == 0.0


# ------------------------------------------------------------------------------------------------ the sequential tests


def failures_until_ill(gate: Gate) -> int:
    """How many failures in a row, one in twenty seconds, it takes to rest."""
    for n in range(100):
        if call(gate, 1000.0 + 20.0 * n, FailureClass.SERVER_ERROR).rest is not None:
            return n + 1
    raise AssertionError("it never rested")


@pytest.mark.parametrize(("lost", "needed"), [(0, 2), (10, 2), (30, 4), (50, 7)])
def test_the_more_a_target_usually_loses_the_more_failures_make_it_rest(lost: int, needed: int) -> None:
    """Of a hundred calls ten minutes ago it lost none, 10, 30 or 50: 2, 2, 4 and 7 in a row (D7)."""
    assert failures_until_ill(seen(make_gate(), 100 - lost, lost, at=400.0)) == needed


def test_a_call_that_is_no_evidence_rests_nothing() -> None:
    """One failed that was sent before the breaker moved, and one gave an empty answer, the first of three."""
    gate = make_gate()
    late = admit(gate, 0.0)
    told_open(gate, 1.0)
    told_closed(gate, 2.0)
    assert late.settle(failure(FailureClass.SERVER_ERROR), 3.0) == NOTHING
    assert call(make_gate(), 0.0, FailureClass.EMPTY) == NOTHING


@pytest.mark.parametrize("stream", [False, True])
def test_calls_in_flight_speak_against_failures_of_their_own_kind(stream: bool) -> None:
    """Five streams fail, sent with two calls that go on: the breaker stays closed when those are streams too."""
    gate = make_gate()
    for _ in range(2):
        admit(gate, 0.0, stream=stream)
    for lease in [admit(gate, 0.0, stream=True) for _ in range(5)]:
        lease.settle(failure(FailureClass.SERVER_ERROR), LOST)
    assert gate.breakers["stream"].is_closed is stream


def test_five_consecutive_failures_are_needed_for_a_trip() -> None:
    """The evidence says down at the third; the fifth opens it."""
    gate = make_gate()
    moved = [call(gate, float(n), FailureClass.SERVER_ERROR).moved for n in range(5)]
    assert [len(each) for each in moved] == [0, 0, 0, 0, 1]


def test_a_target_that_is_known_to_answer_four_calls_in_ten_is_neither_ill_nor_down() -> None:
    """A thousand calls, six of ten failing, five of them in a row: no rest, and its breaker never opens."""
    gate = seen(make_gate(), 40, 60)
    for n in range(1000):
        ending = FailureClass.SERVER_ERROR if n % 10 in {0, 1, 2, 3, 4, 7} else None
        settled = call(gate, 2.0 * n, ending)
        assert (settled.moved, settled.rest) == ((), None)


def test_the_tests_go_by_the_owners_numbers() -> None:
    """With odds of 1 the first failure rests the target, and the first of one in a row opens it."""
    easy = CooldownConfig(odds=1, odds_per_call=1)
    resting = make_gate(make_provider(config=GateConfig(cooldown=easy)))
    assert call(resting, 0.0, FailureClass.SERVER_ERROR).rest == Rest("cooldown", 10.0, hinted=False)
    opening = make_gate(make_provider(config=hasty(1)))
    assert [m.kind for m in call(opening, 0.0, FailureClass.SERVER_ERROR).moved] == ["whole"]


def test_a_target_that_always_fails_can_still_be_called_ill_and_down() -> None:
    """Its own share counts as 85 and 90 % at most: 69 failures in a row make it ill, 73 down."""
    gate = make_gate()
    for _ in range(400):
        gate.evidence.failed(0.0, 0.0, stream=False, patience=30.0)
    gate.evidence.tripped()
    verdicts = [gate.evidence.failed(n * 20.0, n * 20.0, stream=False, patience=30.0) for n in range(1, 74)]
    assert [ill for ill, _ in verdicts].index(True) + 1 == 69
    assert [down for _, down in verdicts].index(True) + 1 == 73


def test_every_failure_counts_towards_a_rest_a_transport_fault_too() -> None:
    """A connection that broke and a server error: two in a row."""
    gate = make_gate()
    call(gate, 0.0, FailureClass.TRANSPORT)
    assert call(gate, 1.0, FailureClass.SERVER_ERROR).rest == Rest("cooldown", 11.0, hinted=False)


@pytest.mark.parametrize("stream", [False, True])
def test_calls_in_flight_speak_against_faults_of_the_transport(stream: bool) -> None:
    """Five faults open it, unless two other calls were sent with them, of either kind, and go on."""
    gate = make_gate()
    for _ in range(2):
        admit(gate, 0.0, stream=stream)
    for lease in [admit(gate, 0.0) for _ in range(5)]:
        lease.settle(failure(FailureClass.TRANSPORT), LOST)
    assert gate.provider.transport.is_closed


def test_an_answer_speaks_against_faults_of_the_transport() -> None:
    """Of a provider that loses half of its calls twelve faults in a row open it, but not with an answer after six."""
    gates = make_gate(), make_gate()
    for gate, answered in zip(gates, (False, True), strict=True):
        for _ in range(100):
            call(gate, 0.0, FailureClass.TRANSPORT)
            call(gate, 0.0)
        for second in range(12):
            if answered and second == 6:
                call(gate, 106.0)
            call(gate, 100.0 + second, FailureClass.TRANSPORT)
    assert [gate.provider.transport.is_closed for gate in gates] == [False, True]


def test_a_transport_is_open_for_ten_times_as_long_as_the_fault_took() -> None:
    """A fault that is noticed within a second costs ten."""
    gate = make_gate()
    for lease in [admit(gate, 4.0) for _ in range(5)]:
        lease.settle(failure(FailureClass.TRANSPORT), 5.0)
    assert gate.provider.transport.open_until == 15.0


def test_transport_faults_do_not_open_the_transport_while_calls_are_answered() -> None:
    """Five in a row of one target, while another one's answers are between them."""
    provider = make_provider()
    gate, other = make_gate(provider), make_gate(provider, target="p/n")
    for n in range(10):
        call(gate, 2.0 * n, FailureClass.TRANSPORT)
        call(other, 2.0 * n + 1.0)
    assert provider.transport.is_closed


# ------------------------------------------------------------------------------------------------ the throttle, apart


def test_a_targets_refusals_do_not_throttle_its_siblings() -> None:
    """Two hundred turned away by one target: another one's calls pass, whatever the dice say (D8)."""
    provider = make_provider()
    gate, sibling = choke(make_gate(provider)), make_gate(provider, target="p/n")
    sibling.count(True, 0.0)
    assert ask(gate, 0.0, roll=0.0) == Refusal("throttle", 1.0)
    assert isinstance(ask(sibling, 0.0, roll=0.0), Lease)


def test_where_two_targets_fail_all_of_the_provider_are_counted_together() -> None:
    """One refusal of the sibling is enough: it is tossed by what the provider's throttle counted."""
    provider = make_provider()
    choke(make_gate(provider))
    sibling = make_gate(provider, target="p/n")
    sibling.count(False, 0.0)
    assert sibling.throttle.probability(0.0) == 0.0
    assert ask(sibling, 0.0, roll=0.89) == Refusal("throttle", 1.0)


@pytest.mark.parametrize(("now", "together"), [(119.999, True), (120.0, False)])
def test_a_target_fails_for_as_long_as_its_refusals_are_remembered(now: float, together: bool) -> None:
    """Two minutes after its only refusal the sibling is counted apart again."""
    provider = make_provider()
    gate, sibling = make_gate(provider), make_gate(provider, target="p/n")
    sibling.count(False, 0.0)
    choke(gate, 60.0)
    assert provider.throttled_together(now) is together


def test_answers_throttle_nothing() -> None:
    """A hundred of them, and no target of the provider has failed."""
    gate = make_gate()
    for _ in range(100):
        call(gate, 0.0)
    assert (gate.throttle.probability(0.0), gate.provider.failing) == (0.0, {})


def test_an_answer_takes_as_long_as_its_provider_took() -> None:
    """Sent at 5, ended at 9, and its reader was waited for during one of those seconds."""
    gate = make_gate()
    lease = admit(gate, 5.0)
    lease.unread = 1.0
    lease.settle(None, 9.0)
    assert gate.learned is not None
    assert gate.learned.service_time == 3.0


def test_a_target_that_was_never_asked_is_never_throttled() -> None:
    """Although two others fail and the provider's throttle refuses nine of ten (D8)."""
    provider = make_provider()
    choke(make_gate(provider))
    choke(make_gate(provider, target="p/n"))
    untouched = make_gate(provider, target="p/o")
    assert isinstance(ask(untouched, 0.0, roll=0.0), Lease)


def test_one_503_of_each_of_four_models_costs_their_sibling_nothing() -> None:
    """Four of five targets failed once: the fifth, asked before, takes every call."""
    provider = make_provider()
    healthy = make_gate(provider, target="p/healthy")
    call(healthy, 0.0)
    for name in "abcd":
        call(make_gate(provider, target=f"p/{name}"), 1.0, FailureClass.OVERLOADED)
    assert [isinstance(ask(healthy, 1.0, roll=0.0), Lease) for _ in range(20)] == [True] * 20


@pytest.mark.parametrize(("successes", "passes"), [(4, True), (3, False)])
def test_where_no_other_target_is_free_the_toss_holds_below_a_fifth(successes: int, passes: bool) -> None:
    """Four of twenty answered: the target goes on whatever the throttle says; three: it tosses (D4)."""
    gate = seen(choke(make_gate()), successes, 20 - successes)
    admit(gate, 0.0)
    assert isinstance(ask(gate, 0.0, roll=0.0, pacing="on"), Lease) is passes
    assert isinstance(ask(gate, 0.0, roll=0.0), Lease) is False


def test_where_no_other_target_is_free_one_call_is_always_admitted() -> None:
    """Nothing of twenty was answered: the first passes, the second is tossed."""
    gate = seen(choke(make_gate()), 0, 20)
    lease = admit(gate, 0.0)
    lease.release(0.0)
    assert ask(gate, 0.0, roll=0.0) == Refusal("throttle", 1.0)
    assert isinstance(ask(gate, 0.0, roll=0.0, pacing="on"), Lease)
    assert ask(gate, 0.0, roll=0.0, pacing="on") == Refusal("throttle", 1.0)


# ------------------------------------------------------------------------------------------------ spells


def slowly(gate: Gate) -> Gate:
    """Have the target in slow start, with one call in flight: the next one is paced where no other is free."""
    gate.begin_slow_start(0.0)
    admit(gate, 0.0)
    return choke(gate)


def counted(gate: Gate) -> int:
    """How many requests the throttle of the target knows of."""
    return gate.throttle.snapshot().requests


def test_the_first_success_after_a_paced_spell_resets_the_throttles() -> None:
    """Those of paced calls do not: the spell lasts."""
    gate = slowly(make_gate())
    paced = admit(gate, 1.0, pacing="on")
    assert paced.paced
    paced.settle(None, 2.0)
    assert counted(gate) > 0
    admit(gate, 20.0).settle(None, 21.0)
    assert counted(gate) == 0
    assert gate.provider.throttle.empty
    assert gate.provider.failing == {}


def test_without_a_spell_a_success_resets_nothing() -> None:
    """Of an ordinary target, and a second time after a spell; a failure ends no spell either."""
    gate = choke(make_gate())
    call(gate, 0.0)
    assert counted(gate) > 0
    spell = slowly(make_gate())
    admit(spell, 1.0, pacing="on").release(2.0)
    admit(spell, 20.0).settle(failure(FailureClass.SERVER_ERROR), 21.0)
    assert counted(spell) > 0
    call(spell, 22.0)
    assert counted(spell) == 0
    choke(spell, 23.0)
    call(spell, 23.0)
    assert counted(spell) > 0


@pytest.mark.parametrize("ending", [failure(FailureClass.RATE_LIMITED, 3.0), failure(FailureClass.WARMING)], ids=str)
def test_the_first_success_after_a_law_resets_the_throttles(ending: Failure) -> None:
    """What they counted is of the time before."""
    gate = make_gate()
    call(gate, 0.0, ending)
    choke(gate)
    admit(gate, 5.0, pacing="on").settle(None, 6.0)
    assert gate.throttle.empty
    assert gate.provider.throttle.empty


# ------------------------------------------------------------------------------------------------ whoever tells of it


def told_open(gate: Gate, now: float = 0.0) -> None:
    """Another process tells that the breaker of whole answers is OPEN for 30 s."""
    moved = gate.breakers["whole"].adopt(now + 30.0, 0, now, reason="shared")
    assert moved is not None
    gate.apply(Moved("whole", moved), now)


def told_closed(gate: Gate, now: float) -> None:
    """Another process tells that the breaker of whole answers is CLOSED."""
    moved = gate.breakers["whole"].close(now, "shared")
    assert moved is not None
    gate.apply(Moved("whole", moved), now)


def told_cut_off(gate: Gate, now: float = 0.0) -> None:
    """Another process tells that the provider cannot be reached for 30 s."""
    moved = gate.provider.transport.adopt(now + 30.0, 0, now, reason="shared")
    assert moved is not None
    gate.apply(Moved("transport", moved), now)


def told_reached(gate: Gate, now: float) -> None:
    """Another process tells that the provider can be reached."""
    moved = gate.provider.transport.close(now, "shared")
    assert moved is not None
    gate.apply(Moved("transport", moved), now)


def probed(gate: Gate, now: float) -> None:
    """A probe of ours succeeds."""
    admit(gate, now).settle(None, now)


def lost(gate: Gate, now: float = 0.0) -> None:
    """Our own calls find that the provider cannot be reached."""
    cut_off(gate.provider, gate, now)


OPENS: list[Callable[[Gate, float], object]] = [tripped, told_open]
CLOSES: list[Callable[[Gate, float], object]] = [probed, told_closed]
CUTS: list[Callable[[Gate, float], object]] = [lost, told_cut_off]
REACHES: list[Callable[[Gate, float], object]] = [probed, told_reached]


@pytest.mark.parametrize("opens", OPENS)
def test_an_open_breaker_alone_decides_among_advice(opens: Callable[[Gate, float], object]) -> None:
    """Advice that was in force is gone, and the evidence for it; law stays."""
    gate = make_gate()
    held = [admit(gate, 0.0, stream=True) for _ in range(3)]
    opens(gate, 10.0)
    held[0].settle(failure(FailureClass.SERVER_ERROR), 11.0)
    told_closed(gate, 12.0)
    held[1].settle(failure(FailureClass.RATE_LIMITED, 100.0), 13.0)
    advised(gate)
    opens_again = gate.breakers["whole"].adopt(60.0, 0, 14.0, reason="shared")
    assert opens_again is not None
    gate.apply(Moved("whole", opens_again), 14.0)
    assert gate.cooldown.advice(14.0) is None
    assert gate.cooldown.law(14.0) == Refusal("wait", 113.0)


@pytest.mark.parametrize("kind", ["whole", "transport"])
def test_a_probe_decides_until_another_process_moves_its_breaker(kind: Kind) -> None:
    """Its own or the transport's: a verdict of the permit from before moves nothing."""
    gate = tripped(make_gate())
    probe = admit(gate, 40.0)
    assert probe.decides
    breaker = gate.provider.transport if kind == "transport" else gate.breakers["whole"]
    breaker.adopt(40.0, 1, 40.0, reason="shared")
    assert not probe.decides


def test_a_lease_without_permits_decides() -> None:
    """A call of the last resort moves no breaker, so nothing is taken from it."""
    assert admit(make_gate(), 0.0, last_resort=True).decides


def test_a_stream_that_has_begun_counts_as_served() -> None:
    """Silent for longer than patience it is not, as its first content was there."""
    gate = make_gate()
    lease = admit(gate, 0.0, stream=True)
    before = lease.has_begun
    lease.begun()
    assert (before, lease.has_begun) == (False, True)
    assert gate.evidence.outlived_numbers(99.0, 100.0, 30.0) == (1,)


@pytest.mark.parametrize("opens", OPENS)
def test_a_trip_forgets_the_evidence(opens: Callable[[Gate, float], object]) -> None:
    """One failed stream before it and one after it are not two in a row."""
    gate = make_gate()
    opens(gate, 10.0)
    gate.evidence.clear()
    told_closed(gate, 20.0)
    assert call(gate, 30.0, FailureClass.SERVER_ERROR, stream=True).rest is None
    opens_again = gate.breakers["whole"].adopt(60.0, 0, 31.0, reason="shared")
    assert opens_again is not None
    gate.apply(Moved("whole", opens_again), 31.0)
    assert call(gate, 32.0, FailureClass.SERVER_ERROR, stream=True).rest is None
    assert call(gate, 33.0, FailureClass.SERVER_ERROR, stream=True).rest is not None


@pytest.mark.parametrize("opens", OPENS)
@pytest.mark.parametrize("closes", CLOSES)
def test_a_breaker_that_closes_begins_slow_start_and_resets_the_throttles(
    opens: Callable[[Gate, float], object], closes: Callable[[Gate, float], object]
) -> None:
    """Whether our own probe or another process says so; other targets of the provider are not concerned."""
    provider = make_provider(slots=11)
    gate, sibling = make_gate(provider), choke(make_gate(provider, target="p/n"))
    opens(gate, 0.0)
    choke(gate)
    closes(gate, 30.0)
    admit(gate, 30.0)
    assert ask(gate, 30.0) == Refusal("slow_start")
    assert gate.ready_at(Refusal("slow_start")) == 31.0
    assert gate.throttle.empty
    assert provider.throttle.empty
    assert set(provider.failing) == {"p/n"}
    assert not sibling.throttle.empty
    assert sibling.ready_at(Refusal("slow_start")) == -math.inf


@pytest.mark.parametrize("cuts", CUTS)
def test_a_transport_that_opens_ends_the_advice_of_every_target(cuts: Callable[[Gate, float], object]) -> None:
    """Its breaker alone decides, of all of them; and the other providers are told."""
    connectivity = Connectivity(2)
    provider = make_provider(connectivity=connectivity)
    gate, sibling = make_gate(provider), advised(make_gate(provider, target="p/n"))
    cuts(gate, 10.0)
    assert sibling.cooldown.advice(10.0) is None
    assert not sibling.cooldown.returning
    assert connectivity.withholds("other", 10.0)
    assert ask(sibling, 10.0) == Refusal("open", 40.0)


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("reaches", REACHES)
def test_a_transport_that_closes_begins_slow_start_for_every_target(
    cuts: Callable[[Gate, float], object], reaches: Callable[[Gate, float], object]
) -> None:
    """And their throttles forget; the other providers are told."""
    connectivity = Connectivity(2)
    provider = make_provider(slots=11, connectivity=connectivity)
    gates = [make_gate(provider, target=name) for name in ("p/m", "p/n")]
    cuts(gates[0], 0.0)
    for gate in gates:
        choke(gate)
    reaches(gates[0], 30.0)
    assert all(gate.throttle.empty for gate in gates)
    assert provider.throttle.empty
    assert provider.failing == {}
    assert not connectivity.withholds("other", 30.0)
    admit(gates[1], 30.0)
    assert [ask(gate, 30.0) for gate in gates] == [Refusal("slow_start")] * 2
    assert gates[1].ready_at(Refusal("slow_start")) == 31.0


@pytest.mark.parametrize("cuts", CUTS)
def test_a_transport_that_opens_again_ends_the_slow_start_of_the_provider(
    cuts: Callable[[Gate, float], object],
) -> None:
    """What is in flight from before does not hold up the probe that may bring it back."""
    provider = make_provider(config=GateConfig(slow_start=1000.0))
    gate = make_gate(provider)
    cuts(gate, 0.0)
    told_reached(gate, 30.0)
    assert provider.returned_at == 30.0
    told_cut_off(gate, 40.0)
    assert provider.returned_at == -math.inf


def test_the_operators_yes_has_the_same_consequences_for_the_other_targets() -> None:
    """The target itself takes full load at once; its siblings start slowly, as the provider was away."""
    provider = make_provider(slots=11)
    gate, sibling = make_gate(provider), choke(make_gate(provider, target="p/n"))
    cut_off(provider, gate)
    gate.close(30.0)
    assert [isinstance(ask(gate, 30.0), Lease) for _ in range(3)] == [True] * 3
    assert sibling.throttle.empty
    admit(sibling, 30.0)
    assert ask(sibling, 30.0) == Refusal("slow_start")


def test_a_trip_of_the_transport_forgets_the_evidence_about_it() -> None:
    """Five faults, an answered probe, five faults: with a share of a quarter lost the second five are not enough."""
    gate = make_gate()
    for n in range(5):
        call(gate, float(n), FailureClass.TRANSPORT)
    probed(gate, 40.0)
    for n in range(5):
        call(gate, 100.0 + n, FailureClass.TRANSPORT)
    assert gate.provider.transport.is_closed


def test_an_isolated_breaker_has_no_consequences_of_its_own() -> None:
    """The operator's no neither begins slow start nor forgets a rest."""
    gate = advised(make_gate())
    for moved in gate.isolate(1.0):
        gate.apply(moved, 1.0)
    assert gate.cooldown.advice(1.0) == Refusal("cooldown", 1000.0)
    assert gate.ready_at(Refusal("slow_start")) == -math.inf


# ------------------------------------------------------------------------------------------------ by the evidence


def test_a_cooldown_forgets_the_evidence_that_began_it() -> None:
    """The next one needs two failures in a row of its own; a wait that a provider named forgets nothing."""
    gate = cooled(make_gate())
    assert call(gate, 40.0, FailureClass.SERVER_ERROR).rest is None
    assert call(gate, 40.0, failure(FailureClass.RATE_LIMITED, 5.0)).rest is not None
    assert call(gate, 46.0, FailureClass.SERVER_ERROR).rest is not None


@pytest.mark.parametrize("failed", [FailureClass.TIMEOUT, FailureClass.CANCELLED])
def test_what_proves_nothing_about_the_transport_is_no_evidence_about_it(failed: FailureClass) -> None:
    """A timeout or a caller who left is neither a fault nor an answer; the call counts for none of both."""
    gate = make_gate()
    call(gate, 0.0, failed)
    assert gate.provider.evidence.share_of_failures(0.0) == 0.0
    call(gate, 0.0, FailureClass.TRANSPORT)
    assert gate.provider.evidence.share_of_failures(0.0) == 0.05


def test_a_fault_from_before_a_trip_is_no_evidence_about_the_transport() -> None:
    """Its permit is of another generation: it is not weighed."""
    gate = make_gate()
    late = admit(gate, 0.0)
    cut_off(gate.provider, gate, 10.0)
    share = gate.provider.evidence.share_of_failures(10.0)
    late.settle(failure(FailureClass.TRANSPORT), 10.0)
    assert gate.provider.evidence.share_of_failures(10.0) == share


@pytest.mark.parametrize(("hinted", "limit"), [(True, 5), (False, 20)], ids=["hinted", "without a hint"])
def test_a_short_hint_lowers_the_learned_limit_sooner(hinted: bool, limit: int) -> None:
    """Four calls alone were answered: four refusals of a sixth with a hint are proof, without one they are not."""
    gate = make_gate()
    assert gate.learned is not None
    for _ in range(4):
        gate.learned.accepted(1, 1.0, 0.0)
    gate.turned_away(6, 0.0, 0.0, 30.0, hinted=hinted)
    gate.evidence.succeeded(1.0, 1.0, stream=False)
    for _ in range(4):
        gate.turned_away(6, 1.0, 1.0, 30.0, hinted=hinted)
    assert gate.learned.limit == limit


@pytest.mark.parametrize(("hint", "limit"), [(0.0, 5), (None, 20)], ids=["hinted", "without a hint"])
def test_a_call_that_is_refused_tells_whether_it_was_with_a_hint(hint: float | None, limit: int) -> None:
    """Five calls are being served while four are refused, each as the sixth: with a hint that is proof."""
    gate = make_gate()
    first, *_ = (admit(gate, 1.0) for _ in range(5))
    for now in (2.0, 3.0, 4.0, 5.0):
        admit(gate, now, pacing="eager").settle(failure(FailureClass.RATE_LIMITED, hint), now)
        if not first.settled:
            first.release(2.0)
            admit(gate, 2.9, pacing="eager")
    assert gate.learned is not None
    assert gate.learned.limit == limit


def test_load_is_the_part_of_the_learned_limit() -> None:
    """Two calls in flight of a limit of four are half of it, whatever the slots are."""
    gate = make_gate(make_provider(slots=20))
    assert gate.learned is not None
    gate.learned.limit = 4
    for _ in range(2):
        admit(gate, 0.0)
    assert gate.load(0.0) == 0.5


def test_an_open_target_is_isolated_at_the_instant_of_the_word() -> None:
    """Each transition says from which state, and when."""
    gate = tripped(make_gate())
    assert [(moved.transition.from_state, moved.transition.at) for moved in gate.isolate(10.0)] == [
        (BreakerState.OPEN, 10.0),
        (BreakerState.CLOSED, 10.0),
    ]


def test_a_stream_on_probation_that_proves_itself_is_still_judged_by_its_end() -> None:
    """Only a breaker's probe is settled by its content: a cut afterwards is a failure in a row of the breaker."""
    gate = cooled(make_gate())
    stream = admit(gate, 40.0, stream=True)
    stream.prove(50.0)
    stream.settle(failure(FailureClass.TRUNCATED), 51.0)
    assert gate.breakers["stream"].snapshot().failures_in_a_row == 1


# ------------------------------------------------------------------------------------------------ snapshots


def test_a_snapshot_is_what_calls_of_one_kind_move() -> None:
    """The breaker of that kind, the transport, and both rests and throttles, the target's own first."""
    gate = advised(tripped(make_gate(), stream=True))
    gate.count(True, 0.0)
    make_gate(gate.provider, target="p/n").count(True, 0.0)
    shot = gate.snapshot(stream=True)
    assert shot.own == gate.breakers["stream"].snapshot() != gate.snapshot(stream=False).own
    assert shot.transport == gate.provider.transport.snapshot()
    assert shot.rests == (gate.cooldown.snapshot(), gate.credential.snapshot())
    assert [throttle.requests for throttle in shot.throttles] == [6, 7]


def test_a_leases_snapshot_is_what_it_holds() -> None:
    """Two permits, tokens, and its trial; nothing is out when it is settled, and a last resort has no permit."""
    gate = cooled(make_gate(limits=RateLimitTracker(tpm=1000)))
    lease = admit(gate, 10.0)
    assert lease.snapshot() == LeaseSnapshot((gate.cooldown,), 200, 3)
    assert admit(gate, 10.0, last_resort=True).snapshot() == LeaseSnapshot((), 200, 1)
    lease.release(10.0)
    assert lease.snapshot() == LeaseSnapshot((), 200, 0)


def test_a_gate_that_stands_alone_is_throttled_alone() -> None:
    """A path beside the models: what it turns away counts for it, and neither throttles nor clears its siblings."""
    provider = make_provider()
    choke(make_gate(provider))
    model = make_gate(provider, target="p/n")
    path = choke(Gate("p/v1/rerank", provider, alone=True))
    before = provider.throttle.probability(0.0)
    assert not provider.throttled_together(0.0)
    assert isinstance(ask(model, 0.0, roll=0.0), Lease)
    assert ask(path, 0.0, roll=0.0) == Refusal("throttle", 1.0)
    model.count(False, 0.0)
    path.reset_throttle()
    path.count(True, 0.0)
    assert provider.throttled_together(0.0)
    assert provider.throttle.probability(0.0) >= before
    assert isinstance(ask(path, 0.0, roll=0.0), Lease)
