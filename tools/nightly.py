"""The nightly lane: a thousand seeds nobody chose, through every scenario. Prints what to run again; 1 on a find."""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from smart_model_router.simulation import SCENARIOS, simulate
from smart_model_router.simulation.combinations import simulate_measures

SEEDS = 1000
NAMED_EVERY = 50
MEASURES_EVERY = 100


def jobs(first: int, seeds: int) -> Iterator[tuple[str, int]]:
    """A swarm for every seed, each named scenario for some, all combinations of the measures for a few."""
    for seed in range(first, first + seeds):
        yield "swarm", seed
        if seed % NAMED_EVERY == 0:
            yield from ((name, seed) for name in SCENARIOS if name != "swarm")
        if seed % MEASURES_EVERY == 0:
            yield "measures", seed


def run(job: tuple[str, int]) -> list[str]:
    """The violations of one run, each with the command that shows it again."""
    name, seed = job
    runs = simulate_measures(SCENARIOS["skirmish"], seed) if name == "measures" else [simulate(SCENARIOS[name], seed)]
    return [f"smr simulate {name} --seed {seed}: {violation}" for each in runs for violation in each.violations[:1]]


def main() -> int:
    """Run them on every processor."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first", type=int, default=random.SystemRandom().randrange(10**9), help="default: any")
    arguments = parser.parse_args()
    began, found, total = time.monotonic(), 0, 0
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for told in pool.map(run, jobs(arguments.first, arguments.seeds), chunksize=8):
            total += 1
            found += bool(told)
            sys.stdout.writelines(f"{line}\n" for line in told)
            sys.stdout.flush()
    seconds = time.monotonic() - began
    print(f"{total} runs from seed {arguments.first} in {seconds:.0f} s, {found} with a violation")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
