"""Providers that are quick but for a few calls: what hedging is for."""

from __future__ import annotations

from random import Random

from smart_model_router.rehearsal.simulation.assertions import nobody_opens, quick_heads, served
from smart_model_router.rehearsal.simulation.provider_behaviour import Dozing
from smart_model_router.rehearsal.simulation.scenario import Setting
from smart_model_router.rehearsal.simulation.workload import Traffic


def late_heads(dice: Random) -> Setting:
    """One stream in thirty begins twenty seconds late, at either provider: a hedge makes up for most of them."""
    return Setting(
        tiers=[["a/big", "b/big"]],
        traffic=[
            Traffic(end=600.0, per_second=2.0, streams=1.0),
            Traffic(end=600.0, per_second=0.2, streams=1.0, impatient=1.0, leaves_after=3.0),
        ],
        resilience={"hedging": {"enabled": True}},
        usual={name: Dozing(0.033, dice.uniform(15.0, 25.0)) for name in "ab"},
        expect={"served": served(1.0), "breakers": nobody_opens, "hedging": quick_heads(0.975, 3.0, start=60.0)},
    )
