"""Environments of the lanes that need other packages than ours: one each, in `.lanes`, made when its list changes."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".lanes"
PINS = ROOT / "requirements" / "dev.txt"
TESTING = "hypothesis pytest pytest-asyncio pytest-httpx2 pytest-randomly pytest-socket pytest-timeout".split()
"""The packages that our tests need beside ours."""


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


def lower_bounds() -> dict[str, str]:
    """The oldest release of each package that pyproject.toml admits, the extras included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    return {
        wanted.name: bound.version
        for wanted in map(Requirement, lines)
        for bound in wanted.specifier
        if bound.operator == ">="
    }


def asked(python: Path, code: str) -> list[str]:
    """The words that a line of Python prints there."""
    return subprocess.run([python, "-c", code], capture_output=True, encoding="utf-8", check=True).stdout.split()


def tested(python: Path, tests: Sequence[str], line: str) -> bool:
    """Run tests there, and print `line` with their counts, and what failed; whether all passed."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "told.xml"
        done = subprocess.run(
            [python, "-m", "pytest", *tests, "-q", "-p", "no:cacheprovider", f"--junitxml={told}"],
            cwd=ROOT,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        suite = ET.parse(told).getroot().find("testsuite") if told.exists() else None  # noqa: S314 - pytest's own
    keys = ("tests", "failures", "errors", "skipped")
    counts = dict.fromkeys(keys, 0) if suite is None else {key: int(suite.get(key, 0)) for key in keys}
    passed = counts["tests"] - counts["failures"] - counts["errors"] - counts["skipped"]
    verdict = "ok" if done.returncode == 0 else "FAILED"
    print(f"{line} {passed:>6} {counts['skipped']:>8}  {verdict}", flush=True)
    if done.returncode:
        print(done.stdout[-8000:], done.stderr[-2000:])
    return done.returncode == 0


def _uv(*command: str) -> None:
    """Ten times as quick as pip where nothing is new; its failure ends the lane."""
    subprocess.run([sys.executable, "-m", "uv", *command, "--quiet", "--no-config"], cwd=ROOT, check=True)


def _pins(but: frozenset[str]) -> list[str]:
    """The lines `name==version` of the lock, without the hashes: they would be demanded of every package."""
    found = re.findall(r"^(\S+)==([^\s;]+)", PINS.read_text(encoding="utf-8"), re.MULTILINE)
    return [f"{name}=={version}" for name, version in found if name not in but]
