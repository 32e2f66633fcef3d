"""Operations of Responses beside answering (compact, count, retrieve, delete): what their failures mean.

Many servers of Responses have no such paths, and keys may be good for answers alone. So a failure of an operation says
nothing of the target's answers, but for the few facts that hold for every call.
"""

from __future__ import annotations

from dataclasses import replace

from smart_model_router.domain.outcome import Failure, FailureClass

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
