"""The lane of the examples that need a foreign package: `.examples`, beside our own environment, then each runs.

The packages stay out of our own environment: they bring dozens of others, and pytest plugins among them.
"""

from __future__ import annotations

import os
import site
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".examples"
PYTHON = HOME / "bin" / "python"
FOLDER = ROOT / "examples" / "frameworks"
PACKAGES = ("langgraph>=1.2,<1.3", "langchain-openai==1.*")


def prepare() -> None:
    """Have the packages in `.examples`."""
    stamp = HOME / "complete"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == "\n".join(PACKAGES):
        return
    venv.create(HOME, with_pip=True, clear=True)
    packages = next(HOME.glob("lib/python*/site-packages"))
    lines = [f"import site; site.addsitedir({folder!r})\n" for folder in site.getsitepackages()]
    (packages / "main.pth").write_text("".join(lines), encoding="utf-8")
    subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    stamp.write_text("\n".join(PACKAGES), encoding="utf-8")


def main() -> int:
    """Run each without a key and with warnings as errors; the first exit code that is not 0."""
    prepare()
    keyless = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    for path in sorted(FOLDER.glob("*.py")):
        print("==", path.relative_to(ROOT), flush=True)
        done = subprocess.run([PYTHON, "-W", "error", path], env=keyless, timeout=120, check=False)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
