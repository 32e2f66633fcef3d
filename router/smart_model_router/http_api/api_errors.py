"""Errors as HTTP in the client's own dialect: one table from error to status, type and code."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, get_args

from smart_model_router.domain.errors import (
    AllTargetsFailed,
    ContentBlocked,
    ContextTooLong,
    DeadlineExceeded,
    Interruption,
    InvalidRequest,
    ModelNotFound,
    NotFound,
    Overloaded,
    RequestRejected,
    RouterUnavailable,
    SmartRouterError,
    StreamInterrupted,
    TranslationRefused,
    UnsupportedFeature,
)
from smart_model_router.domain.outcome import FailureClass
from smart_model_router.domain.report import RouteReport
from smart_model_router.http_api.http_reply import Family, HttpReply, encoded, report_headers, unrouted_headers
from smart_model_router.wires.values import decode_object, is_object

MOST_RETRY_AFTER = 60.0
"""Seconds. SDKs wait no longer than a minute: told of more they would ask again at once."""


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """One row: the status, and the words each family has for it. `anthropic_status` is where it has its own."""

    status: int
    openai_type: str
    code: str | None
    anthropic_type: str
    anthropic_status: int | None = None


BAD_REQUEST = ErrorKind(400, "invalid_request_error", None, "invalid_request_error")
UNAUTHORIZED = ErrorKind(401, "authentication_error", "invalid_api_key", "authentication_error")
FORBIDDEN = ErrorKind(403, "permission_error", "model_not_allowed", "permission_error")
NOT_FOUND = ErrorKind(404, "invalid_request_error", "not_found", "not_found_error")
NO_MODEL = ErrorKind(404, "invalid_request_error", "model_not_found", "not_found_error")
NOT_ALLOWED = ErrorKind(405, "invalid_request_error", "method_not_allowed", "invalid_request_error")
SLOW_BODY = ErrorKind(408, "invalid_request_error", "request_timeout", "invalid_request_error")
TOO_LARGE = ErrorKind(413, "invalid_request_error", "request_too_large", "request_too_large")
HEAD_TOO_LARGE = ErrorKind(431, "invalid_request_error", "headers_too_large", "invalid_request_error")
LIMITED = ErrorKind(429, "rate_limit_error", "rate_limit_exceeded", "rate_limit_error")
BUG = ErrorKind(500, "server_error", "internal_error", "api_error")
CUT = ErrorKind(502, "server_error", "stream_interrupted", "api_error")
STOPPING = ErrorKind(503, "server_error", "shutting_down", "api_error")
UNAVAILABLE = ErrorKind(503, "server_error", "all_targets_failed", "overloaded_error", 529)
EXPIRED = ErrorKind(504, "server_error", "deadline_exceeded", "timeout_error")

KINDS: Mapping[type[SmartRouterError], ErrorKind] = MappingProxyType(
    {
        InvalidRequest: BAD_REQUEST,
        ModelNotFound: NO_MODEL,
        NotFound: NOT_FOUND,
        ContextTooLong: ErrorKind(400, "invalid_request_error", "context_length_exceeded", "invalid_request_error"),
        ContentBlocked: ErrorKind(400, "invalid_request_error", "content_filter", "invalid_request_error"),
        UnsupportedFeature: ErrorKind(400, "invalid_request_error", "unsupported_feature", "invalid_request_error"),
        TranslationRefused: ErrorKind(400, "invalid_request_error", "unsupported_feature", "invalid_request_error"),
        Overloaded: ErrorKind(503, "server_error", "overloaded", "overloaded_error", 529),
        AllTargetsFailed: UNAVAILABLE,
        DeadlineExceeded: EXPIRED,
        StreamInterrupted: CUT,
    }
)
"""Every error that ends a request (docs/design/wires.md section 3)."""

CUTS: Mapping[Interruption, ErrorKind] = MappingProxyType(
    {reason: CUT if reason == "cut" else replace(CUT, code=reason) for reason in get_args(Interruption)}
)
"""A stream that ended early, by its reason: a client can tell its own slowness from a provider's cut."""

CLOSES: Mapping[str, str] = MappingProxyType({"connection": "close"})
"""The header of an answer that is the last one on its connection."""

VERDICTS: Mapping[FailureClass, ErrorKind] = MappingProxyType(
    {
        FailureClass.INVALID_REQUEST: KINDS[InvalidRequest],
        FailureClass.CONTEXT_LENGTH: KINDS[ContextTooLong],
        FailureClass.CONTENT_FILTERED: KINDS[ContentBlocked],
        FailureClass.TOO_LARGE: TOO_LARGE,
    }
)
"""Verdicts of a provider on the request itself in the middle of a stream: asking again is no use."""

_NEXT_SERVER_SECONDS = 1.0

_RATE_REFUSALS = frozenset({"wait", "requests", "tokens"})


@dataclass(frozen=True, slots=True)
class Problem:
    """One error of a request. `retry_after` is in seconds; `waitable` says that a client is told whether to ask again.

    `status` and `native` are a provider's own answer, to be handed on as it came. `closes`: the rest of the body is
    not read, so the connection ends with the answer. `final`: it is a verdict on the request itself, and to ask again
    is no use; `event` is that of the provider's stream, where one told it.
    """

    kind: ErrorKind
    message: str
    retry_after: float | None = None
    waitable: bool = False
    report: RouteReport | None = None
    status: int | None = None
    native: bytes = b""
    closes: bool = False
    final: bool = False
    event: bytes = b""


def stopping(report: RouteReport | None = None) -> Problem:
    """The server ends before the request was answered: another one, or the next, may have it at once."""
    message = "the server is shutting down; ask again"
    return Problem(STOPPING, message, _NEXT_SERVER_SECONDS, waitable=True, report=report)


class ProblemError(Exception):
    """A problem found at the edge itself, before or beside routing."""

    def __init__(
        self, kind: ErrorKind, message: str, *, retry_after: float | None = None, closes: bool = False
    ) -> None:
        super().__init__(message)
        self.problem = Problem(kind, message, retry_after, waitable=kind is LIMITED, closes=closes)


TOLD: tuple[type[SmartRouterError | ProblemError], ...] = (
    RequestRejected,
    RouterUnavailable,
    StreamInterrupted,
    ProblemError,
)
"""The errors that a client is told of. Anything else is a bug: its message is for the log, not for the client."""


def problem_of(error: SmartRouterError | ProblemError) -> Problem:
    """The problem behind an error."""
    if isinstance(error, ProblemError):
        return error.problem
    kind = next((KINDS[base] for base in type(error).__mro__ if base in KINDS), BUG)
    if isinstance(error, RequestRejected):
        status = error.status if error.status is not None and 400 <= error.status < 500 else None
        return Problem(kind, error.message, report=error.report, status=status, native=error.body, final=True)
    if isinstance(error, RouterUnavailable):
        if isinstance(error, AllTargetsFailed) and _all_rate_limited(error.report):
            kind = LIMITED
        return Problem(kind, error.message, error.retry_after, waitable=True, report=error.report)
    if isinstance(error, StreamInterrupted):
        failure = error.failure
        if failure is not None and failure.failure_class in VERDICTS:
            verdict = VERDICTS[failure.failure_class]
            return Problem(verdict, failure.message, report=error.report, final=True, event=failure.raw)
        kind = CUTS[error.reason]
    return Problem(kind, error.message, report=error.report)


def bug(error: Exception) -> Problem:
    """Return the problem of an unexpected exception of ours: its kind and nothing of its insides."""
    return Problem(BUG, f"the router met an unexpected {type(error).__name__}; its log says more")


def rendered(problem: Problem, family: Family) -> HttpReply:
    """The reply that tells a client of one family."""
    kind = problem.kind
    own = kind.anthropic_status if family == "anthropic" else None
    status = own or problem.status or kind.status
    known = unrouted_headers() if problem.report is None else report_headers(problem.report, stream=False)
    headers = {**known, **_retry_headers(problem), **(CLOSES if problem.closes else {})}
    native = _native(problem.native, family)
    if native is None:
        status = own or (413 if problem.status == 413 else kind.status)
    body = native if native is not None else encoded(error_body(problem, family))
    return HttpReply(status, headers, body, problem.report)


def error_body(problem: Problem, family: Family) -> dict[str, Any]:
    """The error object as the family writes it."""
    if family == "anthropic":
        return {"type": "error", "error": {"type": problem.kind.anthropic_type, "message": problem.message}}
    kind = problem.kind
    error = {"message": problem.message, "type": kind.openai_type, "param": None, "code": kind.code}
    return {"error": error}


def _retry_headers(problem: Problem) -> dict[str, str]:
    """When to ask again: whole seconds as HTTP has them, and exactly, as both SDKs read it.

    `x-should-retry: false` only where asking again is no use: the time is unknown, or too long for an SDK.
    """
    if not problem.waitable:
        return {}
    after = problem.retry_after
    if after is None:
        return {"x-should-retry": "false"}
    headers = {"retry-after": str(math.ceil(after)), "retry-after-ms": str(math.ceil(after * 1000))}
    return headers if after <= MOST_RETRY_AFTER else {**headers, "x-should-retry": "false"}


def _native(body: bytes, family: Family) -> bytes | None:
    """A provider's own error body, if it is one in the words of the family."""
    found = decode_object(body) if body else None
    if found is None or not is_object(found.get("error")):
        return None
    return body if (found.get("type") == "error") == (family == "anthropic") else None


def _all_rate_limited(report: RouteReport | None) -> bool:
    """Return whether every target that could have served said, or was known to say, that we ask too often."""
    if report is None:
        return False
    tried = {attempt.target: attempt.failure_class for attempt in report.attempts}
    refused = {
        refusal.target: refusal.reason in _RATE_REFUSALS
        for refusal in report.refusals
        if refusal.target not in tried and not refusal.reason.startswith("filtered:")
    }
    verdicts = [failure is FailureClass.RATE_LIMITED for failure in tried.values()] + list(refused.values())
    return bool(verdicts) and all(verdicts)
