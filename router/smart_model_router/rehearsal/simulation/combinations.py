"""All 32 combinations of the five measures: whatever is switched off, nothing crashes, hangs or leaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from itertools import product

from smart_model_router.core.flow_config import Measures
from smart_model_router.rehearsal.simulation.history import History
from smart_model_router.rehearsal.simulation.run import simulate
from smart_model_router.rehearsal.simulation.scenario import Scenario

NAMES: tuple[str, ...] = tuple(field.name for field in fields(Measures))
ALWAYS = frozenset({"crash", "hang", "leak", "I2"})
"""The promises under every combination; the measures make the others."""


def combinations() -> Iterator[Measures]:
    """Every combination, all on first."""
    for values in product((True, False), repeat=len(NAMES)):
        yield Measures(**dict(zip(NAMES, values, strict=True)))


def simulate_measures(scenario: Scenario, seed: int) -> Iterator[History]:
    """The scenario under each combination; only what is promised under all of them is held against it."""
    for measures in combinations():
        history = simulate(scenario, seed, measures)
        off = [name for name in NAMES if not getattr(measures, name)]
        history.scenario = f"{scenario.name} without {', '.join(off) or 'nothing'}"
        history.violations = [v for v in history.violations if v.promise in ALWAYS]
        yield history
