"""Which files a folder has for us."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from smart_model_router_scoring.notes import Notes
from smart_model_router_scoring.retrieval.reading import READERS

MOST_BYTES = 5_000_000
"""A file above it is data, not documentation."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file: `path` from the root, with slashes on every platform."""

    path: str
    file: Path
    mtime_ns: int
    size: int


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a folder, by path, and the files and folders that cannot be read."""

    files: tuple[Found, ...]
    unreadable: frozenset[str]


def scan(root: Path, notes: Notes) -> Listing:
    """The readable kinds of file below `root`. Hidden files and folders, and symbolic links, are left out.

    (A symbolic link may lead out of the folder, or in a circle.) What cannot be looked at becomes a note.
    """
    found: list[Found] = []
    closed: set[str] = set()

    def unreadable(error: OSError) -> None:
        path = Path(error.filename or root).relative_to(root).as_posix()
        closed.add(path)
        notes.add("unreadable", path, error.strerror)

    for folder, folders, names in os.walk(root, onerror=unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            file = Path(folder, name)
            if name.startswith(".") or file.suffix.lower() not in READERS or file.is_symlink():
                continue
            try:
                one = _found(root, file, notes)
            except OSError as error:
                unreadable(error)
                continue
            if one is not None:
                found.append(one)
    return Listing(tuple(sorted(found, key=lambda one: one.path)), frozenset(closed))


def _found(root: Path, file: Path, notes: Notes) -> Found | None:
    path = file.relative_to(root).as_posix()
    try:
        path.encode()
    except UnicodeEncodeError:
        notes.add("undecodable_name", ascii(path))
        return None
    stat = file.stat()
    if stat.st_size > MOST_BYTES:
        notes.add("too_large", path, f"{stat.st_size} bytes; at most {MOST_BYTES}")
        return None
    return Found(path, file, stat.st_mtime_ns, stat.st_size)
