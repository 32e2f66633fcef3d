"""The learned limit: lower only where refusals depend on the number in flight, higher while calls are borne."""

from __future__ import annotations

import math
from copy import deepcopy

import pytest

from smart_model_router.core.capacity import AdaptiveConfig, LearnedLimit
from smart_model_router.core.flow_config import GateConfig
from smart_model_router.core.gate import Gate
from smart_model_router.core.lease import Lease
from smart_model_router.core.ratelimit import Cost
from smart_model_router.core.target_state import Connectivity, ProviderState
from smart_model_router.domain.outcome import Failure, FailureClass, Refusal, Wait

OVERLOADED, RATE_LIMITED, TIMEOUT = FailureClass.OVERLOADED, FailureClass.RATE_LIMITED, FailureClass.TIMEOUT


def served(most: int = 10, calls: int = 30, at: int = 1, seconds: float = 1.0) -> LearnedLimit:
    """Make a limit that saw so many calls answered, each sent as the `at`-th in flight."""
    made = LearnedLimit(most)
    for _ in range(calls):
        made.accepted(at, seconds, 0.0)
    return made


def refuse(limit: LearnedLimit, at: int, times: int = 2, now: float = 0.0) -> int:
    """So many calls sent as the `at`-th in flight are turned away; the limit after them."""
    for _ in range(times):
        limit.refused(at, now, ())
    return limit.limit


def fallen(to: int = 5, now: float = 0.0) -> LearnedLimit:
    """Make a limit of ten that has just fallen; a call takes a second."""
    made = served()
    assert refuse(made, to + 1, now=now) == to
    return made


# ------------------------------------------------------------------------------------------------ falling


def test_it_begins_at_the_slots() -> None:
    """Nothing is learned yet."""
    assert LearnedLimit(50).limit == 50


@pytest.mark.parametrize(("refusals", "limit"), [(1, 10), (2, 5)])
def test_refusals_above_a_number_lower_it_below_that_number(refusals: int, limit: int) -> None:
    """30 of 30 answered with one in flight: two refusals of a sixth call are odds of 200, one is not."""
    assert refuse(served(), 6, refusals) == limit


@pytest.mark.parametrize(("below", "refusals"), [(1, 46), (4, 6), (18, 3), (24, 2), (40, 2)])
def test_the_fewer_calls_were_answered_the_more_refusals_it_takes(below: int, refusals: int) -> None:
    """What the usual share is follows from few answers with much doubt: one answer and six refusals are no odds."""
    limit = served(calls=below)
    assert refuse(limit, 6, refusals - 1) == 10
    assert refuse(limit, 6, 1) == 5


def test_the_usual_share_may_be_low() -> None:
    """Of ten calls alone five were answered: sixteen refusals of a sixth are needed."""
    limit = served(calls=5)
    refuse(limit, 1, 5)
    assert refuse(limit, 6, 15) == 10
    assert refuse(limit, 6, 1) == 5


@pytest.mark.parametrize(("below", "refusals"), [(1, 6), (4, 4), (18, 2), (40, 2)])
def test_refusals_with_a_hint_are_believed_sooner(below: int, refusals: int) -> None:
    """The provider asks for a pause: the usual share is (answered + 1) / (known + 2), at most 95 %."""
    limit = served(calls=below)
    for _ in range(refusals):
        assert limit.limit == 10
        limit.refused(6, 0.0, (), hinted=True)
    assert limit.limit == 5


def hinted(limit: LearnedLimit, times: int) -> int:
    """So many calls sent as the sixth in flight are told to pause; the limit after them."""
    for _ in range(times):
        limit.refused(6, 0.0, (), hinted=True)
    return limit.limit


def test_where_few_are_answered_it_takes_many_hints() -> None:
    """One of eight alone was answered, a fifth by the estimate: 27 refusals of a sixth with a hint, not two."""
    limit = served(calls=1)
    refuse(limit, 1, 7)
    assert hinted(limit, 26) == 10
    assert hinted(limit, 1) == 5


def test_an_answer_with_as_many_in_flight_speaks_against_hints() -> None:
    """One answered as the sixth outweighs a refusal with a hint: three are needed, not two."""
    limit = served()
    limit.accepted(6, 1.0, 0.0)
    assert hinted(limit, 2) == 10
    assert hinted(limit, 1) == 5


def test_without_an_answer_below_it_a_refusal_lowers_nothing() -> None:
    """All are turned away, one at a time or more: that says nothing about the number in flight."""
    limit = LearnedLimit(10)
    refuse(limit, 1, 1)
    assert refuse(limit, 6, 58) == 10


def test_without_an_outcome_below_it_a_refusal_lowers_nothing() -> None:
    """Every call is turned away: that says nothing about the number in flight."""
    assert refuse(LearnedLimit(10), 6, 60) == 10
    assert refuse(served(), 1, 60) == 10


def test_an_answer_with_as_many_in_flight_speaks_against_a_fall() -> None:
    """One answered at the sixth outweighs a refusal: three refusals are needed, not two."""
    limit = served()
    limit.accepted(6, 1.0, 0.0)
    assert refuse(limit, 6, 2) == 10
    assert refuse(limit, 6, 1) == 5


def test_calls_that_outlived_the_refusal_count_as_answered() -> None:
    """Two refusals at the sixth while the seventh and eighth are being served lower nothing."""
    limit = served()
    for _ in range(2):
        limit.refused(6, 0.0, (1, 7, 8))
    assert limit.limit == 10


def test_calls_in_flight_below_it_count_as_the_usual_share() -> None:
    """No call has ended yet: twenty that are being served are the share that two refusals are compared with."""
    limit = LearnedLimit(30)
    for _ in range(2):
        limit.refused(21, 0.0, tuple(range(1, 21)))
    assert limit.limit == 20


def test_the_sixty_newest_outcomes_count() -> None:
    """A refusal that sixty answers followed is forgotten; one that fifty-nine followed is not."""
    for answers, limit in ((59, 10), (58, 5)):
        learned = served()
        learned.refused(6, 0.0, ())
        for _ in range(answers):
            learned.accepted(1, 1.0, 0.0)
        assert refuse(learned, 6, 1) == limit


@pytest.mark.parametrize("refused_of_seven", [1, 2, 3, 4])
def test_refusals_that_do_not_depend_on_the_number_move_nothing(refused_of_seven: int) -> None:
    """Two thousand calls at one to ten in flight, up to 57 % of each refused in turn: the limit stays."""
    limit = LearnedLimit(10)
    for n in range(2000):
        if n % 7 < refused_of_seven:
            limit.refused(n % 10 + 1, float(n), ())
        else:
            limit.accepted(n % 10 + 1, 1.0, float(n))
        assert limit.limit == 10


def test_it_never_falls_below_one() -> None:
    """A second call at once is always refused: one is left, however long that goes on."""
    limit = served()
    assert refuse(limit, 2, 60) == 1


def test_a_refusal_of_a_number_above_it_does_not_lift_it() -> None:
    """It fell to five while a ninth call was in flight: that one's refusal changes nothing."""
    assert refuse(fallen(), 9, 2) == 5


# ------------------------------------------------------------------------------------------------ growing


def test_it_grows_by_one_for_each_service_time() -> None:
    """Answers take a second: after the hold one more each second, however many answers there are."""
    limit, seen = fallen(), []
    for n in range(20, 40):
        limit.accepted(limit.limit, 1.0, n / 4)
        seen.append(limit.limit)
    assert seen == [6] * 4 + [7] * 4 + [8] * 4 + [9] * 4 + [10] * 4


def test_the_first_fall_is_held_for_two_service_times() -> None:
    """Fallen at 100 s, answers take a second: nothing grows before 102 s."""
    limit = fallen(now=100.0)
    limit.accepted(5, 1.0, 101.999)
    assert limit.limit == 5
    limit.accepted(5, 1.0, 102.0)
    assert limit.limit == 6


def test_a_hold_is_so_many_service_times() -> None:
    """Answers take three seconds: the first hold lasts six."""
    limit = served(seconds=3.0)
    refuse(limit, 6, now=100.0)
    assert not grows(limit, 105.999)
    assert grows(limit, 106.0)


def test_a_refusal_just_above_a_fallen_limit_prolongs_its_hold_and_not_the_next() -> None:
    """It is no fall: from the refusal on two service times, not four."""
    limit = fallen()
    limit.refused(6, 50.0, ())
    assert not grows(limit, 51.999)
    assert grows(limit, 52.0)


@pytest.mark.parametrize(("growths", "hold"), [(0, 4.0), (1, 3.8), (2, 3.61), (13, 2.0534), (14, 2.0), (20, 2.0)])
def test_growth_shortens_the_next_hold(growths: int, hold: float) -> None:
    """By a twentieth each time; the next fall is held for two service times at least."""
    limit = served(most=30)
    refuse(limit, 6)
    for n in range(growths):
        limit.accepted(limit.limit, 1.0, 10.0 + n)
    for _ in range(60):
        limit.accepted(1, 1.0, 50.0)
    assert refuse(limit, 4, now=100.0) == 3
    assert not grows(limit, 100.0 + hold - 0.001)
    assert grows(limit, 100.0 + hold + 0.001)


def test_each_further_fall_is_held_twice_as_long_up_to_sixteen() -> None:
    """2, 4, 8, 16 and 16 service times."""
    limit, holds = served(most=20), []
    for at in (15, 13, 11, 9, 7):
        fell_at = 1000.0 * (20 - at)
        assert refuse(limit, at, now=fell_at) == at - 1
        holds.append([hold for hold in (1, 2, 4, 8, 16, 32) if not grows(limit, fell_at + hold - 0.001)][-1])
        for _ in range(60):
            limit.accepted(1, 1.0, fell_at)
    assert holds == [2, 4, 8, 16, 16]


def grows(limit: LearnedLimit, now: float) -> bool:
    """Whether an answer at the limit, at `now`, would raise it; the limit is left as it was."""
    probe = deepcopy(limit)
    probe.accepted(limit.limit, 1.0, now)
    return probe.limit > limit.limit


@pytest.mark.parametrize(("at", "limit"), [(3, 5), (4, 6), (5, 6)])
def test_it_does_not_grow_while_callers_want_less(at: int, limit: int) -> None:
    """Of five the fourth has to be in use: what nobody asks for is not learned."""
    learned = fallen()
    learned.accepted(at, 1.0, 100.0)
    assert learned.limit == limit


def test_it_never_grows_above_the_slots() -> None:
    """Ten are all."""
    limit = fallen()
    for n in range(100):
        limit.accepted(limit.limit, 1.0, 100.0 + n)
    assert limit.limit == 10


def test_a_doubtful_refusal_at_the_limit_delays_its_growth() -> None:
    """One refusal at the limit is odds of 18: no fall, but no growth for the length of a hold either."""
    limit = fallen()
    for _ in range(60):
        limit.accepted(1, 1.0, 0.0)
    limit.refused(5, 50.0, ())
    assert limit.limit == 5
    limit.accepted(4, 1.0, 51.999)
    assert limit.limit == 5
    limit.accepted(4, 1.0, 52.0)
    assert limit.limit == 6


@pytest.mark.parametrize("at", [4, 5])
def test_a_refusal_that_says_nothing_of_the_number_delays_nothing(at: int) -> None:
    """Below the limit, or where calls with as many in flight are answered."""
    limit = fallen()
    for _ in range(60):
        limit.accepted(5 if at == 5 else 1, 1.0, 0.0)
    limit.refused(at, 50.0, ())
    limit.accepted(5, 1.0, 50.0)
    assert limit.limit == 6


# ------------------------------------------------------------------------------------------------ the service time


def test_the_service_time_is_the_median_of_fifty_answers() -> None:
    """A second while nothing is known; then the newest fifty decide."""
    limit = LearnedLimit(10)
    assert limit.service_time == 1.0
    for seconds in (2.0, 9.0, 4.0):
        limit.accepted(1, seconds, 0.0)
    assert limit.service_time == 4.0
    for seconds, answers in ((2.0, 50), (20.0, 25)):
        for _ in range(answers):
            limit.accepted(1, seconds, 0.0)
    assert limit.service_time == 20.0


def test_a_refusal_has_no_service_time() -> None:
    """It took milliseconds, and says nothing of how long an answer takes."""
    limit = served(seconds=8.0)
    refuse(limit, 6, 60)
    assert limit.service_time == 8.0


# ------------------------------------------------------------------------------------------------ the owner


def test_a_limit_at_the_slots_follows_them() -> None:
    """Nothing was learned: twice the slots are twice the limit, half of them half."""
    limit = LearnedLimit(10)
    limit.resize(20)
    assert limit.limit == 20
    limit.resize(5)
    assert limit.limit == 5


def test_more_slots_do_not_lift_a_limit_that_was_learned() -> None:
    """Fallen to five of ten: five of twenty, three of three, and from there on at the slots."""
    limit = fallen()
    limit.resize(20)
    assert limit.limit == 5
    limit.resize(3)
    assert limit.limit == 3
    limit.resize(8)
    assert limit.limit == 8


def test_reset_forgets_what_was_learned() -> None:
    """The limit, its hold and every outcome; how long an answer takes is no matter of the number."""
    limit = served(seconds=3.0)
    refuse(limit, 6)
    limit.reset()
    assert limit.limit == 10
    assert limit.service_time == 3.0
    assert refuse(limit, 6, 60) == 10
    for _ in range(60):
        limit.accepted(1, 1.0, 0.0)
    assert refuse(limit, 6) == 5
    limit.accepted(5, 1.0, 2.0)
    assert limit.limit == 6


# ------------------------------------------------------------------------------------------------ at the gate


def make_gate(slots: int = 10, *, adaptive: bool = True) -> Gate:
    """Make a target of a provider with so many slots."""
    config = GateConfig(adaptive=AdaptiveConfig(enabled=adaptive))
    return Gate("p/m", ProviderState("p", slots=slots, remote=True, connectivity=Connectivity(1), config=config))


def admit(gate: Gate, now: float) -> Lease:
    """Have a call admitted although the target is ill."""
    got = gate.try_admit(Cost(0, 0), now, 0.999, pacing="on")
    assert isinstance(got, Lease)
    return got


def learned(gate: Gate) -> int:
    """The learned limit of a gate that has one."""
    assert gate.learned is not None
    return gate.learned.limit


def overload(gate: Gate, failure: Failure) -> int:
    """Send eight calls three times, at 100 s and later; each time the last three fail in 50 ms, five are answered.

    The limit at 108 s: it takes an answer to a call that was sent after the first refusal.
    """
    for n in range(20):
        admit(gate, float(n)).settle(None, n + 0.5)
    for sent_at in (100.0, 103.0, 106.0):
        leases = [admit(gate, sent_at) for _ in range(8)]
        for lease in reversed(leases[5:]):
            lease.settle(failure, sent_at + 0.05)
        for lease in leases[:5]:
            lease.settle(None, sent_at + 2.0)
    return learned(gate)


@pytest.mark.parametrize(
    "failure",
    [
        Failure(OVERLOADED),
        Failure(RATE_LIMITED),
        Failure(TIMEOUT),
        Failure(OVERLOADED, wait=Wait(2.0, "overload")),
    ],
    ids=["529", "429", "timeout", "529 with two seconds"],
)
def test_overload_lowers_the_limit_to_what_is_borne(failure: Failure) -> None:
    """Of eight at once five are borne: five remain, and no breaker opens."""
    gate = make_gate()
    assert overload(gate, failure) == 5
    assert gate.breakers["whole"].is_closed


@pytest.mark.parametrize(
    "failure",
    [
        Failure(FailureClass.SERVER_ERROR),
        Failure(FailureClass.AUTH),
        Failure(FailureClass.TRANSPORT),
        Failure(FailureClass.CANCELLED),
        Failure(FailureClass.WARMING),
    ],
    ids=lambda failure: failure.failure_class,
)
def test_other_failures_say_nothing_of_the_number(failure: Failure) -> None:
    """They are no sign that too many are in flight."""
    assert not turned_away(failure).evidence.stormy
    assert turned_away(Failure(OVERLOADED)).evidence.stormy


def turned_away(failure: Failure) -> Gate:
    """Send 75 calls at once, all of which fail in 50 ms."""
    gate = make_gate(75)
    for lease in [admit(gate, 100.0) for _ in range(75)]:
        lease.settle(failure, 100.05)
    return gate


def test_a_hint_of_more_than_two_seconds_means_later_and_not_fewer() -> None:
    """2.1 s say when, two seconds say that there are too many."""
    assert overload(make_gate(), Failure(RATE_LIMITED, wait=Wait(2.0))) == 5
    assert overload(make_gate(), Failure(RATE_LIMITED, wait=Wait(2.1))) == 10


def test_the_learned_limit_is_the_targets_own_and_refuses_as_a_full_bulkhead() -> None:
    """Five are in flight: the sixth waits for a slot; another target of the provider takes its calls."""
    gate = make_gate()
    overload(gate, Failure(OVERLOADED))
    leases = [admit(gate, 108.0) for _ in range(5)]
    assert gate.free_slots == 0
    assert gate.try_admit(Cost(0, 0), 108.0, 0.999, pacing="on") == Refusal("bulkhead")
    assert gate.free_share(108.0) == 0.0
    sibling = Gate("p/n", gate.provider)
    assert sibling.free_slots == 5
    leases[0].release(108.0)
    assert gate.free_slots == 1


def test_adaptive_off_learns_nothing() -> None:
    """Slots are slots, and how long a wait for one takes is not known."""
    gate = make_gate(adaptive=False)
    admit(gate, 0.0).settle(None, 0.0)
    for lease in [admit(gate, 0.0) for _ in range(10)]:
        lease.settle(Failure(OVERLOADED), 0.0)
    assert gate.learned is None
    gate.resize()
    gate.close(1.0)
    assert gate.free_slots == 10
    assert gate.expected_wait == math.inf


def test_the_expected_wait_for_a_slot_is_the_service_time_by_the_limit() -> None:
    """Answers take half a second, ten at once: 50 ms; with five slots twice that."""
    gate = make_gate()
    admit(gate, 0.0).settle(None, 0.5)
    assert gate.expected_wait == 0.05
    gate.provider.bulkhead.resize(5)
    gate.resize()
    assert gate.expected_wait == 0.1
    assert learned(gate) == 5


def test_the_time_that_a_stream_waited_for_its_reader_is_no_service_time() -> None:
    """Ten seconds of which the reader took eight: two."""
    gate = make_gate()
    lease = admit(gate, 0.0)
    lease.unread = 8.0
    lease.settle(None, 10.0)
    assert gate.learned is not None
    assert gate.learned.service_time == 2.0


def test_the_operators_yes_forgets_the_learned_limit() -> None:
    """Full load at once."""
    gate = make_gate()
    overload(gate, Failure(OVERLOADED))
    gate.close(103.0)
    assert learned(gate) == 10


def test_it_is_on_unless_switched_off() -> None:
    """The default."""
    assert AdaptiveConfig() == AdaptiveConfig(enabled=True)
