"""Run a scenario: the real router against its world, every checker watching; its history told as a timeline."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import product
from random import Random
from typing import Any
from unittest import mock

from smart_model_router.assembly import assemble, load
from smart_model_router.core.flow_config import Measures
from smart_model_router.domain.events import (
    AttemptFinished,
    BreakerChanged,
    Event,
    OfflineChanged,
    RestStarted,
    SheddingChanged,
)
from smart_model_router.rehearsal.simulation.checkers import CHECKERS
from smart_model_router.rehearsal.simulation.provider_behaviour import SimulatedProvider, Spell
from smart_model_router.rehearsal.simulation.scenario import Checker, History, Scenario, Setting
from smart_model_router.rehearsal.simulation.trace_recorder import TraceRecorder
from smart_model_router.rehearsal.simulation.workload import Livelock, StepClock, Wall, WorkloadRequest, run_world
from smart_model_router.router import SmartModelRouter
from smart_model_router.testing import Deadlock, LoopClock, OutOfTime

_SPAN = 60.0
"""Seconds that one line of traffic sums up."""


def timeline(history: History) -> Iterator[str]:
    """Each change of the weather, of a breaker, a rest, and each minute's traffic, in order."""
    moments = [(spell.start, f"{spell.provider} turns {_shown(spell)}") for spell in history.spells]
    moments += [(spell.end, f"{spell.provider} is well again") for spell in history.spells]
    moments += [(event.at - history.began, text) for event in history.events if (text := _event_in_words(event))]
    moments += _traffic(history)
    for at, text in sorted(moments, key=lambda moment: moment[0]):
        yield f"{int(at // 60):3d}:{at % 60:06.3f}  {text}"


def verdict(history: History) -> Iterator[str]:
    """The violations, if any, and one line that sums up."""
    for violation in history.violations:
        yield f"VIOLATED {violation}"
    attempts = sum(isinstance(event, AttemptFinished) for event in history.events)
    word = f"{len(history.violations)} violations" if history.violations else "every promise kept"
    yield (
        f"{history.scenario} --seed {history.seed}: {word}; {len(history.asked)} requests, "
        f"{history.served_share(0.0, float('inf')):.1%} of those that stayed served, {attempts} calls, "
        f"{history.wasted} wasted, log {history.digest}"
    )


def _shown(spell: Spell) -> str:
    return repr(spell.condition).replace("FailureClass.", "")


def _event_in_words(event: Event) -> str:
    match event:
        case BreakerChanged():
            until = "" if event.open_until is None else f" for {event.open_until - event.at:.1f} s"
            return f"{event.owner} ({event.kind}): {event.from_state} -> {event.to_state}{until} ({event.reason})"
        case RestStarted():
            word = "told to" if event.hinted else "takes a"
            return f"{event.target}: {word} {event.reason} for {event.seconds:.2f} s ({event.failure_class})"
        case OfflineChanged():
            return "offline: every remote is unreachable" if event.offline else "online again"
        case SheddingChanged():
            return f"shedding {'begins' if event.shedding else 'ends'} at {event.open_ratio:.0%} open"
        case _:
            return ""


def _traffic(history: History) -> Iterator[tuple[float, str]]:
    start = 0.0
    while start < history.lasted:
        asked = history.between(start, start + _SPAN)
        by: dict[str, int] = {}
        for one in asked:
            by[one.served_by or "nobody"] = by.get(one.served_by or "nobody", 0) + 1
        counts = ", ".join(f"{name} {count}" for name, count in sorted(by.items()))
        if asked:
            yield start + _SPAN, f"served in this minute: {counts}"
        start += _SPAN


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
    loop.set_exception_handler(lambda _, context: history.violate("crash", loop.time(), _crash_in_words(context)))
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
    recorder = TraceRecorder(state=state, checkers=sink.checkers)
    for checker in checkers:
        checker.recorder = recorder
    recorder.watch()
    for at, order in setting.orders:
        loop.call_at(history.began + at, order, router, state)
    await _send(router, history, recorder)
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


async def _send(router: SmartModelRouter, history: History, recorder: TraceRecorder) -> None:
    loop, tasks = asyncio.get_running_loop(), []

    async def one(asked: WorkloadRequest) -> None:
        history.begun += 1
        recorder.begins(asked)
        try:
            await asked.ask(router)
        except Exception as bug:  # noqa: BLE001 - whatever it is, it is what we look for
            history.violate("crash", loop.time(), f"the request of {asked.at:.3f}: {type(bug).__name__}: {bug}")
        recorder.ended(asked)

    for asked in history.asked:
        pause = history.began + asked.at - loop.time()
        if pause > 0:
            await asyncio.sleep(pause)
        tasks.append(loop.create_task(one(asked)))
    await asyncio.gather(*tasks)


def _crash_in_words(context: dict[str, Any]) -> str:
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


NAMES: tuple[str, ...] = tuple(field.name for field in fields(Measures))
ALWAYS = frozenset({"crash", "hang", "leak", "I2"})
"""The promises under every combination; the measures make the others."""


def combinations() -> Iterator[Measures]:
    """Every combination, all on first."""
    for values in product((True, False), repeat=len(NAMES)):
        yield Measures(**dict(zip(NAMES, values, strict=True)))


def simulate_measures(scenario: Scenario, seed: int) -> Iterator[History]:
    """The scenario under each combination; only what is promised under all of them is held against it."""
    for measures in combinations():
        history = simulate(scenario, seed, measures)
        off = [name for name in NAMES if not getattr(measures, name)]
        history.scenario = f"{scenario.name} without {', '.join(off) or 'nothing'}"
        history.violations = [v for v in history.violations if v.promise in ALWAYS]
        yield history
