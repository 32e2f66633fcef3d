"""How a request ends badly: the exception says whose fault it was, and names everyone who was asked or refused."""

from __future__ import annotations

import pytest

from smart_model_router.core.fallback import AttemptHistory
from smart_model_router.core.final_error import UNPRICED, final_error, final_rejection
from smart_model_router.core.flow_config import RoutingConfig
from smart_model_router.core.selection import Candidate
from smart_model_router.core.tiers import Plan, TargetFacts, Tier
from smart_model_router.domain.errors import (
    AllTargetsFailed,
    ContentBlocked,
    ContextTooLong,
    DeadlineExceeded,
    InvalidRequest,
    RequestRejected,
    RouterUnavailable,
    SmartRouterError,
    UnsupportedFeature,
)
from smart_model_router.domain.outcome import Failure, FailureClass, Refusal
from smart_model_router.domain.report import Attempt, ReportedRefusal, RouteReport
from smart_model_router.domain.request import Target

A = TargetFacts(Target("a/m", "a", "m"), Candidate("a/m", "a", 0), frozenset({"chat"}))
B = TargetFacts(Target("b/m", "b", "m"), Candidate("b/m", "b", 1), frozenset({"chat"}))
PLAN = Plan("frontier", (Tier("frontier", (A, B)),), (), first="a/m")


def ending(
    *failures: FailureClass, plan: Plan = PLAN, expired: bool = False, refused: bool = False
) -> SmartRouterError:
    """How a request ends whose targets failed so in turn; with `refused`, one more target was not asked."""
    progress = AttemptHistory(RoutingConfig(), plan)
    report = RouteReport("id", "smart", "frontier")
    for target, failure_class in zip((A, B, A), failures, strict=False):
        failure = Failure(failure_class, f"{failure_class} says {target.id}", status=418, raw=b"body")
        progress.note(target, "frontier", failure, 0.0)
        report.attempts.append(Attempt(target.id, 1.0, failure_class))
    if refused:
        report.refusals += [ReportedRefusal("c/m", "open", 30.0), ReportedRefusal("d/m", "wall")]
    return final_error(plan, progress, report, late_after=2.5 if expired else None, retry_after=7.5)


@pytest.mark.parametrize("failure_class", list(FailureClass))
@pytest.mark.parametrize("fallback", [False, True])
def test_only_the_callers_own_400_and_a_filter_end_a_request_at_once(
    failure_class: FailureClass, fallback: bool
) -> None:
    """The 400 always, the filter unless its policy allows another target; everything else goes on."""
    kinds: dict[tuple[FailureClass, bool], type[RequestRejected]] = {
        (FailureClass.INVALID_REQUEST, False): InvalidRequest,
        (FailureClass.INVALID_REQUEST, True): InvalidRequest,
        (FailureClass.CONTENT_FILTERED, False): ContentBlocked,
    }
    rejection = final_rejection("a/m", Failure(failure_class, "no"), content_filter_fallback=fallback)
    assert type(rejection) is kinds.get((failure_class, fallback), type(None))


def test_a_rejection_carries_the_providers_own_answer() -> None:
    """Target and message for people, status and body unchanged for programs."""
    failure = Failure(FailureClass.INVALID_REQUEST, "bad tool", status=422, raw=b'{"error":1}')
    rejection = final_rejection("a/m", failure, content_filter_fallback=False)
    assert rejection is not None
    assert (str(rejection), rejection.status, rejection.body) == (
        "a/m says that the request is not valid (422): bad tool",
        422,
        b'{"error":1}',
    )


@pytest.mark.parametrize(
    ("failures", "kind"),
    [
        ([FailureClass.CONTEXT_LENGTH], ContextTooLong),
        ([FailureClass.CONTEXT_LENGTH, FailureClass.TOO_LARGE], ContextTooLong),
        ([FailureClass.REJECTED_BY_FALLBACK, FailureClass.REJECTED_BY_FALLBACK], InvalidRequest),
        ([FailureClass.CONTENT_FILTERED], ContentBlocked),
        ([FailureClass.CONTEXT_LENGTH, FailureClass.SERVER_ERROR], AllTargetsFailed),
        ([FailureClass.REJECTED_BY_FALLBACK, FailureClass.CONTENT_FILTERED], AllTargetsFailed),
        ([FailureClass.SERVER_ERROR, FailureClass.TIMEOUT], AllTargetsFailed),
        ([], AllTargetsFailed),
    ],
)
def test_the_request_is_to_blame_when_only_such_failures_came(
    failures: list[FailureClass], kind: type[SmartRouterError]
) -> None:
    """One failure of another sort, and it is the providers'."""
    assert type(ending(*failures)) is kind


def test_the_first_rejection_is_the_most_native_one() -> None:
    """Its answer is handed on, not that of a later translation."""
    error = ending(FailureClass.REJECTED_BY_FALLBACK, FailureClass.REJECTED_BY_FALLBACK)
    assert isinstance(error, RequestRejected)
    assert (str(error), error.status, error.body) == (
        "a/m did not take the request as it was translated (418): REJECTED_BY_FALLBACK says a/m",
        418,
        b"body",
    )


@pytest.mark.parametrize(
    ("bodies", "told"), [((b"", b"native"), "b/m"), ((b"", b""), "a/m"), ((b"one", b"two"), "a/m")]
)
def test_a_rejection_in_the_callers_own_dialect_goes_before_a_translated_one(
    bodies: tuple[bytes, bytes], told: str
) -> None:
    """The first with a body to hand on; without any body the first of all."""
    progress = AttemptHistory(RoutingConfig(), PLAN)
    for target, body in zip((A, B), bodies, strict=True):
        progress.note(target, "frontier", Failure(FailureClass.REJECTED_BY_FALLBACK, "no", raw=body), 0.0)
    report = RouteReport("id", "smart", "frontier")
    error = final_error(PLAN, progress, report, late_after=None, retry_after=None)
    assert isinstance(error, InvalidRequest)
    assert (str(error).partition(" ")[0], error.body) == (told, bodies[0] or bodies[1])


def test_the_exception_names_every_attempt_and_refusal() -> None:
    """Who failed how, who was not asked and why, and when to come back (I13)."""
    error = ending(FailureClass.SERVER_ERROR, FailureClass.TIMEOUT, refused=True)
    assert isinstance(error, RouterUnavailable)
    assert error.retry_after == 7.5
    assert str(error) == (
        "no target could answer: a failed; b timed out after 1 s; c is left alone after its failures for 30 s; "
        "d has its quota used up. Worth another try in 7.5 s"
    )


def test_a_request_that_ran_out_of_time_says_so() -> None:
    """With the same account and the same advice when to come back."""
    error = ending(FailureClass.SERVER_ERROR, expired=True)
    assert isinstance(error, DeadlineExceeded)
    assert error.retry_after == 7.5
    assert str(error) == "no answer within 2.5 s: a failed. Worth another try in 7.5 s"


@pytest.mark.parametrize(
    ("reasons", "kind"),
    [
        (["context", "context"], ContextTooLong),
        (["context", "tools"], UnsupportedFeature),
        (["wire"], UnsupportedFeature),
    ],
)
def test_a_request_nobody_can_serve_says_why_not(reasons: list[str], kind: type[RequestRejected]) -> None:
    """Too long when that is what every target said, else what each of them lacks."""
    left_out = tuple((f"t{n}", Refusal(f"filtered:{reason}")) for n, reason in enumerate(reasons))
    error = ending(plan=Plan("frontier", (Tier("frontier", ()),), (), left_out))
    assert type(error) is kind
    assert str(error).startswith("no target of 'smart' can serve this request: t0 ")


def test_each_reason_that_has_a_remedy_is_told_with_it() -> None:
    """One after the other, behind the reasons themselves."""
    left_out = (("a/m", Refusal("filtered:pinned")), ("b/m", Refusal("filtered:unpriced")))
    told = str(ending(plan=Plan("frontier", (Tier("frontier", ()),), (), left_out)))
    assert f"b/m has no price, and the request a budget{UNPRICED} (it refers to something kept at a provider" in told
