"""Records every admission, refusal and settlement at every gate, with the state before and after it, for the checkers.

The recorder replaces the classes of the gates, their leases and the wait queue by subclasses that behave as before and
report to the checkers. It reads the core through `snapshot()` alone; no record comes from the router's own report.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from smart_model_router.core.evidence import PATIENCE
from smart_model_router.core.gate import Gate, Pacing
from smart_model_router.core.lease import Lease, Settlement
from smart_model_router.core.ratelimit import Cost
from smart_model_router.core.target_state import Moved
from smart_model_router.domain.outcome import CAPACITY_REASONS, NO_READING, Failure, LimitReading, Refusal, Usage
from smart_model_router.flow.state import RouterState
from smart_model_router.flow.wait_queue import Waiter, WaitQueue
from smart_model_router.rehearsal.simulation.scenario import Checker
from smart_model_router.rehearsal.simulation.trace import Held, Lane, Refused, RunTrace, Settled
from smart_model_router.rehearsal.simulation.workload import WorkloadRequest


@dataclass(kw_only=True)
class TraceRecorder(RunTrace):
    """Records the trace, and tells the checkers of each record."""

    state: RouterState
    checkers: Sequence[Checker]
    asking: dict[asyncio.Task[Any], WorkloadRequest] = field(default_factory=dict)

    def watch(self) -> None:
        """Record everything that happens at the gates of the router from now on."""
        watched = _watched_gate(self)
        for gate in self.state.fleet.gates.values():
            gate.__class__ = watched
        self.state.wait_queue.__class__ = _watched_queue(self)

    def begins(self, asked: WorkloadRequest) -> None:
        """Note that the current task sends this request."""
        if (task := asyncio.current_task()) is not None:
            self.asking[task] = asked
            self.called[asked] = []

    def asker(self) -> WorkloadRequest | None:
        """The request of the current task."""
        task = asyncio.current_task()
        return None if task is None else self.asking.get(task)

    def alternative(self, gate: Gate, now: float, *, stream: bool) -> str | None:
        """Another target of the plan that is free now and that the current request has not called yet.

        None where the recorder cannot know: buckets whose tokens the call may exceed, a throttle that may have refused
        it, a request whose answer has begun elsewhere. A request that is shed may call no free target.
        """
        asked = self.asker()
        if asked is None or self.state.shedding.sheds(asked.criticality):
            return None
        if asked.recovery is not None or asked.first_content is not None:
            return None
        called = {held.gate for held in self.called[asked]}
        waited_for = self.state.wait_queue.snapshot().queues
        for other in self._plan():
            if other is gate or other in called or other.id in waited_for or other.limits.known:
                continue
            if other.refusal(_NO_COST, now, stream=stream) is None and not _may_be_tossed(other, stream=stream):
                return other.id
        return None

    def excluded(self, gate: Gate, now: float) -> frozenset[Lane]:
        """The lanes of the gate's queue whose waiters it refuses now, and not for lack of a slot or of tokens."""
        lanes = {waiter.lane for waiter in self.state.wait_queue.snapshot().queues.get(gate.id, ())}
        refusals = {lane: gate.refusal(_NO_COST, now, stream=lane[0], pacing=lane[1]) for lane in lanes}
        return frozenset(
            lane for lane, told in refusals.items() if told is not None and told.reason not in CAPACITY_REASONS
        )

    def admitted(self, held: Held, now: float) -> None:
        """Record an admission."""
        self.held[held.lease] = held
        if held.asked is not None:
            self.called[held.asked].append(held)
        for checker in self.checkers:
            checker.admitted(held, now)

    def refused(self, refused: Refused) -> None:
        """Record a refusal."""
        for checker in self.checkers:
            checker.refused(refused)

    def proved(self, settled: Settled) -> None:
        """Record a stream that has delivered enough to count as a success; it goes on."""
        for checker in self.checkers:
            checker.proved(settled)

    def let_in(self, gate: Gate, now: float) -> None:
        """Record that the operator enabled a target."""
        for checker in self.checkers:
            checker.let_in(gate, now)

    def settled(self, settled: Settled) -> None:
        """Record a settlement of a lease, the first one or a further one."""
        held = settled.held
        held.settlements += 1
        self.held.pop(held.lease, None)
        for checker in self.checkers:
            checker.settled(settled)

    def ended(self, asked: WorkloadRequest) -> None:
        """Note that the current task has its answer, or its error."""
        if (task := asyncio.current_task()) is not None:
            self.waiters.pop(task, None)
            self.asking.pop(task, None)
        for checker in self.checkers:
            checker.ended(asked)
        self.called.pop(asked, None)

    def _plan(self) -> Iterator[Gate]:
        """The gates of the targets that a request may be sent to, best first, but for the last resort."""
        tiers = self.state.model_routes["smart"].tiers
        for tier in tiers if self.state.degrade else tiers[:1]:
            for facts in tier.targets:
                yield self.state.fleet.gates[facts.id]


_NO_COST = Cost(0, 0)


def _may_be_tossed(gate: Gate, *, stream: bool) -> bool:
    """True when the throttle may have refused this request there lately."""
    if not gate.config.measures.cascade_prevention:
        return False
    shots = gate.snapshot(stream=stream).throttles
    return any(shot.requests > gate.config.throttle.k * shot.accepts for shot in shots)


def _watched_gate(recorder: TraceRecorder) -> type[Gate]:
    """A subclass of Gate that reports to the recorder. It has no slots of its own: a gate can change to it."""

    class WatchedLease(Lease):
        __slots__ = ()

        def begun(self) -> None:
            super().begun()
            known[self].begun = True

        def prove(self, now: float) -> Settlement:
            held = recorder.held.get(self)
            before = None if held is None or held.proven or not self.probe else held.gate.snapshot(stream=self.stream)
            settlement = super().prove(now)
            if held is not None and before is not None:
                held.proven = True
                recorder.proved(
                    Settled(held, None, None, before, held.gate.snapshot(stream=self.stream), now, PATIENCE)
                )
                transport = held.gate.provider.transport
                held.probing = self.probes_breaker
                held.own = held.breaker.generation if held.breaker.is_closed else None
                held.transport = transport.generation if transport.is_closed else None
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
            held = known[self]
            before = held.gate.snapshot(stream=self.stream)
            settlement = super().settle(
                failure, now, usage=usage, reading=reading, roll=roll, slow=slow, patience=patience
            )
            after = held.gate.snapshot(stream=self.stream)
            recorder.settled(Settled(held, failure, usage, before, after, now, patience))
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
            pacing: Pacing = "off",
            last_resort: bool = False,
        ) -> Lease | Refusal:
            before = self.snapshot(stream=stream)
            asked = recorder.asker()
            again = asked is not None and any(held.gate is self for held in recorder.called[asked])
            looks = not last_resort and (pacing != "off" or again)
            alternative = recorder.alternative(self, now, stream=stream) if looks else None
            excluded = recorder.excluded(self, now)
            got = super().try_admit(cost, now, roll, stream=stream, pacing=pacing, last_resort=last_resort)
            if isinstance(got, Refusal):
                recorder.refused(Refused(self, got, stream, pacing, before, self.snapshot(stream=stream), now))
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
                pacing=pacing,
                before=before,
                asked=asked,
                alternative=alternative,
                excluded=excluded,
            )
            known[got] = held
            recorder.admitted(held, now)
            return got

        def close(self, now: float) -> tuple[Moved, ...]:
            moved = super().close(now)
            recorder.let_in(self, now)
            return moved

    return WatchedGate


def _watched_queue(recorder: TraceRecorder) -> type[WaitQueue]:
    class WatchedQueue(WaitQueue):
        def waiter(self, *, stream: bool, rank: int = 0) -> Waiter:
            waiter = super().waiter(stream=stream, rank=rank)
            task = asyncio.current_task()
            if task is not None:
                recorder.waiters[task] = waiter
            return waiter

    return WatchedQueue
