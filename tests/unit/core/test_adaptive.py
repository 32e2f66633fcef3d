"""The adaptive limit: down with pace and refusals, up while calls are borne, still while nobody wants more."""

from __future__ import annotations

import pytest

from smart_model_router.core.adaptive import AdaptiveConfig, AdaptiveLimit
from smart_model_router.core.bulkhead import Bulkhead
from smart_model_router.core.gate import Gate, GateConfig, ProviderState
from smart_model_router.core.lease import Lease
from smart_model_router.core.offline import Connectivity
from smart_model_router.core.ratelimit import Cost
from smart_model_router.errors import ConfigurationError
from smart_model_router.outcome import Failure, FailureClass, Usage, Wait

ON = AdaptiveConfig(enabled=True)


def limit(most: int = 100, config: AdaptiveConfig = ON) -> AdaptiveLimit:
    """Make a limit that knows its provider's usual pace: 20 ms a token."""
    made = AdaptiveLimit(most, config)
    for _ in range(100):
        made.succeeded(0.02, 1)
    return made


def test_it_begins_at_what_the_owner_allows() -> None:
    """Switching it on changes nothing until something is learned."""
    assert AdaptiveLimit(50, ON).limit == 50


def test_a_slower_pace_under_load_lowers_it() -> None:
    """Answers take twice as long per token with the limit in use: it falls, at most by a tenth for each answer."""
    it = limit()
    it.succeeded(0.04, 100)
    assert it.limit == 100  # one slow answer is no trend
    for _ in range(20):
        before = it.limit
        it.succeeded(0.04, it.limit)
        assert 0.9 * before - 1 <= it.limit <= before
    assert it.limit < 70


def test_a_pace_within_tolerance_leaves_it() -> None:
    """One and a half times the usual is borne."""
    it = limit()
    for _ in range(50):
        it.succeeded(0.0295, 100)
    assert it.limit == 100


def test_what_stays_slow_becomes_the_usual() -> None:
    """A provider that is slower for good is not held down for ever."""
    it = limit()
    for _ in range(30):
        it.succeeded(0.04, it.limit)
    fallen = it.limit
    for _ in range(300):
        it.succeeded(0.04, it.limit)
    assert it.limit > fallen


def test_a_fast_pace_after_a_long_slow_time_is_soon_the_usual() -> None:
    """A provider recovered from a long bad time; when it slows down again, that is noticed."""
    slow = AdaptiveLimit(100, ON)
    for _ in range(500):
        slow.succeeded(0.2, 1)
    for _ in range(60):
        slow.succeeded(0.02, 1)
    for _ in range(30):
        slow.succeeded(0.08, slow.limit)
    assert slow.limit < 60


@pytest.mark.parametrize("failures", [1, 5, 50])
def test_a_round_of_refusals_cuts_it_once(failures: int) -> None:
    """Fifty calls admitted together and turned away are one piece of news."""
    it = limit()
    for _ in range(failures):
        it.refused(10.0, 12.0)
    assert it.limit == 90


def test_each_round_of_refusals_cuts_it_again() -> None:
    """A call that was admitted at the new limit and turned away cuts it again."""
    it = limit()
    it.refused(10.0, 12.0)
    it.refused(12.0, 13.0)
    assert it.limit == 81


def test_it_grows_by_one_for_each_round() -> None:
    """A limit of ten grows by one with ten answers."""
    it = AdaptiveLimit(100, ON)
    for at in range(22):
        it.refused(float(at), float(at))
    began = it.limit
    for _ in range(began + 1):
        it.succeeded(0.02, it.limit)
    assert it.limit == began + 1


def test_answers_without_a_token_count_let_it_grow() -> None:
    """Embeddings have no pace, and a provider that answers them bears them."""
    it = limit()
    it.refused(0.0, 0.0)
    for _ in range(100):
        it.succeeded(None, 90)
    assert it.limit == 91


def test_it_does_not_move_while_callers_want_less() -> None:
    """With fewer than half of it in flight answers, fast or slow, say nothing about the limit."""
    it = limit()
    it.refused(0.0, 0.0)
    for pace in (0.02, 0.2):
        for _ in range(200):
            it.succeeded(pace, 44)
    assert it.limit == 90


@pytest.mark.parametrize(("in_flight", "grown"), [(44, 90), (45, 91)])
def test_from_half_of_it_in_flight_on_answers_count(in_flight: int, grown: int) -> None:
    """Of ninety that is forty-five."""
    it = limit()
    it.refused(0.0, 0.0)
    for _ in range(91):
        it.succeeded(None, in_flight)
        if it.limit == grown:
            break
    assert it.limit == grown


def test_instant_answers_are_no_slowdown() -> None:
    """A pace of nothing is a pace."""
    it = AdaptiveLimit(10, ON)
    for _ in range(10):
        it.succeeded(0.0, 10)
    assert it.limit == 10


def test_it_stays_within_its_bounds() -> None:
    """Never under the minimum, never over what the owner allows, nor over that when it is less than the minimum."""
    it = limit(100, AdaptiveConfig(enabled=True, minimum=8))
    for at in range(100):
        it.refused(float(at), float(at))
    assert it.limit == 8
    it.resize(4)
    assert it.limit == 4
    it.resize(20)
    assert it.limit == 20
    for _ in range(100):
        it.succeeded(0.02, 20)
    assert it.limit == 20


def test_a_new_allowance_does_not_lift_what_was_learned() -> None:
    """Learned down to 90 of 100; allowed 200, it is still 90; allowed 50, it is 50."""
    it = limit()
    it.refused(0.0, 0.0)
    it.resize(200)
    assert it.limit == 90
    it.resize(50)
    assert it.limit == 50


@pytest.mark.parametrize("nonsense", [{"minimum": 0}, {"tolerance": 0.9}, {"decrease": 1.0}, {"decrease": 0.0}])
def test_nonsense_is_refused(nonsense: dict[str, float]) -> None:
    """A limit of none, a tolerance below the usual, a decrease that is none or all."""
    with pytest.raises(ConfigurationError):
        AdaptiveConfig(**nonsense)  # type: ignore[arg-type]  # that is the point


# At the gate -------------------------------------------------------------------------------------------


def gate(config: AdaptiveConfig, slots: int = 10) -> Gate:
    """Make a target with so many slots."""
    return Gate(
        "p/m",
        ProviderState("p", slots=slots, remote=True, connectivity=Connectivity(1), config=GateConfig(adaptive=config)),
    )


def make_sibling(target: Gate) -> Gate:
    """Another target of its provider."""
    return Gate("p/n", target.provider, credential=1)


def admit(target: Gate, now: float) -> Lease:
    """Have a call admitted."""
    got = target.try_admit(Cost(0, 0), now, 0.999)
    assert isinstance(got, Lease)
    return got


@pytest.mark.parametrize("failure_class", [FailureClass.RATE_LIMITED, FailureClass.OVERLOADED])
def test_429_and_529_lower_the_bulkhead(failure_class: FailureClass) -> None:
    """When it is on; what is in flight stays in flight, and nobody new comes in until there is room (I10)."""
    target = gate(ON)
    leases = [admit(target, 0.0) for _ in range(10)]
    leases.pop().settle(Failure(failure_class), 1.0)
    bulkhead = target.provider.bulkhead
    assert (bulkhead.limit, bulkhead.in_flight, bulkhead.free) == (9, 9, 0)
    leases.pop().settle(None, 1.0)
    assert bulkhead.free == 1


def test_the_bulkhead_is_lowered_once_for_each_round() -> None:
    """Refused at 1 s: who was admitted before says nothing new, who was admitted since lowers it again."""
    target = gate(ON, slots=100)
    first, second = admit(target, 0.0), admit(target, 0.5)
    first.settle(Failure(FailureClass.RATE_LIMITED), 1.0)
    second.settle(Failure(FailureClass.RATE_LIMITED, wait=Wait(0.05, "minute")), 2.0)
    assert target.provider.bulkhead.limit == 90
    admit(make_sibling(target), 3.0).settle(Failure(FailureClass.OVERLOADED), 4.0)
    assert target.provider.bulkhead.limit == 81


def test_other_failures_leave_it() -> None:
    """A 500 says nothing of room."""
    target = gate(ON)
    admit(target, 0.0).settle(Failure(FailureClass.SERVER_ERROR), 1.0)
    assert target.provider.bulkhead.limit == 10


def test_off_nothing_moves() -> None:
    """The default: slots are slots."""
    target = gate(AdaptiveConfig())
    for at in range(2):
        admit(target, float(at)).settle(Failure(FailureClass.OVERLOADED), float(at))
    assert target.provider.bulkhead.limit == 10


def paced(target: Gate, seconds: float, tokens: int, unread: float = 0.0) -> int:
    """Serve rounds of as many calls as are let in, each of so many seconds and tokens; the limit after them."""
    usual = [admit(target, 0.0) for _ in range(4)]
    for lease in usual:
        lease.settle(None, 2.0, usage=Usage(10, 100))
    now = 10.0
    for _ in range(10):
        leases = [admit(target, now) for _ in range(target.provider.bulkhead.free)]
        now += seconds + unread
        for lease in leases:
            lease.unread = unread
            lease.settle(None, now, usage=Usage(10, tokens))
    return target.provider.bulkhead.limit


def test_seconds_per_token_lower_the_bulkhead() -> None:
    """Five times the usual seconds per output token: fewer calls at once. Longer answers alone: no."""
    assert paced(gate(ON), seconds=10.0, tokens=100) < 7
    assert paced(gate(ON), seconds=10.0, tokens=500) == 10


def test_short_answers_and_slow_readers_are_no_slowdown() -> None:
    """A few tokens took mostly the time to the first; a stream that waited for its reader was not slow."""
    assert paced(gate(ON), seconds=10.0, tokens=15) == 10
    assert paced(gate(ON), seconds=10.0, tokens=16) < 10
    assert paced(gate(ON), seconds=2.0, tokens=100, unread=60.0) == 10


def test_the_least_of_both_limits_binds() -> None:
    """A limit learned from 'too many at once' and the adaptive one: the smaller."""
    bulkhead = Bulkhead(10, adaptive=ON)
    for _ in range(5):
        bulkhead.enter()
    bulkhead.shrink(0.0)
    assert bulkhead.limit == 4
    bulkhead.refused(0.0, 0.0)
    assert bulkhead.limit == 4
    bulkhead.resize(3)
    assert bulkhead.limit == 3
