"""The folder of artefacts: written as a whole or not at all. Blocks."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from smart_model_router_research.deep.artefact_files import files_of
from smart_model_router_research.deep.artefact_records import DOCUMENTS
from smart_model_router_research.deep.canonical_json import ArtefactError
from smart_model_router_research.deep.consistency import faults_of
from smart_model_router_research.deep.research_run import ResearchRun


def write_artefacts(run: ResearchRun, folder: Path) -> None:
    """Write the artefacts of a run to a new folder, the manifest last. Raises ArtefactError; then nothing is there.

    They are written to a folder beside it (`beside`), brought to the disk, and renamed. A run that does not
    hold together (`faults_of`) is refused, and a folder that exists, unless it is empty.
    """
    if faults := faults_of(run):
        raise ArtefactError(faults[0].place, faults[0].problem)
    files = files_of(run)
    taken = "it is there already, and is no empty folder"
    if folder.is_symlink() or (folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))):
        raise ArtefactError(str(folder), taken)
    written: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        written = Path(tempfile.mkdtemp(prefix=beside(folder), dir=folder.parent))
        _write(files, written)
        written = written.rename(folder)
        _sync(folder.parent)
    except BaseException as error:
        if written is not None:
            shutil.rmtree(written, ignore_errors=True)
        if isinstance(error, OSError):
            raise ArtefactError(str(folder), f"it cannot be written: {error.strerror or error}") from error
        raise


def beside(folder: Path) -> str:
    """Return how the names of unfinished folders beside one begin; no name of another run begins in this way."""
    return f".{folder.name}~"


def _write(files: Mapping[str, bytes], folder: Path) -> None:
    (folder / DOCUMENTS).mkdir()
    for path, content in files.items():
        with (folder / path).open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    for each in (folder / DOCUMENTS, folder):
        _sync(each)
    folder.chmod(0o755 & ~_umask())


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
