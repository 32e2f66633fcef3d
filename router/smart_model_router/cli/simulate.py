"""`smr simulate`: a scenario or the grid against the real router in virtual time, with a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router.cli.output import ExitCode, print_answer, print_json, print_listed
from smart_model_router.core.flow_config import Measures
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.suggest import did_you_mean
from smart_model_router.rehearsal.simulation import SCENARIOS, History, simulate
from smart_model_router.rehearsal.simulation.grid import NAMED, select, whole_grid
from smart_model_router.rehearsal.simulation.grid_run import HEADINGS, run_many
from smart_model_router.rehearsal.simulation.run import NAMES, simulate_measures, timeline, verdict
from smart_model_router.rehearsal.simulation.simulated_fleet import Report, simulate_fleet
from smart_model_router.rehearsal.simulation.simulated_machines import MachinesReport, simulate_machines

if TYPE_CHECKING:
    from smart_model_router.cli.commands import Simulate

NAMED_REQUESTS = 667
"""For each seed, unless `requests` names another number."""
WHOLE_REQUESTS = 2000
"""The same with `--all`."""


def _run_grid(asked: Simulate) -> int:
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


_MEASURES = "measures"
_FLEET = "fleet"
_GRID = "grid"
_MACHINES = "machines"
_MORE = {
    _MEASURES: "skirmish under all 32 combinations of the measures: nothing crashes, hangs or leaks.",
    _FLEET: "200 routers and 50 targets for an hour; takes minutes.",
    _MACHINES: "20 machines share state on a server, whatever becomes of it, of the network and of the machines.",
    _GRID: "60 ill fleets beside a plain loop without the router; --all: the whole grid, for hours.",
}


def run(asked: Simulate) -> int:
    """Simulate; 1 when a promise was broken. Without a scenario: list them. Raises ConfigurationError."""
    scenario, seed, off, as_json = asked.scenario, asked.seed, asked.off or (), asked.as_json
    for name in off:
        if name not in NAMES:
            raise ConfigurationError("off", name, did_you_mean(name, NAMES))
    if scenario is None:
        listed = [{"name": one.name, "fallback": one.fallback, "about": one.about} for one in SCENARIOS.values()]
        more = [{"name": name, "fallback": "-", "about": about} for name, about in _MORE.items()]
        print_listed([*listed, *more], as_json=as_json)
        return ExitCode.OK
    if off and scenario in _MORE:
        raise ConfigurationError("off", off[0], f"a scenario other than {scenario} is needed: it switches by itself")
    if scenario == _GRID:
        return _run_grid(asked)
    if asked.narrows_grid:
        raise ConfigurationError("scenario", scenario, "only grid takes --cells, --requests, --seeds, --jobs and --all")
    if scenario == _MACHINES:
        return _machines(simulate_machines(seed), as_json)
    if scenario == _FLEET:
        return _fleet(simulate_fleet(seed), as_json)
    if scenario == _MEASURES:
        return max(_tell(history, as_json, brief=True) for history in simulate_measures(SCENARIOS["skirmish"], seed))
    if scenario not in SCENARIOS:
        raise ConfigurationError("scenario", scenario, did_you_mean(scenario, (*SCENARIOS, *_MORE)))
    measures = Measures(**dict.fromkeys(off, False))
    return _tell(simulate(SCENARIOS[scenario], seed, measures), as_json)


def _tell(history: History, as_json: bool, *, brief: bool = False) -> int:
    code = ExitCode.FAILED if history.violations else ExitCode.OK
    if as_json:
        told = [{"promise": v.promise, "at": v.at, "text": v.text} for v in history.violations]
        print_json(
            {
                "scenario": history.scenario,
                "seed": history.seed,
                "requests": len(history.asked),
                "log": history.digest,
                "violations": told,
            }
        )
        return code
    if not brief:
        for line in timeline(history):
            print_answer(line + "\n")
    for line in verdict(history):
        print_answer(line + "\n")
    return code


def _machines(report: MachinesReport, as_json: bool) -> int:
    if as_json:
        print_json(report.to_dict())
    else:
        print_answer("".join(f"{line}\n" for line in report.lines()))
    return ExitCode.FAILED if report.violations else ExitCode.OK


def _fleet(report: Report, as_json: bool) -> int:
    if as_json:
        print_json(report.to_dict())
    else:
        print_answer("".join(f"{name:34} {value}\n" for name, value in report.to_dict().items()))
    return ExitCode.OK
