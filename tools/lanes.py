"""Environments of the lanes that need other packages than ours: one each, in `.lanes`, made when its list changes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".lanes"
PINS = ROOT / "requirements" / "dev.txt"


def environment(name: str, *packages: str, without_pins_of: frozenset[str] | None = None) -> Path:
    """The interpreter of an environment with these packages, installed as a user would.

    `without_pins_of`: whatever else they bring is as requirements/dev.txt pins it, but for these; None: no pins.
    """
    place = HOME / name
    interpreter, stamp = place / "bin" / "python", place / "made-of"
    pins = [] if without_pins_of is None else _pins(without_pins_of)
    wanted = "\n".join([sys.version, *packages, *pins])
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return interpreter
    print(f"installing {' '.join(packages)}", file=sys.stderr, flush=True)
    _uv("venv", "--clear", "--python", sys.executable, str(place))
    constraints = place / "constraints.txt"
    constraints.write_text("\n".join(pins), encoding="utf-8")
    _uv("pip", "install", "--python", str(place), "--constraint", str(constraints), *packages)
    stamp.write_text(wanted, encoding="utf-8")
    return interpreter


def _uv(*command: str) -> None:
    """Ten times as quick as pip where nothing is new; its failure ends the lane."""
    subprocess.run([sys.executable, "-m", "uv", *command, "--quiet", "--no-config"], cwd=ROOT, check=True)


def _pins(but: frozenset[str]) -> list[str]:
    """The lines `name==version` of the lock, without the hashes: they would be demanded of every package."""
    found = re.findall(r"^(\S+)==([^\s;]+)", PINS.read_text(encoding="utf-8"), re.MULTILINE)
    return [f"{name}=={version}" for name, version in found if name not in but]
