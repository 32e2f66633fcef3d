"""Cells of the grid run: the same requests through the loop and through the router, judged, on several processors."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from random import Random
from typing import Any

from smart_model_router.core.flow_config import Measures
from smart_model_router.domain.errors import SmartRouterError
from smart_model_router.rehearsal.simulation.grid import Cell
from smart_model_router.rehearsal.simulation.grid_provider import GridProvider, Naive
from smart_model_router.rehearsal.simulation.workload import StepClock, Wall, run_world
from smart_model_router.router import SmartModelRouter
from smart_model_router.testing import LoopClock

FLOOR_POINTS = 0.01
FIRST_CHOICE_POINTS = 0.10
STANDARD_ERRORS = 2.0
CEILING_RATIO = 1.1
CEILING_CALLS = 2.0
FIRST_CHOICE_FROM = 60.0
"""Seconds from the beginning: what arrives earlier is not judged for its first choice."""
FEWEST_JUDGED = 100
SLOTS_RATIO = 2.2
"""Slots of a provider, in multiples of the loop's mean in flight at its busiest provider."""
DEFAULT_SLOTS = 20
_PATIENCE = 7200.0
_LATE = 1e-6

_ALL_ON = Measures()

AskOne = Callable[[Mapping[str, Any]], Awaitable[str | None]]


class BrokenRun(RuntimeError):
    """The router crashed, or left a task or a call behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The results of the requests of one or more runs of a cell, from the instant from which it is judged.

    `judged` are the requests that arrived from `FIRST_CHOICE_FROM` on, `first` those of them that the first provider
    served. `mean_in_flight` and `max_in_flight` are those of the busiest provider.
    """

    requests: int
    served: int
    calls: int
    judged: int
    first: int
    mean_in_flight: float
    max_in_flight: int

    @property
    def served_share(self) -> float:
        """The share of requests served in time."""
        return self.served / self.requests

    @property
    def calls_per_served(self) -> float:
        """Calls sent per request served; infinite when none was."""
        return self.calls / self.served if self.served else math.inf

    @property
    def first_share(self) -> float:
        """The first provider's share of the judged requests; 0 without any."""
        return self.first / self.judged if self.judged else 0.0

    def __add__(self, other: Tally) -> Tally:
        """Both together. In flight is the larger of the two."""
        return Tally(
            requests=self.requests + other.requests,
            served=self.served + other.served,
            calls=self.calls + other.calls,
            judged=self.judged + other.judged,
            first=self.first + other.first,
            mean_in_flight=max(self.mean_in_flight, other.mean_in_flight),
            max_in_flight=max(self.max_in_flight, other.max_in_flight),
        )


def run_cell(cell: Cell, seed: int, requests: int, measures: Measures = _ALL_ON) -> tuple[Tally, Tally]:
    """Run a cell with a seed: the results of `requests` in the loop, then with the router.

    Raises BrokenRun, and Deadlock, OutOfTime or Livelock when the router hangs.
    """
    arrivals = _arrivals(cell, seed, requests)
    limit = arrivals[-1] + _PATIENCE
    loop = run_world(_through_loop(cell, seed, arrivals), limit=limit)
    slots = max(DEFAULT_SLOTS, math.ceil(SLOTS_RATIO * loop.mean_in_flight))
    return loop, run_world(_through_router(cell, seed, arrivals, slots, measures), limit=limit)


def run_seeds(cell: Cell, seeds: Sequence[int], requests: int) -> tuple[Tally, Tally]:
    """Run a cell with each seed, `requests` a seed: the loop's and our results, all seeds together."""
    loop, ours = run_cell(cell, seeds[0], requests)
    for seed in seeds[1:]:
        more_loop, more_ours = run_cell(cell, seed, requests)
        loop, ours = loop + more_loop, ours + more_ours
    return loop, ours


def judge(cell: Cell, loop: Tally, ours: Tally) -> list[str]:
    """The violations of D1 and D2 (docs/design/routing.md section 0a), a sentence each."""
    found = []
    floor = loop.served_share - FLOOR_POINTS - _errors(loop.served_share, loop.requests)
    if ours.served_share < floor:
        found.append(
            f"D1 floor: served {ours.served_share:.1%}, the loop {loop.served_share:.1%}, at least {floor:.1%} is due"
        )
    ceiling = max(CEILING_RATIO * loop.calls_per_served, CEILING_CALLS)
    if ours.calls_per_served > ceiling:
        found.append(
            f"D2 ceiling: {ours.calls_per_served:.2f} calls per request served, the loop "
            f"{loop.calls_per_served:.2f}, at most {ceiling:.2f} are allowed"
        )
    if cell.judges_first_choice and min(loop.judged, ours.judged) >= FEWEST_JUDGED:
        due = loop.first_share - FIRST_CHOICE_POINTS - _errors(loop.first_share, loop.judged)
        if ours.first_share < due:
            found.append(
                f"D1 first choice: its share is {ours.first_share:.1%}, in the loop {loop.first_share:.1%}, "
                f"at least {due:.1%} is due"
            )
    return found


def _errors(share: float, number: int) -> float:
    """Two standard errors of a share of `number` requests."""
    return STANDARD_ERRORS * math.sqrt(share * (1.0 - share) / number)


def _arrivals(cell: Cell, seed: int, requests: int) -> list[float]:
    dice = Random(f"{seed}/{cell.rate}/arrivals")  # noqa: S311 - chance to be repeated, not a secret
    arrivals, at = [], 0.0
    for _ in range(requests):
        at += dice.expovariate(cell.rate)
        arrivals.append(at)
    return arrivals


async def _through_loop(cell: Cell, seed: int, arrivals: Sequence[float]) -> Tally:
    providers = _providers(cell, seed)
    naive = Naive(list(providers.items()), deadline=cell.deadline, buffered=cell.recovery == "buffered")

    async def ask(body: Mapping[str, Any]) -> str | None:
        return await naive.ask(body, stream=cell.stream)

    return await _offer(cell, arrivals, ask, providers)


async def _through_router(cell: Cell, seed: int, arrivals: Sequence[float], slots: int, measures: Measures) -> Tally:
    providers = _providers(cell, seed)
    crashes: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: crashes.append(f"{context.get('message')}: {context.get('exception')!r}")
    )
    router = SmartModelRouter.from_config(
        {**cell.config(slots), "resilience": {"measures": asdict(measures)}},
        clock=LoopClock() if measures.monotonic_clock else StepClock(Wall(())),
        seed=seed,
        providers=dict(providers),
    )

    async def ask(body: Mapping[str, Any]) -> str | None:
        try:
            if cell.stream:
                async with router.stream_chat(body, timeout=cell.deadline, recovery=cell.recovery) as chunks:
                    async for _ in chunks:
                        pass
                    report = chunks.report
            else:
                report = (await router.chat(body, timeout=cell.deadline)).report
        except SmartRouterError:
            return None
        return None if report.target is None else report.target.partition("/")[0]

    tally = await _offer(cell, arrivals, ask, providers)
    await router.aclose()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    left = [f"still running: {task.get_coro()}" for task in tasks]
    left += [f"{provider.in_flight} calls of {name}" for name, provider in providers.items() if provider.in_flight]
    if crashes or left:
        raise BrokenRun("; ".join([*crashes, *left]))
    return tally


def _providers(cell: Cell, seed: int) -> dict[str, GridProvider]:
    return {name: GridProvider(cell, name, seed) for name in cell.providers}


async def _offer(cell: Cell, arrivals: Sequence[float], ask: AskOne, providers: Mapping[str, GridProvider]) -> Tally:
    """Send each request at its instant and see all of them end."""
    clock = asyncio.get_running_loop()
    began = clock.time()
    requests = served = judged = first = 0

    async def one(number: int, at: float) -> None:
        nonlocal requests, served, judged, first
        body = {**_BODY, "user": str(number)}
        target = await ask(body)
        in_time = target is not None and clock.time() - began - at <= cell.deadline + _LATE
        if at < cell.judged_from:
            return
        requests += 1
        served += in_time
        if at >= FIRST_CHOICE_FROM:
            judged += 1
            first += in_time and target == cell.providers[0]

    async with asyncio.TaskGroup() as group:
        for number, at in enumerate(arrivals):
            await asyncio.sleep(began + at - clock.time())
            group.create_task(one(number, at))
    return Tally(
        requests=requests,
        served=served,
        calls=sum(provider.sent for provider in providers.values()),
        judged=judged,
        first=first,
        mean_in_flight=max(provider.area for provider in providers.values()) / arrivals[-1],
        max_in_flight=max(provider.most for provider in providers.values()),
    )


_BODY: Mapping[str, Any] = {
    "model": "smart",
    "messages": [{"role": "user", "content": "hello"}],
    "max_tokens": 100,
}


_COLUMNS = ("served", "calls/served", "max in flight", "first choice")
HEADINGS = f"{'cell':42}" + "".join(f"{column:>16}" for column in _COLUMNS) + "  verdict"
"""The heading of the lines of `GridResult`. Each pair is ours / the loop's."""


@dataclass(frozen=True, slots=True)
class GridResult:
    """A cell, what the loop and we made of it, and the violations."""

    cell: Cell
    loop: Tally
    ours: Tally
    violations: Sequence[str]

    def line(self) -> str:
        """Its line of the table: ours / the loop's of each figure."""
        ours, loop = self.ours, self.loop
        pairs = (
            f"{100 * ours.served_share:.1f} / {100 * loop.served_share:.1f}",
            f"{ours.calls_per_served:.2f} / {loop.calls_per_served:.2f}",
            f"{ours.max_in_flight} / {loop.max_in_flight}",
            f"{100 * ours.first_share:.1f} / {100 * loop.first_share:.1f}" if loop.judged else "-",
        )
        verdict = ", ".join(text.partition(":")[0] for text in self.violations) or "ok"
        return f"{self.cell.name:42}" + "".join(f"{pair:>16}" for pair in pairs) + f"  {verdict}"

    def to_dict(self) -> dict[str, Any]:
        """By name, for programs."""
        return {
            "cell": self.cell.name,
            "ours": _figures(self.ours),
            "loop": _figures(self.loop),
            "violations": list(self.violations),
        }


def replay_command(cell: Cell, seeds: Sequence[int], requests: int) -> str:
    """The command that runs a cell again: consecutive `seeds`, `requests` a seed."""
    amount = f"--seed {seeds[0]} --seeds {len(seeds)} --requests {requests}"
    return f"smr simulate grid --cells {cell.name} {amount}"


def run_one(cell: Cell, seeds: Sequence[int], requests: int) -> GridResult:
    """Run and judge a cell: `requests` a seed, all seeds together."""
    loop, ours = run_seeds(cell, seeds, requests)
    return GridResult(cell, loop, ours, judge(cell, loop, ours))


def run_many(
    cells: Sequence[Cell], seeds: Sequence[int], requests: int, jobs: int | None = None
) -> Iterator[GridResult]:
    """Run and judge cells on `jobs` processors (default: all); results in the order of `cells`, as they come."""
    job = partial(run_one, seeds=tuple(seeds), requests=requests)
    if (jobs or os.cpu_count()) == 1 or len(cells) == 1:
        yield from map(job, cells)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(job, cells)


def _figures(tally: Tally) -> dict[str, float | int | None]:
    return {
        "requests": tally.requests,
        "served": round(tally.served_share, 5),
        "calls per served": round(tally.calls_per_served, 4) if tally.served else None,
        "max in flight": tally.max_in_flight,
        "first choice": round(tally.first_share, 5) if tally.judged else None,
    }
