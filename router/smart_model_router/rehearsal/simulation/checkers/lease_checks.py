"""Promises of leases and buckets: one probe at a time, everything given back once, slots, order and rates kept."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from smart_model_router.domain.events import AttemptFinished
from smart_model_router.domain.request import CRITICALITIES
from smart_model_router.rehearsal.simulation.scenario import Checker

if TYPE_CHECKING:
    from smart_model_router.core.bucket import TokenBucket
    from smart_model_router.domain.events import Event
    from smart_model_router.flow.state import RouterState
    from smart_model_router.flow.wait_queue import Waiter
    from smart_model_router.rehearsal.simulation.scenario import History
    from smart_model_router.rehearsal.simulation.trace import Held, Refused, Settled

_SENIORITY = 5.0
"""Seconds. A class that waits so much longer counts as the next higher one."""


class OneProbe(Checker):
    """I1: at most one probe in flight per breaker and per provider, an eager one included, and one call on probation.

    Paced calls are bound by the success share (D4), not by the rule for probation.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"serialized_probes"})

    def admitted(self, held: Held, now: float) -> None:
        provider = held.gate.provider
        if held.probing and sum(h.probing and h.gate.provider is provider for h in self.recorder.held.values()) > 1:
            self.violate("I1", now, f"{held.gate.id}: a second probe is in flight at {provider.name}")
        for trial in held.lease.snapshot().trials:
            together = sum(trial in h.lease.snapshot().trials for h in self.recorder.held.values())
            if together > 1 and held.pacing == "off":
                self.violate("I1", now, f"{held.gate.id}: {together} calls on probation at once")


class SettledOnce(Checker):
    """I2: every permit, slot and reservation is settled exactly once."""

    def settled(self, settled: Settled) -> None:
        held, lease = settled.held, settled.held.lease
        if held.settlements > 1:
            if settled.before != settled.after:
                self.violate("I2", settled.now, f"{held.gate.id}: settling again changed something")
            return
        if lease.snapshot().out or lease.snapshot().trials:
            self.violate("I2", settled.now, f"{held.gate.id}: a permit or a reservation is still out")

    def event(self, event: Event) -> None:
        self._counts(event.at)

    def finish(self) -> None:
        now = self.history.began + self.history.lasted
        self._counts(now)
        for held in self.recorder.held.values():
            self.violate("I2", now, f"{held.gate.id}: a lease of {held.at - self.history.began:.3f} was never settled")
        for gate in self.state.fleet.gates.values():
            provider = gate.provider
            breakers = (provider.transport, *gate.breakers.values())
            if provider.probe_in_flight or any(breaker.probe_in_flight for breaker in breakers):
                self.violate("I2", now, f"{gate.id}: a probe is still out")
            if gate.cooldown.on_trial or gate.credential.on_trial:
                self.violate("I2", now, f"{gate.id}: a call on probation is still out")
        wait_queue = self.state.wait_queue.snapshot()
        if wait_queue.waiting or wait_queue.queues:
            self.violate("I2", now, f"{wait_queue.waiting} places in the wait queue are still taken")
        for name, simulated in self.history.providers.items():
            if simulated.in_flight:
                self.violate("I2", now, f"{name}: {simulated.in_flight} calls were never ended")

    def _counts(self, now: float) -> None:
        slots: dict[str, int] = {}
        in_flight = Counter(held.gate for held in self.recorder.held.values())
        for gate in self.state.fleet.gates.values():
            mine = in_flight[gate]
            slots[gate.provider.name] = slots.get(gate.provider.name, 0) + mine
            if gate.in_flight != mine:
                self.violate("I2", now, f"{gate.id}: counts {gate.in_flight} calls in flight, there are {mine}")
        for name, mine in slots.items():
            counted = self.state.fleet.providers[name].bulkhead.in_flight
            if counted != mine:
                self.violate("I2", now, f"{name}: counts {counted} slots taken, there are {mine}")


class OwnGeneration(Checker):
    """I3: a verdict only moves the generation that admitted it."""

    def settled(self, settled: Settled) -> None:
        held, before, after = settled.held, settled.before, settled.after
        fences = ((held.own, before.own, after.own), (held.transport, before.transport, after.transport))
        for admitted_by, was, became in fences:
            if admitted_by != was.generation and became != was:
                self.violate(
                    "I3", settled.now, f"{held.gate.id}: a verdict of generation {admitted_by} moved {was.generation}"
                )


class Slots(Checker):
    """I10: in flight never exceeds the bulkhead, nor what the target was seen to bear."""

    needs: ClassVar[frozenset[str]] = frozenset({"cascade_prevention"})

    def admitted(self, held: Held, now: float) -> None:
        provider = held.gate.provider
        taken = self.recorder.at_provider(provider.name)
        if taken > provider.bulkhead.limit:
            self.violate("I10", now, f"{provider.name}: {taken} in flight, {provider.bulkhead.limit} allowed")
        learned, mine = held.gate.learned, self.recorder.in_flight(held.gate)
        if learned is not None and not held.last_resort and mine > learned.limit:
            self.violate("I10", now, f"{held.gate.id}: {mine} in flight, it was seen to bear {learned.limit}")


class FirstComeFirstServed(Checker):
    """I10: waiters are served in order within their criticality, and a class older by 5 s counts as the next higher.

    No request, old or new, passes one that stands before it in the queue of the same gate, unless law or judgement
    refused that one at this instant: for being a stream or none, or for being asked in another way.
    """

    def admitted(self, held: Held, now: float) -> None:
        gate = held.gate.id
        queue = self.state.wait_queue.snapshot().queues.get(gate)
        if not queue:
            return
        task = asyncio.current_task()
        mine = None if task is None else self.recorder.waiters.get(task)
        for other in queue:
            if other is not mine and self._passed(other, mine, held, now):
                late = "a newcomer" if mine is None else f"waiter {mine.number}"
                self.violate("I10", now, f"{gate}: {late} passed waiter {other.number}")
                return

    def _passed(self, other: Waiter, mine: Waiter | None, held: Held, now: float) -> bool:
        resort = held.gate.id in other.resorts
        if not resort and other.lane in held.excluded:
            return False
        if mine is not None:
            if resort != (held.gate.id in mine.resorts):
                return False
            return (_place(other, resort), other.number) < (_place(mine, resort), mine.number)
        if held.asked is None:
            return False
        rank = CRITICALITIES.index(held.asked.criticality)
        return _place(other, resort) <= (rank if resort else now + _SENIORITY * rank)


def _place(waiter: Waiter, resort: bool) -> float:
    """The place of a waiter: by arrival, later by 5 s for each rank; for a last resort by rank alone."""
    return waiter.rank if resort else waiter.since + _SENIORITY * waiter.rank


class OwnRefusals(Checker):
    """I12: our own refusals never count against a provider (the throttle's own counter excepted)."""

    def __init__(self, state: RouterState, history: History) -> None:
        super().__init__(state, history)
        self._attempts = self._settlements = 0

    def refused(self, refused: Refused) -> None:
        gate, reason, before, after = refused.gate, refused.refusal.reason, refused.before, refused.after
        if (before.own, before.transport, before.rests) != (after.own, after.transport, after.rests):
            self.violate("I12", refused.now, f"{gate.id}: refusing ({reason}) changed its state")
        more = [new.requests - old.requests for old, new in zip(before.throttles, after.throttles, strict=True)]
        accepted = any(new.accepts > old.accepts for old, new in zip(before.throttles, after.throttles, strict=True))
        if accepted or sum(max(0, one) for one in more) > (reason == "throttle"):
            self.violate("I12", refused.now, f"{gate.id}: the throttle counted a refusal ({reason})")

    def settled(self, settled: Settled) -> None:
        self._settlements += settled.held.settlements == 1

    def event(self, event: Event) -> None:
        self._attempts += isinstance(event, AttemptFinished)

    def finish(self) -> None:
        if self._attempts != self._settlements:
            now = self.history.began + self.history.lasted
            self.violate("I12", now, f"{self._attempts} attempts were told, {self._settlements} calls were made")


_EPSILON = 1e-3
"""Each admission may find a millionth of a token too few (core/bucket.py); a run makes less than a thousand of them."""


@dataclass(slots=True)
class _Meter:
    """Burst and rate by our own reckoning: what is left of burst + rate x window over every window so far."""

    capacity: float
    rate: float
    left: float
    at: float

    def take(self, amount: float, now: float) -> float:
        self.left = min(self.capacity, self.left + (now - self.at) * self.rate)
        self.at = now
        self.left = min(self.capacity, self.left - amount)
        return self.left


class Buckets(Checker):
    """I11: 0 <= level <= capacity, except debt; grants over any window <= burst + rate x window."""

    def __init__(self, state: RouterState, history: History) -> None:
        super().__init__(state, history)
        self._meters: dict[tuple[str, str], _Meter] = {}

    def admitted(self, held: Held, now: float) -> None:
        if held.last_resort:
            return
        limits = held.gate.limits
        for name, bucket, amount in (
            ("requests", limits.requests, 1.0),
            ("tokens", limits.tokens, float(held.lease.snapshot().tokens)),
        ):
            if bucket is None:
                continue
            if (level := bucket.snapshot().level) < -_EPSILON:
                self.violate("I11", now, f"{held.gate.id}: admitted with {level:.3f} {name} left")
            if bucket.window is not None:  # it fills up at once, at an instant: no rate to hold against it
                continue
            if (left := self._meter(held, name, bucket, now).take(amount, now)) < -_EPSILON:
                self.violate("I11", now, f"{held.gate.id}: {-left:.3f} {name} above burst + rate x window")

    def settled(self, settled: Settled) -> None:
        held, tokens = settled.held, settled.held.gate.limits.tokens
        if tokens is None or settled.usage is None or held.last_resort or held.settlements > 1:
            return
        used = settled.usage.total_tokens - held.lease.snapshot().tokens
        self._meter(held, "tokens", tokens, settled.now).take(used, settled.now)

    def event(self, event: Event) -> None:
        for gate in self.state.fleet.gates.values():
            for bucket in (gate.limits.requests, gate.limits.tokens):
                level = 0.0 if bucket is None else bucket.snapshot().level
                if bucket is not None and level > bucket.capacity + _EPSILON:
                    self.violate("I11", event.at, f"{gate.id}: {level:.3f} of {bucket.capacity:.0f} are left")

    def _meter(self, held: Held, name: str, bucket: TokenBucket, now: float) -> _Meter:
        key = (held.gate.id, name)
        known = self._meters.get(key)
        if known is None or (known.capacity, known.rate) != (bucket.capacity, bucket.rate):  # learned from headers
            self._meters[key] = _Meter(bucket.capacity, bucket.rate, bucket.capacity, now)
        return self._meters[key]
