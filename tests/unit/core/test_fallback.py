"""What one request may still try: attempts by target, tier and total, the quick retry, who is worth waiting for."""

from __future__ import annotations

import pytest

from smart_model_router.core.fallback import AttemptHistory, comes_due, gate_waits, least_retry_after
from smart_model_router.core.flow_config import RoutingConfig
from smart_model_router.core.selection import Candidate
from smart_model_router.core.tiers import Plan, TargetFacts, Tier
from smart_model_router.domain.outcome import REFUSAL_REASONS, Failure, FailureClass, NextTarget, Refusal, Wait
from smart_model_router.domain.request import Target


def facts(model: str, context_tokens: int | None = None) -> TargetFacts:
    """Make the facts of a target of provider `p`."""
    name = f"p/{model}"
    return TargetFacts(
        Target(name, "p", model), Candidate(name, "p", 0), frozenset({"chat"}), context_tokens=context_tokens
    )


A, B, C = facts("a", 1000), facts("b", 2000), facts("c")
LATER = [FailureClass.RATE_LIMITED, FailureClass.OVERLOADED, FailureClass.WARMING]
RETRIED = [c for c in FailureClass if c.policy.retry_same]
ERROR = FailureClass.SERVER_ERROR


def progress(*targets: TargetFacts, config: RoutingConfig | None = None) -> AttemptHistory:
    """Begin a request over one tier of these targets."""
    tier = Tier("frontier", targets)
    return AttemptHistory(config or RoutingConfig(), Plan("frontier", (tier,), (), first=targets[0].id))


def note(tries: AttemptHistory, target: TargetFacts, failure_class: FailureClass, again_at: float = 0.0) -> None:
    """A call of the frontier tier failed; the target may be asked again at `again_at`."""
    tries.note(target, "frontier", Failure(failure_class), again_at)


def test_a_request_that_tried_nothing_may_try_everything() -> None:
    """No refusal, nothing used."""
    tries = progress(A, B)
    assert tries.refusal(A, 0.0) is None
    assert (tries.used, tries.untried(), tries.exhausted) == (0, 2, False)
    assert not tries.tried(A.id)
    assert not tries.tier_is_spent("frontier")
    assert tries.last_resort_allowed()


def test_a_failed_target_is_not_asked_again() -> None:
    """Others are."""
    tries = progress(A, B)
    note(tries, A, ERROR)
    assert tries.refusal(A, 1e6) == Refusal("filtered:failed")
    assert tries.refusal(B, 0.0) is None
    assert tries.tried(A.id)
    assert (tries.used, tries.untried()) == (1, 1)
    assert [(f.id, failure.failure_class) for f, failure in tries.failures] == [("p/a", ERROR)]


@pytest.mark.parametrize("failure_class", LATER)
def test_a_target_that_said_later_is_asked_again_after_its_back_off(failure_class: FailureClass) -> None:
    """Before the instant the request refuses the target as cooling, at the instant it does not."""
    tries = progress(A, B)
    note(tries, A, failure_class, again_at=11.0)
    assert tries.refusal(A, 10.999) == Refusal("cooldown", 11.0)
    assert tries.refusal(A, 11.0) is None
    assert tries.refusal(B, 10.0) is None


def test_of_several_targets_none_is_asked_three_times_for_the_rest_of_an_answer() -> None:
    """Before the answer is gone on with, and where the plan has no other target, a third call is made."""
    tries, alone = progress(A, B), progress(A)
    for each in (tries, alone):
        note(each, A, FailureClass.TRUNCATED)
        each.resume()
        assert each.pause(A, 0.0) is None
        note(each, A, FailureClass.TRUNCATED)
    assert tries.pause(A, 0.0) == Refusal("filtered:failed")
    assert tries.pause(B, 0.0) is None
    assert alone.pause(A, 0.0) is None
    usual = progress(A, B)
    note(usual, A, FailureClass.TRUNCATED)
    note(usual, A, FailureClass.TRUNCATED)
    assert usual.pause(A, 0.0) is None


PASSING = {*LATER, *RETRIED, FailureClass.TIMEOUT, FailureClass.CANCELLED}
"""Classes after which the same target may answer the same request."""


@pytest.mark.parametrize("failure_class", sorted(PASSING))
def test_a_failed_target_is_asked_again_where_no_other_is_free(failure_class: FailureClass) -> None:
    """After its back-off, to the instant."""
    tries = progress(A)
    note(tries, A, failure_class, again_at=3.0)
    assert tries.pause(A, 2.999) == Refusal("cooldown", 3.0)
    assert tries.pause(A, 3.0) is None


SMALL = {FailureClass.CONTEXT_LENGTH, FailureClass.TOO_LARGE}
"""Classes that only a larger context helps against."""


@pytest.mark.parametrize("failure_class", sorted(set(FailureClass) - PASSING))
def test_a_fault_of_the_request_or_the_key_does_not_pass(failure_class: FailureClass) -> None:
    """The same target would say the same, however long the request waits."""
    tries = progress(A)
    note(tries, A, failure_class, again_at=3.0)
    assert tries.pause(A, 1e6) == Refusal("filtered:context" if failure_class in SMALL else "filtered:failed")


def test_attempts_of_a_target_count_only_while_another_is_free() -> None:
    """Two failures use the target up; where no other is free it is asked a third time."""
    tries = progress(A)
    for _ in range(2):
        note(tries, A, ERROR)
    assert tries.refusal(A, 1e6) == Refusal("filtered:failed")
    assert tries.pause(A, 0.0) is None
    assert tries.tries(A.id) == 2
    assert tries.tries(B.id) == 0


def test_an_untried_target_has_no_back_off() -> None:
    """The pause is that of a failed call."""
    assert progress(A).pause(A, 0.0) is None


def test_a_provider_that_says_not_again_is_not_asked_again() -> None:
    """Also where no other target is free."""
    tries = progress(A)
    tries.note(A, "frontier", Failure(ERROR, not_again=True), 0.0)
    assert tries.pause(A, 1e6) == Refusal("filtered:failed")


def test_a_later_of_a_target_that_forbids_a_repetition_lasts_for_its_back_off() -> None:
    """A 429 that says "not again": asked again after its back-off, as where another target is free."""
    tries = progress(A)
    tries.note(A, "frontier", Failure(FailureClass.RATE_LIMITED, not_again=True), 3.0)
    assert tries.pause(A, 2.999) == tries.refusal(A, 2.999) == Refusal("cooldown", 3.0)
    assert tries.pause(A, 3.0) is None


def test_a_target_that_was_ruled_out_is_not_asked_again() -> None:
    """The request would mean something else there, however long it waits."""
    tries = progress(A)
    note(tries, A, ERROR)
    assert tries.rule_out(A.id, "tool calls") == Refusal("filtered:translation")
    assert tries.pause(A, 1e6) == Refusal("filtered:translation")


def test_a_smaller_context_is_not_asked_again_after_a_prompt_that_was_too_long() -> None:
    """A failed with a 500, then the larger B said that the prompt is too long: A stays out, also without another."""
    tries = progress(A, B)
    note(tries, A, ERROR)
    note(tries, B, FailureClass.CONTEXT_LENGTH)
    assert tries.pause(A, 0.0) == Refusal("filtered:context")


def test_a_request_is_untouched_until_a_target_fails_or_is_ruled_out() -> None:
    """Only then is any target worth a look before it is waited for."""
    assert not progress(A, B).touched
    tries = progress(A, B)
    note(tries, A, ERROR)
    assert tries.touched
    tries = progress(A, B)
    tries.rule_out(B.id, "tool calls")
    assert tries.touched


def test_a_failed_probe_of_an_open_target_counts_nowhere() -> None:
    """No attempt of the six, of the target or of its tier; the failure is remembered, and its back-off."""
    tries = progress(A)
    tries.note(A, "frontier", Failure(ERROR), 4.0, probe=True)
    assert (tries.used, tries.left, len(tries.failures)) == (0, 6, 1)
    assert tries.tried(A.id)
    assert tries.pause(A, 3.0) == Refusal("cooldown", 4.0)


@pytest.mark.parametrize(
    ("failure", "waits"),
    [
        (Failure(FailureClass.RATE_LIMITED, wait=Wait(2.0)), True),
        (Failure(FailureClass.OVERLOADED, wait=Wait(0.5, "overload")), True),
        (Failure(FailureClass.WARMING), True),
        (Failure(FailureClass.RATE_LIMITED, wait=Wait(0.0, "concurrency")), False),
        (Failure(FailureClass.RATE_LIMITED), False),
        (Failure(FailureClass.OVERLOADED), False),
    ],
    ids=["hinted 429", "hinted 529", "warming", "fewer at once", "429", "529"],
)
def test_the_gate_itself_waits_where_a_time_is_known(failure: Failure, waits: bool) -> None:
    """Where it does not, the request backs off by itself."""
    assert gate_waits(failure) is waits


def test_later_is_no_attempt_of_the_target_or_its_tier() -> None:
    """One attempt each is allowed, and an overload was none: after its pause the target may be asked."""
    tries = progress(A, config=RoutingConfig(attempts_per_target=1, attempts_per_tier=1))
    note(tries, A, FailureClass.OVERLOADED)
    assert tries.refusal(A, 1.0) is None
    assert tries.may_retry_same(A, Failure(ERROR))
    assert not tries.tier_is_spent("frontier")
    note(tries, A, ERROR)
    assert tries.tier_is_spent("frontier")
    assert not tries.may_retry_same(A, Failure(ERROR))
    note(tries, A, FailureClass.OVERLOADED)
    assert tries.refusal(A, 1e6) == Refusal("filtered:failed")


def test_later_does_not_reset_what_a_target_has_used() -> None:
    """Two counted attempts, then a 429: used up."""
    tries = progress(A)
    for failure_class in (ERROR, ERROR, FailureClass.RATE_LIMITED):
        note(tries, A, failure_class)
    assert tries.refusal(A, 1e6) == Refusal("filtered:failed")


def test_six_attempts_are_all() -> None:
    """Five are not."""
    tries = progress(*(facts(str(n)) for n in range(7)))
    for n in range(6):
        assert not tries.exhausted
        note(tries, facts(str(n)), ERROR)
    assert tries.exhausted


def test_three_attempts_are_a_tiers_share() -> None:
    """Answers that said later do not count, other tiers are untouched."""
    tries = progress(A, B, C)
    for failure_class in (ERROR, FailureClass.RATE_LIMITED, ERROR):
        note(tries, A, failure_class)
    assert not tries.tier_is_spent("frontier")
    note(tries, B, ERROR)
    assert tries.tier_is_spent("frontier")
    assert not tries.tier_is_spent("standard")


@pytest.mark.parametrize("failure_class", LATER)
def test_waiting_pays_back_what_said_later(failure_class: FailureClass) -> None:
    """Those answers count toward the six, and not when the request then waits; others stay counted."""
    tries = progress(A, B)
    note(tries, A, failure_class)
    note(tries, A, failure_class)
    note(tries, B, ERROR)
    assert tries.used == 3
    tries.waited()
    assert tries.used == 1
    tries.waited()
    assert tries.used == 1


def test_two_rejections_by_fallbacks_end_a_request() -> None:
    """And after one the last resort would only say the same, worse."""
    tries = progress(A, B, C)
    note(tries, A, FailureClass.REJECTED_BY_FALLBACK)
    assert not tries.exhausted
    assert not tries.last_resort_allowed()
    note(tries, B, FailureClass.REJECTED_BY_FALLBACK)
    assert tries.exhausted


@pytest.mark.parametrize("failure_class", [c for c in FailureClass if c.policy.next is NextTarget.LARGER_ONLY])
def test_a_prompt_too_long_goes_to_larger_contexts_only(failure_class: FailureClass) -> None:
    """Larger than the largest that refused, as configured or as the refusal names it."""
    tries = progress(A, B)
    note(tries, B, failure_class)
    assert tries.refusal(A, 0.0) == Refusal("filtered:context")
    assert tries.refusal(B, 0.0) == Refusal("filtered:context")
    assert tries.refusal(facts("d", 2001), 0.0) is None
    note(tries, A, failure_class)
    assert tries.refusal(facts("e", 1500), 0.0) == Refusal("filtered:context")
    tries.note(facts("d", 2001), "frontier", Failure(failure_class, context_tokens=3000), 0.0)
    assert tries.refusal(facts("f", 3000), 0.0) == Refusal("filtered:context")
    assert tries.refusal(facts("g", 3001), 0.0) is None


@pytest.mark.parametrize("first", [B, C])
def test_one_unknown_context_may_be_larger(first: TargetFacts) -> None:
    """After a prompt was too long one target of unknown size is asked, and no second one when it was too small, too."""
    tries = progress(first)
    note(tries, first, FailureClass.CONTEXT_LENGTH)
    unknown = facts("d")
    assert tries.refusal(unknown, 0.0) is None
    least = Refusal("filtered:context") if first.context else None
    assert tries.refusal(facts("tiny", 1), 0.0) == least
    note(tries, unknown, FailureClass.CONTEXT_LENGTH)
    assert tries.refusal(facts("e"), 0.0) == Refusal("filtered:context")
    note(tries, facts("f", 5000), FailureClass.CONTEXT_LENGTH)
    assert tries.refusal(facts("g"), 0.0) == Refusal("filtered:context")
    assert tries.refusal(facts("h", 5001), 0.0) is None


def test_a_400_is_native_only_from_the_first_target_at_first() -> None:
    """From another target, after a failure, or of another class it is not the caller's own."""
    rejected = Failure(FailureClass.INVALID_REQUEST)
    tries = progress(A, B)
    assert tries.native_rejection(A, rejected)
    assert not tries.native_rejection(B, rejected)
    assert not tries.native_rejection(A, Failure(ERROR))
    note(tries, B, ERROR)
    assert not tries.native_rejection(A, rejected)


@pytest.mark.parametrize("failure_class", list(FailureClass))
def test_the_table_decides_what_is_retried_at_once(failure_class: FailureClass) -> None:
    """One quick retry of a transient failure, when attempts are left for everybody untried."""
    tries = progress(A, B)
    note(tries, A, failure_class)
    assert tries.may_retry_same(A, Failure(failure_class)) is (failure_class in RETRIED)


def test_what_a_provider_says_not_to_ask_again_is_not_retried() -> None:
    """Its own word goes before the table's."""
    tries = progress(A)
    note(tries, A, ERROR)
    assert tries.may_retry_same(A, Failure(ERROR))
    assert not tries.may_retry_same(A, Failure(ERROR, not_again=True))


def test_a_quick_retry_is_made_once() -> None:
    """The second failure of the target goes on to the next."""
    tries = progress(A)
    note(tries, A, ERROR)
    tries.retrying(A)
    assert not tries.may_retry_same(A, Failure(ERROR))


def test_a_target_that_used_its_attempts_is_not_retried() -> None:
    """Two are all."""
    tries = progress(A)
    note(tries, A, ERROR)
    note(tries, A, ERROR)
    assert not tries.may_retry_same(A, Failure(ERROR))


@pytest.mark.parametrize(("others", "retried"), [(4, True), (5, False)])
def test_a_quick_retry_takes_no_attempt_from_an_untried_target(others: int, retried: bool) -> None:
    """Five attempts left: with four untried there is one to spare, with five there is none."""
    tries = progress(A, *(facts(str(n)) for n in range(others)))
    note(tries, A, ERROR)
    assert tries.may_retry_same(A, Failure(ERROR)) is retried


def test_an_exhausted_request_retries_nothing() -> None:
    """Two rejections by fallbacks leave nothing to retry either."""
    tries = progress(A)
    for _ in range(2):
        tries.note(B, "big", Failure(FailureClass.REJECTED_BY_FALLBACK), 0.0)
    assert not tries.may_retry_same(A, Failure(ERROR))


def test_the_last_resort_has_an_attempt_of_its_own() -> None:
    """It is remembered as tried and as a failure, and costs none of the six."""
    tries = progress(A)
    tries.note(B, "last_resort", Failure(ERROR), 0.0, last_resort=True)
    assert tries.last_resort_tried == {B.id}
    assert (tries.used, len(tries.failures)) == (0, 1)
    assert not tries.tried(B.id)
    assert tries.refusal(B, 0.0) is None


# ------------------------------------------------------------------------------------------------ waiting

WAITED_FOR_BY_EVENT = {"half_open", "bulkhead", "slow_start", "probation", "paced"}
NEVER = {"wall", "off", "isolated", "too_large", "shed"}


@pytest.mark.parametrize("reason", sorted(REFUSAL_REASONS))
def test_who_is_waited_for(reason: str) -> None:
    """Events are, instants within reach are, walls and the like never."""
    assert comes_due(Refusal(reason), 0.0, 5.0) is (reason in WAITED_FOR_BY_EVENT)
    assert comes_due(Refusal(reason, 5.0), 0.0, 5.0) is (reason not in NEVER)
    assert not comes_due(Refusal(reason, 5.001), 0.0, 5.0)


def test_a_filter_is_never_waited_for() -> None:
    """What a target cannot do it cannot do later."""
    assert not comes_due(Refusal("filtered:tools", 1.0), 0.0, 5.0)


def test_the_least_known_instant_is_told() -> None:
    """In seconds from now; None when asking again never helps."""
    assert least_retry_after([], 0.0) is None
    assert least_retry_after([Refusal("wall"), Refusal("isolated")], 0.0) is None
    assert least_retry_after([Refusal("open", 40.0), Refusal("off"), Refusal("wait", 13.0)], 10.0) == 3.0


def test_a_client_is_never_told_to_come_back_in_no_time() -> None:
    """An instant that has passed is a tenth of a second: 0 would only be a busy loop (D6)."""
    assert least_retry_after([Refusal("open", 5.0)], 10.0) == 0.1


@pytest.mark.parametrize("refusal", [None, *(Refusal(reason) for reason in sorted(WAITED_FOR_BY_EVENT))], ids=str)
def test_an_event_is_worth_asking_for_after_a_second(refusal: Refusal | None) -> None:
    """So is a gate that refuses nothing; an earlier instant of another gate comes first."""
    assert least_retry_after([refusal], 10.0) == 1.0
    assert least_retry_after([refusal, Refusal("wait", 10.5)], 10.0) == 0.5


def test_a_target_that_refuses_a_prefill_has_not_rejected_the_request() -> None:
    """It is asked in another way: two rejections of the request are still allowed."""
    tries = progress(A, B)
    note(tries, A, FailureClass.REJECTED_BY_FALLBACK)
    note(tries, B, FailureClass.REJECTED_BY_FALLBACK)
    assert tries.exhausted
    tries.forgive_rejection()
    assert not tries.exhausted


def test_a_forgiven_rejection_leaves_the_last_resort() -> None:
    """No fallback has rejected the request itself."""
    tries = progress(A, B)
    note(tries, A, FailureClass.REJECTED_BY_FALLBACK)
    tries.forgive_rejection()
    assert tries.last_resort_allowed()
