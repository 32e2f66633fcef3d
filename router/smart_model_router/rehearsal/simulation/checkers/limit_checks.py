"""Promises of buckets: never above the capacity, never below zero but for debt, and a rate kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_model_router.rehearsal.simulation.checkers.checker import Checker

if TYPE_CHECKING:
    from smart_model_router.core.bucket import TokenBucket
    from smart_model_router.domain.events import Event
    from smart_model_router.flow.state import RouterState
    from smart_model_router.rehearsal.simulation.history import History
    from smart_model_router.rehearsal.simulation.trace_recorder import Held, Settled

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
