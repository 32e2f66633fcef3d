"""Runs a command whose temporary files are in memory, where there is room for them; they go with it.

What the tests write is flushed to a disk for the sake of a power failure, and each flush is waited for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PLACE = Path("/dev/shm")  # noqa: S108 - a folder of its own there
ROOM = 4 << 30
"""Bytes that have to be free there."""


def has_room(place: Path = PLACE) -> bool:
    """True for a folder that is written to, whose programs may run, and that has room."""
    try:
        found = os.statvfs(place)
    except (AttributeError, OSError):  # Windows has neither
        return False
    runs = not found.f_flag & getattr(os, "ST_NOEXEC", 0)
    return runs and os.access(place, os.W_OK) and found.f_bavail * found.f_frsize >= ROOM


def main(command: list[str]) -> int:
    """Return the exit code of the command."""
    if not has_room():
        return subprocess.run(command, check=False).returncode
    folder = tempfile.mkdtemp(prefix="smr-", dir=PLACE)
    Path(folder).chmod(0o711)  # servers of the tests run as another user, with folders of their own in it
    try:
        return subprocess.run(command, env=os.environ | {"TMPDIR": folder}, check=False).returncode
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
