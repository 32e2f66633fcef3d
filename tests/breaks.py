"""Ways to break the core, each of which a property and a checker of the simulation must notice."""

from __future__ import annotations

from typing import Any

import pytest

from smart_model_router.core import breaker
from smart_model_router.core.breaker import CircuitBreaker, Permit, Transition
from smart_model_router.core.capacity import Bulkhead
from smart_model_router.core.cooldown import Cooldown
from smart_model_router.core.gate import Gate
from smart_model_router.core.own_part import OwnPart
from smart_model_router.core.target_state import ProviderState
from smart_model_router.rehearsal.simulation.simulated_server import SimulatedLocks, SimulatedServer
from smart_model_router_stats import transactions


def any_hint_replaces(patch: pytest.MonkeyPatch) -> None:
    """I6: any hint replaces any other."""
    patch.setattr(Cooldown, "_replaces", staticmethod(lambda *_: True))


def any_success_ends(patch: pytest.MonkeyPatch) -> None:
    """I6: a success ends rests that began after its call was admitted."""
    succeeded = Cooldown.succeeded
    patch.setattr(Cooldown, "succeeded", lambda self, admitted_at, now: succeeded(self, now + 1.0, now))


def no_fence(patch: pytest.MonkeyPatch) -> None:
    """I3: a permit counts whatever generation granted it."""
    record = CircuitBreaker.record

    def unfenced(self: CircuitBreaker, permit: Permit, *args: Any, **options: Any) -> Transition | None:
        permit.generation = self.generation
        return record(self, permit, *args, **options)

    patch.setattr(CircuitBreaker, "record", unfenced)


def two_trials(patch: pytest.MonkeyPatch) -> None:
    """I1: how many calls are on probation is forgotten."""
    patch.setattr(Cooldown, "on_trial", property(lambda self: 0, lambda self, value: None))


def two_probes(patch: pytest.MonkeyPatch) -> None:
    """I1: whether a probe is in flight at the provider is forgotten."""
    patch.setattr(ProviderState, "probe_in_flight", property(lambda self: False, lambda self, value: None))


def endless_slots(patch: pytest.MonkeyPatch) -> None:
    """I10: there is always a free slot."""
    patch.setattr(Bulkhead, "free", property(lambda self: self.slots))


def judgement_refuses(patch: pytest.MonkeyPatch) -> None:
    """D3: judgement excludes a target also where no other one is free."""
    restraint = Gate._restraint
    patch.setattr(Gate, "_restraint", lambda self, own, now, _="off": restraint(self, own, now, "off"))


def unpaced(patch: pytest.MonkeyPatch) -> None:
    """D4: a target that answers nothing gets as many calls as one that answers everything."""
    patch.setattr(Gate, "_paced_limit", lambda *_: 1e9)


def always_eager(patch: pytest.MonkeyPatch) -> None:
    """D3: an OPEN target is probed by back-off although another one is free."""
    refusal = CircuitBreaker.refusal
    patch.setattr(CircuitBreaker, "refusal", lambda self, now, *, eager=False: refusal(self, now, eager=True))


def evidence_ignored(patch: pytest.MonkeyPatch) -> None:
    """D1: five failures in a row open a breaker, however often the target usually fails."""
    record = CircuitBreaker.record
    patch.setattr(
        CircuitBreaker, "record", lambda self, *args, **options: record(self, *args, **{**options, "down": True})
    )


def cost_ignored(patch: pytest.MonkeyPatch) -> None:
    """D7: the open time grows to the owner's cap, however little a failure costs."""
    patch.setattr(breaker, "cap_seconds", lambda loss, least, cap: cap)


def no_row_fence(patch: pytest.MonkeyPatch) -> None:
    """Among machines: the result of a probe counts whatever generation of the breaker it is about."""
    patch.setattr(transactions, "accepts_breaker", lambda *_: True)


def no_epoch(patch: pytest.MonkeyPatch) -> None:
    """Among machines: a server that takes over has another clock, and goes on in the epoch of the one before."""
    patch.setattr(SimulatedServer, "begin_epoch", lambda self: None)


def whole_limit_alone(patch: pytest.MonkeyPatch) -> None:
    """Among machines: a process that cannot ask the others takes the whole limit."""
    patch.setattr(OwnPart, "_size", property(lambda self: (self._limit.capacity, self._limit.rate)))


def no_probe_locks(patch: pytest.MonkeyPatch) -> None:
    """Among machines: every process probes by itself while no server can be asked."""
    patch.setattr(SimulatedLocks, "take", lambda self, provider: True)
    patch.setattr(SimulatedLocks, "left", lambda self, provider: {})


def slot_kept(patch: pytest.MonkeyPatch) -> None:
    """I2: a slot is never given back."""
    patch.setattr(Bulkhead, "leave", lambda self: None)
