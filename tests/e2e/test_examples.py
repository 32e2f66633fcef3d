"""The examples run as they stand, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = sorted(path.name for path in EXAMPLES.glob("*.py") if not path.name.endswith("_test.py"))
TESTS = sorted(path.name for path in EXAMPLES.glob("*_test.py"))


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    keyless = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=EXAMPLES,
        env=keyless,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_example_program_runs_without_a_key(name: str) -> None:
    """It ends with exit code 0, says something and warns of nothing."""
    done = _run(name)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()


@pytest.mark.parametrize("name", TESTS)
def test_an_example_of_a_test_passes(name: str) -> None:
    """The chaos test of the documentation passes with the plugin alone."""
    done = _run("-m", "pytest", "-q", "-p", "no:cacheprovider", name)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
