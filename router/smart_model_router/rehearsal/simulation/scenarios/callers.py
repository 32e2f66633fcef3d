"""Callers in a hurry, and providers that keep them waiting without an end."""

from __future__ import annotations

from random import Random

from smart_model_router.domain.outcome import FailureClass
from smart_model_router.rehearsal.simulation.assertions import calls, carries, left_while, opens_only, served
from smart_model_router.rehearsal.simulation.provider_behaviour import (
    BlackHole,
    Condition,
    Cutting,
    Failing,
    Healthy,
    SlowLoris,
    Spell,
)
from smart_model_router.rehearsal.simulation.scenario import Setting
from smart_model_router.rehearsal.simulation.workload import Traffic


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
    """The first provider keeps streams alive with pings, or cuts them: before content nobody notices."""
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
