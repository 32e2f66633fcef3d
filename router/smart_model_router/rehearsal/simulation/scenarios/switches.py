"""An operator at work, and for each of the five measures a scenario that fails without it, and only without it."""

from __future__ import annotations

from random import Random

from smart_model_router.domain.outcome import FailureClass
from smart_model_router.flow.state import RouterState
from smart_model_router.rehearsal.simulation.assertions import at_least_share, at_once, calls, carries, served
from smart_model_router.rehearsal.simulation.provider_behaviour import Failing, Healthy, Spell
from smart_model_router.rehearsal.simulation.scenario import Order, Setting
from smart_model_router.rehearsal.simulation.workload import Traffic
from smart_model_router.router import SmartModelRouter


def operated(dice: Random) -> Setting:
    """A target is isolated, let in again, and again in the middle of its open time; slots come and go under load."""
    taken_out = 30.0 + dice.uniform(0.0, 5.0)
    down = 120.0
    return Setting(
        tiers=[["a/big"], ["b/small"]],
        traffic=[
            Traffic(end=300.0, per_second=4.0, streams=0.5, impatient=0.1),
            Traffic(start=down, at_once=20),
            Traffic(start=dice.uniform(210.0, 230.0), at_once=30),
        ],
        providers={"a": {"bulkhead": 20}},
        spells=[Spell("a", down - 5.0, down + 5.0, Failing(FailureClass.SERVER_ERROR, seconds=0.5))],
        orders=[
            (taken_out, lambda router, _: router.isolate("a/big")),
            (taken_out + 30.0, lambda router, _: router.close("a/big")),
            (down + 7.0, lambda router, _: router.close("a/big")),
            (200.0, _resized("a", 2)),
            (220.0, _resized("a", 10)),
            (240.0, _resized("a", 20)),
        ],
        expect={
            "served": served(0.99),
            "isolated": calls("a", at_most=0, start=taken_out + 0.001, end=taken_out + 30.0),
            "let in": at_least_share("a/big", 0.6, down + 15.0, down + 60.0),
        },
    )


def _resized(provider: str, slots: int) -> Order:
    def order(_: SmartModelRouter, state: RouterState) -> None:
        state.fleet.providers[provider].bulkhead.resize(slots)
        state.pump(provider)

    return order


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
