"""Environments of peers: one each, of the newest releases that resolve. Remove .peers/ to take newer ones."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".peers"


def interpreter(name: str) -> Path:
    """The interpreter of an environment, which may not be made yet."""
    return FOLDER / name / ("Scripts" if os.name == "nt" else "bin") / "python"


def install(name: str, *packages: str) -> Path:
    """The interpreter of an environment that has these packages. It is made when it is not there."""
    place, program, wanted = FOLDER / name, interpreter(name), " ".join(packages)
    made = place / "complete"
    if not made.exists() or made.read_text("utf-8") != wanted:
        print(f"installing {wanted}", file=sys.stderr)
        venv.create(place, with_pip=True, clear=True)
        pip = [str(program), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
        subprocess.run(pip, check=True)  # noqa: S603 - our own list
        made.write_text(wanted, "utf-8")
    return program
