"""Providers that are down: one, all, a whole failure domain, for ever - and what happens when they come back."""

from __future__ import annotations

from random import Random

from smart_model_router.outcome import FailureClass
from smart_model_router.simulation.promises import (
    admits_again,
    calls,
    carries,
    nobody_sheds,
    served,
    trips_besides,
)
from smart_model_router.simulation.setting import Setting
from smart_model_router.simulation.traffic import Traffic
from smart_model_router.simulation.weather import BlackHole, Condition, Congested, Failing, Healthy, Spell

_DOWN: tuple[Condition, ...] = (
    Failing(FailureClass.SERVER_ERROR),
    Failing(FailureClass.TRANSPORT, seconds=0.05),
    Failing(FailureClass.OVERLOADED),
    Failing(FailureClass.TIMEOUT, seconds=2.0),
    BlackHole(),
)


def outage(dice: Random) -> Setting:
    """The first of four is down for a while; the others must carry it, and it must carry its share again."""
    start, length = 60.0, dice.uniform(30.0, 240.0)
    recovered = start + length
    return Setting(
        tiers=[["a/big", "b/big", "d/big"], ["c/small"]],
        traffic=[Traffic(end=recovered + 600.0, per_second=1.0, streams=dice.choice([0.0, 0.5, 1.0]))],
        usual={name: Congested(40) for name in "bcd"},
        spells=[Spell("a", start, recovered, dice.choice(_DOWN))],
        expect={
            "served": served(0.99),
            "cascade": trips_besides("a", at_most=1),
            "I14": carries("a/big", recovered),
        },
    )


def total_outage(dice: Random) -> Setting:
    """Everybody is down for 240 s; whoever comes an open interval later is served again."""
    down = dice.choice(_DOWN[:3])
    start, recovered = 60.0, 300.0
    return Setting(
        tiers=[["a/big", "b/big"], ["c/small"]],
        traffic=[Traffic(end=recovered + 300.0, per_second=2.0, streams=0.5)],
        spells=[Spell(name, start, recovered, down) for name in "abc"],
        expect={"I8": admits_again(("a/big", "b/big", "c/small"), recovered)},
    )


def herd(dice: Random) -> Setting:
    """The only provider is down, hundreds of requests wait for it; its first second is not their stampede."""
    recovered = 60.0 + dice.uniform(30.0, 60.0)
    return Setting(
        tiers=[["a/big"]],
        traffic=[Traffic(end=recovered + 240.0, per_second=4.0), Traffic(start=recovered - 5.0, at_once=200)],
        providers={"a": {"bulkhead": 20}},
        spells=[Spell("a", 60.0, recovered, Failing(FailureClass.SERVER_ERROR))],
        expect={
            "I14": carries("a/big", recovered, length=120.0),
            "herd": calls("a", at_most=3, start=66.0, end=88.0),
        },
    )


def domain_outage(dice: Random) -> Setting:
    """Two providers that share a failure domain go down together; the third carries all, and does not fall."""
    start, recovered = 60.0, 60.0 + dice.uniform(30.0, 120.0)
    down = dice.choice(_DOWN[:4])
    return Setting(
        tiers=[["a/big", "b/big", "c/big"]],
        traffic=[Traffic(end=recovered + 400.0, per_second=2.0, streams=0.3)],
        providers={name: {"failure_domain": "shared"} for name in "ab"},
        usual={"c": Congested(60)},
        spells=[Spell(name, start, recovered, down) for name in "ab"],
        expect={"served": served(0.99), "cascade": trips_besides("a", at_most=1), "I14": carries("a/big", recovered)},
    )


def dead_provider(dice: Random) -> Setting:
    """One of two is dead for ever: the other serves everybody, nothing is shed, and the dead one is left alone."""
    return Setting(
        tiers=[["a/big", "b/big"]],
        traffic=[Traffic(end=1800.0, per_second=1.0, streams=0.5, sheddable=0.5)],
        usual={"a": dice.choice(_DOWN[:4]), "b": Healthy(0.5)},
        expect={
            "served": served(0.99),
            "shedding": nobody_sheds,
            "wasted": calls("a", at_most=40),
        },
    )
