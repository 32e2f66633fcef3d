"""The gate of one target: breaker, cooldown, probation, slow start, bulkhead, buckets and throttle - all or none.

`Gate.try_admit` answers with a `Lease` that holds everything the call needs, or with the one `Refusal` that comes
first. The lease is settled once and gives everything back on every path. Pure: `now` and chance are arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, assert_never, cast

from smart_model_router.core.adaptive import AdaptiveConfig
from smart_model_router.core.breaker import BreakerConfig, BreakerState, CircuitBreaker, Permit, Transition, Verdict
from smart_model_router.core.bulkhead import Bulkhead
from smart_model_router.core.cooldown import Cooldown, CooldownConfig
from smart_model_router.core.lease import Lease, Moved
from smart_model_router.core.offline import Connectivity
from smart_model_router.core.options import Options, Seconds
from smart_model_router.core.ratelimit import Cost, RateLimitTracker
from smart_model_router.core.throttle import AdaptiveThrottle, ThrottleConfig
from smart_model_router.outcome import (
    BreakerCount,
    Failure,
    Refusal,
)

_EMPTIES = 3
_EPSILON = 1e-6
"""A millionth of a call: the instant computed from a number of calls must admit that number."""


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


class ProviderState:
    """What the targets of one provider share."""

    __slots__ = (
        "bulkhead",
        "config",
        "connectivity",
        "credentials",
        "keys",
        "name",
        "origin",
        "probe_in_flight",
        "queue",
        "remote",
        "returned_at",
        "sequence",
        "throttle",
        "transport",
    )

    def __init__(
        self,
        name: str,
        *,
        slots: int,
        remote: bool,
        connectivity: Connectivity,
        config: GateConfig | None = None,
        queue: int | None = None,
        origin: object = None,
        keys: Sequence[object] = (),
    ) -> None:
        self.name = name
        self.origin = origin
        """What its calls depend on, but for keys, slots and limits: one of equal origin is the same provider."""
        self.keys = keys
        """The key of each credential."""
        self.remote = remote
        self.config = config or GateConfig()
        self.bulkhead = Bulkhead(slots, adaptive=self.config.adaptive)
        self.throttle = AdaptiveThrottle(self.config.throttle)
        self.transport = CircuitBreaker(self.config.breaker)
        self.connectivity = connectivity
        self.credentials: dict[int, Cooldown] = {}
        self.probe_in_flight = False
        self.returned_at = -math.inf
        """When its transport came back, and all of its targets with it; -inf: it was never away."""
        self.queue = queue
        """How many may wait for it as a last resort; None is limited by the waiting room alone."""
        self.sequence = 0
        """Numbers the calls in the order they were admitted: targets that share a credential compare them."""

    def credential(self, number: int) -> Cooldown:
        """The rests of one credential, shared by its targets."""
        return self.credentials.setdefault(number, Cooldown(self.config.cooldown))

    def has_key_of(self, other: ProviderState, number: int) -> bool:
        """Whether the credential `number` is the same as there."""
        return self.keys[number : number + 1] == other.keys[number : number + 1]

    def take_load_of(self, before: ProviderState) -> None:
        """Count with the state of before, whose calls go on: slots, and what the throttle saw.

        For a reload: `self` has admitted nothing yet. Where the rules of one of them changed, that begins anew.
        """
        if self.config.measures != before.config.measures:
            return  # without the monotonic clock, instants mean something else
        if self.config.adaptive == before.config.adaptive:
            before.bulkhead.resize(self.bulkhead.slots)
            self.bulkhead = before.bulkhead
        if self.config.throttle == before.config.throttle:
            self.throttle = before.throttle

    def take_keys_of(self, after: ProviderState) -> None:
        """Go on with the keys of a new configuration: at a number that has another key now, nothing rests."""
        for number in tuple(self.credentials):
            if not self.has_key_of(after, number):
                del self.credentials[number]
        self.keys = after.keys


class Gate:
    """Admission to one target. Not thread-safe: one event loop, no awaits inside."""

    __slots__ = (
        "_empties",
        "_returned_at",
        "breakers",
        "config",
        "cooldown",
        "credential",
        "id",
        "in_flight",
        "limits",
        "number",
        "provider",
    )

    def __init__(
        self,
        target_id: str,
        provider: ProviderState,
        *,
        limits: RateLimitTracker | None = None,
        credential: int = 0,
    ) -> None:
        self.id = target_id
        self.provider = provider
        self.config = provider.config
        self.limits = limits or RateLimitTracker()
        self.breakers: Mapping[Literal["whole", "stream"], CircuitBreaker] = {
            "whole": CircuitBreaker(self.config.breaker),
            "stream": CircuitBreaker(self.config.breaker),
        }
        self.cooldown = Cooldown(self.config.cooldown)
        self.number = credential
        """Which of the provider's credentials it uses."""
        self.credential = provider.credential(credential)
        self.in_flight = 0
        self._empties = 0
        self._returned_at = -math.inf

    def try_admit(
        self,
        cost: Cost,
        now: float,
        roll: float,
        *,
        stream: bool = False,
        ignore_advice: bool = False,
        last_resort: bool = False,
    ) -> Lease | Refusal:
        """Everything the call needs, or the first refusal. `roll` in [0, 1) is the throttle's toss.

        `ignore_advice` asks a cooling target on probation, one call at a time. A probe passes untossed, and so does
        a call on probation: there is one of them at a time anyway. As a `last_resort` a target is refused for want
        of a slot alone.
        """
        provider, breaker = self.provider, self.breakers["stream" if stream else "whole"]
        if last_resort:
            if provider.bulkhead.free == 0:
                return Refusal("bulkhead")
            return self._lease(breaker, None, None, cost, now, stream, last_resort=True)
        probing, trials = False, _NO_TRIALS
        if not self._is_calm(breaker, now):
            if (told := self._restraint(breaker, now, ignore_advice)) is not None:
                return told
            probing = not (breaker.is_closed and provider.transport.is_closed)
            trials = self._trials(now, ignore_advice)
        if (short := self._shortage(cost, now)) is not None:
            return short
        tossed = self.config.measures.cascade_prevention and not (probing or trials)
        if tossed and not provider.throttle.try_pass(now, roll):
            return Refusal("throttle", now + 1.0)
        permit = cast("Permit", breaker.try_acquire(now))  # never a Refusal: `refusal` asked them just now
        transport = cast("Permit", provider.transport.try_acquire(now))
        provider.probe_in_flight = provider.probe_in_flight or probing
        if provider.remote:
            provider.connectivity.take_pass(now)
        return self._lease(breaker, permit, transport, cost, now, stream, probing=probing, trials=trials)

    def refusal(self, cost: Cost, now: float, *, stream: bool = False) -> Refusal | None:
        """What would refuse a call at `now`, but for the throttle's toss. Changes nothing."""
        breaker = self.breakers["stream" if stream else "whole"]
        if not self._is_calm(breaker, now) and (told := self._restraint(breaker, now)) is not None:
            return told
        return self._shortage(cost, now)

    def _shortage(self, cost: Cost, now: float) -> Refusal | None:
        """What refuses a call for want of a slot or of tokens."""
        if self.config.measures.cascade_prevention and self.provider.bulkhead.free == 0:
            return Refusal("bulkhead")
        return self.limits.refusal(cost, now) if self.limits.known else None

    def _is_calm(self, breaker: CircuitBreaker, now: float) -> bool:
        """Whether there is nothing to recover from, as mostly: then only capacity is in question."""
        provider = self.provider
        return (
            breaker.is_closed
            and provider.transport.is_closed
            and not self.cooldown.returning
            and not self.credential.returning
            and now - max(self._returned_at, provider.returned_at) >= self.config.slow_start
            and not provider.connectivity.offline
        )

    def _restraint(self, breaker: CircuitBreaker, now: float, ignore_advice: bool = False) -> Refusal | None:
        """What refuses a call for what happened before: breakers, rests, being offline, slow start."""
        provider = self.provider
        own = breaker.refusal(now)
        if own is not None and own.reason == "isolated":
            return own
        law = self._law(now)
        told = _later(provider.transport.refusal(now), own)
        if law is not None:
            return _later(law, told) if law.reason == "wait" else law
        if provider.remote and (pass_at := provider.connectivity.pass_at(now)) > now:
            return Refusal("offline", pass_at)
        if told is not None:
            return told
        if not (breaker.is_closed and provider.transport.is_closed):
            if provider.probe_in_flight and self.config.measures.serialized_probes:
                return Refusal("half_open")
        elif not ignore_advice and (advice := self.cooldown.advice(now)) is not None:
            return advice
        if any(trial.on_trial for trial in self._trials(now, ignore_advice)):
            return Refusal("probation")
        if any(in_flight + 1 > self._allowed(returned_at, now) for returned_at, in_flight in self._slow_starts()):
            return Refusal("slow_start")
        return None

    def ready_at(self, refusal: Refusal) -> float | None:
        """When a waiter refused for this reason should look again by itself; None: an event will tell."""
        slots = self.provider.bulkhead.slots
        if refusal.reason == "slow_start" and slots > 1:
            a_call_more = self.config.slow_start / (slots - 1)
            return max(returned_at + a_call_more * in_flight for returned_at, in_flight in self._slow_starts())
        return refusal.retry_at

    def due_since(self, now: float, *, stream: bool) -> float | None:
        """Since when a probe (of a breaker or on probation) is due here; None when none is."""
        breaker, transport = self.breakers["stream" if stream else "whole"], self.provider.transport
        resting = self.cooldown.returning or self.credential.returning
        if breaker.is_closed and transport.is_closed and not resting:
            return None
        if self.refusal(_NO_COST, now, stream=stream) is not None:
            return None
        dues = [due for one in (breaker, transport) if (due := one.open_until) is not None]
        dues += [due for rest in (self.cooldown, self.credential) if (due := rest.due_since(now)) is not None]
        return min(dues, default=None)

    def steady(self, now: float, *, stream: bool) -> bool:
        """Whether a call admitted now would decide over no return: it would be neither a probe nor on probation."""
        breaker = self.breakers["stream" if stream else "whole"]
        return breaker.is_closed and self.provider.transport.is_closed and not self._trials(now, ignore_advice=False)

    @property
    def tried(self) -> bool:
        """Whether it ever admitted a call."""
        return self.breakers["whole"].used or self.breakers["stream"].used

    def is_open(self, now: float) -> bool:
        """OPEN for system health: both breakers are, or the only kind in use is."""
        used = [breaker for breaker in self.breakers.values() if breaker.used]
        return bool(used) and all(breaker.state(now) is BreakerState.OPEN for breaker in used)

    def enabled(self, now: float) -> bool:
        """Whether it counts in system health: neither walled nor off nor isolated."""
        law = self._law(now)
        return not self.isolated and (law is None or law.reason == "wait")

    @property
    def isolated(self) -> bool:
        """Whether the operator said no."""
        return any(breaker.isolated for breaker in self.breakers.values())

    def continues(self, before: Gate) -> bool:
        """Whether it is configured as the gate of before, so that this one could go on in its place."""
        here, there = self.provider, before.provider
        same = here.origin == there.origin and here.config == there.config and self.number == before.number
        return same and here.has_key_of(there, self.number) and self.limits.terms == before.limits.terms

    def move_to(self, provider: ProviderState) -> None:
        """Belong to another state of the provider. For a reload: it has admitted nothing yet."""
        self.provider = provider
        self.credential = provider.credential(self.number)

    def isolate(self, now: float) -> tuple[Moved, ...]:
        """The operator's no."""
        return self._operate(CircuitBreaker.isolate, now)

    def close(self, now: float) -> tuple[Moved, ...]:
        """The operator's yes: breakers closed, the provider's too, every rest forgotten."""
        self.cooldown.clear()
        self.credential.clear()
        self.limits.release(now)
        self._returned_at = self.provider.returned_at = -math.inf
        self.provider.throttle.reset()
        moved = self._operate(CircuitBreaker.close, now)
        reconnected = self.provider.transport.close(now)
        if reconnected is None:
            return moved
        self.provider.connectivity.moved(self.provider.name, False, now)
        return (*moved, Moved("transport", reconnected))

    def free_share(self, now: float) -> float:
        """Free capacity in [0, 1]: the least of free slots, requests and tokens, as shares."""
        bulkhead = self.provider.bulkhead
        return min(bulkhead.free / bulkhead.slots, self.limits.free_share(now))

    def _law(self, now: float) -> Refusal | None:
        """The law in force for the target or its credential: what nobody waits for first, else the longer wait."""
        own, shared = self.cooldown.law(now), self.credential.law(now)
        if shared is not None and shared.reason != "wait":
            return shared
        return own if own is not None and own.reason != "wait" else _later(own, shared)

    def _operate(self, verb: Callable[[CircuitBreaker, float], Transition | None], now: float) -> tuple[Moved, ...]:
        return tuple(
            Moved(kind, transition)
            for kind, breaker in self.breakers.items()
            if (transition := verb(breaker, now)) is not None
        )

    def _trials(self, now: float, ignore_advice: bool) -> tuple[Cooldown, ...]:
        """Whose probation a call admitted at `now` would serve."""
        if not (self.cooldown.returning or self.credential.returning):
            return ()
        trials = [rest for rest in (self.cooldown, self.credential) if rest.on_probation(now)]
        if ignore_advice and self.cooldown.advice(now) is not None:
            trials.append(self.cooldown)
        return tuple(trials)

    def _lease(
        self,
        breaker: CircuitBreaker,
        permit: Permit | None,
        transport: Permit | None,
        cost: Cost,
        now: float,
        stream: bool,
        *,
        probing: bool = False,
        trials: tuple[Cooldown, ...] = (),
        last_resort: bool = False,
    ) -> Lease:
        self.provider.bulkhead.enter()
        self.in_flight += 1
        self.provider.sequence += 1
        for trial in trials:
            trial.on_trial += 1
        return Lease(
            self,
            breaker,
            permit,
            transport,
            self.limits.reserve(cost, now, self.provider.sequence),
            now,
            self.provider.sequence,
            stream,
            probing,
            trials,
            last_resort,
        )

    def _slow_starts(self) -> tuple[tuple[float, int], tuple[float, int]]:
        """When this target and its provider came back, and how many calls each has in flight."""
        provider = self.provider
        return (self._returned_at, self.in_flight), (provider.returned_at, provider.bulkhead.in_flight)

    def _allowed(self, returned_at: float, now: float) -> float:
        """Slow start: 1 + (slots - 1) x (t / slow_start) calls in flight; after it the bulkhead alone decides."""
        elapsed = now - returned_at
        if elapsed >= self.config.slow_start:
            return math.inf
        return 1 + (self.provider.bulkhead.slots - 1) * elapsed / self.config.slow_start + _EPSILON

    def verdict(self, failure: Failure | None, probe: bool, slow: bool) -> Verdict:
        """The breaker's column of routing.md section 9."""
        if failure is None:
            self._empties = 0
            return "failure" if slow else "success"
        match failure.failure_class.policy.breaker:
            case BreakerCount.YES:
                self._empties = 0
                return "failure"
            case BreakerCount.PROVIDER:
                return "failure" if probe else "ignored"
            case BreakerCount.THIRD_IN_A_ROW:
                self._empties += 1
                if self._empties < _EMPTIES:
                    return "ignored"
                self._empties = 0
                return "failure"
            case BreakerCount.NO:
                return "ignored"
            case never:
                assert_never(never)

    def begin_slow_start(self, now: float) -> None:
        """The target has proven itself after an absence: it takes its full load step by step."""
        self._returned_at = now


_NO_COST = Cost(0, 0)
_NO_TRIALS: tuple[Cooldown, ...] = ()


def _later(one: Refusal | None, other: Refusal | None) -> Refusal | None:
    """Of two refusals the one that ends last; what ends by an event gives way to an instant."""
    if one is None or other is None:
        return one or other
    return other if (other.retry_at or 0.0) > (one.retry_at or 0.0) else one
