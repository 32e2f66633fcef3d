"""What the operating system knows of this process that Python does not."""

from __future__ import annotations

from pathlib import Path


def sockets() -> int:
    """How many sockets this process has open."""
    found = 0
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found += str(entry.readlink()).startswith("socket:")
        except FileNotFoundError:  # the listing's own descriptor
            continue
    return found
