"""A wall clock that jumps."""

from __future__ import annotations

from random import Random

from smart_model_router.domain.outcome import FailureClass
from smart_model_router.rehearsal.simulation.assertions import carries, served
from smart_model_router.rehearsal.simulation.provider_behaviour import Failing, Limited, Spell
from smart_model_router.rehearsal.simulation.scenario import Setting
from smart_model_router.rehearsal.simulation.workload import Traffic


def clock_steps(dice: Random) -> Setting:
    """The wall clock jumps an hour back and forth while things rest: nothing begins earlier, nothing lasts longer."""
    hour = 3600.0
    return Setting(
        tiers=[["a/big", "b/big"], ["c/small"]],
        traffic=[Traffic(end=600.0, per_second=1.0, streams=0.5)],
        usual={"b": Limited(3, hint=2.0, seconds=1.0)},
        spells=[Spell("a", 60.0, 150.0, Failing(FailureClass.SERVER_ERROR))],
        wall_steps=[
            (dice.uniform(60.0, 120.0), -hour),
            (dice.uniform(120.0, 150.0), hour),
            (dice.uniform(151.0, 160.0), -hour),
            (500.0, 2 * hour),
        ],
        expect={"served": served(0.99), "I14": carries("a/big", 150.0)},
    )
