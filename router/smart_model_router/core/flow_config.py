"""The configuration of gates and of the flow of one request: attempts, waits, timeouts, patience."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from smart_model_router.core.breaker import BreakerConfig
from smart_model_router.core.capacity import AdaptiveConfig, ThrottleConfig
from smart_model_router.core.checked_options import Count, CountOrZero, Options, Ratio, Seconds, SecondsOrZero
from smart_model_router.core.cooldown import CooldownConfig

ModelName = Literal["asked", "served", "served_on_fallback"]
"""The name that an answer has in `model`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """The five founding measures; each can be switched off alone (what is left is documented in departures.md)."""

    monotonic_clock: bool = True
    rate_limit_awareness: bool = True
    serialized_probes: bool = True
    cascade_prevention: bool = True
    tiered_degradation: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class GateConfig(Options):
    """Everything a gate decides by. `slow_start` is how many seconds a returned target needs to take full load."""

    breaker: BreakerConfig = field(default_factory=BreakerConfig)
    cooldown: CooldownConfig = field(default_factory=CooldownConfig)
    throttle: ThrottleConfig = field(default_factory=ThrottleConfig)
    adaptive: AdaptiveConfig = field(default_factory=AdaptiveConfig)
    slow_start: Seconds = 10.0
    measures: Measures = field(default_factory=Measures)


@dataclass(frozen=True, kw_only=True)
class RoutingConfig(Options):
    """The limits of one request (routing.md section 8). Durations are seconds.

    `degrade_after` bounds the wait in the asked tier before a lower one is taken, `affinity_wait` that for the target
    that has the prompt in its cache before an equal one is. The last resort is taken at the age
    of `last_resort_after`, at 0.6 of the deadline at the latest. `max_wait` bounds the sum of a request's waits (None:
    its deadline does), `sheddable_wait` that of a sheddable one; `max_waiting` is the size of the wait queue.
    `default_model` answers for unknown names; None refuses them. `unpriced` "allow" lets budgets in USD be spent at
    targets of unknown price. `malformed_events` decides on a stream in which an event cannot be read after its caller
    has content: "fault" ends it (or recovers it by policy), "skip" delivers the rest and then ends it as a failed one;
    with tools or a schema it is always "fault". `recovery` is the policy for streams that break off after content, of
    models that have none of their own (recoverable.py). `model_name` is the `model` of answers over HTTP: the requested
    name, the served target's, or the served target's only where it is not the first choice.
    """

    strategy: str = "health"
    default_model: str | None = None
    allow_escalation: bool = False
    degrade_after: SecondsOrZero = 2.0
    affinity_wait: SecondsOrZero = 2.0
    last_resort_after: SecondsOrZero = 20.0
    max_wait: SecondsOrZero | None = None
    sheddable_wait: SecondsOrZero = 10.0
    max_waiting: CountOrZero = 1000
    attempts_per_target: Count = 2
    attempts_per_tier: Count = 3
    attempts: Count = 6
    rejected_by_fallback: Count = 2
    content_filter_fallback: bool = False
    shed_to_last_resort: bool = False
    unpriced: Literal["refuse", "allow"] = "refuse"
    malformed_events: Literal["fault", "skip"] = "fault"
    recovery: str = "continue"
    model_name: ModelName = "served_on_fallback"


@dataclass(frozen=True, kw_only=True)
class TimeoutConfig(Options):
    """Timeouts of a call in seconds.

    `total` bounds the time to the first delivered content and whole answers; a committed stream has only `idle`
    and `stream_max`; its reader has `reader_idle` for each
    chunk that waits. `finish_grace` is how long a stream may linger between its finish reason and its terminator.
    `margin` of what remains is left for another candidate while there is one.
    """

    total: Seconds = 600.0
    first_content: Seconds = 30.0
    first_content_reasoning: Seconds = 120.0
    attempt: Seconds = 180.0
    attempt_reasoning: Seconds = 480.0
    idle: Seconds = 60.0
    stream_max: Seconds = 3600.0
    reader_idle: Seconds = 60.0
    connect: Seconds = 5.0
    finish_grace: Seconds = 5.0
    margin: Ratio = 0.2


@dataclass(frozen=True, kw_only=True)
class PatienceConfig(Options):
    """After how many silent seconds a call that its caller gave up counts as the target's timeout."""

    minimum: Seconds = 5.0
    stream: Seconds = 5.0
    whole: Seconds = 30.0
