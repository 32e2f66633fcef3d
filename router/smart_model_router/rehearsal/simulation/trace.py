"""The trace of a run as checkers read it: every admission, refusal and settlement, and the leases that are held."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from smart_model_router.core.breaker import CircuitBreaker
from smart_model_router.core.gate import Gate, GateSnapshot, Pacing
from smart_model_router.core.lease import Lease
from smart_model_router.core.ratelimit import Cost
from smart_model_router.domain.outcome import Failure, Refusal, Usage
from smart_model_router.flow.wait_queue import Waiter
from smart_model_router.rehearsal.simulation.workload import WorkloadRequest

Lane = tuple[bool, Pacing]
"""The kind of a waiter (True for a stream) and its pacing: law and judgement decide by these two."""


@dataclass(eq=False, slots=True)
class Held:
    """A lease from its admission to its settlement, as the recorder saw it.

    `own` and `transport` are the generations that admitted it; None for a last resort, which holds no permit. `asked`
    is the request it was admitted for, `before` the state of the gate at its admission. `alternative` is another target
    of the plan that was free then and that the request had not called. It is looked for where judgement only paced the
    admission, or the request had called this target before. `excluded` are the lanes of the gate's queue whose waiters
    law or judgement refused at that instant.
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
    pacing: Pacing
    before: GateSnapshot
    asked: WorkloadRequest | None
    alternative: str | None
    excluded: frozenset[Lane]
    proven: bool = False
    begun: bool = False
    """True for a stream that has brought content."""
    settlements: int = 0


@dataclass(frozen=True, slots=True)
class Refused:
    """A refusal by `Gate.try_admit`, with its arguments and the state of the gate before and after it."""

    gate: Gate
    refusal: Refusal
    stream: bool
    pacing: Pacing
    before: GateSnapshot
    after: GateSnapshot
    now: float


@dataclass(frozen=True, slots=True)
class Settled:
    """A settlement of a lease: its outcome, and the state of the gate before and after it. `patience` is in seconds."""

    held: Held
    failure: Failure | None
    usage: Usage | None
    before: GateSnapshot
    after: GateSnapshot
    now: float
    patience: float


@dataclass(kw_only=True)
class RunTrace:
    """The leases held now, the waiter of each task, and the calls of each request."""

    held: dict[Lease, Held] = field(default_factory=dict)
    waiters: dict[asyncio.Task[Any], Waiter] = field(default_factory=dict)
    called: dict[WorkloadRequest, list[Held]] = field(default_factory=dict)
    """Every call that was made for a request, in the order of admission."""

    def in_flight(self, gate: Gate) -> int:
        """The number of leases of a gate that are not settled."""
        return sum(held.gate is gate for held in self.held.values())

    def at_provider(self, name: str) -> int:
        """The number of leases of a provider that are not settled."""
        return sum(held.gate.provider.name == name for held in self.held.values())
