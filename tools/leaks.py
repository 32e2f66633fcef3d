"""Finds what must never be in the repository: keys, a machine's paths, the hosts of package registries."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MADE_BY_TOOLS = frozenset(
    (".git", ".hypothesis", ".lanes", ".mutants", ".peers", "__pycache__", "build", "dist", "htmlcov", "node_modules")
)

# Character classes keep the patterns from finding themselves.
PATTERNS: dict[str, re.Pattern[str]] = {
    "registry host": re.compile(
        r"py[p]i\.(?:org|python\.org)|python[h]osted\.org|registry\.(?:np[m]js|yarn[p]kg)\."
        r"|deb\.[d]ebian\.org|proxy\.golan[g]\.org"
    ),
    "machine path": re.compile(r"(?<![\w.~}])/(?:[r]oot|[w]ork|(?:[h]ome|[U]sers)/\w+|[t]mp/[a-z]+)/[\w.]"),
    "key": re.compile(
        r"\bsk-[\w-]{20,}|\bAKI[A][0-9A-Z]{16}\b|\bAIz[a][\w-]{35}|\bgh[opsru]_\w{36}|\bgsk_\w{20,}|\bhf_\w{30,}"
        r"|\bxai-\w{20,}|\bxox[abp]-[\w-]{10,}|-----BEGIN [A-Z ]*PRIVATE [K]EY-----"
    ),
}


def leaks_in(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield (line number, what it is, the line) for each line of `text` that should not be published."""
    for number, line in enumerate(text.splitlines(), start=1):
        for what, pattern in PATTERNS.items():
            if pattern.search(line):
                yield number, what, line.strip()


def files() -> Iterator[Path]:
    """Yield the files a commit could hold: everything but what tools make (so it works without git, too)."""
    for folder, folders, names in os.walk(ROOT):
        here = Path(folder)
        folders[:] = sorted(name for name in folders if not _made(here / name))  # thousands of files, not looked into
        yield from (here / name for name in sorted(names) if not _made(here / name) and (here / name).is_file())


def _made(path: Path) -> bool:
    """Return whether tools made it; a folder with a pyvenv.cfg is a virtual environment."""
    known = path.name in MADE_BY_TOOLS or path.name.endswith(("_cache", ".egg-info"))
    return known or path.name.startswith(".coverage") or (path / "pyvenv.cfg").exists()


def main() -> int:
    """Print each finding as file:line; return 1 if there is any."""
    found = 0
    for path in files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # binary: an image, a database of a test
        for number, what, line in leaks_in(text):
            found = 1
            print(f"{path.relative_to(ROOT)}:{number}: {what}: {line[:110]}")
    return found


if __name__ == "__main__":
    sys.exit(main())
