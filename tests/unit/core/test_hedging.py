"""Hedging's decisions: when a head is late, what hedges may cost, and which gates may take one."""

from __future__ import annotations

import pytest

from smart_model_router.core.fallback import HedgeConfig, RetryBudget, hedge_after
from smart_model_router.core.gate import Gate
from smart_model_router.core.lease import Lease
from smart_model_router.core.ratelimit import Cost
from smart_model_router.core.target_state import Connectivity, ProviderState
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.outcome import Failure, FailureClass, Snapshot


def test_a_head_is_late_after_the_targets_own_p95() -> None:
    """Each target has its own measure."""
    assert hedge_after(Snapshot(successes=20, outcomes=20, ttft_p95=1.5)) == 1.5


@pytest.mark.parametrize(
    "known", [Snapshot(successes=19, outcomes=19, ttft_p95=1.5), Snapshot(successes=20, outcomes=20), Snapshot()]
)
def test_without_enough_known_nothing_is_late(known: Snapshot) -> None:
    """The slowest of a few calls, or of whole answers, is no percentile of first contents."""
    assert hedge_after(known) is None


def test_hedges_are_paid_for_by_requests() -> None:
    """Nothing in advance: nineteen requests pay for none at 5 %; and twenty hedges are saved up at most."""
    budget = RetryBudget(HedgeConfig().budget)
    for _ in range(19):
        budget.deposit()
    assert (budget.affordable, budget.try_spend()) == (False, False)
    for _ in range(1000):
        budget.deposit()
    assert [budget.affordable and budget.try_spend() for _ in range(21)] == [True] * 20 + [False]


def test_the_twentieth_request_pays_for_the_first_hedge() -> None:
    """Although twenty twentieths are as floats a little less than one."""
    budget = RetryBudget(HedgeConfig().budget)
    for _ in range(20):
        budget.deposit()
    assert budget.affordable


def test_a_ratio_above_one_is_refused() -> None:
    """More hedges than requests is nonsense."""
    with pytest.raises(ConfigurationError):
        HedgeConfig(ratio=1.5)


def gate() -> Gate:
    """Make a target of a remote provider."""
    return Gate("p/m", ProviderState("p", slots=10, remote=True, connectivity=Connectivity(1)))


def fail(target: Gate, failure_class: FailureClass, times: int = 1) -> None:
    """Have calls fail that were admitted together."""
    leases = [target.try_admit(Cost(0, 0), 0.0, 0.999, stream=True) for _ in range(times)]
    for lease in leases:
        assert isinstance(lease, Lease)
        lease.settle(Failure(failure_class), 0.0)


def test_a_gate_in_use_is_steady() -> None:
    """Neither new nor after a success is there anything to decide."""
    assert gate().steady(0.0, stream=True)


def test_a_gate_that_is_due_for_its_probe_is_not() -> None:
    """Its breaker, or its provider's, is not closed; the breaker of the other kind does not matter."""
    target = gate()
    fail(target, FailureClass.TIMEOUT, times=5)
    assert not target.steady(100.0, stream=True)
    assert target.steady(100.0, stream=False)
    cut_off = gate()
    fail(cut_off, FailureClass.TRANSPORT, times=5)
    assert not cut_off.provider.transport.is_closed
    assert not cut_off.steady(100.0, stream=True)


def test_a_gate_that_returns_on_probation_is_not() -> None:
    """After a wall one call looks whether it is back; a hedge is not that call."""
    target = gate()
    fail(target, FailureClass.MODEL_GONE)
    assert not target.steady(4000.0, stream=True)
