"""The error that ends a request, and which failures of an operation of Responses are the target's."""

from __future__ import annotations

from dataclasses import replace

from smart_model_router.core.fallback import AttemptHistory
from smart_model_router.core.tiers import Plan
from smart_model_router.domain.errors import (
    AllTargetsFailed,
    ContentBlocked,
    ContextTooLong,
    DeadlineExceeded,
    InvalidRequest,
    NotFound,
    RequestRejected,
    SmartRouterError,
    TranslationRefused,
    UnsupportedFeature,
)
from smart_model_router.domain.outcome import Failure, FailureClass
from smart_model_router.domain.report import RouteReport
from smart_model_router.domain.report_text import failure_text, rejection_text, unable_text
from smart_model_router.domain.request import Operation

_REJECTIONS: tuple[tuple[frozenset[FailureClass], type[RequestRejected]], ...] = (
    (frozenset({FailureClass.CONTEXT_LENGTH, FailureClass.TOO_LARGE}), ContextTooLong),
    (frozenset({FailureClass.REJECTED_BY_FALLBACK}), InvalidRequest),
    (frozenset({FailureClass.CONTENT_FILTERED}), ContentBlocked),
)
"""When only such failures came, the request itself is to blame."""
_NOT_FOUND = 404
UNPRICED = (
    " (a budget in USD, such as max_cost, is not spent where the price is unknown: give the target its `price`, "
    "such as {input: 1, output: 2} for USD per million tokens, or allow it with `routing.unpriced: allow`)"
)
_UNKNOWN_MAKER = (
    " (it refers to something kept at a provider that none of them is known to have made: name the target that did in "
    "x-router-target, or `target=`)"
)
_HINTS = {"filtered:unpriced": UNPRICED, "filtered:pinned": _UNKNOWN_MAKER}
"""Hints for the user that follow some reasons."""


def final_rejection(target: str, failure: Failure, *, content_filter_fallback: bool) -> RequestRejected | None:
    """The exception for a failure that no other target may answer for; None when the next one may be asked."""
    kind: type[RequestRejected] | None = None
    if failure.failure_class is FailureClass.INVALID_REQUEST:
        kind = InvalidRequest
    elif failure.failure_class is FailureClass.CONTENT_FILTERED and not content_filter_fallback:
        kind = ContentBlocked
    return None if kind is None else _rejection(kind, target, failure)


def final_error(
    plan: Plan,
    progress: AttemptHistory,
    report: RouteReport,
    *,
    late_after: float | None,
    retry_after: float | None,
    operation: Operation = "create",
) -> SmartRouterError:
    """The error of a request that no target served; its message names every attempt and refusal.

    `late_after`: the deadline passed, that many seconds after the request came.
    """
    if operation != "create" and (absent := _absent(plan, progress, report.model, operation)) is not None:
        return absent
    if plan.empty:
        return _unable(plan, report.model)
    if (why := progress.untranslatable()) is not None:
        return TranslationRefused(f"no target can be asked this without changing what it means: {why}")
    classes = {failure.failure_class for _, failure in progress.failures}
    for blamed, kind in _REJECTIONS:
        if classes and classes <= blamed:
            # The one in the caller's own dialect; the body of any other was left behind with its translation.
            facts, failure = next((one for one in progress.failures if one[1].raw), progress.failures[0])
            return _rejection(kind, facts.id, failure)
    kind_of_end = AllTargetsFailed if late_after is None else DeadlineExceeded
    return kind_of_end(failure_text(report, seconds=late_after, retry_after=retry_after), retry_after=retry_after)


def not_there(target: str, failure: Failure) -> NotFound:
    """The 404 for an operation that the provider lacks; its own body where that is a 404 too."""
    body = failure.raw if failure.status == _NOT_FOUND else b""
    return NotFound(f"{target}: {failure.message}", status=_NOT_FOUND, body=body)


def _absent(plan: Plan, progress: AttemptHistory, model: str, operation: Operation) -> NotFound | None:
    """The 404 where no target has the operation; None where one has it, or may have it."""
    if plan.empty and plan.left_out and all(refusal.reason == "filtered:wire" for _, refusal in plan.left_out):
        told = ", ".join(target for target, _ in plan.left_out)
        return NotFound(f"no target of {model!r} speaks Responses natively, which {operation} needs: {told}")
    if not progress.failures or not all(is_absent(failure) for _, failure in progress.failures):
        return None
    facts, failure = progress.failures[0]
    return not_there(facts.id, failure)


def _rejection(kind: type[RequestRejected], target: str, failure: Failure) -> RequestRejected:
    return kind(rejection_text(target, failure), status=failure.status, body=failure.raw)


def _unable(plan: Plan, model: str) -> RequestRejected:
    reasons = {refusal.reason for _, refusal in plan.left_out}
    kind = ContextTooLong if reasons == {"filtered:context"} else UnsupportedFeature
    hints = "".join(hint for reason, hint in _HINTS.items() if reason in reasons)
    return kind(unable_text(model, plan.left_out) + hints)


_ABSENT = frozenset({404, 405, 501})
_OF_EVERY_CALL = frozenset({FailureClass.RATE_LIMITED, FailureClass.QUOTA})


def is_absent(failure: Failure) -> bool:
    """Return whether the provider lacks the operation, or the thing that it was asked about."""
    return failure.status in _ABSENT


def of_operation(failure: Failure) -> Failure:
    """The failure as its request sees it: where the operation is absent, no retry there brings it."""
    if not is_absent(failure) or failure.failure_class is FailureClass.INVALID_REQUEST:
        return failure
    return replace(failure, failure_class=FailureClass.MISCONFIGURED)


def of_target(failure: Failure) -> Failure:
    """The failure as the target's breaker, cooldown and off state count it.

    A rate limit, an empty account and a connection that was never made hold for every call. A reset may be that path's
    own, and a 401 may be a key without the scope for it: such failures count as a call that was given up.
    """
    if failure.failure_class in _OF_EVERY_CALL or failure.unsent:
        return failure
    return replace(failure, failure_class=FailureClass.CANCELLED, wait=None, credential_wide=False)
