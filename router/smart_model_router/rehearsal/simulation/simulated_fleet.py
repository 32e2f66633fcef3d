"""The effect of a fleet on a provider: many routers without shared state, in one hour with one outage."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar

from smart_model_router.domain.errors import SmartRouterError
from smart_model_router.domain.events import AttemptFinished, Event
from smart_model_router.domain.outcome import FailureClass
from smart_model_router.rehearsal.simulation.provider_behaviour import (
    Congested,
    Failing,
    Healthy,
    SimulatedProvider,
    Spell,
)
from smart_model_router.rehearsal.simulation.workload import BODY, run_world
from smart_model_router.router import SmartModelRouter
from smart_model_router.testing import LoopClock

_FIRST = "p0"


@dataclass(frozen=True, kw_only=True)
class FleetSetting:
    """`routers` each with the same `targets`, one a provider, in tiers of ten, asking `per_second` together.

    The first target of all is down from `down_at` to `back_at`; instants and durations are seconds.
    """

    routers: int = 200
    targets: int = 50
    seconds: float = 3600.0
    per_second: float = 40.0
    down_at: float = 600.0
    back_at: float = 1500.0


@dataclass(frozen=True, kw_only=True)
class Report:
    """The result of a fleet. Herds are the most calls within one second at the provider that was down."""

    requests: int
    served: int
    calls: int
    wasted: int
    calls_while_down: int
    herd_while_down: int
    herd_at_recovery: int
    herd_usual: int
    share_before: float
    share_after: float
    seconds_to_half_share: float | None

    def to_dict(self) -> dict[str, Any]:
        """By name, for people and programs."""
        return {
            "requests": self.requests,
            "goodput": round(self.served / self.requests, 5),
            "calls": self.calls,
            "wasted calls": self.wasted,
            "calls while down": self.calls_while_down,
            "herd while down (calls/s)": self.herd_while_down,
            "herd at recovery (calls/s)": self.herd_at_recovery,
            "herd before the outage (calls/s)": self.herd_usual,
            "share before the outage": round(self.share_before, 4),
            "share in the last ten minutes": round(self.share_after, 4),
            "seconds to half of its share": self.seconds_to_half_share,
        }


@dataclass
class _Tally:
    inline: ClassVar[bool] = True
    calls: int = 0
    wasted: int = 0
    served: list[tuple[float, str | None]] = field(default_factory=list)

    def emit(self, event: Event) -> None:
        """Count the calls."""
        if isinstance(event, AttemptFinished):
            self.calls += 1
            self.wasted += event.failure_class is not None


def simulate_fleet(seed: int, setting: FleetSetting = FleetSetting()) -> Report:
    """An hour of a fleet. The same seed gives the same report. Takes about a minute for each 100,000 requests."""
    return run_world(_live(seed, setting), limit=setting.seconds * 3)


async def _live(seed: int, setting: FleetSetting) -> Report:
    loop = asyncio.get_running_loop()
    began = loop.time()
    down = Spell(_FIRST, setting.down_at, setting.back_at, Failing(FailureClass.SERVER_ERROR))
    providers = {
        name: SimulatedProvider(
            Congested(400) if name == _FIRST else Healthy(),
            [down] if name == _FIRST else [],
            began,
            Random(f"{seed}/{name}"),  # noqa: S311 - chance to be repeated, not a secret
        )
        for name in (f"p{number}" for number in range(setting.targets))
    }
    tally = _Tally()
    config = _config(list(providers))
    routers = [
        SmartModelRouter.from_config(
            config, clock=LoopClock(), seed=seed * 1000 + number, providers=dict(providers), sinks=[tally]
        )
        for number in range(setting.routers)
    ]
    dice, tasks = Random(f"{seed}/fleet"), []  # noqa: S311 - as above
    while (pause := dice.expovariate(setting.per_second)) + loop.time() - began < setting.seconds:
        await asyncio.sleep(pause)
        tasks.append(loop.create_task(_ask(dice.choice(routers), tally, loop.time() - began)))
    await asyncio.gather(*tasks)
    for router in routers:
        await router.aclose()
    return _report(setting, tally, [at - began for at in providers[_FIRST].arrivals])


async def _ask(router: SmartModelRouter, tally: _Tally, at: float) -> None:
    try:
        target = (await router.chat(BODY)).report.target
    except SmartRouterError:
        target = None
    tally.served.append((at, target))


def _config(names: Sequence[str]) -> dict[str, Any]:
    tiers = [names[start : start + 10] for start in range(0, len(names), 10)]
    return {
        "version": 1,
        "providers": {name: {"kind": "openai_compatible", "base_url": "http://simulated.invalid/v1"} for name in names},
        "models": {
            "smart": {
                "tiers": [
                    {"name": f"tier{number}", "targets": [f"{name}/model" for name in tier]}
                    for number, tier in enumerate(tiers)
                ],
                "last_resort": [],
            }
        },
    }


def _report(setting: FleetSetting, tally: _Tally, arrivals: Sequence[float]) -> Report:
    down, back, end = setting.down_at, setting.back_at, setting.seconds
    share_before = _share(tally, 0.0, down)
    return Report(
        requests=len(tally.served),
        served=sum(target is not None for _, target in tally.served),
        calls=tally.calls,
        wasted=tally.wasted,
        calls_while_down=sum(down <= at < back for at in arrivals),
        herd_while_down=_herd(arrivals, down + 60.0, back),
        herd_at_recovery=_herd(arrivals, back, back + 600.0),
        herd_usual=_herd(arrivals, 0.0, down),
        share_before=share_before,
        share_after=_share(tally, end - 600.0, end),
        seconds_to_half_share=next(
            (at - back for at in range(int(back), int(end), 10) if _share(tally, at, at + 10.0) > share_before / 2),
            None,
        ),
    )


def _share(tally: _Tally, start: float, end: float) -> float:
    asked = [target for at, target in tally.served if start <= at < end]
    return sum(target == f"{_FIRST}/model" for target in asked) / len(asked) if asked else 0.0


def _herd(arrivals: Sequence[float], start: float, end: float) -> int:
    seconds: dict[int, int] = {}
    for at in arrivals:
        if start <= at < end:
            seconds[int(at)] = seconds.get(int(at), 0) + 1
    return max(seconds.values(), default=0)
