"""The examples run as they stand, each in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.warm import warm

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = sorted(path.name for path in EXAMPLES.glob("*.py") if not path.name.endswith("_test.py"))
TESTS = sorted(path.name for path in EXAMPLES.glob("*_test.py"))


KEYLESS = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
SECONDS = 120.0
_OF_ROUTER = re.compile(r"^req-\S+ \S+: | (is left alone|is not called|was isolated) ")
"""Lines of the router's log, which Python shows where no other is set up."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_example_program_runs_without_a_key(name: str) -> None:
    """It ends with exit code 0, says something and warns of nothing but its own failures, in the router's words."""
    done = warm("-W", "error").run([name], cwd=EXAMPLES, env=KEYLESS, seconds=SECONDS)
    told = [line for line in done.stderr.splitlines() if not _OF_ROUTER.search(line)]
    assert (done.returncode, told) == (0, [])
    assert done.stdout.strip()


@pytest.mark.parametrize("name", TESTS)
def test_an_example_of_a_test_passes(name: str) -> None:
    """The chaos test of the documentation passes with the plugin alone."""
    command = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", name]
    done = subprocess.run(
        command, cwd=EXAMPLES, env=KEYLESS, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
