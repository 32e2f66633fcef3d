"""Many cells of the grid on several processors, and what is printed of each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from smart_model_router.rehearsal.simulation.grid import Cell
from smart_model_router.rehearsal.simulation.grid_run import Tally, judge, run_seeds

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
