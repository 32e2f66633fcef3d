"""The gate of one target: breaker, cooldown, probation, slow start, bulkhead, buckets and throttle - all or none.

`Gate.try_admit` answers with a `Lease` that holds everything the call needs, or with the one `Refusal` that comes
first. The lease is settled once and gives everything back on every path. Pure: `now` and chance are arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, assert_never, cast

from smart_model_router.core.adaptive_limit import AdaptiveConfig, LearnedLimit
from smart_model_router.core.breaker import (
    BreakerConfig,
    BreakerSnapshot,
    BreakerState,
    CircuitBreaker,
    Permit,
    Transition,
    Verdict,
)
from smart_model_router.core.bulkhead import Bulkhead
from smart_model_router.core.checked_options import Options, Seconds
from smart_model_router.core.connectivity import Connectivity
from smart_model_router.core.cooldown import Cooldown, CooldownConfig, CooldownSnapshot
from smart_model_router.core.evidence import Evidence, SequentialTest
from smart_model_router.core.lease import Lease, Moved
from smart_model_router.core.ratelimit import Cost, RateLimitTracker
from smart_model_router.core.throttle import AdaptiveThrottle, ThrottleConfig, ThrottleSnapshot
from smart_model_router.domain.outcome import (
    BreakerCount,
    Failure,
    Refusal,
)

Pacing = Literal["off", "on", "eager"]
"""What our own judgement (breaker, advice, probation, slow start, throttle) does to a call (routing.md 0a, D3, D4).

`off`: it excludes the target, as another one is free. `on`: no other target is free, so it only paces. `eager`: and
nothing else can answer either, so the probe of an OPEN breaker comes due by back-off.
"""

_PACED_FROM = 0.2
"""The success share from which a target takes its full load while no other one is free."""
_MOST_DOWN = 0.9
_MOST_ILL = 0.85
"""A target's own share of failures is taken to be at most this, or nothing could be told from it."""
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
        "evidence",
        "failing",
        "gates",
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
        self.bulkhead = Bulkhead(slots)
        self.throttle = AdaptiveThrottle(self.config.throttle)
        self.failing: dict[str, float] = {}
        """When each of its targets last had a call turned away, by target."""
        self.transport = CircuitBreaker(self.config.breaker)
        self.evidence = _evidence(self.config)
        """What is known of its transport: all calls of all its targets."""
        self.gates: dict[str, Gate] = {}
        self.connectivity = connectivity
        self.credentials: dict[int, Cooldown] = {}
        self.probe_in_flight = False
        self.returned_at = -math.inf
        """When its transport came back, and all of its targets with it; -inf: it was never away."""
        self.queue = queue
        """How many may wait for it as a last resort; None is limited by the waiting room alone."""
        self.sequence = 0
        """Numbers the calls in the order they were admitted: targets that share a credential compare them."""

    @property
    def has_slot(self) -> bool:
        """Whether one more call is within its slots."""
        return self.bulkhead.free > 0 or not self.config.measures.cascade_prevention

    def credential(self, number: int) -> Cooldown:
        """The rests of one credential, shared by its targets."""
        return self.credentials.setdefault(number, Cooldown(self.config.cooldown))

    def weigh(self, permit: Permit, verdict: Verdict, sent_at: float, now: float, patience: float) -> bool:
        """Enter the outcome of a call as evidence about the transport; whether that is down."""
        if not self.transport.is_current(permit) or verdict == "ignored":
            return False
        if verdict == "success":
            self.evidence.succeeded(sent_at, now, stream=False)
            return False
        _, down = self.evidence.failed(sent_at, now, stream=False, patience=patience)
        return down

    def throttled_together(self, now: float) -> bool:
        """Whether two of its targets had calls turned away lately: then all of them are counted as one."""
        if len(self.failing) < 2:
            return False
        since = now - self.config.throttle.cells
        return sum(at > since for at in self.failing.values()) > 1

    def has_key_of(self, other: ProviderState, number: int) -> bool:
        """Whether the credential `number` is the same as there."""
        return self.keys[number : number + 1] == other.keys[number : number + 1]

    def take_load_of(self, before: ProviderState) -> None:
        """Count with the state of before, whose calls go on: slots, and what the throttle saw.

        For a reload: `self` has admitted nothing yet. Where the rules of one of them changed, that begins anew.
        """
        if self.config.measures != before.config.measures:
            return  # without the monotonic clock, instants mean something else
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


@dataclass(frozen=True, slots=True)
class GateSnapshot:
    """Everything that calls of one kind could move at a gate, at one instant.

    `rests` are the target's and its credential's, `throttles` the target's and its provider's.
    """

    own: BreakerSnapshot
    transport: BreakerSnapshot
    rests: tuple[CooldownSnapshot, CooldownSnapshot]
    throttles: tuple[ThrottleSnapshot, ThrottleSnapshot]


class Gate:
    """Admission to one target. Not thread-safe: one event loop, no awaits inside."""

    __slots__ = (
        "_empties",
        "_in_paced_spell",
        "_returned_at",
        "alone",
        "breakers",
        "chosen_at",
        "config",
        "cooldown",
        "credential",
        "evidence",
        "id",
        "in_flight",
        "learned",
        "limits",
        "number",
        "provider",
        "throttle",
    )

    def __init__(
        self,
        target_id: str,
        provider: ProviderState,
        *,
        limits: RateLimitTracker | None = None,
        credential: int = 0,
        alone: bool = False,
    ) -> None:
        self.alone = alone
        """Whether its load is another than that of the provider's models: the throttle counts it by itself."""
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
        self.evidence = _evidence(self.config)
        """What its outcomes and its calls in flight say about its health."""
        self.learned = LearnedLimit(provider.bulkhead.slots) if self.config.adaptive.enabled else None
        """How many calls at once it was seen to bear; None: that is not learned."""
        self.throttle = AdaptiveThrottle(self.config.throttle)
        """Counts this target alone; that of the provider counts when several of its targets turn calls away."""
        self.chosen_at = -math.inf
        """When it admitted the newest call; -inf: none yet."""
        self._empties = 0
        self._in_paced_spell = False
        self._returned_at = -math.inf
        provider.gates[target_id] = self

    def try_admit(
        self,
        cost: Cost,
        now: float,
        roll: float,
        *,
        stream: bool = False,
        pacing: Pacing = "off",
        last_resort: bool = False,
    ) -> Lease | Refusal:
        """Everything the call needs, or the first refusal. `roll` in [0, 1) is the throttle's toss.

        Law refuses under any `pacing`; what judgement does depends on it. A probe passes untossed, and so does a call
        on probation: there is one of them at a time anyway. As a `last_resort` a target is refused only for want of a
        slot, and by the operator.
        """
        provider, breaker = self.provider, self.breakers["stream" if stream else "whole"]
        if last_resort:
            if (refused := self.resort_refusal()) is not None:
                return refused
            return self._lease(breaker, None, None, cost, now, stream, last_resort=True)
        probing, trials = False, _NO_TRIALS
        calm = self._is_calm(breaker, now)
        if not calm:
            if (told := self._restraint(breaker, now, pacing)) is not None:
                return told
            probing = not (breaker.is_closed and provider.transport.is_closed)
            trials = self._trials(now, pacing)
        if (short := self._shortage(cost, now)) is not None:
            return short
        tossed = self.config.measures.cascade_prevention and not (probing or (trials and pacing == "off"))
        if tossed and not self._passes(now, roll, pacing):
            return Refusal("throttle", now + 1.0)
        eager = pacing == "eager"
        permit = cast("Permit", breaker.try_acquire(now, eager=eager))  # never a Refusal: they were asked just now
        transport = cast("Permit", provider.transport.try_acquire(now, eager=eager))
        provider.probe_in_flight = provider.probe_in_flight or probing
        if provider.remote:
            provider.connectivity.take_pass(now)
        paced = pacing != "off" and not (calm or probing)
        self._in_paced_spell = self._in_paced_spell or paced
        return self._lease(breaker, permit, transport, cost, now, stream, probing=probing, trials=trials, paced=paced)

    def refusal(self, cost: Cost, now: float, *, stream: bool = False, pacing: Pacing = "off") -> Refusal | None:
        """What would refuse a call at `now`, but for the throttle's toss. Changes nothing."""
        breaker = self.breakers["stream" if stream else "whole"]
        if not self._is_calm(breaker, now) and (told := self._restraint(breaker, now, pacing)) is not None:
            return told
        return self._shortage(cost, now)

    def is_full(self, now: float, *, stream: bool) -> bool:
        """Whether it would refuse a call of any cost for want of a slot alone. Changes nothing."""
        if self.free_slots or not self.config.measures.cascade_prevention:
            return False
        return self._is_calm(self.breakers["stream" if stream else "whole"], now)

    def resort_refusal(self) -> Refusal | None:
        """What would refuse a call that comes here as a last resort."""
        if self.isolated:
            return Refusal("isolated")
        return _NO_SLOT if self.provider.bulkhead.free == 0 else None

    def snapshot(self, *, stream: bool) -> GateSnapshot:
        """The state that calls of one kind move, for checkers."""
        provider = self.provider
        return GateSnapshot(
            self.breakers["stream" if stream else "whole"].snapshot(),
            provider.transport.snapshot(),
            (self.cooldown.snapshot(), self.credential.snapshot()),
            (self.throttle.snapshot(), provider.throttle.snapshot()),
        )

    @property
    def free_slots(self) -> int:
        """Calls it would take now, as far as slots are concerned."""
        free = self.provider.bulkhead.free
        return free if free == 0 or self.learned is None else min(free, max(0, self.learned.limit - self.in_flight))

    @property
    def expected_wait(self) -> float:
        """Seconds until a slot is free, were one more to wait for it: service time / limit."""
        if self.learned is None:
            return math.inf
        limit = min(self.provider.bulkhead.limit, self.learned.limit)
        return self.learned.service_time / max(1, limit)

    def turned_away(self, number: int, sent_at: float, now: float, patience: float, *, hinted: bool) -> None:
        """A call sent at `sent_at` as the `number`-th in flight was refused for want of capacity.

        `hinted` says that the provider told for how long.
        """
        depends = self.evidence.turned_away(sent_at, now, patience)
        if depends and self.learned is not None:
            outlived = self.evidence.outlived_numbers(sent_at, now, patience)
            self.learned.refused(number, now, outlived, hinted=hinted)

    def count(self, accepted: bool, now: float) -> None:
        """Tell the throttles what came of a call."""
        self.throttle.record(accepted, now)
        if self.alone:
            return
        self.provider.throttle.record(accepted, now)
        if not accepted:
            self.provider.failing[self.id] = now

    def reset_throttle(self) -> None:
        """The target is back: what its throttles counted is of the time before."""
        self.throttle.reset()
        if not self.alone:
            self.provider.throttle.reset()
            self.provider.failing.pop(self.id, None)

    def spell_ended(self) -> None:
        """A call that was not paced has succeeded: a paced spell before it is over."""
        if self._in_paced_spell:
            self._in_paced_spell = False
            self.reset_throttle()

    def tosses(self, now: float) -> bool:
        """Return whether the throttle may refuse a call at `now`."""
        return self._tossing(now).probability(now) > 0.0

    def _passes(self, now: float, roll: float, pacing: Pacing) -> bool:
        """The throttle's toss. Where no other target is free it holds only below a success share of a fifth."""
        if self.throttle.empty:
            return True
        paced = pacing != "off"
        if paced and (self.in_flight == 0 or self.evidence.success_share(now) >= _PACED_FROM):
            return True
        return self._tossing(now).try_pass(now, roll)

    def _tossing(self, now: float) -> AdaptiveThrottle:
        """The throttle that decides: the target's own, or the provider's where several of its targets turn away."""
        together = not self.alone and self.provider.throttled_together(now)
        return self.provider.throttle if together else self.throttle

    def _paced_limit(self, now: float) -> float:
        """How many calls may be in flight while judgement only paces: slots x min(1, s / 0.2), at least one."""
        share = min(1.0, self.evidence.success_share(now) / _PACED_FROM)
        return max(1.0, self.provider.bulkhead.slots * share + _EPSILON)

    def _shortage(self, cost: Cost, now: float) -> Refusal | None:
        """What refuses a call for want of a slot or of tokens."""
        if self.config.measures.cascade_prevention and self.free_slots == 0:
            return _NO_SLOT
        return self.limits.refusal(cost, now) if self.limits.known else None

    def _is_calm(self, breaker: CircuitBreaker, now: float) -> bool:
        """Whether there is nothing to recover from, as mostly: then only capacity is in question."""
        provider, slow_start = self.provider, self.config.slow_start
        return (
            breaker.is_closed
            and provider.transport.is_closed
            and not self.cooldown.returning
            and not self.credential.returning
            and now - self._returned_at >= slow_start
            and now - provider.returned_at >= slow_start
            and not provider.connectivity.offline
            and not self.evidence.stormy
        )

    def _restraint(self, breaker: CircuitBreaker, now: float, pacing: Pacing) -> Refusal | None:
        """The one place that decides "refuse, pace, admit": law refuses, judgement excludes or paces (D3, D4)."""
        provider, eager = self.provider, pacing == "eager"
        own = breaker.refusal(now, eager=eager)
        if own is not None and own.reason == "isolated":
            return own
        law = self._law(now)
        told = _later(provider.transport.refusal(now, eager=eager), own)
        if law is not None:
            return _later(law, told) if law.reason == "wait" else law
        if provider.remote and (pass_at := provider.connectivity.pass_at(now)) > now:
            return Refusal("offline", pass_at)
        if told is not None:
            return told
        if self.evidence.stormy and (self.in_flight or now < self.evidence.storm_pause):
            return Refusal("paced", None if self.in_flight else self.evidence.storm_pause)
        if self.in_flight and (self.cooldown.warming or self.credential.warming):
            return Refusal("probation")
        closed = breaker.is_closed and provider.transport.is_closed
        if not closed and provider.probe_in_flight and self.config.measures.serialized_probes:
            return Refusal("half_open")
        if pacing != "off" and not (closed and self.in_flight + 1 > self._paced_limit(now)):
            return None
        excluded = self._exclusion(closed, now)
        return excluded if excluded is None or pacing == "off" else Refusal("paced")

    def _exclusion(self, closed: bool, now: float) -> Refusal | None:
        """What keeps calls from a target that is ill, or was until just now, while another one is free."""
        if closed and (advice := self.cooldown.advice(now)) is not None:
            return advice
        if any(trial.on_trial for trial in self._trials(now)):
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
        return self.steady_breakers(stream=stream) and not self._trials(now)

    def steady_breakers(self, *, stream: bool) -> bool:
        """Whether no breaker that such a call would meet is open."""
        return self.breakers["stream" if stream else "whole"].is_closed and self.provider.transport.is_closed

    def away(self, *, stream: bool) -> bool:
        """Return whether a call of this kind would only find out that the target, or the network, is back."""
        offline = self.provider.remote and self.provider.connectivity.offline
        return offline or not self.steady_breakers(stream=stream)

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
        """The operator's yes: breakers closed, the provider's too, every rest forgotten, no slow start."""
        self.cooldown.clear()
        self.credential.clear()
        self.limits.release(now)
        self.evidence.clear()
        self.provider.evidence.clear()
        moved = self._operate(CircuitBreaker.close, now)
        if (reconnected := self.provider.transport.close(now)) is not None:
            moved = (*moved, Moved("transport", reconnected))
        for m in moved:
            self.apply(m, now)
        self.reset_throttle()
        if self.learned is not None:
            self.learned.reset()
        self._returned_at = self.provider.returned_at = -math.inf
        return moved

    def apply(self, moved: Moved, now: float) -> None:
        """The consequences of a breaker's transition, whoever tells of it: a call, the operator, another process.

        A transport breaker concerns every target of the provider. An OPEN breaker alone decides among advice; a
        CLOSED one begins slow start, and the throttle forgets.
        """
        provider, to = self.provider, moved.transition.to_state
        concerned = tuple(provider.gates.values()) if moved.kind == "transport" else (self,)
        if moved.kind == "transport":
            provider.connectivity.moved(provider.name, to is BreakerState.OPEN, now)
            provider.returned_at = now if to is BreakerState.CLOSED else -math.inf
            if to is BreakerState.OPEN:
                provider.evidence.tripped()
        for gate in concerned:
            if to is BreakerState.OPEN:
                gate.cooldown.breaker_tripped()
                gate.evidence.tripped()
            elif to is BreakerState.CLOSED:
                gate.begin_slow_start(now)
                gate.reset_throttle()

    def returned(self, now: float, *, slowly: bool) -> None:
        """Take back a target whose rests a success has ended, whoever tells of it: a call or another process.

        `slowly` says that the rest had expired and the success was a call on probation.
        """
        if slowly:
            self.begin_slow_start(now)
        self.reset_throttle()

    def resize(self) -> None:
        """The provider's slots have changed."""
        if self.learned is not None:
            self.learned.resize(self.provider.bulkhead.slots)

    def free_share(self, now: float) -> float:
        """Free capacity in [0, 1]: the least of free slots, requests and tokens, as shares."""
        bulkhead = self.provider.bulkhead
        return min(self.free_slots / bulkhead.slots, self.limits.free_share(now))

    def load(self, now: float) -> float:
        """The part of its capacity that is in use, from 0: of its slots, or of its requests or tokens a minute."""
        limit = self.provider.bulkhead.limit
        slots = limit if self.learned is None else min(limit, self.learned.limit)
        return max(self.in_flight / slots, 1.0 - self.limits.free_share(now))

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

    def _trials(self, now: float, pacing: Pacing = "off") -> tuple[Cooldown, ...]:
        """Whose probation a call admitted at `now` would serve."""
        if not (self.cooldown.returning or self.credential.returning):
            return ()
        trials = [rest for rest in (self.cooldown, self.credential) if rest.on_probation(now)]
        if pacing != "off" and self.cooldown.advice(now) is not None:
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
        paced: bool = False,
        last_resort: bool = False,
    ) -> Lease:
        self.provider.bulkhead.enter()
        self.in_flight += 1
        self.chosen_at = now
        self.provider.sequence += 1
        for trial in trials:
            trial.on_trial += 1
        if not last_resort:
            self.evidence.sent(self.provider.sequence, now, stream=stream, number=self.in_flight)
            self.provider.evidence.sent(self.provider.sequence, now, stream=False, number=0)
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
            paced,
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


def _evidence(config: GateConfig) -> Evidence:
    """The tests of a target, with the numbers of its configuration."""
    breaker, cooldown = config.breaker, config.cooldown

    def down() -> SequentialTest:
        return SequentialTest(
            failing=breaker.failing_share, most=_MOST_DOWN, odds=breaker.odds, odds_per_call=breaker.odds_per_call
        )

    ill = SequentialTest(
        failing=cooldown.failing_share, most=_MOST_ILL, odds=cooldown.odds, odds_per_call=cooldown.odds_per_call
    )
    return Evidence(rest=ill, whole=down(), stream=down())


_NO_COST = Cost(0, 0)
_NO_SLOT = Refusal("bulkhead")
_NO_TRIALS: tuple[Cooldown, ...] = ()


def _later(one: Refusal | None, other: Refusal | None) -> Refusal | None:
    """Of two refusals the one that ends last; what ends by an event gives way to an instant."""
    if one is None or other is None:
        return one or other
    return other if (other.retry_at or 0.0) > (one.retry_at or 0.0) else one
