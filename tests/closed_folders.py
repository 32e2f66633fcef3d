"""A folder that may not be written, also for tests that run as root, which may write anywhere."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65_534
"""The user id of no file's owner on POSIX."""


@contextmanager
def closed_folder(files: Mapping[str, str] | None = None) -> Generator[Path]:
    """A folder with these files that may be read, and not be written; while it is there, root is another user."""
    with tempfile.TemporaryDirectory() as name:
        folder, before = Path(name), os.geteuid()
        for file, text in (files or {}).items():
            (folder / file).write_text(text, encoding="utf-8")
        folder.chmod(0o555)
        try:
            if before == 0:  # the saved id stays, to come back by
                os.setresuid(NOBODY, NOBODY, 0)
            yield folder
        finally:
            if before == 0:
                os.setresuid(0, 0, 0)
            folder.chmod(0o755)
