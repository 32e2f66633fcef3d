"""`smr simulate`: a timeline, a verdict, and an exit code that a pipeline can use."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from smart_model_router.cli.app import app
from smart_model_router.rehearsal.simulation import SCENARIOS, grid_run

RUNNER = CliRunner()


def test_a_run_is_a_timeline_with_a_verdict() -> None:
    """It is told what the weather does, what the breakers do, and that every promise was kept."""
    result = RUNNER.invoke(app, ["simulate", "probes"])
    assert result.exit_code == 0
    assert "a turns Failing" in result.stdout
    assert "closed -> open for" in result.stdout
    assert "every promise kept" in result.stdout.splitlines()[-1]


def test_a_broken_promise_is_exit_code_one() -> None:
    """With the measure off its scenario breaks a promise: the run fails and names it."""
    result = RUNNER.invoke(app, ["simulate", "probes", "--off", "serialized_probes"])
    assert result.exit_code == 1
    assert "VIOLATED I1" in result.stdout


def test_json_names_the_violations() -> None:
    """For programs the verdict is one object."""
    result = RUNNER.invoke(app, ["simulate", "slots", "--off", "cascade_prevention", "--json"])
    told = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [violation["promise"] for violation in told["violations"]] == ["I10"]


def test_without_a_scenario_they_are_listed() -> None:
    """Each name is there with what it is about."""
    result = RUNNER.invoke(app, ["simulate"])
    assert result.exit_code == 0
    assert set(SCENARIOS) <= {line.split()[0] for line in result.stdout.splitlines()}


def test_the_list_names_each_fallback() -> None:
    """A program reads the fallback of each scenario beside its name, a person the second column."""
    told = json.loads(RUNNER.invoke(app, ["simulate", "--json"]).stdout)["scenarios"]
    named = {one["name"]: one["fallback"] for one in told if one["name"] in SCENARIOS}
    lines = RUNNER.invoke(app, ["simulate"]).stdout.splitlines()
    assert named == {name: scenario.fallback for name, scenario in SCENARIOS.items()}
    assert {line.split()[0]: line[line.index("  ") :].strip().split("  ")[0] for line in lines}.items() >= named.items()


@pytest.mark.parametrize("arguments", [["nowhere"], ["outage", "--off", "gravity"]])
def test_an_unknown_name_is_refused(arguments: list[str]) -> None:
    """A scenario or a measure that does not exist is the caller's mistake, and the known ones are named."""
    assert RUNNER.invoke(app, ["simulate", *arguments]).exit_code == 3


# smr simulate grid ------------------------------------------------------------------------------------

CELL = "2x500-10%-whole-20/s-30s"
GRID = ["simulate", "grid", "--cells", CELL, "--requests", "60", "--seeds", "1"]


def test_the_grid_is_a_table() -> None:
    """A heading, a line a cell with each figure as ours / the loop's, and a count of the violations."""
    result = RUNNER.invoke(app, GRID)
    heading, line, count = result.stdout.splitlines()
    assert result.exit_code == 0
    assert heading.split() == "cell served calls/served max in flight first choice verdict".split()
    assert line.startswith(CELL)
    assert line.endswith("ok")
    assert line.count(" / ") == 3
    assert "1 cells, 0 with a violation" in count


def test_the_grid_as_json_has_the_figures_of_both() -> None:
    """One object: how many requests a cell had, and of each cell both results and the violations."""
    told = json.loads(RUNNER.invoke(app, [*GRID, "--json"]).stdout)
    (cell,) = told["cells"]
    assert told["requests"] == 60
    assert cell["cell"] == CELL
    assert cell["violations"] == []
    for side in ("ours", "loop"):
        assert list(cell[side]) == ["requests", "served", "calls per served", "max in flight", "first choice"]
        assert cell[side]["requests"] == 60


def test_a_cell_that_breaks_a_rule_is_exit_code_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule is in the cell's line, and below the table stands what is due."""
    monkeypatch.setattr(grid_run, "FLOOR_POINTS", -1.0)
    result = RUNNER.invoke(app, GRID)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[1].endswith("D1 floor")
    assert f"{CELL}: D1 floor: served 100.0%, the loop 100.0%, at least 200.0% is due" in result.stdout
    assert "1 cells, 1 with a violation" in result.stdout.splitlines()[-1]


def test_an_unknown_cell_is_refused() -> None:
    """The nearest name is told, also of a cell that is not among the 60."""
    result = RUNNER.invoke(app, ["simulate", "grid", "--cells", "2x502-20-whole-1/s-30s"])
    assert result.exit_code == 3
    assert "did you mean '2x502-20%-whole-1/s-30s'?" in result.stderr


def test_a_cell_of_the_whole_grid_is_found_by_its_name() -> None:
    """`--all` is needed for a pattern, not for a name: the command of a nightly find works as printed."""
    result = RUNNER.invoke(app, ["simulate", "grid", "--cells", "2x502-20%-whole-1/s-30s", "--requests", "20"])
    assert result.exit_code == 0
    assert "1 cells" in result.stdout


@pytest.mark.parametrize(
    "option", [["--cells", "x"], ["--requests", "5"], ["--seeds", "2"], ["--jobs", "1"], ["--all"]]
)
def test_an_option_of_the_grid_is_refused_elsewhere(option: list[str]) -> None:
    """It would change nothing of another scenario."""
    assert RUNNER.invoke(app, ["simulate", "outage", *option]).exit_code == 3
