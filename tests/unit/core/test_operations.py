"""Failures of the operations beside answering: what a request sees, and what its target counts."""

from __future__ import annotations

import pytest

from smart_model_router.core.fallback import AttemptHistory
from smart_model_router.core.final_error import final_error, is_absent, of_operation, of_target
from smart_model_router.core.flow_config import RoutingConfig
from smart_model_router.core.selection import Candidate
from smart_model_router.core.tiers import Plan, TargetFacts, Tier
from smart_model_router.domain.errors import AllTargetsFailed, NotFound, SmartRouterError, UnsupportedFeature
from smart_model_router.domain.outcome import Failure, FailureClass, Refusal, Wait
from smart_model_router.domain.report import RouteReport
from smart_model_router.domain.request import Target

A, B = (
    TargetFacts(Target(f"{name}/m", name, "m"), Candidate(f"{name}/m", name, 0), frozenset({"responses"}))
    for name in "ab"
)
PLAN = Plan("only", (Tier("only", (A, B)),), ())
OF_EVERY_CALL = {FailureClass.RATE_LIMITED, FailureClass.QUOTA}


@pytest.mark.parametrize("kind", FailureClass)
def test_a_target_counts_only_what_holds_for_every_call(kind: FailureClass) -> None:
    """Rate limits and quota as they are; every other failure as a call that was given up."""
    failure = Failure(kind, "HTTP 500: no", 500, Wait(9.0), credential_wide=True)
    counted = of_target(failure)
    if kind in OF_EVERY_CALL:
        assert counted is failure
    else:
        assert counted == Failure(FailureClass.CANCELLED, "HTTP 500: no", 500)


def test_a_connection_that_was_never_made_holds_for_every_call() -> None:
    """The transport breaker counts it; a reset after sending may be that path's own."""
    refused = Failure(FailureClass.TRANSPORT, unsent=True)
    assert of_target(refused) is refused
    assert of_target(Failure(FailureClass.TRANSPORT)).failure_class is FailureClass.CANCELLED


@pytest.mark.parametrize("status", [404, 405, 501])
def test_an_absent_operation_is_not_retried(status: int) -> None:
    """It reads as a wrong URL, not as a model that is gone or a server's fault."""
    for kind in (FailureClass.MODEL_GONE, FailureClass.SERVER_ERROR, FailureClass.MISCONFIGURED):
        failure = Failure(kind, status=status)
        assert is_absent(failure)
        assert of_operation(failure).failure_class is FailureClass.MISCONFIGURED
    unknown_id = Failure(FailureClass.INVALID_REQUEST, status=status)
    assert of_operation(unknown_id) is unknown_id


def test_other_failures_stay_as_they_are() -> None:
    """For the request and its report."""
    for status in (500, None):
        failure = Failure(FailureClass.SERVER_ERROR, status=status)
        assert not is_absent(failure)
        assert of_operation(failure) is failure


def _end(*failures: Failure, plan: Plan = PLAN) -> SmartRouterError:
    progress = AttemptHistory(RoutingConfig(), plan)
    for facts, failure in zip((A, B), failures, strict=False):
        progress.note(facts, "only", failure, 0.0)
    report = RouteReport("id", "smart", "only")
    return final_error(plan, progress, report, late_after=None, retry_after=1.0, operation="compact")


ABSENT, BROKEN = Failure(FailureClass.MISCONFIGURED, "no", 405, raw=b"{}"), Failure(FailureClass.SERVER_ERROR, "", 500)


def test_an_operation_that_every_target_lacks_is_a_404() -> None:
    """With the provider's own body where it said 404 too."""
    error = _end(ABSENT, ABSENT)
    assert isinstance(error, NotFound)
    assert (error.status, error.body, error.message) == (404, b"", "a/m: no")
    own = _end(Failure(FailureClass.MISCONFIGURED, "no", 404, raw=b"{}"))
    assert isinstance(own, NotFound)
    assert own.body == b"{}"


def test_a_target_that_may_have_the_operation_makes_it_a_503() -> None:
    """To ask again may help; so it is where none was asked."""
    assert isinstance(_end(ABSENT, BROKEN), AllTargetsFailed)
    assert isinstance(_end(), AllTargetsFailed)


def test_a_model_without_native_targets_has_no_operations() -> None:
    """Another reason to leave a target out is told as for any request."""
    foreign = Plan("only", (), (), left_out=(("a/m", Refusal("filtered:wire")), ("b/m", Refusal("filtered:wire"))))
    error = _end(plan=foreign)
    assert isinstance(error, NotFound)
    assert error.message == "no target of 'smart' speaks Responses natively, which compact needs: a/m, b/m"
    tools = Plan("only", (), (), left_out=(("a/m", Refusal("filtered:wire")), ("b/m", Refusal("filtered:tools"))))
    assert isinstance(_end(plan=tools), UnsupportedFeature)
    assert isinstance(_end(plan=Plan("only", (), ())), UnsupportedFeature)
