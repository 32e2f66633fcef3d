"""The outputs of a log: a stream of this process, or a file that processes share."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TextIO


class LogFile:
    """A file to which whole lines are appended: processes may share it. Only its owner can read it."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, text: str) -> int:
        """Append the text in one write if the system takes it whole, else in several. Raises OSError."""
        left = text.encode("utf-8", "replace")
        while left:
            left = left[os.write(self._descriptor, left) :]
        return len(text)

    def flush(self) -> None:
        """Do nothing: there is no buffer."""

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def opened(target: str) -> TextIO | LogFile:
    """Open the output of a log: `stderr`, `stdout`, or the path of a file. Raises OSError.

    A process that has no such stream (a service, a program without a console) writes into nothing, as `print` does.
    """
    streams: dict[str, TextIO | None] = {"stderr": sys.stderr, "stdout": sys.stdout}
    if target in streams:
        return streams[target] or LogFile(Path(os.devnull))
    return LogFile(Path(target).expanduser())
