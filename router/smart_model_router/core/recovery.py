"""Which streams may be recovered after delivered content, and after what (routing.md section 8, "Streams")."""

from __future__ import annotations

from smart_model_router.outcome import Category, Failure
from smart_model_router.recovery import NO_RECOVERY, Recovery
from smart_model_router.request import Dialect, RouteRequest

_TEXT_DIALECTS: frozenset[Dialect] = frozenset({"chat", "messages"})
_THEIR_FAULT = frozenset({Category.TRANSIENT, Category.TIMEOUT, Category.RATE_LIMIT})
"""Cuts, stalls and errors in the stream. Whoever left, filtered or ran into our own limit is not recovered."""


def effective(request: RouteRequest, default: Recovery) -> Recovery:
    """The policy of one request: its own, else its model's, where its answer can be recovered at all.

    `buffered` delivers nothing before all is there, so any answer can be made anew. The others are for one answer of
    free text: half a schema, or one of several choices, is not gone on with by anybody else.
    """
    policy = request.recovery if request.recovery is not None else default
    if policy.mode == "buffered":
        return policy
    if request.dialect not in _TEXT_DIALECTS or "schema" in request.needs or request.body.get("n") not in (None, 1):
        return NO_RECOVERY
    if policy.mode == "restart" and not request.accept_restart:
        return NO_RECOVERY
    return policy


def recoverable(failure: Failure) -> bool:
    """Whether a stream that ended like this is worth somebody else's going on."""
    return failure.failure_class.category in _THEIR_FAULT
