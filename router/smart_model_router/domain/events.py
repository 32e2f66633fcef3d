"""The events that sinks receive: one frozen dataclass each. No decision reads an event back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from smart_model_router.domain.fast_dataclass import quick
from smart_model_router.domain.outcome import FailureClass, LimitReading, RestReason, Usage
from smart_model_router.domain.request import Criticality, Dialect

NAME_LIMIT = 200
"""Characters of a name that a caller chose: no model's is longer, and whatever keeps events keeps no more of it."""
Asked = Dialect | Literal["passthrough"]
"""The dialect of a request; "passthrough" for one of no dialect, whose route stands in the place of a model."""
RequestOutcome = Literal["ok", "fallback", "degraded", "failed", "cancelled", "rejected_local"]


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFinished:
    """A request ended. `at` is monotonic, `seconds` and `waited_seconds` are durations.

    `model` is what the caller asked for, NAME_LIMIT characters of it at most; `configured_model` the configured one
    that this stood for: callers choose the names of aliases, so one is text and the other may be a label.
    `error` is the exception's name: its text may have a provider's words in it, and those may quote the prompt.
    `complete` and `notes` are the report's.
    """

    at: float
    request_id: str
    dialect: Asked
    model: str
    outcome: RequestOutcome
    target: str | None
    requested_tier: str
    actual_tier: str | None
    degraded: bool
    last_resort: bool
    attempts: int
    refusals: int
    seconds: float
    waited_seconds: float
    ttft_seconds: float | None = None
    error: str = ""
    configured_model: str = ""
    complete: bool = False
    notes: tuple[str, ...] = ()


ALIKE = (
    "dialect",
    "model",
    "outcome",
    "target",
    "requested_tier",
    "actual_tier",
    "degraded",
    "last_resort",
    "attempts",
    "refusals",
    "complete",
    "notes",
)
"""Fields of RequestFinished that most requests of a busy minute share with others: a bulk writer writes them once."""


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFinished:
    """One call at a provider ended. This is also what statistics are made of.

    `admitted_at` and `at` are monotonic. `seconds` is the whole call, `ttft_seconds` (streams) the time to the
    first content. `failure_class` is None for a success. A `hedge` was made while another call's head was late.
    `upkeep`: its caller had left, and it went on only to learn whether the target works. `reason`: why no connection
    was made (certificate, name, refused).
    """

    at: float
    admitted_at: float
    target: str
    provider: str
    model: str
    stream: bool
    seconds: float
    failure_class: FailureClass | None = None
    ttft_seconds: float | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    status: int | None = None
    probe: bool = False
    hedge: bool = False
    upkeep: bool = False
    request_id: str = ""
    reading: LimitReading | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentSeen:
    """The prompt and the answer of a request, as `mode` allows. Emitted right before its RequestFinished, if at all.

    Each is a hash (`sha256:...`) or a text: the body as JSON, of a stream its visible text, "" when there is none.
    """

    at: float
    request_id: str
    mode: Literal["hash", "redacted", "full"]
    prompt: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerChanged:
    """A circuit breaker moved. `owner` is a target id, or a provider name for a transport breaker."""

    at: float
    owner: str
    kind: Literal["whole", "stream", "transport"]
    from_state: str
    to_state: str
    reason: str
    open_until: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSpoke:
    """The operator isolated or enabled a target.

    `by` names the operator, `since` is the time in seconds since the epoch, `why` the reason ("" where none was given).
    `heard`: it was said in another process, or before this one began.
    """

    at: float
    target: str
    word: Literal["isolate", "enable"]
    by: str
    why: str
    since: float
    heard: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeStarted:
    """A due target got its one probe."""

    at: float
    target: str
    kind: Literal["whole", "stream", "transport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestStarted:
    """A cooldown, a wait, a wall or an off period began or moved. `seconds` is its length from `at`."""

    at: float
    target: str
    reason: RestReason
    seconds: float
    failure_class: FailureClass
    hinted: bool


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRefused:
    """A gate refused a request the call to its target. `retry_after` is seconds, None when it ends by an event."""

    at: float
    request_id: str
    target: str
    reason: str
    retry_after: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitFinished:
    """A request left the wait queue after `seconds`."""

    at: float
    request_id: str
    seconds: float
    woken_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineChanged:
    """All remote providers became unreachable at once, or the first one answered again."""

    at: float
    offline: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SheddingChanged:
    """Load shedding began or ended; `open_ratio` is the share of providers that are OPEN."""

    at: float
    shedding: bool
    open_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestShed:
    """A sheddable request was turned away."""

    at: float
    request_id: str
    criticality: Criticality
    retry_after: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreChanged:
    """A store is out of reach, or within reach again.

    `stats` has the statistics, `state` the shared state, `responses` the kept responses. Requests are served all the
    same. `reason` says why it is out of reach.
    """

    at: float
    store: Literal["stats", "state", "responses"]
    degraded: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetsEvicted:
    """The router dropped these targets and all it knew of them: the least recently used models of wildcards."""

    at: float
    names: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardsExpired:
    """The router dropped these names of `router.guard`, which were not used for an hour, and all it knew of them."""

    at: float
    names: frozenset[str]


Event = (
    RequestFinished
    | AttemptFinished
    | ContentSeen
    | BreakerChanged
    | OperatorSpoke
    | ProbeStarted
    | RestStarted
    | TargetRefused
    | WaitFinished
    | OfflineChanged
    | SheddingChanged
    | RequestShed
    | StoreChanged
    | TargetsEvicted
    | GuardsExpired
)


if not TYPE_CHECKING:  # type checkers would take every name for one of this module

    def __getattr__(name: str) -> object:
        """Return a class by its old name."""
        from smart_model_router._moved import renamed  # noqa: PLC0415 - only old names pay

        return renamed(__name__, name)
