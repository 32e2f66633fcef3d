"""The outcomes of a call, and the one table that says what follows from each class of failure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from smart_model_router.domain.fast_dataclass import quick

Scope = Literal["concurrency", "minute", "hour", "day", "credit", "overload"]
"""The subject of a provider's wait. `day` and `credit` are walls: no request waits for their end."""
RestReason = Literal["cooldown", "wait", "wall", "off"]
"""The reason of a rest: our own guess, the provider's hint, a quota that is used up, a target that is of no use."""


class Category(StrEnum):
    """The coarse kind of a failure, for dashboards and for people."""

    RATE_LIMIT = "rate_limit"
    TIMEOUT = "timeout"
    PERMANENT = "permanent"
    TRANSIENT = "transient"
    CALLER = "caller"


class BreakerCount(StrEnum):
    """The breaker that a failure counts against."""

    YES = "yes"
    NO = "no"
    PROVIDER = "provider"
    """The provider's transport breaker; the target's own breaker ignores it."""
    THIRD_IN_A_ROW = "third_in_a_row"
    """Three in a row make one failure of the target."""


class CooldownRule(StrEnum):
    """The kind of rest that follows a failure (core/cooldown.py has the figures)."""

    NONE = "none"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    LAW = "law"
    """The provider's hint, else the ladder of guesses."""
    HINT_OR_BRIEF = "hint_or_brief"
    """The provider's hint is law; without one, advice of a second."""
    WARMING = "warming"
    """The provider's hint is law; without one, law of a second, then one call in flight until one succeeds."""
    OFF = "off"
    """The target (or its credential) is switched off for a while."""
    WALL = "wall"
    """Nothing is sent until the stated date, else for an hour."""


class NextTarget(StrEnum):
    """The targets that may be called after a failure."""

    YES = "yes"
    OTHER_PROVIDERS_FIRST = "other_providers_first"
    LARGER_ONLY = "larger_only"
    BY_POLICY = "by_policy"
    NO = "no"


class FailureClass(StrEnum):
    """Every way a call can fail. The classifier (providers) decides which; this table decides what follows."""

    RATE_LIMITED = "RATE_LIMITED"
    OVERLOADED = "OVERLOADED"
    WARMING = "WARMING"
    SERVER_ERROR = "SERVER_ERROR"
    TRANSPORT = "TRANSPORT"
    TIMEOUT = "TIMEOUT"
    TRUNCATED = "TRUNCATED"
    MALFORMED = "MALFORMED"
    EMPTY = "EMPTY"
    AUTH = "AUTH"
    QUOTA = "QUOTA"
    MODEL_GONE = "MODEL_GONE"
    MISCONFIGURED = "MISCONFIGURED"
    CONTEXT_LENGTH = "CONTEXT_LENGTH"
    TOO_LARGE = "TOO_LARGE"
    CONTENT_FILTERED = "CONTENT_FILTERED"
    INVALID_REQUEST = "INVALID_REQUEST"
    REJECTED_BY_FALLBACK = "REJECTED_BY_FALLBACK"
    CANCELLED = "CANCELLED"

    @property
    def policy(self) -> FailurePolicy:
        """The consequences of a failure of this class (routing.md section 9)."""
        return POLICIES[self]

    @property
    def category(self) -> Category:
        """rate_limit, timeout, permanent, transient or caller."""
        return POLICIES[self].category


@dataclass(frozen=True, slots=True)
class FailurePolicy:
    """One row of routing.md section 9.

    `accepted` is the throttle's column: True when the provider did take the call, None when it says nothing.
    `retry_same` allows the one quick retry on the same target.
    """

    category: Category
    breaker: BreakerCount
    accepted: bool | None
    cooldown: CooldownRule
    retry_same: bool
    next: NextTarget


def _row(
    category: Category,
    breaker: BreakerCount,
    accepted: bool | None,
    cooldown: CooldownRule,
    retry_same: bool,
    next_target: NextTarget,
) -> FailurePolicy:
    return FailurePolicy(category, breaker, accepted, cooldown, retry_same, next_target)


_C, _B, _D, _N = Category, BreakerCount, CooldownRule, NextTarget

POLICIES: Mapping[FailureClass, FailurePolicy] = MappingProxyType(
    {
        FailureClass.RATE_LIMITED: _row(_C.RATE_LIMIT, _B.NO, None, _D.LAW, False, _N.YES),
        FailureClass.OVERLOADED: _row(_C.RATE_LIMIT, _B.YES, False, _D.HINT_OR_BRIEF, False, _N.OTHER_PROVIDERS_FIRST),
        FailureClass.WARMING: _row(_C.TRANSIENT, _B.NO, None, _D.WARMING, False, _N.YES),
        FailureClass.SERVER_ERROR: _row(_C.TRANSIENT, _B.YES, True, _D.FAILURE, True, _N.YES),
        FailureClass.TRANSPORT: _row(_C.TRANSIENT, _B.PROVIDER, False, _D.FAILURE, True, _N.OTHER_PROVIDERS_FIRST),
        FailureClass.TIMEOUT: _row(_C.TIMEOUT, _B.YES, False, _D.TIMEOUT, False, _N.YES),
        FailureClass.TRUNCATED: _row(_C.TRANSIENT, _B.YES, True, _D.FAILURE, True, _N.YES),
        FailureClass.MALFORMED: _row(_C.TRANSIENT, _B.YES, True, _D.FAILURE, True, _N.YES),
        FailureClass.EMPTY: _row(_C.TRANSIENT, _B.THIRD_IN_A_ROW, True, _D.NONE, True, _N.YES),
        FailureClass.AUTH: _row(_C.PERMANENT, _B.NO, True, _D.OFF, False, _N.YES),
        FailureClass.QUOTA: _row(_C.PERMANENT, _B.NO, True, _D.WALL, False, _N.YES),
        FailureClass.MODEL_GONE: _row(_C.PERMANENT, _B.NO, True, _D.OFF, False, _N.YES),
        FailureClass.MISCONFIGURED: _row(_C.PERMANENT, _B.NO, True, _D.OFF, False, _N.YES),
        FailureClass.CONTEXT_LENGTH: _row(_C.CALLER, _B.NO, True, _D.NONE, False, _N.LARGER_ONLY),
        FailureClass.TOO_LARGE: _row(_C.CALLER, _B.NO, True, _D.NONE, False, _N.LARGER_ONLY),
        FailureClass.CONTENT_FILTERED: _row(_C.CALLER, _B.NO, True, _D.NONE, False, _N.BY_POLICY),
        FailureClass.INVALID_REQUEST: _row(_C.CALLER, _B.NO, True, _D.NONE, False, _N.NO),
        FailureClass.REJECTED_BY_FALLBACK: _row(_C.CALLER, _B.NO, True, _D.NONE, False, _N.YES),
        FailureClass.CANCELLED: _row(_C.CALLER, _B.NO, None, _D.NONE, False, _N.NO),
    }
)


@dataclass(frozen=True, slots=True)
class Wait:
    """A provider's own statement of when a new call makes sense.

    `seconds` >= 0 and finite, counted from the arrival of the answer that carried it. A scope of `concurrency`
    means fewer calls at once, not later ones.
    """

    seconds: float
    scope: Scope = "minute"


@dataclass(frozen=True, slots=True)
class BucketReading:
    """One rate-limit bucket as an answer's headers describe it; None where they say nothing.

    `reset_seconds` is the time until the bucket is full again; `window_seconds` the length of its window.
    """

    name: str
    limit: int | None = None
    remaining: int | None = None
    reset_seconds: float | None = None
    window_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class LimitReading:
    """All rate-limit buckets of one answer. `rejected` counts fields that could not be read."""

    buckets: tuple[BucketReading, ...] = ()
    rejected: int = 0


NO_READING = LimitReading()


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as the provider counted them. `prompt_tokens` includes cached ones."""

    prompt_tokens: int
    completion_tokens: int
    cached_prompt_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """The tokens that count against a limit of tokens per minute."""
        return self.prompt_tokens + self.completion_tokens


@quick
@dataclass(frozen=True, slots=True)
class Success:
    """A complete answer. `body` is its JSON, `raw` the bytes it came as.

    `mended`: bytes of its prose that are not UTF-8 are replaced in both.
    """

    body: Mapping[str, Any]
    raw: bytes
    usage: Usage | None = None
    reading: LimitReading = NO_READING
    headers: Mapping[str, str] = field(default_factory=dict)
    mended: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that failed. Inside the router failures are values; exceptions exist only in the public interfaces.

    `message` is for people, without secrets. `status` is the HTTP status when there was one. `raw` is the
    provider's own error body: a caller's fault is handed back unchanged. `credential_wide` says that every
    target of the same credential is concerned (a 401), not this target alone (a 403). `unsent`: the call never left
    (no connection), so it cost the provider nothing. `not_again`: the provider said that the same call would fail here
    once more. `reason`: why a connection failed (certificate, name, refused), in words that a client may read: without
    its address. `context_tokens` is the longest prompt that the target takes, when it said so. `code` is the provider's
    most telling code, in lower case.
    """

    failure_class: FailureClass
    message: str = ""
    status: int | None = None
    wait: Wait | None = None
    reading: LimitReading = NO_READING
    raw: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    credential_wide: bool = False
    unsent: bool = False
    not_again: bool = False
    reason: str = ""
    context_tokens: int | None = None
    code: str = ""


Outcome = Success | Failure


class EventKind(StrEnum):
    """The meaning of one event of a provider's stream, in any dialect."""

    CONTENT = "content"
    """Text, a tool call, reasoning or a refusal: something a caller would miss."""
    META = "meta"
    """Head, role chunk, usage chunk, content-block bracket: passed on, but no content."""
    PING = "ping"
    """A comment, a ping, or an object that its dialect does not know. Never proof of progress."""
    FINISH = "finish"
    """Carries the finish (stop) reason."""
    END = "end"
    """The dialect's terminator."""
    ERROR = "error"
    MALFORMED = "malformed"
    """An event that cannot be read: not UTF-8, not JSON, over the size cap, or not of its dialect's shape."""


class StreamEvent(NamedTuple):
    """One server-sent event as read by its dialect. A tuple: one is made for every chunk of every stream.

    `data` is its decoded JSON (None for comments, `[DONE]` and malformed ones), `raw` the frame as it came,
    with its blank line. `finish` is the dialect's own reason. `failure` is set on ERROR, and on content that was
    mended: bytes of its prose that are not UTF-8 are replaced in `data` and `raw`. `text` is the visible text of an
    event that adds nothing else to the answer but perhaps its `finish` or `usage`; "" for one without visible text;
    None where only `data` tells.
    """

    kind: EventKind
    raw: bytes
    data: Mapping[str, Any] | None = None
    finish: str | None = None
    usage: Usage | None = None
    failure: Failure | None = None
    text: str | None = None


RefusalReason = str
"""open, half_open, isolated, offline, cooldown, probation, wait, wall, off, throttle, requests, tokens,
too_large, bulkhead, slow_start, paced, shed, filtered:NEED (routing.md section 11)."""

REFUSAL_REASONS: frozenset[str] = frozenset(
    "open half_open isolated offline cooldown probation wait wall off throttle requests tokens too_large "
    "bulkhead slow_start paced shed".split()
)
"""The closed set, but for the `filtered:NEED` family."""

EVENT_REASONS: frozenset[str] = frozenset({"half_open", "bulkhead", "slow_start", "probation", "paced"})
"""Refusals that end by an event and have no instant."""

CAPACITY_REASONS: frozenset[str] = frozenset({"bulkhead", "requests", "tokens"})
"""Refusals for lack of a shared resource, under any pacing: waiters get it in the order of their arrival."""


@quick
@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal by our own gate. Never counted against a provider.

    `retry_at` is the monotonic instant at which asking again makes sense; None when no instant is known: the
    reason then ends by an event (`EVENT_REASONS`) or not within a request's life (wall, off, isolated).
    """

    reason: RefusalReason
    retry_at: float | None = None


@quick
@dataclass(frozen=True, slots=True)
class Snapshot:
    """The statistics of one target as a decision sees them. Instants are monotonic seconds; None is unknown.

    `successes` and `outcomes` cover the newest 50 outcomes of the last 5 minutes (routing.md section 1).
    Latencies are seconds; `seconds_per_100_tokens` is per 100 output tokens. `ttft_*` is the time to first content
    of streams, `latency_*` the duration of whole answers; `latencies` and `ttfts` are how many of them are known.
    """

    successes: int = 0
    outcomes: int = 0
    last_success_at: float | None = None
    newest_outcome_at: float | None = None
    latency_ema: float | None = None
    ttft_ema: float | None = None
    seconds_per_100_tokens: float | None = None
    latency_p99: float | None = None
    ttft_p95: float | None = None
    ttft_p99: float | None = None
    completion_tokens_p95: int | None = None
    latencies: int = 0
    ttfts: int = 0

    @property
    def success_rate(self) -> float:
        """(s + 4) / (n + 5): an untried target is neither proven good nor bad."""
        return (self.successes + 4) / (self.outcomes + 5)


EMPTY_SNAPSHOT = Snapshot()
