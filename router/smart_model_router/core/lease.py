"""The lease of one admitted call, which holds its permits, slot and tokens and is settled once, on every path.

Pure: `now` and chance are arguments. A `Settlement` says what changed; the caller publishes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from smart_model_router.core.breaker import BreakerState, CircuitBreaker, Permit, Verdict
from smart_model_router.core.cooldown import Cooldown, Rest
from smart_model_router.core.evidence import PATIENCE
from smart_model_router.core.ratelimit import Reservation
from smart_model_router.core.target_state import Moved, TargetState
from smart_model_router.domain.fast_dataclass import quick
from smart_model_router.domain.outcome import NO_READING, Failure, FailureClass, LimitReading, Usage


@quick
@dataclass(frozen=True, slots=True)
class Settlement:
    """The changes by a settled call. `recovered` asks for fresh statistics; `offline` is set when that changed."""

    moved: tuple[Moved, ...] = ()
    rest: Rest | None = None
    recovered: bool = False
    offline: bool | None = None


_NOTHING = Settlement()


@dataclass(frozen=True, slots=True)
class LeaseSnapshot:
    """The holdings of a lease at one instant.

    `trials` are the rests whose probation it serves; `out` counts its permits and reservations that are not settled.
    """

    trials: tuple[Cooldown, ...]
    tokens: int
    out: int


class Lease:
    """The permits, the slot and the tokens of one admitted call. Settled once; `release` is a no-op after that."""

    __slots__ = (
        "_breaker",
        "_last_resort",
        "_permit",
        "_probing",
        "_proven",
        "_reservation",
        "_target",
        "_transport",
        "_trials",
        "admitted_at",
        "has_begun",
        "number_in_flight",
        "paced",
        "probe",
        "sequence",
        "settled",
        "stream",
        "unread",
    )

    def __init__(
        self,
        target: TargetState,
        breaker: CircuitBreaker,
        permit: Permit | None,
        transport: Permit | None,
        reservation: Reservation,
        now: float,
        sequence: int,
        stream: bool,
        probing: bool,
        trials: tuple[Cooldown, ...],
        paced: bool,
        last_resort: bool,
    ) -> None:
        self._target = target
        self._breaker = breaker
        self._permit = permit
        self._transport = transport
        self._reservation = reservation
        self._probing = probing
        self._trials = trials
        self._last_resort = last_resort
        self._proven = False
        self.settled = False
        """True when everything was given back."""
        self.admitted_at = now
        self.sequence = sequence
        self.stream = stream
        self.paced = paced
        """True when it was admitted because no other target is free, against our own judgement."""
        self.probe = probing or bool(trials)
        """True when this call decides over a recovery: it is a breaker's probe, or on probation."""
        self.number_in_flight = target.in_flight
        """The number of calls in flight at the target when it was sent, itself included."""
        self.has_begun = False
        """True once a stream has brought content, delivered or not: it is billed."""
        self.unread = 0.0
        """Seconds that a stream waited for its reader: they say nothing of the provider's pace."""

    @property
    def probes_breaker(self) -> bool:
        """True for the one probe of a breaker that is not CLOSED, until it is proven; a settlement changes nothing."""
        return self._probing

    @property
    def decides(self) -> bool:
        """True when its verdict would still move its breakers: they have not moved since it was admitted."""
        permits = ((self._breaker, self._permit), (self._target.provider.transport, self._transport))
        return all(permit is None or breaker.is_current(permit) for breaker, permit in permits)

    @property
    def open_seconds(self) -> float:
        """The seconds for which the call's breaker is open after a failure."""
        return self._breaker.open_seconds

    def snapshot(self) -> LeaseSnapshot:
        """Its holdings, for checkers."""
        held = (self._permit, self._transport, self._reservation)
        out = sum(one is not None and not one.settled for one in held)
        return LeaseSnapshot(self._trials, self._reservation.tokens, out)

    def heard(self, reading: LimitReading, now: float) -> None:
        """Apply the rate limits in the head of the answer at once, however long the rest takes."""
        self._target.limits.update(reading, self.sequence, now, sent_at=self.admitted_at)

    def begun(self) -> None:
        """A stream has brought its first content: it is not silent, however long it goes on."""
        self.has_begun = True
        self._target.evidence.begun(self.sequence)

    def connected(self, now: float) -> Settlement:
        """Count the transport as proven when a call that may take hours reached its provider; no probe waits for it.

        The outcome of the call is still the verdict on its own breaker.
        """
        if self.settled or not self._probing:
            return _NOTHING
        provider = self._target.provider
        provider.probe_in_flight = self._probing = False
        permit = cast("Permit", self._transport)  # a last resort has none, and is no probe
        transition = provider.record(permit, "success", self.admitted_at, now, roll=0.0, patience=PATIENCE)
        self._transport = _exchanged(provider.transport, now)
        moved = () if transition is None else (Moved("transport", transition),)
        return self._follow(moved, None, False, now, False if provider.reached(now) else None)

    def prove(self, now: float) -> Settlement:
        """Count a streaming call that delivered enough as a success; a later cut counts at the closed breaker."""
        if self.settled or self._proven or not self.probe:
            return _NOTHING
        permit = cast("Permit", self._permit)  # a last resort has none, and is no probe
        self._target.weigh(
            self._breaker, permit, "success", None, self.admitted_at, now, stream=self.stream, patience=PATIENCE
        )
        self._proven = True
        moved = self._record("success", "success", now, 0.0, PATIENCE) if self._probing else ()
        reconnected = self._target.provider.reached(now)
        recovered = self._target.succeeded(self.admitted_at, now)
        settlement = self._follow(moved, None, recovered, now, False if reconnected else None)
        if self._probing:
            self._permit = _exchanged(self._breaker, now)
            self._transport = _exchanged(self._target.provider.transport, now)
        self._leave_trials()
        self._probing = False
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
        patience: float = PATIENCE,
    ) -> Settlement:
        """Give everything back with a verdict: `failure` is None for a success. A second call changes nothing.

        `reading` has the rate limits of a whole answer's headers; a failure brings its own. `slow` marks a success that
        took longer than `slow_call` allows. `roll` in [0, 1) spreads waits. `patience` is the number of silent seconds
        after which a call in flight counts as lost.
        """
        if self.settled:
            return _NOTHING
        self.settled = True
        target, provider = self._target, self._target.provider
        used: Usage | None = usage
        transport: Verdict = "success"
        if failure is not None:
            used, transport = _real_usage(failure, usage), _transport_verdict(failure)
        target.evidence.ended(self.sequence)
        provider.evidence.ended(self.sequence)
        target.limits.settle(self._reservation, used, now, sent=failure is None or not failure.unsent)
        told = reading if failure is None else failure.reading
        if told.buckets:
            self.heard(told, now)
        load = failure is not None and self._is_load(failure, now, patience)
        self._count(failure, now, patience)
        provider.bulkhead.leave()
        target.in_flight -= 1
        if self._last_resort:
            return _NOTHING
        is_probe = self._permit is not None and self._permit.probe
        verdict: Verdict = "ignored" if load else target.verdict(failure, is_probe, slow)
        ill = down = False
        if self._permit is not None and not (self._proven and verdict == "success"):
            ill, down = target.weigh(
                self._breaker,
                self._permit,
                verdict,
                failure,
                self.admitted_at,
                now,
                stream=self.stream,
                patience=patience,
            )
        moved = self._record(verdict, transport, now, roll, patience, down=down)
        offline: bool | None = False if transport == "success" and provider.reached(now) else None
        if moved and any(m.transition.reason == "withheld" for m in moved):
            moved = tuple(m for m in moved if m.transition.reason != "withheld")
            offline = True if provider.connectivity.went_offline(now) else None
        recovered = failure is None and not self._proven and target.succeeded(self.admitted_at, now)
        rest = None if failure is None else self._rest(failure, now, roll, ill=ill, load=load)
        settlement = self._follow(moved, rest, recovered, now, offline)
        if failure is None and not self.paced and target.in_paced_spell:
            target.spell_ended()
        if self.probe:
            self._leave_trials()
        return settlement

    def release(self, now: float) -> Settlement:
        """Give everything back without a verdict; no-op once settled."""
        return self.settle(_GIVEN_UP, now)

    def withdraw(self, now: float) -> Settlement:
        """Give everything back before anything was sent: another process has the probe."""
        return self.settle(_NOT_SENT, now)

    def _is_load(self, failure: Failure, now: float, patience: float) -> bool:
        """True when a refusal for lack of capacity came while other calls are served: no sign of ill health."""
        if failure.failure_class is not FailureClass.OVERLOADED:
            return False
        return self._target.evidence.serves_others(self.admitted_at, now, patience)

    def _record(
        self, verdict: Verdict, transport: Verdict, now: float, roll: float, patience: float, *, down: bool = False
    ) -> tuple[Moved, ...]:
        lost = now - self.admitted_at
        moved: tuple[Moved, ...] = ()
        if self._permit is not None and (
            t := self._breaker.record(self._permit, verdict, now, roll=roll, down=down, lost=lost)
        ):
            moved = (Moved("stream" if self.stream else "whole", t),)
        if self._transport is not None and (
            t := self._target.provider.record(
                self._transport, transport, self.admitted_at, now, roll=roll, patience=patience
            )
        ):
            moved = (*moved, Moved("transport", t))
        return moved

    def _count(self, failure: Failure | None, now: float, patience: float) -> None:
        target, provider = self._target, self._target.provider
        accepted = True if failure is None else failure.failure_class.policy.accepted
        if accepted is not None and not self._last_resort:
            target.count(accepted, now)
        if failure is None:
            provider.bulkhead.succeeded(now)
            if target.learned is not None:
                target.learned.accepted(self.number_in_flight, now - self.admitted_at - self.unread, now)
            return
        if failure.wait is not None and failure.wait.scope == "concurrency":
            provider.bulkhead.shrink(now)
        if not self._last_resort and _says_too_many(failure):
            hinted = failure.wait is not None
            target.turned_away(self.number_in_flight, self.admitted_at, now, patience, hinted=hinted)

    def _rest(self, failure: Failure, now: float, roll: float, *, ill: bool, load: bool) -> Rest | None:
        if failure.failure_class is FailureClass.CANCELLED or (load and failure.wait is None):
            return None
        target = self._target
        offline = target.provider.remote and target.provider.connectivity.offline  # it is us, not them
        owner = target.credential if failure.credential_wide else target.cooldown
        # Fewer at once, or a provider without capacity: no bucket is about that, and none paces the return from it.
        rate = failure.failure_class is FailureClass.RATE_LIMITED
        paced = rate and target.limits.seen and not (failure.wait and failure.wait.scope == "concurrency")
        rest = owner.failed(
            failure,
            admitted_at=self.admitted_at,
            sent_seq=self.sequence,
            now=now,
            roll=roll,
            paced=paced,
            ill=ill,
            expected=target.limits.next_window(now),
            advise=self._breaker.is_closed and target.provider.transport.is_closed and not offline,
            honour_hints=target.config.measures.rate_limit_awareness,
        )
        if paced and rest is not None and rest.reason == "wait":
            target.limits.hold_until(rest.until, now, self._reservation.cost, failure.reading)
        if rest is not None and rest.reason == "cooldown":
            target.evidence.rest_began()
        return rest

    def _follow(
        self, moved: tuple[Moved, ...], rest: Rest | None, recovered: bool, now: float, offline: bool | None
    ) -> Settlement:
        if not moved and rest is None and not recovered and offline is None:  # as for nearly every answer
            return _NOTHING
        target, closed = self._target, False
        for m in moved:
            target.apply(m, now)
            closed = closed or m.transition.to_state is BreakerState.CLOSED
        if recovered:
            target.returned(now, slowly=bool(self._trials) and not closed)
        return Settlement(moved, rest, recovered or closed, offline)

    def _leave_trials(self) -> None:
        if self._probing:
            self._target.provider.probe_in_flight = False
        for trial in self._trials:
            trial.on_trial -= 1
        self._trials = ()


_NO_USAGE = Usage(0, 0)
_SHORT_HINT = 2.0
"""Seconds. A provider that hints at so short a wait means fewer calls at once rather than later ones."""
_GIVEN_UP = Failure(FailureClass.CANCELLED)
_NOT_SENT = Failure(FailureClass.CANCELLED, unsent=True)


def _exchanged(breaker: CircuitBreaker, now: float) -> Permit | None:
    """A permit of the closed breaker for the rest of a call that has proved itself; never a second probe's."""
    got = breaker.try_acquire(now) if breaker.is_closed else None
    return got if isinstance(got, Permit) else None


def _real_usage(failure: Failure, usage: Usage | None) -> Usage | None:
    """The tokens that the call used: none for an HTTP error; a call that ended otherwise keeps its estimate."""
    refused = failure.status is not None and failure.status >= 400
    return _NO_USAGE if refused else usage


def _says_too_many(failure: Failure) -> bool:
    """True when the provider turned the call away, or left it unanswered, as it would when too many are in flight."""
    match failure.failure_class:
        case FailureClass.OVERLOADED | FailureClass.RATE_LIMITED:
            return failure.wait is None or failure.wait.seconds <= _SHORT_HINT
        case FailureClass.TIMEOUT:
            return True
        case _:
            return False


def _transport_verdict(failure: Failure) -> Verdict:
    """An answer of any kind proves the transport; a timeout or a caller who left proves nothing."""
    match failure.failure_class:
        case FailureClass.TRANSPORT:
            return "failure"
        case FailureClass.TIMEOUT | FailureClass.CANCELLED:
            return "ignored"
        case _:
            return "success"
