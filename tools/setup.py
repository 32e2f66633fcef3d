"""Makes .venv what requirements/ says; does nothing when it already is. Needs the standard library only."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
STAMP = VENV / "set-up-from"
PINS = ("requirements/pip.txt", "requirements/dev.txt")


def fingerprint() -> str:
    """Return what decides the content of .venv: pins, metadata, interpreter, place (it cannot move)."""
    import tomllib  # here and not above, so that an older Python gets as far as being told

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    metadata = json.dumps([project["build-system"], project["project"], project["tool"]["hatch"]])
    parts = [sys.version, str(ROOT), metadata, *((ROOT / name).read_text(encoding="utf-8") for name in PINS)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def run(*command: str) -> None:
    """Run a step from the root of the repository; its failure ends the set-up with its exit code."""
    done = subprocess.run(command, cwd=ROOT, check=False)
    if done.returncode:
        sys.exit(f"set-up: `{' '.join(command)}` ended with exit code {done.returncode}")


def main() -> None:
    """Make .venv anew unless its stamp says that nothing it depends on has changed."""
    if sys.version_info < (3, 11):  # noqa: UP036 - this file is what tells the owner of an older one
        sys.exit(f"set-up: needs Python 3.11 or newer, this is {sys.version.split()[0]} (make PYTHON=...)")
    wanted = fingerprint()
    if STAMP.is_file() and STAMP.read_text() == wanted:
        return
    print("set-up: .venv from requirements/dev.txt", flush=True)
    run(sys.executable, "-m", "venv", "--clear", str(VENV))
    python = str(VENV / "bin" / "python")
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    for name in PINS:  # pip first: the one that Python ships is old
        run(*pip, "--require-hashes", "-r", name)
    run(*pip, "--no-deps", "--no-build-isolation", "-e", ".")
    STAMP.write_text(wanted)
    print("set-up: done", flush=True)


if __name__ == "__main__":
    main()
