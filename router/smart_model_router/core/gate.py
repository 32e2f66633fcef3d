"""The gate of one target: breaker, cooldown, probation, slow start, bulkhead, buckets and throttle - all or none.

`Gate.try_admit` answers with a `Lease` that holds everything the call needs, or with the one `Refusal` that comes
first. The lease is settled once and gives everything back on every path. Pure: `now` and chance are arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

from smart_model_router.core.breaker import (
    BreakerSnapshot,
    BreakerState,
    CircuitBreaker,
    Permit,
    Transition,
)
from smart_model_router.core.capacity import (
    AdaptiveThrottle,
    ThrottleSnapshot,
)
from smart_model_router.core.cooldown import Cooldown, CooldownSnapshot
from smart_model_router.core.lease import Lease
from smart_model_router.core.ratelimit import Cost
from smart_model_router.core.target_state import Moved, ProviderState, TargetState
from smart_model_router.domain.outcome import (
    Refusal,
)

Pacing = Literal["off", "on", "eager"]
"""The effect of our own judgement (breaker, advice, probation, slow start, throttle) on a call (routing.md 0a, D3, D4).

`off`: it excludes the target, as another one is free. `on`: no other target is free, so it only paces. `eager`: as
`on`, and no other target can answer at all, so the probe of an OPEN breaker comes due by back-off.
"""

_PACED_FROM = 0.2
"""The success share from which a target takes its full load while no other one is free."""
_EPSILON = 1e-6
"""A millionth of a call: the instant computed from a number of calls must admit that number."""


@dataclass(frozen=True, slots=True)
class GateSnapshot:
    """Everything that calls of one kind could move at a gate, at one instant.

    `rests` are the target's and its credential's, `throttles` the target's and its provider's.
    """

    own: BreakerSnapshot
    transport: BreakerSnapshot
    rests: tuple[CooldownSnapshot, CooldownSnapshot]
    throttles: tuple[ThrottleSnapshot, ThrottleSnapshot]


class Gate(TargetState):
    """Admission to one target. Not thread-safe: one event loop, no awaits inside."""

    __slots__ = ()

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
        """Take everything the call needs, or return the first refusal. `roll` in [0, 1) is the throttle's draw.

        Law refuses under any `pacing`; the effect of judgement depends on it. The throttle does not refuse a probe, nor
        a call on probation: there is one of them at a time anyway. As a `last_resort` a target is refused only for lack
        of a slot, and by the operator.
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
        if provider.remote and provider.connectivity.offline:
            provider.connectivity.take_pass(now)
        paced = pacing != "off" and not (calm or probing)
        self.in_paced_spell = self.in_paced_spell or paced
        return self._lease(breaker, permit, transport, cost, now, stream, probing=probing, trials=trials, paced=paced)

    def refusal(self, cost: Cost, now: float, *, stream: bool = False, pacing: Pacing = "off") -> Refusal | None:
        """The refusal of a call at `now`, without the throttle's draw. Changes nothing."""
        breaker = self.breakers["stream" if stream else "whole"]
        if not self._is_calm(breaker, now) and (told := self._restraint(breaker, now, pacing)) is not None:
            return told
        return self._shortage(cost, now)

    def is_full(self, now: float, *, stream: bool) -> bool:
        """True when it would refuse a call of any cost for lack of a slot alone. Changes nothing."""
        if self.free_slots or not self.config.measures.cascade_prevention:
            return False
        return self._is_calm(self.breakers["stream" if stream else "whole"], now)

    def resort_refusal(self) -> Refusal | None:
        """The refusal of a call that comes here as a last resort."""
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

    def tosses(self, now: float) -> bool:
        """Return whether the throttle may refuse a call at `now`."""
        return self._tossing(now).probability(now) > 0.0

    def _passes(self, now: float, roll: float, pacing: Pacing) -> bool:
        """The throttle's draw. Where no other target is free it counts only below a success share of a fifth."""
        # Without `failing` no throttle has seen a call turned away.
        if not (self.alone or self.provider.failing) or self.throttle.empty:
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
        """The calls that may be in flight while judgement only paces: slots x min(1, s / 0.2), at least one."""
        share = min(1.0, self.evidence.success_share(now) / _PACED_FROM)
        return max(1.0, self.provider.bulkhead.slots * share + _EPSILON)

    def _shortage(self, cost: Cost, now: float) -> Refusal | None:
        """The refusal of a call for lack of a slot or of tokens."""
        if self.config.measures.cascade_prevention and self.free_slots == 0:
            return _NO_SLOT
        return self.limits.refusal(cost, now) if self.limits.known else None

    def _is_calm(self, breaker: CircuitBreaker, now: float) -> bool:
        """True when there is nothing to recover from, the usual case: then only capacity can refuse."""
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
        """The refusal of a target that is ill, or was until just now, while another one is free."""
        if closed and (advice := self.cooldown.advice(now)) is not None:
            return advice
        if any(trial.on_trial for trial in self._trials(now)):
            return Refusal("probation")
        if any(in_flight + 1 > self._allowed(returned_at, now) for returned_at, in_flight in self._slow_starts()):
            return Refusal("slow_start")
        return None

    def ready_at(self, refusal: Refusal) -> float | None:
        """The instant at which a waiter refused for this reason should look again; None: an event wakes it."""
        slots = self.provider.bulkhead.slots
        if refusal.reason == "slow_start" and slots > 1:
            a_call_more = self.config.slow_start / (slots - 1)
            return max(returned_at + a_call_more * in_flight for returned_at, in_flight in self._slow_starts())
        return refusal.retry_at

    def due_since(self, now: float, *, stream: bool) -> float | None:
        """The instant since which a probe (of a breaker or on probation) is due here; None when none is."""
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
        """True when a call admitted now would be neither a probe nor on probation."""
        return self.steady_breakers(stream=stream) and not self._trials(now)

    def steady_breakers(self, *, stream: bool) -> bool:
        """True when every breaker that such a call would meet is closed."""
        return self.breakers["stream" if stream else "whole"].is_closed and self.provider.transport.is_closed

    def away(self, *, stream: bool) -> bool:
        """Return whether a call of this kind would only find out that the target, or the network, is back."""
        offline = self.provider.remote and self.provider.connectivity.offline
        return offline or not self.steady_breakers(stream=stream)

    @property
    def tried(self) -> bool:
        """True when it ever admitted a call."""
        return self.breakers["whole"].used or self.breakers["stream"].used

    def is_open(self, now: float) -> bool:
        """OPEN for system health: both breakers are, or the only kind in use is."""
        used = [breaker for breaker in self.breakers.values() if breaker.used]
        return bool(used) and all(breaker.state(now) is BreakerState.OPEN for breaker in used)

    def enabled(self, now: float) -> bool:
        """True when it counts in system health: neither walled nor off nor isolated."""
        law = self._law(now)
        return not self.isolated and (law is None or law.reason == "wait")

    @property
    def isolated(self) -> bool:
        """True when the operator isolated it."""
        return any(breaker.isolated for breaker in self.breakers.values())

    def continues(self, before: Gate) -> bool:
        """True when it is configured as the gate `before`, so that it can take its place."""
        here, there = self.provider, before.provider
        same = here.origin == there.origin and here.config == there.config and self.number == before.number
        return same and here.has_key_of(there, self.number) and self.limits.terms == before.limits.terms

    def move_to(self, provider: ProviderState) -> None:
        """Attach to another state of the provider. For a reload: the gate has admitted nothing yet."""
        self.provider = provider
        self.credential = provider.credential(self.number)

    def isolate(self, now: float) -> tuple[Moved, ...]:
        """Isolate the target, as the operator asks."""
        return self._operate(CircuitBreaker.isolate, now)

    def close(self, now: float) -> tuple[Moved, ...]:
        """Close the breakers, the provider's too, forget every rest, and skip slow start, as the operator asks."""
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
        """The law in force for the target or its credential: one without a wait first, else the longer wait."""
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
        """The rests whose probation a call admitted at `now` would serve."""
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
        provider = self.provider
        provider.bulkhead.enter()
        self.in_flight += 1
        self.chosen_at = now
        provider.sequence = sequence = provider.sequence + 1
        for trial in trials:
            trial.on_trial += 1
        if not last_resort:
            self.evidence.sent(sequence, now, stream=stream, number=self.in_flight)
            provider.evidence.sent(sequence, now, stream=False, number=0)
        return Lease(
            self,
            breaker,
            permit,
            transport,
            self.limits.reserve(cost, now, sequence),
            now,
            sequence,
            stream,
            probing,
            trials,
            paced,
            last_resort,
        )

    def _slow_starts(self) -> tuple[tuple[float, int], tuple[float, int]]:
        """The instants at which this target and its provider came back, each with its calls in flight."""
        provider = self.provider
        return (self._returned_at, self.in_flight), (provider.returned_at, provider.bulkhead.in_flight)

    def _allowed(self, returned_at: float, now: float) -> float:
        """Slow start: 1 + (slots - 1) x (t / slow_start) calls in flight; after it the bulkhead alone decides."""
        elapsed = now - returned_at
        if elapsed >= self.config.slow_start:
            return math.inf
        return 1 + (self.provider.bulkhead.slots - 1) * elapsed / self.config.slow_start + _EPSILON


_NO_COST = Cost(0, 0)
_NO_SLOT = Refusal("bulkhead")
_NO_TRIALS: tuple[Cooldown, ...] = ()


def _later(one: Refusal | None, other: Refusal | None) -> Refusal | None:
    """Of two refusals the one that ends last; what ends by an event gives way to an instant."""
    if one is None or other is None:
        return one or other
    return other if (other.retry_at or 0.0) > (one.retry_at or 0.0) else one
