"""The gate and its limits: what an answer says counts at once, and what refuses is what waits."""

from __future__ import annotations

import pytest

from smart_model_router.core.gate import Gate
from smart_model_router.core.lease import Lease
from smart_model_router.core.limit_bucket import Refill
from smart_model_router.core.ratelimit import Cost, RateLimitTracker
from smart_model_router.core.target_state import Connectivity, ProviderState
from smart_model_router.domain.outcome import (
    BucketReading,
    Failure,
    FailureClass,
    LimitReading,
    Refusal,
    Scope,
    Usage,
    Wait,
)

CALL = Cost(10, 10)


def make_gates(limits: RateLimitTracker, *targets: str) -> list[Gate]:
    """Gates of one provider that share what is counted."""
    provider = ProviderState("p", slots=50, remote=True, connectivity=Connectivity(1))
    return [Gate(target, provider, limits=limits) for target in targets]


def make_gate(refill: Refill = "continuous") -> Gate:
    """A gate whose limits nobody knows."""
    return make_gates(RateLimitTracker(refill=refill), "p/m")[0]


def admit(gate: Gate, now: float) -> Lease:
    """A lease; the gate must give one."""
    got = gate.try_admit(CALL, now, 0.5)
    assert isinstance(got, Lease)
    return got


def left(remaining: int, *, limit: int = 60, reset: float | None = None) -> LimitReading:
    """What headers say of the requests."""
    return LimitReading((BucketReading("requests", limit, remaining, reset),))


def refused(wait: float | None, reading: LimitReading = LimitReading(), scope: Scope = "minute") -> Failure:  # noqa: B008 - frozen
    """A 429."""
    return Failure(FailureClass.RATE_LIMITED, wait=None if wait is None else Wait(wait, scope), reading=reading)


def test_an_answer_teaches_the_limit() -> None:
    """One left after the first answer: one goes, the next waits its second."""
    gate = make_gate()
    admit(gate, 0.0).settle(None, 0.0, reading=left(1))
    admit(gate, 0.0)
    assert gate.refusal(CALL, 0.0) == Refusal("requests", 1.0)


def test_the_head_of_a_stream_teaches_it_before_its_end() -> None:
    """A stream takes minutes; what its head said counts from then on."""
    gate = make_gate()
    admit(gate, 0.0).heard(left(0), 0.0)
    assert gate.refusal(CALL, 0.0) is not None
    assert gate.in_flight == 1


def test_targets_counted_together_share_what_is_left() -> None:
    """Two models of one pool: what one uses the other cannot."""
    one, other = make_gates(RateLimitTracker(rpm=1), "p/a", "p/b")
    admit(one, 0.0)
    assert other.refusal(CALL, 0.0) == Refusal("requests", 60.0)


def test_an_unhinted_refusal_waits_for_the_end_of_its_window() -> None:
    """The family has windows and told when this one ends: to the second, not by the ladder."""
    gate = make_gate("window")
    admit(gate, 0.0).settle(None, 0.0, reading=left(30, reset=42.0))
    admit(gate, 10.0).settle(refused(None), 10.0)
    assert gate.refusal(CALL, 10.0) == Refusal("wait", 42.0)
    assert gate.refusal(CALL, 42.0) is None
    assert gate.limits.buckets["requests"].level(42.0) == 60.0


@pytest.mark.parametrize("failure_class", [FailureClass.OVERLOADED, FailureClass.WARMING])
def test_a_hint_about_load_empties_no_bucket(failure_class: FailureClass) -> None:
    """The provider has no capacity; what is left of our limit is still left."""
    gate = make_gate()
    admit(gate, 0.0).settle(None, 0.0, reading=left(30))
    admit(gate, 0.0).settle(Failure(failure_class, wait=Wait(5.0, "overload")), 0.0)
    assert gate.refusal(CALL, 0.0) == Refusal("wait", 5.0)
    assert gate.limits.buckets["requests"].level(5.0) == 34.0


def test_the_refusals_own_reading_says_which_bucket_is_empty() -> None:
    """No requests left, a wait of three seconds: one goes at the instant, the next a second later."""
    gate = make_gate()
    admit(gate, 0.0).settle(None, 0.0, reading=left(5))
    admit(gate, 0.0).settle(refused(3.0, left(0)), 0.0)
    assert gate.refusal(CALL, 0.0) == Refusal("wait", 3.0)
    admit(gate, 3.0)
    assert gate.refusal(CALL, 3.0) == Refusal("requests", 4.0)


def test_what_the_refusal_says_is_left_is_left() -> None:
    """No requests left, plenty of tokens: a wait for the one empties nothing of the other."""
    gate = make_gates(RateLimitTracker(rpm=60, tpm=6_000), "p/m")[0]
    admit(gate, 0.0).settle(refused(3.0, left(0)), 0.0)
    assert gate.limits.buckets["tokens"].level(2.0) == 6_000.0


def test_a_failures_own_reading_counts() -> None:
    """A 500 whose headers say that five are left."""
    gate = make_gate()
    admit(gate, 0.0).settle(Failure(FailureClass.SERVER_ERROR, reading=left(5)), 0.0)
    assert gate.limits.buckets["requests"].level(0.0) == 5.0


def test_a_call_that_broke_off_costs_what_it_used() -> None:
    """Where that is known; an HTTP error has used nothing."""
    for status, level in ((None, 5_993.0), (500, 6_000.0)):
        gate = make_gates(RateLimitTracker(tpm=6_000), "p/m")[0]
        ended = Failure(FailureClass.TRANSPORT, status=status)
        admit(gate, 0.0).settle(ended, 0.0, usage=Usage(4, 3))
        assert gate.limits.buckets["tokens"].level(0.0) == level


def test_a_slow_answers_figure_is_as_old_as_its_call() -> None:
    """Twenty were left when it was sent; thirty seconds at one a second came back since."""
    gate = make_gates(RateLimitTracker(rpm=60), "p/m")[0]
    admit(gate, 0.0).settle(None, 30.0, reading=left(20))
    assert gate.limits.buckets["requests"].level(30.0) == 50.0


def test_what_was_sent_after_the_answered_call_is_not_in_its_figure() -> None:
    """The first of two says that twenty are left: the second will be taken from them."""
    gate = make_gates(RateLimitTracker(rpm=60), "p/m")[0]
    first, _ = admit(gate, 0.0), admit(gate, 0.0)
    first.heard(left(20), 0.0)
    assert gate.limits.buckets["requests"].level(0.0) == 19.0


@pytest.mark.parametrize("scope", ["day", "credit"])
def test_a_wall_is_waited_for_by_nobody(scope: Scope) -> None:
    """Nothing is sent until then, and it goes back to what was refused."""
    gate = make_gate()
    admit(gate, 0.0).settle(refused(5000.0, scope=scope), 0.0)
    assert gate.refusal(CALL, 4999.0) == Refusal("wall", 5000.0)
    assert gate.cooldown.cause(4999.0) is FailureClass.RATE_LIMITED
    assert gate.cooldown.cause(5000.0) is None
