"""The lane of the examples that need foreign packages: each runs in an environment of `.lanes` with those it names.

An example says what it needs in a block `# /// script` (inline script metadata, which `uv run` and pipx read, too);
examples that name the same packages share an environment. The router itself is ours, below those packages: they stay
out of our own environment, as they bring dozens of others, and pytest plugins among them.
"""

from __future__ import annotations

import json
import os
import re
import site
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from tools.lanes import ROOT, environment

FOLDER = ROOT / "examples" / "frameworks"
OURS = "smart-model-router"
_BLOCK = re.compile(r"^# /// script\n((?:#.*\n)+?)# ///$", re.MULTILINE)


def examples() -> list[Path]:
    """Return the scripts and notebooks, in the order of their names."""
    return sorted(path for path in FOLDER.iterdir() if path.suffix in {".py", ".ipynb"})


def packages(path: Path) -> list[str]:
    """Return the packages that an example needs beside the router. Raises ValueError when it does not say."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        text = "".join(cells[0]["source"]) + "\n"
    found = _BLOCK.search(text)
    wanted = tomllib.loads(re.sub(r"^# ?", "", found[1], flags=re.MULTILINE))["dependencies"] if found else []
    if not any(re.fullmatch(rf"{OURS}(\[[\w,]+\])?", line) for line in wanted):
        raise ValueError(f"{path.name}: a block `# /// script` whose dependencies have {OURS} is needed")
    return [line for line in wanted if not line.startswith(OURS)]


def interpreter(wanted: Sequence[str]) -> Path:
    """Return the Python of the environment with these packages, which sees ours below them."""
    name = re.sub(r"\W+", "-", "-".join(sorted(re.split(r"[^\w-]", line)[0] for line in wanted)))
    python = environment(f"example-{name}", *wanted)
    home = next(python.parents[1].glob("lib/python*/site-packages"))
    lines = [f"import site; site.addsitedir({folder!r})\n" for folder in site.getsitepackages()]
    (home / "main.pth").write_text("".join(lines), encoding="utf-8")
    return python


def command(path: Path) -> list[str]:
    """Return what runs an example: a script with warnings as errors, a notebook cell by cell."""
    python = interpreter(packages(path))
    if path.suffix == ".ipynb":
        return [str(python.with_name("jupyter-execute")), "--timeout=60", str(path)]
    return [str(python), "-W", "error", str(path)]


def main(wanted: Sequence[str]) -> int:
    """Run each, or those with one of these words in their names, without a key; the first exit code that is not 0."""
    keyless = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    for path in examples():
        if wanted and not any(word in path.name for word in wanted):
            continue
        line = command(path)
        print("==", path.relative_to(ROOT), flush=True)
        done = subprocess.run(line, env=keyless, timeout=180, check=False)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
