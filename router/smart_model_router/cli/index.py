"""`smr index`: a folder into an index, or an index up to date with its folder."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from smart_model_router.cli.exit_codes import ExitCode
from smart_model_router.cli.index_file import Indexed, embeddings, indexed
from smart_model_router.cli.output import print_answer, print_json, print_line
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.flow import search_service
from smart_model_router_scoring.retrieval import ForeignIndex, IndexReport, index_folder

if TYPE_CHECKING:
    from smart_model_router.cli.search_commands import IndexFolder

_SHOWN = 10


def run(asked: IndexFolder) -> int:
    """Index and say what was done; the exit code. Raises ConfigurationError, OSError, SmartRouterError."""
    found = indexed(asked.db, asked.config)
    started = time.monotonic()
    report = asyncio.run(_index(asked.folder, found))
    seconds = time.monotonic() - started
    if asked.as_json:
        print_json({"db": str(found.file), "seconds": round(seconds, 3), **asdict(report)})
        return ExitCode.OK
    print_answer(f"{found.file}\n")
    did = f"{report.added} added, {report.changed} changed, {report.removed} removed, {report.unchanged} unchanged"
    holds = f"{report.documents} documents in {report.chunks} chunks"
    print_line(f"{did}; the index holds {holds} of {report.root} ({seconds:.1f} s)")
    for note in report.notes[:_SHOWN]:
        print_line(f"left out: {note.subject}: {note.code.replace('_', ' ')}{note.detail and f' ({note.detail})'}")
    left = sum(report.counts.values()) - _SHOWN
    if left > 0:
        print_line(f"left out: {left} more")
    return ExitCode.OK


async def _index(folder: Path, found: Indexed) -> IndexReport:
    async with AsyncExitStack() as stack:
        embedder = search_service.embedder(found.search, await embeddings(found, stack))
        try:
            return await index_folder(folder, found.file, now=time.time(), embedder=embedder)
        except ForeignIndex as error:
            raise ConfigurationError("--db", str(found.file), str(error)) from None
