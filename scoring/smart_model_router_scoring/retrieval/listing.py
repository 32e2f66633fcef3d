"""The files of a folder that can be indexed, and those that cannot be looked at."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from smart_model_router_scoring.options import Notes
from smart_model_router_scoring.retrieval.files import MOST_BYTES, PDF
from smart_model_router_scoring.retrieval.pdf import can_read_pdf


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file: `path` from the root, with slashes on every platform."""

    path: str
    file: Path
    mtime_ns: int
    size: int


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a folder, by path, and the files and folders that cannot be read."""

    files: tuple[SourceFile, ...]
    unreadable: frozenset[str]


def scan(root: Path, notes: Notes) -> Listing:
    """The readable kinds of file below `root`, or `root` itself. Hidden files and folders, and links, are left out.

    (A symbolic link may lead out of the folder, or in a circle.) What cannot be looked at becomes a note.
    """
    found: list[SourceFile] = []
    closed: set[str] = set()
    unread: list[str] = []
    pdfs = can_read_pdf()

    def unreadable(error: OSError) -> None:
        path = Path(error.filename or root).relative_to(root).as_posix()
        closed.add(path)
        notes.add("unreadable", path, error.strerror)

    if root.is_file():
        files: Iterable[Path] = [root]
        root = root.parent
    else:
        files = _files_below(root, unreadable)
    for file in files:
        if file.name.startswith(".") or file.suffix.lower() not in MOST_BYTES or file.is_symlink():
            continue
        try:
            one = _found(root, file, notes)
        except OSError as error:
            unreadable(error)
            continue
        if one is not None and file.suffix.lower() == PDF and not pdfs:
            unread.append(one.path)
        elif one is not None:
            found.append(one)
    if unread:  # they have not vanished
        closed.update(unread)
        more = f", and {len(unread) - 1} more" if len(unread) > 1 else ""
        notes.add("pdf", min(unread) + more, "`pip install 'smart-model-router[pdf]'` lets PDF files be read")
    return Listing(tuple(sorted(found, key=lambda one: one.path)), frozenset(closed))


def _files_below(root: Path, unreadable: Callable[[OSError], None]) -> Iterator[Path]:
    for folder, folders, names in os.walk(root, onerror=unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(folder, name) for name in names)


def _found(root: Path, file: Path, notes: Notes) -> SourceFile | None:
    path = file.relative_to(root).as_posix()
    try:
        path.encode()
    except UnicodeEncodeError:
        notes.add("undecodable_name", ascii(path))
        return None
    stat = file.stat()
    most = MOST_BYTES[file.suffix.lower()]
    if stat.st_size > most:
        notes.add("too_large", path, f"{stat.st_size} bytes; at most {most}")
        return None
    return SourceFile(path, file, stat.st_mtime_ns, stat.st_size)
