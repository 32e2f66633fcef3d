"""The lane of a real browser: sets itself up (Debian's chromium, playwright, the built documentation), then tests.

`--screenshots` takes the pictures of docs/images instead. Playwright lives in `.browser`, which sees everything of
the environment this runs in: nothing is added to that one.
"""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".browser"
PYTHON = HOME / "bin" / "python"
SITE = [sys.executable, "-m", "tools.docs_site"]
PLAYWRIGHT = "playwright==1.*"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def browser() -> str:
    """Return a browser's path, installing Debian's where there is none and we may."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None and shutil.which("apt-get") and os.geteuid() == 0:
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "-q"], check=True, env=quiet)  # noqa: S607
        wanted = ["chromium", "fonts-dejavu-core"]
        subprocess.run(["apt-get", "install", "-y", "-q", "--no-install-recommends", *wanted], check=True, env=quiet)  # noqa: S607
        found = shutil.which("chromium")
    if found is None:
        sys.exit("a browser is needed: apt-get install chromium (or run this as root on Debian)")
    return found


def prepare() -> None:
    """Have playwright in `.browser`."""
    if not PYTHON.exists():
        venv.create(HOME, with_pip=True)
    check = subprocess.run([PYTHON, "-c", "import playwright"], capture_output=True, check=False)
    if check.returncode:
        subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", PLAYWRIGHT], check=True)
    packages = next(HOME.glob("lib/python*/site-packages"))
    lines = [f"import site; site.addsitedir({folder!r})\n" for folder in site.getsitepackages()]
    (packages / "main.pth").write_text("".join(lines), encoding="utf-8")


def main() -> int:
    """Set up, then run the tests (or take the pictures); the exit code."""
    environment = {**os.environ, "SMR_BROWSER": browser(), "SMR_PROGRAM": str(Path(sys.executable).with_name("smr"))}
    prepare()
    if "--screenshots" not in sys.argv[1:] and subprocess.run(SITE, cwd=ROOT, check=False).returncode:
        return 1
    if "--screenshots" in sys.argv[1:]:
        environment["SMR_SCREENSHOTS"] = str(ROOT / "docs" / "images")
    command = [str(PYTHON), "-m", "pytest", "tests/browser", "-p", "no:randomly", "-p", "no:cacheprovider"]
    wanted = ["-k", "screenshots"] if "--screenshots" in sys.argv[1:] else []
    return subprocess.run([*command, *wanted], cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
