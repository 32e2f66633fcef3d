"""The text of a PDF, read by a child process with limits of time, memory, pages and characters."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_POLL_SECONDS = 0.25
_CHILD = Path(__file__).with_name("pdf_child.py")


@dataclass(frozen=True, slots=True)
class PdfLimits:
    """The limits of one reading: seconds, bytes of memory of the child process, pages, and characters."""

    seconds: int = 30
    memory_bytes: int = 1_000_000_000
    pages: int = 2_000
    characters: int = 5_000_000


OF_FOLDERS = PdfLimits()
"""The limits for a file that its owner put into a folder."""


@dataclass(frozen=True, slots=True)
class PdfText:
    """The title (may be empty), the text of each page in order, and why there may be more (empty: it is all)."""

    title: str
    pages: tuple[str, ...]
    ended: str


def can_read_pdf() -> bool:
    """True when the extra `pdf` is installed, and there is an interpreter to run."""
    return bool(sys.executable) and importlib.util.find_spec("pypdfium2") is not None


def read_pdf(raw: bytes, *, within: PdfLimits = OF_FOLDERS, stopped: Callable[[], bool] = lambda: False) -> PdfText:
    """Read a PDF. `stopped` is asked four times a second; when it says True the child is ended.

    Raises OSError when the child cannot be started. Nothing in the file raises.
    """
    limits = map(str, (within.seconds, within.memory_bytes, within.pages, within.characters))
    # -P: a `pypdfium2.py` beside the child's own file is not imported.
    command = [sys.executable, "-P", str(_CHILD), *limits]
    # A file, not a pipe: what `communicate` did not write before a timeout it forgets.
    with tempfile.TemporaryFile() as given:
        given.write(raw)
        given.seek(0)
        with subprocess.Popen(  # noqa: S603 - ours
            command, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as child:
            try:
                written, ended = _written(child, time.monotonic() + within.seconds, stopped)
            finally:
                child.kill()
    return _pdf_text(written, ended or f"its reader ended with {child.returncode}")


def _written(child: subprocess.Popen[bytes], until: float, stopped: Callable[[], bool]) -> tuple[bytes, str]:
    """The bytes that the child wrote, and why it was ended (empty: it ended itself)."""
    ended = ""
    while True:
        try:
            return child.communicate(timeout=_POLL_SECONDS)[0], ended
        except subprocess.TimeoutExpired:
            late = time.monotonic() >= until
            if not ended and (late or stopped()):
                ended = "it takes too long" if late else "indexing was stopped"
                child.kill()


def _pdf_text(written: bytes, otherwise: str) -> PdfText:
    title, pages, ended = "", list[str](), otherwise
    for line in written.splitlines():
        try:
            told = json.loads(line)
        except ValueError:  # the child was ended while it wrote
            break
        title = told.get("title", title)
        ended = told.get("end", ended)
        pages += [told["page"]] if "page" in told else []
    return PdfText(" ".join(title.split()), tuple(pages), ended)
