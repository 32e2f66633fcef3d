"""For each of the five measures a scenario that fails without it, and only without it."""

from __future__ import annotations

from random import Random

from smart_model_router.domain.outcome import FailureClass
from smart_model_router.rehearsal.simulation.assertions import at_once, calls, carries, served
from smart_model_router.rehearsal.simulation.provider_behaviour import Failing, Healthy, Spell
from smart_model_router.rehearsal.simulation.scenario import Setting
from smart_model_router.rehearsal.simulation.workload import Traffic

_DOWN = Failing(FailureClass.SERVER_ERROR)


def jumps(dice: Random) -> Setting:
    """monotonic_clock: the wall clock goes back an hour while a breaker is open; it opens no longer for that."""
    return Setting(
        tiers=[["a/big"], ["b/small"]],
        traffic=[Traffic(at_once=6), Traffic(start=40.0, end=200.0, per_second=1.0)],
        spells=[Spell("a", 0.0, 20.0, _DOWN)],
        wall_steps=[(dice.uniform(5.0, 25.0), -3600.0)],
        expect={"I14": carries("a/big", 40.0)},
    )


def hints(dice: Random) -> Setting:
    """rate_limit_awareness: a provider asks for three seconds of rest and gets three seconds, not two minutes."""
    start = dice.uniform(5.0, 10.0)
    limited = Failing(FailureClass.RATE_LIMITED, hint=3.0)
    return Setting(
        tiers=[["a/big"], ["b/small"]],
        traffic=[Traffic(end=100.0, per_second=2.0, timeout=20.0)],
        spells=[Spell("a", start, start + 2.0, limited)],
        expect={"I14": carries("a/big", start + 5.0, length=50.0)},
    )


def probes(dice: Random) -> Setting:
    """serialized_probes: fifty ask at the end of an open breaker, and one of them goes to see."""
    return Setting(
        tiers=[["a/big"], ["b/small"]],
        traffic=[Traffic(at_once=5, timeout=2.0), Traffic(start=dice.uniform(40.0, 60.0), at_once=50)],
        usual={"a": Healthy(20.0)},
        spells=[Spell("a", 0.0, 20.0, _DOWN)],
        expect={"I1": calls("a", at_most=1, start=40.0, end=63.0)},
    )


def slots(dice: Random) -> Setting:
    """cascade_prevention: fifty ask at once, and the provider gets the five calls that it can bear."""
    return Setting(
        tiers=[["a/big"], ["b/small"]],
        traffic=[Traffic(start=dice.uniform(0.0, 1.0), at_once=50)],
        providers={"a": {"bulkhead": 5}},
        expect={"I10": at_once("a", at_most=5)},
    )


def degradation(dice: Random) -> Setting:
    """tiered_degradation: the tier asked for is down, and the one below it answers."""
    return Setting(
        tiers=[["a/big"], ["b/small"]],
        traffic=[Traffic(end=120.0, per_second=dice.uniform(0.5, 1.0), timeout=20.0)],
        spells=[Spell("a", 0.0, 120.0, _DOWN)],
        expect={"served": served(0.99)},
    )
