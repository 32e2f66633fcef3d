"""Run a scenario: the real router against its world, with every checker watching."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any
from unittest import mock

from smart_model_router.assembly import assemble, load
from smart_model_router.core.flow_config import Measures
from smart_model_router.domain.events import Event
from smart_model_router.rehearsal.simulation.checkers import CHECKERS
from smart_model_router.rehearsal.simulation.checkers.checker import Checker
from smart_model_router.rehearsal.simulation.history import History
from smart_model_router.rehearsal.simulation.provider_behaviour import SimulatedProvider
from smart_model_router.rehearsal.simulation.scenario import Scenario, Setting
from smart_model_router.rehearsal.simulation.trace_recorder import TraceRecorder
from smart_model_router.rehearsal.simulation.workload import WorkloadRequest
from smart_model_router.rehearsal.simulation.world import Livelock, StepClock, Wall, run_world
from smart_model_router.router import SmartModelRouter
from smart_model_router.testing import Deadlock, LoopClock, OutOfTime

_PATIENCE = 7200.0
"""Seconds that a run may last beyond its last arrival: longer than the longest stream, then it hangs."""
_AFTERMATH = 1.0
"""Seconds for what the last request left behind: connections being closed."""
_VERDICTS = 600.0
"""Seconds within which the calls that outlive their callers have to come to a verdict."""
ALL_ON = Measures()


def simulate(scenario: Scenario, seed: int, measures: Measures = ALL_ON) -> History:
    """Run a scenario with a seed and look at the whole of it; `violations` of the result is the verdict.

    What jumps with the wall clock is run once more without the jumps: nothing may differ (I7).
    """
    setting = scenario.make(Random(f"{scenario.name}/{seed}"))  # noqa: S311 - chance to be repeated, not a secret
    history = _once(scenario.name, setting, seed, measures, setting.wall_steps)
    if not any(violation.promise in {"hang", "crash"} for violation in history.violations):
        for promise, expectation in setting.expect.items():
            history.blame(promise, expectation(history))
        if setting.wall_steps and _once(scenario.name, setting, seed, measures, ()).log != history.log:
            history.blame("I7", ["without the jumps of the wall clock the history is another"])
    return history


def _once(
    name: str, setting: Setting, seed: int, measures: Measures, wall_steps: Sequence[tuple[float, float]]
) -> History:
    history = History(name, seed, began=0.0, spells=setting.spells)
    asked = [
        one
        for number, traffic in enumerate(setting.traffic)
        for one in traffic.arrivals(Random(f"{seed}/{number}/{traffic}"))  # noqa: S311
    ]
    history.asked = sorted(asked, key=lambda one: one.at)
    limit = max(one.at for one in asked) + _PATIENCE
    wall = Wall(wall_steps)
    with mock.patch("time.time", wall.now):
        try:
            run_world(_live(history, setting, seed, measures, wall), limit=limit)
        except (Deadlock, OutOfTime, Livelock) as hang:
            history.blame("hang", [f"{type(hang).__name__}: {hang}"])
    return history


async def _live(history: History, setting: Setting, seed: int, measures: Measures, wall: Wall) -> None:
    loop = asyncio.get_running_loop()
    history.began = loop.time()
    loop.set_exception_handler(lambda _, context: history.violate("crash", loop.time(), _told(context)))
    history.providers = providers_of(setting, seed, history.began)
    sink = _Sink(history)
    parts = assemble(
        load(setting.config(measures), given=frozenset(history.providers)),
        clock=LoopClock() if measures.monotonic_clock else StepClock(wall),
        seed=seed,
        providers=dict(history.providers),
        sinks=[sink],
    )
    router, state = SmartModelRouter(**parts), parts["state"]
    checkers = [checker(state, history) for checker in CHECKERS if checker.applies(measures)]
    sink.watch(checkers)
    witness = TraceRecorder(state, sink.checkers)
    for checker in checkers:
        checker.witness = witness
    witness.watch()
    for at, order in setting.orders:
        loop.call_at(history.began + at, order, router, state)
    await _send(router, history, witness)
    await asyncio.sleep(_AFTERMATH)
    if state.detached:  # calls that run on for their verdict
        await asyncio.wait(tuple(state.detached), timeout=_VERDICTS)
    history.lasted = loop.time() - history.began
    for checker in checkers:
        checker.finish()
    await router.aclose()
    strays = asyncio.all_tasks() - {asyncio.current_task()}
    history.blame("leak", sorted(f"still running: {task.get_coro()}" for task in strays))
    if state.sink_errors:
        history.blame("crash", [f"{state.sink_errors} events were refused by a checker: {sink.error!r}"])


def providers_of(setting: Setting, seed: int, began: float) -> dict[str, SimulatedProvider]:
    """The providers of a setting, each with dice of its own."""
    return {
        name: SimulatedProvider(
            setting.usually(name),
            [spell for spell in setting.spells if spell.provider == name],
            began,
            Random(f"{seed}/{name}"),  # noqa: S311 - as above
        )
        for name in setting.names
    }


async def _send(router: SmartModelRouter, history: History, witness: TraceRecorder) -> None:
    loop, tasks = asyncio.get_running_loop(), []

    async def one(asked: WorkloadRequest) -> None:
        history.begun += 1
        witness.begins(asked)
        try:
            await asked.ask(router)
        except Exception as bug:  # noqa: BLE001 - whatever it is, it is what we look for
            history.violate("crash", loop.time(), f"the request of {asked.at:.3f}: {type(bug).__name__}: {bug}")
        witness.ended(asked)

    for asked in history.asked:
        pause = history.began + asked.at - loop.time()
        if pause > 0:
            await asyncio.sleep(pause)
        tasks.append(loop.create_task(one(asked)))
    await asyncio.gather(*tasks)


def _told(context: dict[str, Any]) -> str:
    return f"{context.get('message')}: {context.get('exception')!r}"


class _Sink:
    """Keeps every event and shows it to the checkers."""

    inline = True

    def __init__(self, history: History) -> None:
        self.checkers: Sequence[Checker] = ()
        self.error: Exception | None = None
        self._history = history

    def watch(self, checkers: Sequence[Checker]) -> None:
        """Show every event to these from now on."""
        self.checkers = checkers

    def emit(self, event: Event) -> None:
        """Keep it, show it."""
        self._history.events.append(event)
        try:
            for checker in self.checkers:
                checker.event(event)
        except Exception as error:
            self.error = error
            raise
