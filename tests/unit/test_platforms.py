"""No module needs at its import what only POSIX has: on Windows a feature may be missing, not the package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.meta.repository import modules

LACKS = {
    "modules": ["fcntl", "grp", "pty", "pwd", "resource", "termios", "uvloop"],
    "os": ["fork", "geteuid", "getuid", "killpg", "register_at_fork", "sched_getaffinity", "setsid"],
    "signal": ["SIGHUP", "SIGKILL", "SIGQUIT", "SIGUSR1"],
    "socket": ["AF_UNIX"],
    "time": ["clock_gettime", "CLOCK_BOOTTIME", "CLOCK_MONOTONIC"],
}
"""Modules and functions that Windows lacks and this project uses, or could."""

# Whatever ours import of others is there before it is taken away: the others have their own ways on Windows.
PROGRAM = """
import importlib, json, os, signal, socket, sys, time
names, lacks = json.loads(sys.argv[1])
for name in names:
    importlib.import_module(name)
for name in [name for name in sys.modules if name.partition(".")[0] in {part.partition(".")[0] for part in names}]:
    del sys.modules[name]
for name in lacks.pop("modules"):
    sys.modules[name] = None
for module, attributes in lacks.items():
    for attribute in attributes:
        vars(sys.modules[module]).pop(attribute, None)
failed = {}
for name in names:
    try:
        importlib.import_module(name)
    except Exception as error:
        failed[name] = repr(error)
print(json.dumps(failed))
"""


def failing(names: list[str], folder: str = "") -> dict[str, str]:
    """Return the error of each module that cannot be imported where POSIX's own things are missing."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([names, LACKS])],
        env={**os.environ, "PYTHONPATH": folder},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_every_module_is_imported_without_what_only_posix_has() -> None:
    """Neither a module of POSIX, nor its signals, nor fork is needed to import any of ours."""
    assert failing([name for name, _ in modules() if not name.endswith("__main__")]) == {}


def test_a_module_that_needs_posix_is_found(tmp_path: Path) -> None:
    """The program above notices each kind."""
    for name, text in {"a": "import fcntl", "b": "import signal; signal.SIGHUP", "c": "import os"}.items():
        (tmp_path / f"posix_{name}.py").write_text(text, encoding="utf-8")
    assert set(failing([f"posix_{name}" for name in "abc"], str(tmp_path))) == {"posix_a", "posix_b"}
