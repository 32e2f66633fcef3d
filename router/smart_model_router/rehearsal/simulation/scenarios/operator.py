"""An operator at work: a target taken out and let in again, a bulkhead made smaller and larger."""

from __future__ import annotations

from random import Random

from smart_model_router.domain.outcome import FailureClass
from smart_model_router.flow.state import RouterState
from smart_model_router.rehearsal.simulation.assertions import at_least_share, calls, served
from smart_model_router.rehearsal.simulation.provider_behaviour import Failing, Spell
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
