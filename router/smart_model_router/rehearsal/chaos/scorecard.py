"""The drill: every scenario against a fleet of its own, and the score card."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from smart_model_router.config import RouterConfig
from smart_model_router.rehearsal.chaos.chaos_scenarios import Scenario
from smart_model_router.rehearsal.chaos.fault_fleet import FaultFleet, NetworkGuard, drill
from smart_model_router.rehearsal.chaos.scenario_context import Finding, ScenarioContext, Verdict, worst

SPEED = 10.0
"""With it the whole card takes about half a minute, and a loaded machine still tells the durations apart."""
TOGETHER = 4
"""So many scenarios run at a time: most of them only wait."""


@dataclass(frozen=True, slots=True)
class Result:
    """One scenario's part of the card. `seconds` is a duration; `lag` by how many seconds the machine was late."""

    scenario: str
    about: str
    findings: tuple[Finding, ...]
    questions: int
    seconds: float
    lag: float

    @property
    def verdict(self) -> Verdict:
        """The worst of its findings."""
        return worst(self.findings)


@dataclass(frozen=True, slots=True)
class Scorecard:
    """The whole drill. `refused` are connections that wanted to leave this machine's fault servers: none, or a bug."""

    model: str
    speed: float
    seed: int
    results: tuple[Result, ...]
    refused: tuple[str, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """True when every scenario passed and no connection left the machine."""
        return not self.refused and all(result.verdict is Verdict.PASS for result in self.results)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "passed": self.passed,
            "model": self.model,
            "speed": self.speed,
            "seed": self.seed,
            "seconds": round(self.seconds, 3),
            "connections_refused": list(self.refused),
            "scenarios": [
                {
                    "name": result.scenario,
                    "about": result.about,
                    "verdict": result.verdict.value,
                    "questions": result.questions,
                    "seconds": round(result.seconds, 3),
                    "lag_seconds": round(result.lag, 3),
                    "findings": [
                        {
                            "promise": finding.promise,
                            "kept": finding.kept,
                            "measured": finding.measured,
                            "otherwise": finding.otherwise.value,
                        }
                        for finding in result.findings
                    ],
                }
                for result in self.results
            ],
        }


async def play(
    config: RouterConfig,
    model: str,
    scenarios: Sequence[Scenario],
    *,
    speed: float = SPEED,
    seed: int = 0,
    on_result: Callable[[Result], None] = lambda _: None,
) -> Scorecard:
    """Play these scenarios against `model` of a configuration; `on_result` hears of each as it ends.

    Every duration of the configuration is divided by `speed` (at least 1), down to a quarter of a second. One drill a
    process at a time: the fence is the process's. Raises ConfigurationError; InvalidRequest for an unknown model.
    """
    tested = drill(config, model, speed)
    began, room, guard = time.monotonic(), asyncio.Semaphore(TOGETHER), NetworkGuard()

    async def one(scenario: Scenario) -> Result:
        async with room:
            result = await _play(scenario, FaultFleet(tested, seed), guard)
        on_result(result)
        return result

    with guard:
        # Not a task group: a mistake in the configuration reaches the caller as it is.
        results = tuple(await asyncio.gather(*(one(scenario) for scenario in scenarios)))
    name = next(iter(tested.models))
    return Scorecard(name, speed, seed, results, tuple(guard.refused), time.monotonic() - began)


async def _play(scenario: Scenario, fleet: FaultFleet, guard: NetworkGuard) -> Result:
    began = time.monotonic()
    async with fleet:
        guard.ports |= {server.port for server in fleet.servers.values()}
        context = ScenarioContext(fleet)
        watch = asyncio.create_task(context.watch())
        try:
            await scenario.run(context)
            await context.conclude(scenario.allows)
        finally:
            watch.cancel()
    seconds = time.monotonic() - began
    return Result(scenario.name, scenario.about, tuple(context.findings), len(context.asked), seconds, context.lag)
