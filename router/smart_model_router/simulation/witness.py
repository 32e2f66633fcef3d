"""The witness: sees every admission, refusal and settlement at every gate, with what each of them changed.

It steps between the flow and the gates by giving the gates, their leases and the waiting room a class of its own that
behaves as before and tells the checkers. Nothing of what they see comes from the router's own account of itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from smart_model_router.core.breaker import CircuitBreaker
from smart_model_router.core.cooldown import Cooldown
from smart_model_router.core.gate import Gate
from smart_model_router.core.lease import Lease, Moved, Settlement
from smart_model_router.core.ratelimit import Cost
from smart_model_router.outcome import NO_READING, Failure, LimitReading, Refusal, Usage
from smart_model_router.runtime.state import RouterState
from smart_model_router.runtime.waiting import Ticket, WaitingRoom
from smart_model_router.simulation.checkers.base import Checker


class BreakerShot(NamedTuple):
    """A breaker at one instant."""

    generation: int
    open_until: float | None
    closed: bool
    streak: int
    counted: tuple[int, int]


class LawShot(NamedTuple):
    """A law at one instant."""

    until: float
    began: float
    sent_seq: int
    hinted: bool


class RestShot(NamedTuple):
    """The rests of a target or a credential at one instant."""

    advice_until: float
    advice_began: float
    laws: dict[str, LawShot]


class Shot(NamedTuple):
    """Everything a verdict could move at one gate."""

    own: BreakerShot
    transport: BreakerShot
    rests: tuple[RestShot, RestShot]
    tossed: tuple[int, int]


@dataclass(eq=False, slots=True)
class Held:
    """A lease from its admission to its settlement, by the witness's own account.

    `own` and `transport` are the generations that admitted it; None for a last resort, which holds no permit.
    """

    lease: Lease
    gate: Gate
    at: float
    cost: Cost
    breaker: CircuitBreaker
    own: int | None
    transport: int | None
    probing: bool
    last_resort: bool
    ignores_advice: bool
    proven: bool = False
    settlements: int = 0


@dataclass(frozen=True, slots=True)
class Settled:
    """A settlement: what was there before, what came, what is there now."""

    held: Held
    failure: Failure | None
    usage: Usage | None
    before: Shot
    after: Shot
    now: float


@dataclass
class Witness:
    """What is held now, by lease, and which waiting ticket belongs to which task."""

    checkers: Sequence[Checker]
    held: dict[Lease, Held] = field(default_factory=dict)
    tickets: dict[asyncio.Task[Any], Ticket] = field(default_factory=dict)

    def watch(self, state: RouterState) -> None:
        """See everything that happens at the gates of a router from now on."""
        watched = _watched_gate(self)
        for gate in state.fleet.gates.values():
            gate.__class__ = watched
        state.room.__class__ = _watched_room(self)

    def in_flight(self, gate: Gate) -> int:
        """Leases of a gate that nobody has settled."""
        return sum(held.gate is gate for held in self.held.values())

    def at_provider(self, name: str) -> int:
        """Leases of a provider that nobody has settled."""
        return sum(held.gate.provider.name == name for held in self.held.values())

    def admitted(self, held: Held, now: float) -> None:
        """A gate said yes."""
        self.held[held.lease] = held
        for checker in self.checkers:
            checker.admitted(held, now)

    def refused(self, gate: Gate, refusal: Refusal, before: Shot, after: Shot, now: float) -> None:
        """A gate said no."""
        for checker in self.checkers:
            checker.refused(gate, refusal, before, after, now)

    def proved(self, settled: Settled) -> None:
        """A stream has delivered enough to count as a success; it goes on."""
        for checker in self.checkers:
            checker.proved(settled)

    def let_in(self, gate: Gate, now: float) -> None:
        """The operator let a target in."""
        for checker in self.checkers:
            checker.let_in(gate, now)

    def settled(self, settled: Settled) -> None:
        """A lease was settled (perhaps once more)."""
        held = settled.held
        held.settlements += 1
        self.held.pop(held.lease, None)
        for checker in self.checkers:
            checker.settled(settled)


def shot(gate: Gate, *, stream: bool) -> Shot:
    """The state of a gate, as far as calls of one kind could move it."""
    throttle = gate.provider.throttle
    return Shot(
        _breaker(gate.breakers["stream" if stream else "whole"]),
        _breaker(gate.provider.transport),
        (_rests(gate.cooldown), _rests(gate.credential)),
        (throttle._requests, throttle._accepts),
    )


def _breaker(breaker: CircuitBreaker) -> BreakerShot:
    buckets = breaker._buckets
    counted = (sum(bucket.calls for bucket in buckets), sum(bucket.failures for bucket in buckets))
    return BreakerShot(breaker.generation, breaker.open_until, breaker.is_closed, breaker._failures_in_a_row, counted)


def _rests(cooldown: Cooldown) -> RestShot:
    laws: dict[str, LawShot] = {
        reason: LawShot(law.until, law.began, law.sent_seq, law.hinted) for reason, law in cooldown._laws.items()
    }
    return RestShot(cooldown._advice_until, cooldown._advice_began, laws)


def _watched_gate(witness: Witness) -> type[Gate]:
    """A Gate that tells the witness. It has no slots of its own, so that a gate in use can become one."""

    class WatchedLease(Lease):
        __slots__ = ()

        def prove(self, now: float) -> Settlement:
            held = witness.held.get(self)
            before = None if held is None or held.proven or not self.probe else shot(held.gate, stream=self.stream)
            settlement = super().prove(now)
            if held is not None and before is not None:
                held.proven, held.probing = True, self._probing
                held.own, held.transport = held.breaker.generation, held.gate.provider.transport.generation
                witness.proved(Settled(held, None, None, before, shot(held.gate, stream=self.stream), now))
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
            held = known[self]
            before = shot(held.gate, stream=self.stream)
            settlement = super().settle(failure, now, usage=usage, reading=reading, roll=roll, slow=slow)
            after = shot(held.gate, stream=self.stream)
            witness.settled(Settled(held, failure, usage, before, after, now))
            return settlement

    known: dict[Lease, Held] = {}

    class WatchedGate(Gate):
        __slots__ = ()

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
            before = shot(self, stream=stream)
            got = super().try_admit(
                cost, now, roll, stream=stream, ignore_advice=ignore_advice, last_resort=last_resort
            )
            if isinstance(got, Refusal):
                witness.refused(self, got, before, shot(self, stream=stream), now)
                return got
            got.__class__ = WatchedLease
            breaker = self.breakers["stream" if stream else "whole"]
            transport = self.provider.transport
            held = Held(
                got,
                self,
                now,
                cost,
                breaker,
                None if last_resort else breaker.generation,
                None if last_resort else transport.generation,
                probing=not last_resort and not (breaker.is_closed and transport.is_closed),
                last_resort=last_resort,
                ignores_advice=ignore_advice,
            )
            known[got] = held
            witness.admitted(held, now)
            return got

        def close(self, now: float) -> tuple[Moved, ...]:
            moved = super().close(now)
            witness.let_in(self, now)
            return moved

    return WatchedGate


def _watched_room(witness: Witness) -> type[WaitingRoom]:
    class WatchedRoom(WaitingRoom):
        def ticket(self, *, stream: bool, rank: int = 0) -> Ticket:
            ticket = super().ticket(stream=stream, rank=rank)
            task = asyncio.current_task()
            if task is not None:
                witness.tickets[task] = ticket
            return ticket

    return WatchedRoom
