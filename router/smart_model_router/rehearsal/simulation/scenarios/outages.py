"""Providers that are down, and what happens when they come back; a wall clock that jumps meanwhile."""

from __future__ import annotations

from random import Random

from smart_model_router.domain.outcome import FailureClass
from smart_model_router.rehearsal.simulation.assertions import (
    at_least_share,
    calls,
    carries,
    first_calls,
    nobody_opens,
    nobody_sheds,
    second_choice,
    sent_per_served,
    served,
    sheds,
    trips_besides,
)
from smart_model_router.rehearsal.simulation.provider_behaviour import (
    BlackHole,
    Condition,
    Congested,
    EverySecond,
    Failing,
    Healthy,
    Limited,
    Spell,
)
from smart_model_router.rehearsal.simulation.scenario import Setting
from smart_model_router.rehearsal.simulation.workload import Traffic

_DOWN: tuple[Condition, ...] = (
    Failing(FailureClass.SERVER_ERROR),
    Failing(FailureClass.TRANSPORT, seconds=0.05),
    Failing(FailureClass.OVERLOADED),
    Failing(FailureClass.TIMEOUT, seconds=2.0),
    BlackHole(),
)
_AFTER = 10.0
"""Seconds after its recovery in which a target may still be away (docs/design/routing.md section 0a, D5)."""
_PATIENCE = 30.0
"""Seconds that a probe sent before a recovery may be silent where the duration of answers is unknown."""
_PROBES = 260
"""In 1,800 s, one in 15 s for streams and one for whole answers, and those before the open time has grown to that."""
_TOUCHY = {"breaker": {"consecutive_failures": 2}}
"""Breakers open before a cooldown begins, however few calls there are."""


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
    """All providers are down for 240 s; requests ten seconds and a probe after the recovery are served again."""
    down = dice.choice(_DOWN)
    start, recovered = 60.0, 300.0
    back = recovered + _AFTER + (_PATIENCE if isinstance(down, BlackHole) else 3.0)
    return Setting(
        tiers=[["a/big", "b/big"], ["c/small"]],
        traffic=[Traffic(end=recovered + 300.0, per_second=2.0, streams=0.5, timeout=30.0)],
        spells=[Spell(name, start, recovered, down) for name in "abc"],
        expect={"D5": served(0.95, back, back + 60.0)},
    )


def herd(dice: Random) -> Setting:
    """The only provider is down, hundreds of requests wait for it: a probe in five seconds, and then no stampede."""
    recovered = 60.0 + dice.uniform(30.0, 60.0)
    return Setting(
        tiers=[["a/big"]],
        traffic=[Traffic(end=recovered + 240.0, per_second=4.0), Traffic(start=recovered - 5.0, at_once=200)],
        providers={"a": {"bulkhead": 20}},
        spells=[Spell("a", 60.0, recovered, Failing(FailureClass.SERVER_ERROR))],
        expect={
            "I14": carries("a/big", recovered, length=120.0),
            "D5": served(0.95, recovered + _AFTER, recovered + 100.0),
            "left alone": calls("a", at_most=6, start=66.0, end=88.0),
            "herd": first_calls("a/big", recovered, within=0.2, at_most=20),
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
        expect={
            "served": served(0.99),
            "cascade": trips_besides("a", at_most=1),
            "I14": carries("a/big", recovered),
            "elsewhere": second_choice(start, recovered, of=frozenset("ab"), instead="c"),
        },
    )


def dead_provider(dice: Random) -> Setting:
    """One of two is dead for ever: the other serves all requests, nothing is shed, and the dead one is left alone."""
    return Setting(
        tiers=[["a/big", "b/big"]],
        traffic=[Traffic(end=1800.0, per_second=1.0, streams=0.5, sheddable=0.5)],
        usual={"a": dice.choice(_DOWN[:4]), "b": Healthy(0.5)},
        expect={
            "served": served(0.99),
            "shedding": nobody_sheds,
            "wasted": calls("a", at_most=_PROBES),
        },
    )


def flapping(dice: Random) -> Setting:
    """Every second call fails, never two in a row: that is no outage, and the target keeps its place."""
    start, end = 60.0, 60.0 + dice.uniform(85.0, 95.0)
    return Setting(
        tiers=[["a/big"], ["b/small"]],
        traffic=[Traffic(end=end + 60.0, per_second=4.0)],
        usual={"a": Healthy(0.01)},
        spells=[Spell("a", start, end, EverySecond(FailureClass.SERVER_ERROR))],
        expect={
            "served": served(1.0),
            "kept": at_least_share("a/big", 0.4, start, end),
            "breakers": nobody_opens,
            "D2": sent_per_served(1.5),
        },
    )


def walls(dice: Random) -> Setting:
    """The first provider's credit is used up until an instant it states, the second's key is refused for a while."""
    start, stated = 60.0, dice.uniform(60.0, 120.0)
    return Setting(
        tiers=[["a/big", "b/big"], ["c/small"]],
        traffic=[Traffic(end=start + stated + 200.0, per_second=1.0, streams=0.5)],
        spells=[
            Spell("a", start, start + 5.0, Failing(FailureClass.QUOTA, hint=stated, scope="credit")),
            Spell("b", start + 2.0, start + 30.0, Failing(FailureClass.AUTH)),
        ],
        expect={"served": served(0.99), "I14": carries("a/big", start + 5.0 + stated, length=100.0)},
    )


def offline(dice: Random) -> Setting:
    """Our own connection is gone for a while: the last resort answers, and all are back within seconds."""
    start, recovered = 60.0, 60.0 + dice.uniform(20.0, 120.0)
    return Setting(
        tiers=[["a/big", "b/big"], ["c/small"]],
        last_resort=["l/local"],
        traffic=[Traffic(end=recovered + 60.0, per_second=4.0, streams=0.5)],
        resilience=_TOUCHY,
        usual=dict.fromkeys("abcl", Healthy(0.01)),  # nothing from before is answered when it has begun
        spells=[Spell(name, start, recovered, Failing(FailureClass.TRANSPORT, seconds=0.02)) for name in "abc"],
        expect={"served": served(0.99), "online": served(0.99, recovered + 3.0, recovered + 30.0, remotely=True)},
    )


def too_few(dice: Random) -> Setting:
    """Two of three providers are down: what says that it can wait is shed, the rest is served, and then all of it."""
    start, recovered = 60.0, 60.0 + dice.uniform(60.0, 120.0)
    return Setting(
        tiers=[["a/big", "b/big", "c/big"]],
        traffic=[Traffic(end=recovered + 300.0, per_second=3.0, sheddable=0.5)],
        resilience=_TOUCHY,
        usual={"c": Congested(60)},
        spells=[Spell(name, start, recovered, Failing(FailureClass.SERVER_ERROR, seconds=1.0)) for name in "ab"],
        expect={
            "shedding": sheds(start + 10.0, start + 25.0, at_least=0.95),
            "after": served(1.0, recovered + 150.0),
        },
    )


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
