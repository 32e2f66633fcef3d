"""A program that tests/warm.py runs sees what it sees when an interpreter of its own runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.warm import warm

PROGRAM = """
import atexit, os, sys, threading
atexit.register(print, "the end")
threading.Thread(target=lambda: (threading.main_thread().join(), print("a thread"))).start()
print(__name__, sys.argv, os.getcwd(), os.environ.get("GIVEN"), os.environ.get("HOME"), sys.stdin.read(), sys.path[:2])
print(sorted(name for name in globals() if not name.startswith("__")))
sys.stdout.flush()
sys.stderr.write("told\\n")
"""
ENDS = ["", "raise SystemExit(3)", "raise SystemExit('why')", "os.kill(os.getpid(), 9)", "print(1 / 0)"]


@pytest.mark.parametrize("end", ENDS)
def test_a_program_cannot_tell_the_difference(tmp_path: Path, end: str) -> None:
    """Name, arguments, folder, environment, streams, names, threads, exit functions and exit code are the same."""
    (tmp_path / "p.py").write_text(f"{PROGRAM}{end}\n", encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if key != "HOME"} | {
        "GIVEN": "1",
        "PYTHONPATH": str(tmp_path),
    }
    arguments = ["p.py", "--one", "two"]
    command = [sys.executable, *arguments]
    by_itself = subprocess.run(
        command, cwd=tmp_path, env=environment, input="in", capture_output=True, text=True, check=False
    )
    done = warm().run(arguments, cwd=tmp_path, env=environment, stdin="in", seconds=60)
    assert (done.returncode, done.stdout) == (by_itself.returncode, by_itself.stdout)
    assert done.stderr.splitlines()[:1] == by_itself.stderr.splitlines()[:1]
    assert done.stderr.splitlines()[-1:] == by_itself.stderr.splitlines()[-1:]


def test_a_program_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    """Its end is an error of the test, as with `subprocess.run`."""
    (tmp_path / "p.py").write_text("import threading\nthreading.Event().wait()\n", encoding="utf-8")
    with pytest.raises(subprocess.TimeoutExpired):
        warm().run(["p.py"], cwd=tmp_path, env=os.environ, seconds=0.1)
