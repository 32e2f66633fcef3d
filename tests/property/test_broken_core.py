"""The properties see what they are there for: each is shown a core that breaks its promise, and fails."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.breaks import (
    always_eager,
    any_hint_replaces,
    any_success_ends,
    cost_ignored,
    endless_slots,
    evidence_ignored,
    judgement_refuses,
    no_fence,
    slot_kept,
    two_probes,
    two_trials,
    unpaced,
)
from tests.property.test_core_breaker import BreakerHistory
from tests.property.test_core_gate import GateHistory

Break = Callable[[pytest.MonkeyPatch], None]


BROKEN: list[tuple[type[RuleBasedStateMachine], Break]] = [
    (GateHistory, any_hint_replaces),
    (GateHistory, any_success_ends),
    (GateHistory, two_trials),
    (GateHistory, two_probes),
    (GateHistory, endless_slots),
    (GateHistory, slot_kept),
    (GateHistory, judgement_refuses),
    (GateHistory, unpaced),
    (BreakerHistory, no_fence),
    (BreakerHistory, always_eager),
    (BreakerHistory, evidence_ignored),
    (BreakerHistory, cost_ignored),
]


@pytest.mark.parametrize(("machine", "spoil"), BROKEN, ids=[spoil.__name__ for _, spoil in BROKEN])
def test_a_broken_core_is_caught(
    machine: type[RuleBasedStateMachine], spoil: Break, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the core broken in this way, the property that promises the contrary fails."""
    spoil(monkeypatch)
    once = settings(machine.TestCase.settings, max_examples=400, database=None, phases=[Phase.generate])
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=once)
