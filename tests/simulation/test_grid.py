"""The grid of D1 and D2 (routing.md 0a): the named cells, each through the loop and through the router.

A cell that fails prints its line of the table and the command that runs it again.
"""

from __future__ import annotations

import pytest

from smart_model_router.cli.simulate import NAMED_REQUESTS
from smart_model_router.core.flow_config import Measures
from smart_model_router.rehearsal.simulation.grid import NAMED, Cell, select
from smart_model_router.rehearsal.simulation.grid_run import (
    FEWEST_JUDGED,
    HEADINGS,
    GridResult,
    replay_command,
    run_cell,
    run_one,
)
from smart_model_router.rehearsal.simulation.run import NAMES, combinations

SEEDS = range(3)
LONG_REQUESTS = 2000
"""Requests of one seed that last for 100 s at 20 requests a second: 40 s of them are judged for the first choice."""
AT_20 = [cell for cell in NAMED if cell.rate == 20 and cell.judges_first_choice and len(cell.shares) > 1]
SAMPLE = (
    *{cell.kind: cell for cell in NAMED}.values(),
    *select(NAMED, "1x500-30%-whole-5/s-30s"),
    *select(NAMED, "2xcorrelated-bursts-5/s-30s"),
    *select(NAMED, "1x429-quota-55-in-10s-5/s-30s"),
)
"""Three providers with each kind of failure, a lone one, an outage of both of two, and a quota."""


def name_of(cell: Cell) -> str:
    """The cell's name, as the id of its test."""
    return cell.name


def told(result: GridResult, seeds: range, requests: int) -> str:
    """The table's line, the violations, and the command that shows them again."""
    lines = (HEADINGS, result.line(), *result.violations, replay_command(result.cell, seeds, requests))
    return "\n" + "\n".join(lines)


@pytest.mark.parametrize("cell", NAMED, ids=name_of)
def test_a_named_cell_is_served_no_worse_than_by_the_loop(cell: Cell) -> None:
    """D1's floor, D2's ceiling and, where D1 judges it, the first choice's share: 2,001 requests over three seeds."""
    result = run_one(cell, SEEDS, NAMED_REQUESTS)
    assert not result.violations, told(result, SEEDS, NAMED_REQUESTS)


@pytest.mark.parametrize("cell", AT_20, ids=name_of)
def test_the_first_choice_keeps_its_share_at_20_requests_a_second(cell: Cell) -> None:
    """667 requests a seed end before the second minute: one seed of 2,000 judges the share, and all other rules."""
    seeds = range(1)
    result = run_one(cell, seeds, LONG_REQUESTS)
    assert result.loop.judged >= FEWEST_JUDGED
    assert not result.violations, told(result, seeds, LONG_REQUESTS)


@pytest.mark.parametrize(
    "measures", list(combinations()), ids=lambda one: "".join("01"[getattr(one, n)] for n in NAMES)
)
def test_no_combination_of_measures_crashes_hangs_or_leaks(measures: Measures) -> None:
    """Each of the 32 combinations plays half of a sample of the cells: every request ends, no task or call is left.

    A cell meets each measure on and off, and each pair of measures in every way.
    """
    for cell in SAMPLE[sum(getattr(measures, name) for name in NAMES) % 2 :: 2]:
        loop, ours = run_cell(cell, 0, 30, measures)
        assert ours.requests == loop.requests == 30
