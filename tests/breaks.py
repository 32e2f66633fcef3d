"""Ways to break the core, each of which a property and a checker of the simulation must notice."""

from __future__ import annotations

from typing import Any

import pytest

from smart_model_router.core.breaker import CircuitBreaker, Permit, Transition
from smart_model_router.core.bulkhead import Bulkhead
from smart_model_router.core.cooldown import Cooldown
from smart_model_router.core.gate import ProviderState


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


def slot_kept(patch: pytest.MonkeyPatch) -> None:
    """I2: a slot is never given back."""
    patch.setattr(Bulkhead, "leave", lambda self: None)
