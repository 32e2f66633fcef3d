"""Environments of peers: one each, of the newest releases that resolve. Remove .peers/ to take newer ones."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".peers"


def install(name: str, *packages: str) -> Path:
    """The interpreter of an environment that has these packages. It is made when it is not there."""
    place = FOLDER / name
    interpreter = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not (place / "complete").exists():
        print(f"installing {' '.join(packages)}", file=sys.stderr)
        venv.create(place, with_pip=True, clear=True)
        pip = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
        subprocess.run(pip, check=True)  # noqa: S603 - our own list
        (place / "complete").touch()
    return interpreter
