"""`smr simulate`: a timeline, a verdict, and an exit code that a pipeline can use."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from smart_model_router.cli.app import app
from smart_model_router.simulation import SCENARIOS

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


@pytest.mark.parametrize("arguments", [["nowhere"], ["outage", "--off", "gravity"]])
def test_an_unknown_name_is_refused(arguments: list[str]) -> None:
    """A scenario or a measure that does not exist is the caller's mistake, and the known ones are named."""
    assert RUNNER.invoke(app, ["simulate", *arguments]).exit_code == 3
