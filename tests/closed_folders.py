"""A folder that may not be written, also for tests that run as root, which may write anywhere."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65_534
"""The user id of no file's owner on POSIX."""


@contextmanager
def closed_folder() -> Generator[Path]:
    """A folder that may be read and entered, and not be written; while it is there, root is another user."""
    with tempfile.TemporaryDirectory() as name:
        folder, before = Path(name), os.geteuid()
        folder.chmod(0o555)
        try:
            if before == 0:
                os.seteuid(NOBODY)
            yield folder
        finally:
            os.seteuid(before)
            folder.chmod(0o755)
