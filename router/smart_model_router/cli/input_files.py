"""The files that options name: an error names the option, and lines that cannot be used are named on stderr."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from smart_model_router.cli.output import print_line
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_scoring.options import Notes

NOTES_SHOWN = 3
"""Of a file; the others are counted."""


@contextmanager
def opening(option: str, file: Path) -> Generator[None]:
    """Name the option and its file where the file cannot be opened (ConfigurationError)."""
    try:
        yield
    except OSError as error:
        wanted = f"{error.strerror or error}: a file that can be opened is needed"
        raise ConfigurationError(option, str(file), wanted) from None


def read_text(option: str, file: Path) -> str:
    """The text of an option's file; what is not UTF-8 in it is replaced. Raises ConfigurationError."""
    with opening(option, file):
        return file.read_text("utf-8-sig", errors="replace")


def tell_left_out(file: Path, notes: Notes) -> None:
    """Name the lines of a file that were left out, on stderr."""
    for note in notes.kept:
        print_line(f"smr: {file}, {note.subject}: left out, {note.detail}")
    left = sum(notes.counts.values()) - len(notes.kept)
    if left > 0:
        print_line(f"smr: {file}: {left} more lines left out")
