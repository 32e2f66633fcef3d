"""Locks that the processes of one machine have in common: of files, which the system unlocks when a process ends."""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from smart_model_router.domain.shared_state import KeptOpen

if TYPE_CHECKING:
    from smart_model_router.domain.shared_state import ClockReading

_LONGEST = 65_536
"""Bytes of a file that are read."""


def folder_of_locks() -> Path:
    """The folder of this user's locks, among files that do not outlast the machine's next start."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    return Path(tempfile.gettempdir()) / f"smart-model-router-{user}"


class FileProbeLocks:
    """The locks of one namespace in `folder`. `here` is the clock of this machine.

    Where there are no locks (the folder belongs to another user, the system has none) every process has them.
    """

    def __init__(self, folder: Path, namespace: str, here: Callable[[], ClockReading]) -> None:
        self._folder = folder
        self._namespace = namespace
        self._here = here
        self._held: dict[str, int] = {}

    def take(self, provider: str) -> bool:
        """Take its lock; False when another process has it."""
        try:
            file = self._open(provider)
        except (ImportError, OSError):
            return True
        if file is None:
            return False
        self._held[provider] = file
        return True

    def left(self, provider: str) -> Mapping[str, KeptOpen]:
        """The open times that are not over yet. What was written by hand, or before the last start, is none."""
        here, found = self._here(), {}
        with suppress(OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            written = json.loads(os.pread(self._held[provider], _LONGEST, 0))
            for name, (until, step) in written["open"].items() if written["boot"] == here.boot else ():
                seconds = float(until) - here.boottime
                if 0 < seconds < math.inf:
                    found[name] = KeptOpen(seconds, max(0, int(step)))
        return found

    def let_go(self, provider: str, left: Mapping[str, KeptOpen]) -> None:
        """Give its lock back, and leave these open times with it."""
        file = self._held.pop(provider, None)
        if file is None:
            return
        import fcntl  # noqa: PLC0415 - it is there: the lock was taken

        here = self._here()
        untils = {name: (here.boottime + told.seconds, told.step) for name, told in left.items()}
        with suppress(OSError):
            os.ftruncate(file, 0)
            os.pwrite(file, json.dumps({"boot": here.boot, "open": untils}).encode(), 0)
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)  # a fork may have the file open, too
        os.close(file)

    def forget(self) -> None:
        """Drop all locks in a forked process: they are its parent's."""
        for file in self._held.values():
            with suppress(OSError):
                os.close(file)
        self._held.clear()

    def _open(self, provider: str) -> int | None:
        """Open its file and lock it; None when another process has the lock. Raises ImportError, OSError."""
        import fcntl  # noqa: PLC0415 - not everywhere

        self._folder.mkdir(mode=0o700, exist_ok=True)
        folder = os.lstat(self._folder)
        if not stat.S_ISDIR(folder.st_mode) or folder.st_uid != os.getuid():
            raise PermissionError(f"not a folder of this user: {self._folder}")
        name = hashlib.sha256(f"{self._namespace} {provider}".encode()).hexdigest()[:16]
        file = os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException as error:
            os.close(file)
            if isinstance(error, BlockingIOError):
                return None
            raise
        return file
