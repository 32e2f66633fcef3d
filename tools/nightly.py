"""The nightly lane: a thousand seeds at random, then the whole grid. Prints what to run again; 1 on a find.

A seed plays a swarm under all checkers, a cell of the grid (D1, D2), a storm (D5), and machines. Some seeds play more.
Before the grid, 100,000 seeds of streams that lie (docs/design/wires.md section 6) are judged.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import islice

from smart_model_router.rehearsal.simulation import SCENARIOS, simulate
from smart_model_router.rehearsal.simulation.grid import Cell, whole_grid
from smart_model_router.rehearsal.simulation.grid_run import replay_command, run_one
from smart_model_router.rehearsal.simulation.run import simulate_measures
from smart_model_router.rehearsal.simulation.scenarios.machines import draw_machines
from smart_model_router.rehearsal.simulation.simulated_machines import simulate_machines
from tests.lies.judging import violations
from tests.simulation.drawn_storms import draw_storm

SEEDS = 1000
DRAWN = ("swarm", "cell", "storm", "machines")
NAMED_EVERY = 50
MEASURES_EVERY = 100
LONG_EVERY = 10
"""Of the runs of 20 machines most are short: as dense weather, in a fifth of the time."""
SHORT_STORM, SHORT_CALM = 9.0, 5.0
"""Seconds."""
DRAWN_REQUESTS = 667
STREAMS = 100_000
STREAMS_EACH = 500
"""Streams that one job judges."""
GRID_MINUTES = 180.0
GRID_SEEDS = range(3)
GRID_REQUESTS = 2000
"""Requests a seed of a cell of the whole grid, with each of `GRID_SEEDS`."""
BATCH = 16
"""Jobs that are begun together: how closely the time budget is kept."""

Job = tuple[str, int]
"""A key of `PLAYED` or a scenario, and its seed; for `grid` the number of the cell."""


def jobs(first: int, seeds: int, only: str | None = None) -> Iterator[Job]:
    """For every seed a job of each of DRAWN, or of `only` one; for some each named scenario and all measures."""
    for seed in range(first, first + seeds):
        yield from ((name, seed) for name in DRAWN if only in (None, name))
        if only is not None:
            continue
        if seed % NAMED_EVERY == 0:
            yield from ((name, seed) for name in SCENARIOS if name != "swarm")
        if seed % MEASURES_EVERY == 0:
            yield "measures", seed


def run(job: Job) -> list[str]:
    """The violations of one run, each with the command that shows it again."""
    name, seed = job
    command, play = PLAYED[name](seed) if name in PLAYED else _scenario(name, seed)
    try:
        return [f"{command}: {violation}" for violation in play()]
    except Exception as error:  # noqa: BLE001 - a hang, a leak or a bug: the command shows it, and the lane goes on
        return [f"{command}: {type(error).__name__}: {error}"]


Played = tuple[str, Callable[[], Iterable[object]]]
"""The command that shows a run again, and the run, which returns its violations."""


def _scenario(name: str, seed: int) -> Played:
    def play() -> Iterable[object]:
        # Whether a run meets every state it is about is a question to the seeds that were chosen, not to drawn ones.
        return [one for one in simulate(SCENARIOS[name], seed).violations if one.promise != "states"][:1]

    return f"smr simulate {name} --seed {seed}", play


def _measures(seed: int) -> Played:
    histories = simulate_measures(SCENARIOS["skirmish"], seed)
    return f"smr simulate measures --seed {seed}", lambda: [one for each in histories for one in each.violations[:1]]


def _drawn_cell(seed: int) -> Played:
    dice = random.Random(f"cell/{seed}")  # noqa: S311 - chance to be repeated, not a secret
    return _cell(dice.choice(whole_grid()), range(seed, seed + 1), DRAWN_REQUESTS)


def _grid_cell(number: int) -> Played:
    return _cell(whole_grid()[number], GRID_SEEDS, GRID_REQUESTS)


def _cell(cell: Cell, seeds: range, requests: int) -> Played:
    return replay_command(cell, seeds, requests), lambda: run_one(cell, seeds, requests).violations


def _storm(seed: int) -> Played:
    return _again("storm", seed), draw_storm(seed).violations


def _machines(seed: int) -> Played:
    if seed % LONG_EVERY == 0:
        return f"smr simulate machines --seed {seed}", lambda: simulate_machines(seed).violations[:1]
    setting = draw_machines(seed, storm=SHORT_STORM, calm=SHORT_CALM)
    return _again("machines", seed), lambda: simulate_machines(seed, setting).violations[:1]


def _again(name: str, seed: int) -> str:
    return f"python -m tools.nightly --only {name} --first {seed} --seeds 1"


def _streams(first: int) -> Played:
    def play() -> Iterable[object]:
        return [f"seed {seed}: {one}" for seed in range(first, first + STREAMS_EACH) for one in violations(seed)]

    return f"python -m tools.nightly --streams {STREAMS_EACH} --first {first} --seeds 0 --grid-minutes 0", play


PLAYED: Mapping[str, Callable[[int], Played]] = {
    "measures": _measures,
    "cell": _drawn_cell,
    "storm": _storm,
    "machines": _machines,
    "streams": _streams,
    "grid": _grid_cell,
}


def play(todo: Iterator[Job], *, minutes: float = float("inf")) -> tuple[int, int]:
    """Run jobs on every processor and print violations: the number of runs, and of those with a violation."""
    ends_at, total, found = time.monotonic() + 60.0 * minutes, 0, 0
    with ProcessPoolExecutor(os.cpu_count(), initializer=logging.disable) as pool:
        while time.monotonic() < ends_at and (batch := list(islice(todo, BATCH))):
            for told in pool.map(run, batch):
                total += 1
                found += bool(told)
                sys.stdout.writelines(f"{line}\n" for line in told)
                sys.stdout.flush()
    return total, found


def main() -> int:
    """Play the seeds, then the cells in random order until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--streams", type=int, default=STREAMS, help="how many streams that lie are judged")
    parser.add_argument("--first", type=int, default=random.SystemRandom().randrange(10**9), help="default: any")
    parser.add_argument("--grid-minutes", type=float, default=GRID_MINUTES, help="0: without the whole grid")
    parser.add_argument("--only", choices=DRAWN, help="only these runs of each seed, and nothing else")
    arguments = parser.parse_args()
    began, first = time.monotonic(), arguments.first
    total, found = play(jobs(first, arguments.seeds, arguments.only))
    print(f"{total} runs from seed {first} in {time.monotonic() - began:.0f} s, {found} with a violation")
    if arguments.only is not None:
        return int(found > 0)
    judged, lying = play(("streams", first + at) for at in range(0, arguments.streams, STREAMS_EACH))
    print(f"{judged * STREAMS_EACH} streams that lie from seed {first}, {lying} of {judged} jobs with a violation")
    cells = len(whole_grid())
    order = random.Random(first).sample(range(cells), cells)  # noqa: S311 - as above
    played, ill = play((("grid", number) for number in order), minutes=arguments.grid_minutes)
    print(f"{played} of {cells} cells in at most {arguments.grid_minutes:g} minutes, {ill} with a violation")
    return int(found + lying + ill > 0)


if __name__ == "__main__":
    sys.exit(main())
