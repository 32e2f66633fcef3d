"""The lease: what one admitted call holds, and what follows when it is settled - once, on every path.

Pure: `now` and chance are arguments. A `Settlement` says what changed; somebody else tells the world.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from smart_model_router.core.breaker import BreakerState, CircuitBreaker, Permit, Transition, Verdict
from smart_model_router.core.cooldown import Cooldown, Rest
from smart_model_router.core.ratelimit import Reservation
from smart_model_router.outcome import NO_READING, Failure, FailureClass, LimitReading, Usage
from smart_model_router.quick import quick

if TYPE_CHECKING:
    from smart_model_router.core.gate import Gate

Kind = Literal["whole", "stream", "transport"]


@dataclass(frozen=True, slots=True)
class Moved:
    """A breaker's transition and which breaker it was."""

    kind: Kind
    transition: Transition


@quick
@dataclass(frozen=True, slots=True)
class Settlement:
    """What a settled call changed. `recovered` asks for fresh statistics; `offline` is set when that changed."""

    moved: tuple[Moved, ...] = ()
    rest: Rest | None = None
    recovered: bool = False
    offline: bool | None = None


_NOTHING = Settlement()


class Lease:
    """What one admitted call holds: permits, a slot, tokens. Settled once; `release` is a no-op after that."""

    __slots__ = (
        "_breaker",
        "_gate",
        "_last_resort",
        "_permit",
        "_probing",
        "_proven",
        "_reservation",
        "_settled",
        "_transport",
        "_trials",
        "admitted_at",
        "probe",
        "sequence",
        "stream",
        "unread",
    )

    def __init__(
        self,
        gate: Gate,
        breaker: CircuitBreaker,
        permit: Permit | None,
        transport: Permit | None,
        reservation: Reservation,
        now: float,
        sequence: int,
        stream: bool,
        probing: bool,
        trials: tuple[Cooldown, ...],
        last_resort: bool,
    ) -> None:
        self._gate = gate
        self._breaker = breaker
        self._permit = permit
        self._transport = transport
        self._reservation = reservation
        self._probing = probing
        self._trials = trials
        self._last_resort = last_resort
        self._proven = False
        self._settled = False
        self.admitted_at = now
        self.sequence = sequence
        self.stream = stream
        self.probe = probing or bool(trials)
        """Whether this call decides over a return: a breaker's probe, or on probation."""
        self.unread = 0.0
        """Seconds that a stream waited for its reader: they say nothing of the provider's pace."""

    @property
    def probes_breaker(self) -> bool:
        """Whether it is the one probe of a breaker that is not CLOSED."""
        return self._probing

    @property
    def open_seconds(self) -> float:
        """How long the call's breaker is open after a failure, in seconds."""
        return self._breaker.open_seconds

    @property
    def settled(self) -> bool:
        """Whether everything was given back."""
        return self._settled

    def heard(self, reading: LimitReading, now: float) -> None:
        """The head of the answer is there: what it says of the limits counts at once, however long the rest takes."""
        self._gate.limits.update(reading, self.sequence, now, sent_at=self.admitted_at)

    def prove(self, now: float) -> Settlement:
        """A streaming call has delivered enough to count as a success; a later cut is the closed breaker's."""
        if self._settled or self._proven or not self.probe:
            return _NOTHING
        self._proven = True
        moved = self._record("success", "success", now, 0.0) if self._probing else ()
        reconnected = self._reached(now)
        recovered = self._succeeded(now)
        settlement = self._follow(moved, None, recovered, now, False if reconnected else None)
        if self._probing:
            self._permit = _exchanged(self._breaker, now)
            self._transport = _exchanged(self._gate.provider.transport, now)
        self._leave_trials()
        return settlement

    def settle(
        self,
        failure: Failure | None,
        now: float,
        *,
        usage: Usage | None = None,
        reading: LimitReading = NO_READING,
        roll: float = 0.0,
        slow: bool = False,
    ) -> Settlement:
        """Give everything back with a verdict: `failure` is None for a success. A second call changes nothing.

        `reading` is what a whole answer's headers said of the limits; a failure brings its own. `slow` marks a success
        that took longer than `slow_call` allows. `roll` in [0, 1) spreads waits.
        """
        if self._settled:
            return _NOTHING
        self._settled = True
        gate, provider = self._gate, self._gate.provider
        gate.limits.settle(
            self._reservation, _real_usage(failure, usage), now, sent=failure is None or not failure.unsent
        )
        told = reading if failure is None else failure.reading
        if told.buckets:
            self.heard(told, now)
        self._count(failure, usage, now)
        provider.bulkhead.leave()
        gate.in_flight -= 1
        if self._last_resort:
            return _NOTHING
        transport = _transport_verdict(failure)
        is_probe = self._permit is not None and self._permit.probe
        moved = self._record(gate.verdict(failure, is_probe, slow), transport, now, roll)
        offline: bool | None = False if transport == "success" and self._reached(now) else None
        if moved and any(m.transition.reason == "withheld" for m in moved):
            moved = tuple(m for m in moved if m.transition.reason != "withheld")
            offline = True if provider.connectivity.went_offline(now) else None
        recovered = failure is None and not self._proven and self._succeeded(now)
        rest = None if failure is None else self._rest(failure, now, roll)
        settlement = self._follow(moved, rest, recovered, now, offline)
        if self.probe:
            self._leave_trials()
        return settlement

    def release(self, now: float) -> Settlement:
        """Give everything back without a verdict; no-op once settled."""
        return self.settle(_GIVEN_UP, now)

    def withdraw(self, now: float) -> Settlement:
        """Give everything back before anything was sent: another process has the probe."""
        return self.settle(_NOT_SENT, now)

    def _record(self, verdict: Verdict, transport: Verdict, now: float, roll: float) -> tuple[Moved, ...]:
        gate, provider = self._gate, self._gate.provider
        moved: list[Moved] = []
        if self._permit is not None and (t := self._breaker.record(self._permit, verdict, now, roll=roll)):
            moved.append(Moved("stream" if self.stream else "whole", t))
        if self._transport is not None:
            hold = transport == "failure" and provider.remote
            hold = hold and provider.connectivity.withholds(provider.name, now)
            if t := provider.transport.record(self._transport, transport, now, roll=roll, hold=hold):
                moved.append(Moved("transport", t))
        if not moved:
            return ()
        if any(m.transition.to_state is BreakerState.OPEN for m in moved):
            gate.cooldown.breaker_tripped()
        return tuple(moved)

    def _count(self, failure: Failure | None, usage: Usage | None, now: float) -> None:
        provider = self._gate.provider
        accepted = True if failure is None else failure.failure_class.policy.accepted
        if accepted is not None and not self._last_resort:
            provider.throttle.record(accepted, now)
        if failure is None:
            provider.bulkhead.succeeded(now, _pace(now - self.admitted_at - self.unread, usage))
            return
        if failure.wait is not None and failure.wait.scope == "concurrency":
            provider.bulkhead.shrink(now)
        if failure.failure_class in _NO_ROOM:
            provider.bulkhead.refused(self.admitted_at, now)

    def _succeeded(self, now: float) -> bool:
        own = self._gate.cooldown.succeeded(self.admitted_at, now)
        return self._gate.credential.succeeded(self.admitted_at, now) or own

    def _rest(self, failure: Failure, now: float, roll: float) -> Rest | None:
        if failure.failure_class is FailureClass.CANCELLED:
            return None
        gate = self._gate
        offline = gate.provider.remote and gate.provider.connectivity.offline  # it is us, not them
        owner = gate.credential if failure.credential_wide else gate.cooldown
        # Fewer at once, or a provider without capacity: no bucket is about that, and none paces the return from it.
        rate = failure.failure_class is FailureClass.RATE_LIMITED
        paced = rate and gate.limits.known and not (failure.wait and failure.wait.scope == "concurrency")
        rest = owner.failed(
            failure,
            admitted_at=self.admitted_at,
            sent_seq=self.sequence,
            now=now,
            roll=roll,
            paced=paced,
            expected=gate.limits.next_window(now),
            advise=self._breaker.is_closed and gate.provider.transport.is_closed and not offline,
            honour_hints=gate.config.measures.rate_limit_awareness,
        )
        if paced and rest is not None and rest.reason == "wait":
            gate.limits.hold_until(rest.until, now, self._reservation.cost, failure.reading)
        return rest

    def _reached(self, now: float) -> bool:
        provider = self._gate.provider
        return provider.remote and provider.connectivity.reached(now)

    def _follow(
        self, moved: tuple[Moved, ...], rest: Rest | None, recovered: bool, now: float, offline: bool | None
    ) -> Settlement:
        gate, provider = self._gate, self._gate.provider
        slow_start = recovered and bool(self._trials)
        for m in moved:
            if m.kind == "transport":
                provider.connectivity.moved(provider.name, m.transition.to_state is BreakerState.OPEN, now)
                provider.returned_at = now if m.transition.to_state is BreakerState.CLOSED else -math.inf
            if m.transition.to_state is BreakerState.CLOSED:
                provider.throttle.reset()
                recovered = slow_start = True
        if slow_start:
            gate.begin_slow_start(now)
        return Settlement(moved, rest, recovered, offline)

    def _leave_trials(self) -> None:
        if self._probing:
            self._probing = False
            self._gate.provider.probe_in_flight = False
        for trial in self._trials:
            trial.on_trial -= 1
        self._trials = ()


_NO_USAGE = Usage(0, 0)
_NO_ROOM = frozenset({FailureClass.RATE_LIMITED, FailureClass.OVERLOADED})
_TELLING_TOKENS = 16
"""An answer of fewer tokens took mostly its time to the first one."""
_GIVEN_UP = Failure(FailureClass.CANCELLED)
_NOT_SENT = Failure(FailureClass.CANCELLED, unsent=True)


def _exchanged(breaker: CircuitBreaker, now: float) -> Permit | None:
    """A permit of the closed breaker for the rest of a call that has proved itself; never a second probe's."""
    got = breaker.try_acquire(now) if breaker.is_closed else None
    return got if isinstance(got, Permit) else None


def _real_usage(failure: Failure | None, usage: Usage | None) -> Usage | None:
    """What the call used: an HTTP error used no tokens; a call that ended otherwise keeps its estimate."""
    refused = failure is not None and failure.status is not None and failure.status >= 400
    return _NO_USAGE if refused else usage


def _pace(seconds: float, usage: Usage | None) -> float | None:
    """Seconds per output token; None when the answer was too short to tell, or its tokens were not counted."""
    tokens = 0 if usage is None else usage.completion_tokens
    return seconds / tokens if tokens >= _TELLING_TOKENS else None


def _transport_verdict(failure: Failure | None) -> Verdict:
    """An answer of any kind proves the transport; a timeout or a caller who left proves nothing."""
    if failure is None:
        return "success"
    match failure.failure_class:
        case FailureClass.TRANSPORT:
            return "failure"
        case FailureClass.TIMEOUT | FailureClass.CANCELLED:
            return "ignored"
        case _:
            return "success"
