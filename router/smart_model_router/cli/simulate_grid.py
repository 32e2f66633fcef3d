"""`smr simulate grid`: the router beside a plain loop, cell by cell (routing.md section 0a)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router.cli.exit_codes import ExitCode
from smart_model_router.cli.output import print_answer, print_json
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.suggest import did_you_mean
from smart_model_router.rehearsal.simulation.grid import NAMED, select, whole_grid
from smart_model_router.rehearsal.simulation.grid_table import HEADINGS, run_many

if TYPE_CHECKING:
    from smart_model_router.cli.rehearsal_commands import Simulate

NAMED_REQUESTS = 667
"""For each seed, unless `requests` names another number."""
WHOLE_REQUESTS = 2000
"""The same with `--all`."""


def run(asked: Simulate) -> int:
    """Run the cells and print them; 1 on a violation. Raises ConfigurationError when no cell is meant."""
    cells = select(whole_grid() if asked.everything else NAMED, asked.cells)
    if not cells:
        near = did_you_mean(asked.cells or "", [cell.name for cell in whole_grid()])
        raise ConfigurationError("cells", asked.cells, f"no cell has this name or matches it; {near}")
    requests = asked.requests or (WHOLE_REQUESTS if asked.everything else NAMED_REQUESTS)
    results = []
    if not asked.as_json:
        print_answer(HEADINGS + "\n")
    for result in run_many(cells, range(asked.seed, asked.seed + asked.seeds), requests, asked.jobs):
        results.append(result)
        if not asked.as_json:
            print_answer(result.line() + "\n")
    failed = [result for result in results if result.violations]
    if asked.as_json:
        print_json({"requests": requests * asked.seeds, "cells": [result.to_dict() for result in results]})
    else:
        for result in failed:
            print_answer("".join(f"{result.cell.name}: {text}\n" for text in result.violations))
        print_answer(f"{len(results)} cells, {len(failed)} with a violation; each pair is ours / the loop's\n")
    return ExitCode.FAILED if failed else ExitCode.OK
