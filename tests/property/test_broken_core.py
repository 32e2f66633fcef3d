"""The properties see what they are there for: each is shown a core that breaks its promise, and fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from smart_model_router.core.breaker import CircuitBreaker, Permit, Transition
from smart_model_router.core.bulkhead import Bulkhead
from smart_model_router.core.cooldown import Cooldown
from smart_model_router.core.gate import ProviderState
from tests.property.test_core_breaker import BreakerHistory
from tests.property.test_core_gate import GateHistory

Break = Callable[[pytest.MonkeyPatch], None]


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


BROKEN: list[tuple[type[RuleBasedStateMachine], Break]] = [
    (GateHistory, any_hint_replaces),
    (GateHistory, any_success_ends),
    (GateHistory, two_trials),
    (GateHistory, two_probes),
    (GateHistory, endless_slots),
    (GateHistory, slot_kept),
    (BreakerHistory, no_fence),
]


@pytest.mark.parametrize(("machine", "spoil"), BROKEN, ids=[spoil.__name__ for _, spoil in BROKEN])
def test_a_broken_core_is_caught(
    machine: type[RuleBasedStateMachine], spoil: Break, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the core broken in this way, the property that promises the contrary fails."""
    spoil(monkeypatch)
    once = settings(machine.TestCase.settings, max_examples=40, database=None, phases=[Phase.generate])
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=once)
