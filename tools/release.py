"""The lane of a release: builds the sdist and the wheel, checks them as a user meets them, and writes the notes.

The wheel is installed with its extras into an environment of its own, for each Python that is named (default: this
one), where `smr --help`, `smr demo`, and `smr ask` with a provider that fails have to work.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

from tools.lanes import HOME, ROOT, environment

DIST = ROOT / "dist"
NOTES = DIST / "RELEASE_NOTES.md"
EXTRAS = "cli,gateway,local"
UNRELEASED = "Unreleased"
_HEADING = re.compile(r"^## \[([^\]]+)\]", re.MULTILINE)
FAILOVER = """\
version: 1
providers:
  down: {kind: openai_compatible, base_url: "http://127.0.0.1:9/v1"}
  up: {kind: scripted}
models:
  smart: {tiers: [{targets: [down/big, up/big]}], last_resort: []}
"""
"""Nothing listens on the first provider's port."""


def change_notes(changelog: str, release: str) -> str:
    """Return the section of `release` in the changelog or, where it has none yet, the unreleased changes.

    Raises ValueError when there is neither.
    """
    sections = _sections(changelog)
    for name in (release, UNRELEASED):
        if name in sections:
            return sections[name]
    raise ValueError(f"CHANGELOG.md has neither [{release}] nor [{UNRELEASED}]")


def newest_release(changelog: str) -> str | None:
    """Return the newest release that has a section; None before the first."""
    return next((name for name in _sections(changelog) if name != UNRELEASED), None)


def upgrade_notes(page: str, release: str) -> str:
    """Return what docs/upgrading.md says about the minor version of `release`.

    Raises ValueError when the page does not name it: a release says which defaults changed, or that none did.
    """
    minor = ".".join(release.split(".")[:2])
    found = re.search(rf"^## To {re.escape(minor)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(f"docs/upgrading.md has no section `## To {minor}`")
    return found[1].strip()


def _sections(changelog: str) -> dict[str, str]:
    """Return each section by the name in its heading, without the rest of that line."""
    _, *parts = _HEADING.split(changelog)
    bodies = (part.partition("\n")[2].strip() for part in parts[1::2])
    return dict(zip(parts[::2], bodies, strict=True))


def notes(release: str) -> str:
    """Return the release notes: the defaults that changed, then the changes, with links that work anywhere."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pages = f"{project['urls']['Source']}/blob/v{release}"
    upgrade = upgrade_notes((ROOT / "docs" / "upgrading.md").read_text(encoding="utf-8"), release)
    changes = change_notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), release)
    return (
        f"# smart-model-router {release}\n\n## Defaults that changed\n\n{_absolute(upgrade, f'{pages}/docs')}\n\n"
        f"## Changes\n\n{_absolute(changes, pages)}\n"
    )


def _absolute(text: str, base: str) -> str:
    return re.sub(r"\]\((?!https?:)([^)\s]+)\)", rf"]({base}/\1)", text)


def build() -> Path:
    """Return the wheel, built from the sdist as an installer without wheels would, and checked by twine."""
    shutil.rmtree(DIST, ignore_errors=True)
    _run([sys.executable, "-m", "uv", "build", "--no-config", "--quiet", "--out-dir", str(DIST)])
    twine = environment("release", "twine>=6")
    files = sorted(str(path) for path in DIST.iterdir() if path.suffix in {".gz", ".whl"})
    _run([str(twine), "-m", "twine", "check", "--strict", *files])
    [wheel] = DIST.glob("*.whl")
    return wheel


def rehearse(wheel: Path, python: str) -> None:
    """Install the wheel for `python` as a user would, and use it away from the repository."""
    place = HOME / f"wheel-{Path(python).name}"
    uv = [sys.executable, "-m", "uv"]
    _run([*uv, "venv", "--quiet", "--no-config", "--clear", "--python", python, str(place)])
    wanted = f"smart-model-router[{EXTRAS}] @ {wheel.as_uri()}"
    _run([*uv, "pip", "install", "--quiet", "--no-config", "--python", str(place), "pip", wanted])
    smr = str(place / "bin" / "smr")
    keyless = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    keyless["SMART_ROUTER_DATA_DIR"] = str(HOME / "wheel-data")  # the model of this machine's user is not ours to use
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "smart-router.yaml").write_text(FAILOVER, encoding="utf-8")

        def smr_does(*arguments: str) -> str:
            return _run([smr, *arguments], cwd=folder, env=keyless)

        version = wheel.name.split("-")[1]
        _expect(smr_does("--version"), f"smr {version}")
        _expect(smr_does("--help"), "serve")
        _expect(smr_does("ask", "--explain", "Why is the sky blue?"), "up/big")
        smr_does("local", "install")
        smr_does("demo")
    print(f"the wheel works on {_run([str(place / 'bin' / 'python'), '-V']).strip()}", flush=True)


def _expect(output: str, part: str) -> None:
    if part not in output:
        sys.exit(f"release: {part!r} was expected in the output:\n{output}")


def _run(command: Sequence[str], cwd: str | Path = ROOT, env: dict[str, str] | None = None) -> str:
    """Return what a step prints; its failure ends the lane and shows all of it."""
    print("==", " ".join(command[-6:]), file=sys.stderr, flush=True)
    done = subprocess.run(
        command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\nrelease: `{' '.join(command)}` ended with exit code {done.returncode}")
    return done.stdout


def main(arguments: Sequence[str]) -> None:
    """Do all of it for the Pythons that are named (names, versions or paths); the notes are dist/RELEASE_NOTES.md."""
    parser = argparse.ArgumentParser(prog="make release", description=__doc__)
    parser.add_argument("pythons", nargs="*", default=[sys.executable], help="interpreters to try the wheel on")
    pythons: list[str] = parser.parse_args(arguments).pythons
    wheel = build()
    release = wheel.name.split("-")[1]
    for python in pythons:
        rehearse(wheel, python)
    NOTES.write_text(notes(release), encoding="utf-8")
    print(f"{wheel.relative_to(ROOT)} and {NOTES.relative_to(ROOT)} are ready", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
