"""`smr simulate grid`: the router beside a plain loop, cell by cell (routing.md section 0a)."""

from __future__ import annotations

from dataclasses import dataclass

from smart_model_router.cli.ending import ExitCode
from smart_model_router.cli.printing import print_answer, print_json
from smart_model_router.errors import ConfigurationError
from smart_model_router.simulation.grid import NAMED, select, whole_grid
from smart_model_router.simulation.grid_table import HEADINGS, run_many
from smart_model_router.suggest import did_you_mean

NAMED_REQUESTS = 667
WHOLE_REQUESTS = 2000


@dataclass(frozen=True, kw_only=True)
class GridOptions:
    """Which cells, and how much of each. `requests` is per seed; None: 667 for the named cells, 2,000 for all."""

    cells: str | None = None
    requests: int | None = None
    seeds: int = 3
    jobs: int | None = None
    everything: bool = False


def run(options: GridOptions, *, seed: int, as_json: bool) -> int:
    """Run the cells and print them; 1 on a violation. Raises ConfigurationError when no cell is meant."""
    cells = select(whole_grid() if options.everything else NAMED, options.cells)
    if not cells:
        near = did_you_mean(options.cells or "", [cell.name for cell in whole_grid()])
        raise ConfigurationError("cells", options.cells, f"no cell has this name or matches it; {near}")
    requests = options.requests or (WHOLE_REQUESTS if options.everything else NAMED_REQUESTS)
    results = []
    if not as_json:
        print_answer(HEADINGS + "\n")
    for result in run_many(cells, range(seed, seed + options.seeds), requests, options.jobs):
        results.append(result)
        if not as_json:
            print_answer(result.line() + "\n")
    failed = [result for result in results if result.violations]
    if as_json:
        print_json({"requests": requests * options.seeds, "cells": [result.to_dict() for result in results]})
    else:
        for result in failed:
            print_answer("".join(f"{result.cell.name}: {text}\n" for text in result.violations))
        print_answer(f"{len(results)} cells, {len(failed)} with a violation; each pair is ours / the loop's\n")
    return ExitCode.FAILED if failed else ExitCode.OK
