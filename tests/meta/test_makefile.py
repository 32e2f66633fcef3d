"""What `make` offers is there: a phony target without a recipe would do nothing, and call it success."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.meta.repository import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
(PHONY,) = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, flags=re.MULTILINE)
TARGETS = {
    name: bool(recipe) or bool(set(before.split()) - {"setup"})
    for name, before, recipe in re.findall(r"^([a-z-]+):([^#=\n]*).*\n(\t.+)?", MAKEFILE, flags=re.MULTILINE)
}
"""Each with whether it does anything: by a recipe, or by other targets than the set-up."""


@pytest.mark.parametrize("target", PHONY.split())
def test_every_target_has_something_to_do(target: str) -> None:
    """It has a recipe, or other targets that it consists of."""
    assert TARGETS[target]


def test_no_target_can_be_taken_for_a_file() -> None:
    """Every target is phony: a file of that name changes nothing."""
    assert set(TARGETS) == set(PHONY.split())


@pytest.mark.parametrize("failing", [[], ["test-pure"], ["test-units", "test-alone"]], ids=str)
def test_every_lane_of_the_tests_runs_whatever_the_others_do(tmp_path: Path, failing: list[str]) -> None:
    """`make test` runs every lane, names those that failed at its end, and fails if there are any."""
    run = tmp_path / "run"
    run.write_text(
        f'#!/bin/sh\necho "ran $2"\ncase " {" ".join(failing)} " in *" $2 "*) exit 1;; esac\n', encoding="utf-8"
    )
    run.chmod(0o755)
    command = ["make", "test", f"MAKE={run}", "PYTHON=true"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=60, check=False)
    ran = [line.removeprefix("ran ") for line in done.stdout.splitlines() if line.startswith("ran ")]
    assert ran == [name for name in TARGETS if name.startswith("test-")]
    assert (done.returncode == 0) == (not failing)
    assert ("failed: " + " ".join(failing) in done.stdout) == bool(failing)
