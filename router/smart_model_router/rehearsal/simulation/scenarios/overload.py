"""Providers that are asked for more than they can give, that keep callers waiting, or are slow for a few calls."""

from __future__ import annotations

from random import Random

from smart_model_router.domain.outcome import FailureClass
from smart_model_router.rehearsal.simulation.assertions import (
    calls,
    carries,
    left_while,
    nobody_opens,
    nothing_was,
    opens_only,
    quick_heads,
    sent_per_accepted,
    sent_per_served,
    served,
    trips_besides,
)
from smart_model_router.rehearsal.simulation.provider_behaviour import (
    BlackHole,
    Condition,
    Congested,
    Cutting,
    Dozing,
    Failing,
    Healthy,
    Limited,
    Metered,
    SlowLoris,
    Spell,
)
from smart_model_router.rehearsal.simulation.scenario import Setting
from smart_model_router.rehearsal.simulation.workload import Traffic

_CEILING = 2.3
"""The plain loop sends 2.1 calls for each request that it has served: two limited providers come first."""
_LOOK = 70.0
"""Seconds to the next second look at most, after the few that a spell of two minutes sees."""


def brown_out(dice: Random) -> Setting:
    """The first provider fails half of its calls for two minutes; no caller notices, no other target falls with it."""
    share = dice.uniform(0.3, 0.8)
    return Setting(
        tiers=[["a/big", "b/big"], ["c/small"]],
        traffic=[Traffic(end=400.0, per_second=2.0, streams=0.5)],
        usual={name: Congested(40) for name in "bc"},
        spells=[Spell("a", 60.0, 180.0, Failing(FailureClass.SERVER_ERROR, share, seconds=1.0))],
        expect={
            "served": served(0.99),
            "cascade": trips_besides("a", at_most=1),
            "I14": carries("a/big", 180.0, within=_LOOK),
        },
    )


def losses(dice: Random) -> Setting:
    """Each of two providers loses a part of its calls for five minutes; hardly a request is lost with them."""
    return Setting(
        tiers=[["a/big"], ["b/small"]],
        traffic=[Traffic(end=500.0, per_second=2.0, streams=0.5)],
        spells=[Spell(name, 60.0, 360.0, Failing(FailureClass.SERVER_ERROR, dice.uniform(0.1, 0.3))) for name in "ab"],
        expect={"served": served(0.99), "later": served(1.0, 370.0)},
    )


def rate_limit_storm(dice: Random) -> Setting:
    """The first provider takes less than comes, without saying how much: its 429s are waits, not failures."""
    return Setting(
        tiers=[["a/big", "b/big"], ["c/small"]],
        traffic=[Traffic(end=300.0, per_second=6.0, streams=0.3)],
        usual={
            "a": Limited(dice.randint(1, 3), hint=dice.choice([0.05, 0.5, 3.0, None])),
            "b": Limited(4, hint=dice.choice([0.2, 1.0])),
            "c": Healthy(0.5),
        },
        expect={"served": served(0.99), "429s": nobody_opens, "D2": sent_per_served(_CEILING)},
    )


def headers(dice: Random) -> Setting:
    """The first provider says in every answer what is left of its limit: it is used up, and hardly ever overrun."""
    return Setting(
        tiers=[["a/big"], ["b/small"]],
        traffic=[Traffic(end=240.0, per_second=3.0, streams=0.5)],
        routing={"degrade_after": 0},
        usual={"a": Metered(dice.choice([30, 60, 120]))},
        expect={"served": served(1.0), "429s": sent_per_accepted("a", at_most=1.02, slack=3)},
    )


def narrow(dice: Random) -> Setting:
    """The first provider bears ten calls at once and was configured with fifty: an adaptive bulkhead finds out."""
    return Setting(
        tiers=[["a/big"], ["b/small"]],
        traffic=[Traffic(end=200.0, per_second=8.0, streams=0.3)],
        routing={"degrade_after": 0},
        resilience={"adaptive": {"enabled": True}},
        providers={"a": {"bulkhead": 50}, "b": {"bulkhead": 200}},
        usual={"a": Congested(dice.randint(8, 10), 2.0)},
        expect={"served": served(1.0), "adaptive": sent_per_accepted("a", at_most=1.22)},
    )


def fifty_agents(dice: Random) -> Setting:
    """Fifty agents start at once with calls of ten seconds: nothing throttles what has no outcome yet."""
    return Setting(
        tiers=[["a/big"], ["b/small"]],
        traffic=[
            Traffic(at_once=50, start=dice.uniform(0.0, 1.0), streams=dice.choice([0.0, 1.0])),
            Traffic(at_once=50, start=150.0),
        ],
        providers={"a": {"bulkhead": 50}},
        usual={"a": Congested(60, seconds=6.0)},
        expect={
            "served": served(1.0),
            "429s": nobody_opens,
            "overload": nothing_was(FailureClass.OVERLOADED),
        },
    )


# Callers in a hurry, and providers that keep them waiting without an end.


def impatient(dice: Random) -> Setting:
    """Most callers leave before their answer, in every state there is; a healthy breaker is not poisoned by that."""
    return Setting(
        tiers=[["a/big"], ["b/small"]],
        traffic=[
            Traffic(end=300.0, per_second=3.0, streams=0.5, impatient=0.7, leaves_after=dice.uniform(0.5, 4.0)),
            Traffic(end=300.0, per_second=0.5, streams=0.5, timeout=dice.choice([0.5, 2.0])),
            Traffic(start=150.0, at_once=40, streams=0.5, impatient=0.5, leaves_after=6.0),
        ],
        usual={"a": Healthy(3.0)},
        spells=[
            Spell("a", 60.0, 70.0, Failing(FailureClass.WARMING)),  # a second's wait, again and again
            Spell("a", 100.0, 104.0, Failing(FailureClass.SERVER_ERROR, seconds=0.01)),  # a cooldown
            Spell("a", 149.9, 158.0, Failing(FailureClass.SERVER_ERROR, seconds=1.0)),  # it trips
            Spell("a", 230.0, 233.0, Failing(FailureClass.RATE_LIMITED, hint=4.0)),
        ],
        providers={"a": {"bulkhead": dice.choice([12, 20])}},
        resilience={"breaker": {"odds_per_call": 5}},
        expect={
            "poisoned": opens_only(150.0, 162.0),
            "states": left_while("cooldown", "open", "half_open", "probation", "slow_start", "bulkhead", "wait"),
        },
    )


def black_hole(dice: Random) -> Setting:
    """The first provider takes calls and never answers, and callers give up: it must not be shielded by them."""
    return Setting(
        tiers=[["a/big", "b/big"]],
        traffic=[
            Traffic(end=900.0, per_second=1.0, streams=dice.choice([0.0, 0.5, 1.0]), impatient=0.5, leaves_after=60.0)
        ],
        spells=[Spell("a", 60.0, 400.0, BlackHole())],
        expect={"served": served(0.99), "later": served(1.0, 500.0), "I14": carries("a/big", 400.0)},
    )


def shield(dice: Random) -> Setting:
    """As `black_hole`, but callers give up before our own limit of twice the p99: their silent seconds count."""
    return Setting(
        tiers=[["a/big", "b/big"]],
        traffic=[Traffic(end=400.0, per_second=1.0, impatient=1.0, leaves_after=dice.uniform(6.0, 6.5))],
        spells=[Spell("a", 60.0, 400.0, BlackHole())],
        expect={"shielded": calls("a", at_most=60, start=60.0, end=400.0)},
    )


def slow_loris(dice: Random) -> Setting:
    """The first provider keeps streams alive with pings, or cuts them: before content no caller notices."""
    worse: tuple[Condition, ...] = (SlowLoris(), SlowLoris(2), Cutting())
    return Setting(
        tiers=[["a/big", "b/big"]],
        traffic=[
            Traffic(end=600.0, per_second=0.7, streams=0.8),
            Traffic(end=600.0, per_second=0.3, streams=1.0, recovery=dice.choice(["continue", "buffered", "restart"])),
        ],
        spells=[Spell("a", 60.0, 300.0, dice.choice(worse))],
        expect={"served": served(0.95), "later": served(1.0, 400.0), "I14": carries("a/big", 300.0)},
    )


# Providers that are quick but for a few calls: what hedging is for.


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
