"""Each scenario says which fallback it leaves, and it is the one that its spells make."""

from __future__ import annotations

from random import Random

import pytest

from smart_model_router.rehearsal.simulation import SCENARIOS, Setting
from smart_model_router.rehearsal.simulation.provider_behaviour import (
    BlackHole,
    Buggy,
    Condition,
    Congested,
    Cutting,
    Dozing,
    EverySecond,
    Failing,
    Healthy,
    Limited,
    Metered,
    SlowLoris,
)
from smart_model_router.rehearsal.simulation.scenario import Fallback

SEEDS = range(30)
BEST_FIRST: tuple[Fallback, ...] = ("healthy", "partly ill", "none")
LEFT_BY: dict[type[Condition], Fallback] = {
    Healthy: "healthy",
    Congested: "healthy",  # below its capacity; beyond it the load is to blame
    Metered: "healthy",
    Dozing: "partly ill",
    EverySecond: "partly ill",
    Limited: "partly ill",
    Failing: "none",
    BlackHole: "none",
    Buggy: "none",
    SlowLoris: "none",
    Cutting: "none",
}


def fallback_at(setting: Setting, at: float) -> Fallback:
    """The state of the best provider at an instant, apart from the most ill one."""
    names = {target.partition("/")[0] for tier in setting.tiers for target in tier}
    states = sorted(BEST_FIRST.index(left_by(condition_at(setting, name, at))) for name in names)
    return BEST_FIRST[states[0]] if len(states) > 1 else "none"


def condition_at(setting: Setting, name: str, at: float) -> Condition:
    """A provider's condition at an instant: the last spell that covers it decides."""
    covering = [spell.condition for spell in setting.spells if spell.provider == name and spell.start <= at < spell.end]
    return [setting.usually(name), *covering][-1]


def left_by(condition: Condition) -> Fallback:
    """The fallback that a provider in this condition is."""
    if isinstance(condition, Failing) and condition.share < 1.0:
        return "partly ill"
    return LEFT_BY[type(condition)]


def worst(setting: Setting) -> Fallback:
    """The fallback at the worst moment."""
    instants = {0.0, *(spell.start for spell in setting.spells), *(spell.end for spell in setting.spells)}
    return BEST_FIRST[max(BEST_FIRST.index(fallback_at(setting, at)) for at in instants)]


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_names_its_fallback(name: str) -> None:
    """The worst of thirty seeds is what the scenario says."""
    scenario = SCENARIOS[name]
    drawn = {worst(scenario.make(Random(f"{name}/{seed}"))) for seed in SEEDS}
    assert max(drawn, key=BEST_FIRST.index) == scenario.fallback


def test_every_situation_has_a_scenario() -> None:
    """Healthy, partly ill and none: the simulation sees all three."""
    assert {scenario.fallback for scenario in SCENARIOS.values()} == set(BEST_FIRST)
