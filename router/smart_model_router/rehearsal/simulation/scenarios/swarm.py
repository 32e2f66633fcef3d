"""Scenarios drawn from the dice: any fleet, any weather, any callers. The nightly lane runs a thousand of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

from smart_model_router.domain.outcome import FailureClass
from smart_model_router.rehearsal.simulation.assertions import all_closed, served
from smart_model_router.rehearsal.simulation.provider_behaviour import (
    BlackHole,
    Buggy,
    Condition,
    Congested,
    Cutting,
    Failing,
    Healthy,
    Limited,
    SlowLoris,
    Spell,
)
from smart_model_router.rehearsal.simulation.scenario import History, Setting
from smart_model_router.rehearsal.simulation.workload import Traffic

_STORM = 200.0
_CALM = 400.0
"""Seconds. Long enough for the longest rest of `_BRISK` and a slow start."""
_BRISK: dict[str, Any] = {
    "breaker": {"open": 5, "open_minimum": 2, "open_cap": 40},
    "cooldown": {
        "failure": 5,
        "timeout": 8,
        "rate_limit": 10,
        "cap": 40,
        "hint_cap": 60,
        "auth": 30,
        "model_gone": 40,
        "misconfigured": 30,
        "quota": 60,
    },
    "timeouts": {"total": 60, "first_content": 8, "attempt": 15, "idle": 10},
}
"""Rests short enough that a run sees many of them."""


def swarm(dice: Random) -> Setting:
    """A fleet, its weather and its callers, all drawn from the dice; when it is calm again, everything is well."""
    names = "abcde"[: dice.randint(2, 5)]
    tiers, last_resort = _ladder(dice, names), (["l/local"] if dice.random() < 0.5 else [])
    end = _STORM + _CALM
    drawn = Setting(
        tiers=tiers,
        last_resort=last_resort,
        providers={name: _provider(dice) for name in names},
        resilience=_BRISK,
        usual={name: Healthy(dice.choice([0.2, 1.0])) for name in (*names, "l")},
        spells=[_spell(dice, names) for _ in range(dice.randint(1, 8))],
        traffic=[*_callers(dice), Traffic(start=_STORM, end=end, per_second=0.5, streams=0.5)],
        wall_steps=[(dice.uniform(0.0, _STORM), dice.choice([-3600.0, 3600.0]))] if dice.random() < 0.2 else [],
        expect={
            "calm": served(0.99, end - 100.0, end, remotely=True),
            "I14": all_closed(tiers[0]),
        },
    )
    # Drawn last: a seed's fleet stays what it was.
    return replace(drawn, resilience={**_BRISK, **_switched(dice)}, traffic=_recovering(dice, drawn.traffic))


def skirmish(dice: Random) -> Setting:
    """The first minute of a swarm, without what comes of it."""
    drawn = swarm(dice)
    minute = [replace(traffic, end=min(traffic.end, 60.0)) for traffic in drawn.traffic if traffic.start < 60.0]
    spells = [replace(spell, start=spell.start % 50.0, end=60.0) for spell in drawn.spells]
    return replace(drawn, traffic=minute, spells=spells, expect={})


def hour(dice: Random) -> Setting:
    """Ten thousand requests in an hour of changing weather over five providers and a last resort."""
    names = "abcde"
    return Setting(
        tiers=[["a/big", "b/big"], ["c/mid", "d/mid"], ["e/small"]],
        last_resort=["l/local"],
        providers={"b": {"rpm": 120}, "d": {"tpm": 60_000}},
        usual={"e": Congested(30), "d": Limited(5, hint=1.0)},
        spells=[
            Spell(name, start, start + dice.uniform(20.0, 300.0), _condition(dice))
            for name in names
            for start in (dice.uniform(100.0, 1500.0), dice.uniform(1800.0, 3000.0))
        ],
        traffic=[
            Traffic(end=3600.0, per_second=2.0, streams=0.4, sheddable=0.1),
            Traffic(end=3600.0, per_second=0.5, streams=0.8, recovery=dice.choice(["continue", "buffered", "restart"])),
            Traffic(end=3600.0, per_second=0.25, impatient=1.0, leaves_after=5.0, streams=0.5),
            *(Traffic(start=dice.uniform(0.0, 3500.0), at_once=50) for _ in range(4)),
        ],
        expect={"served": served(0.99), "calm": _enough},
    )


def _enough(history: History) -> Iterator[str]:
    if len(history.asked) < 9_500:
        yield f"only {len(history.asked)} requests were sent"


def _ladder(dice: Random, names: str) -> list[list[str]]:
    targets = [f"{name}/{model}" for name in names for model in ("big", "alt")[: dice.randint(1, 2)]]
    dice.shuffle(targets)
    cuts = sorted(dice.sample(range(1, len(targets)), k=min(len(targets) - 1, dice.randint(0, 2))))
    edges = [0, *cuts, len(targets)]
    return [targets[low:high] for low, high in pairwise(edges)]


def _provider(dice: Random) -> dict[str, Any]:
    drawn = {
        "bulkhead": dice.choice([None, None, 4, 20]),
        "rpm": dice.choice([None, None, 120, 600]),
        "tpm": dice.choice([None, None, 50_000]),
        "failure_domain": dice.choice([None, None, "shared"]),
        "api_key": dice.choice([None, None, ["one", "two"]]),
    }
    return {key: value for key, value in drawn.items() if value is not None}


def _switched(dice: Random) -> dict[str, Any]:
    """Switches that are on by default and off for some callers, and the other way round."""
    return {"adaptive": {"enabled": dice.random() < 0.7}, "hedging": {"enabled": dice.random() < 0.5}}


def _recovering(dice: Random, traffic: Sequence[Traffic]) -> list[Traffic]:
    """The same callers, some of which say what is to become of a stream that is cut."""
    policies = [None, None, "continue", "buffered", "hold_back(6)", "restart"]
    return [replace(callers, recovery=dice.choice(policies)) for callers in traffic]


def _spell(dice: Random, names: str) -> Spell:
    start = dice.uniform(0.0, _STORM - 10.0)
    return Spell(dice.choice(names), start, min(_STORM, start + dice.uniform(5.0, 120.0)), _condition(dice))


def _condition(dice: Random) -> Condition:
    failing = dice.choice([each for each in FailureClass if each.category != "caller"])
    hint = dice.choice([None, 0.01, 0.2, 2.0, 20.0]) if failing.category == "rate_limit" else None
    conditions: list[Condition] = [
        Failing(failing, dice.choice([0.3, 1.0]), dice.choice([0.0, 0.2, 2.0]), hint),
        Failing(FailureClass.RATE_LIMITED, hint=0.0, scope="concurrency"),
        Failing(FailureClass.TRANSPORT, seconds=0.01),
        BlackHole(),
        Buggy(),
        SlowLoris(dice.choice([0, 2])),
        Cutting(),
        Limited(dice.randint(1, 4), hint=dice.choice([0.05, 1.0, None])),
        Congested(dice.randint(1, 5)),
        Healthy(10.0),
    ]
    return dice.choice(conditions)


def _callers(dice: Random) -> list[Traffic]:
    return [
        Traffic(
            end=_STORM,
            per_second=dice.choice([0.5, 2.0, 5.0]),
            streams=dice.choice([0.0, 0.5, 1.0]),
            impatient=dice.choice([0.0, 0.5]),
            leaves_after=dice.choice([0.5, 15.0]),
            timeout=dice.choice([None, 1.0, 10.0]),
            sheddable=dice.choice([0.0, 0.5]),
            max_tokens=dice.choice([None, 100, 4000]),
        ),
        Traffic(start=dice.uniform(0.0, _STORM), at_once=dice.choice([5, 60]), streams=0.5, impatient=0.2),
        Traffic(end=_STORM, per_second=0.5, streams=0.5),
    ]
