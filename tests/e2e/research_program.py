"""A program that runs a topic over a folder of pages and a file of runs, and kills itself at one of its moments.

Moments are before and after each call of the store, and before each change of a file of artefacts or of the index.
They are counted from 1. The last line is how the run ended, after how many of them.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any

from smart_model_router.flow.clock import here
from smart_model_router_research.engine import RunBusy, SqliteRunStore
from smart_model_router_research.pipeline.deep_research import DeepResearch
from tests.research_worlds import inputs

TOPIC = "Which countries border Arland? What is the capital of Borland? What is the currency of Corland?"
NOW = 1_782_900_000.0
CALLS = ("create", "load", "lease", "release", "begin", "settle", "record", "end", "put_document", "get_document")
CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir")
PACKAGED = "packaged"
"""Killed with the folder written and its step not settled."""


class Moments:
    """The moments so far, and the one at which the process is killed: a number (0: at none), or PACKAGED."""

    def __init__(self, folder: Path, killed_at: str) -> None:
        self.count = 0
        self._folder = str(folder)
        self._killed_at = killed_at

    def pass_one(self, name: str = "") -> None:
        """Count a moment; it may be the last one."""
        self.count += 1
        if self._killed_at in (str(self.count), name):
            os.kill(os.getpid(), signal.SIGKILL)

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Count the changes of files."""
        if event in CHANGES or (event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_CREAT):
            path = str(arguments[0])
            if path.startswith(self._folder) or not path.startswith("/"):  # a tree is removed by names without folders
                self.pass_one()


def counted(call: Callable[..., Awaitable[Any]], moments: Moments) -> Callable[..., Awaitable[Any]]:
    """Return a call of the store with a moment before and after it."""

    @wraps(call)
    async def made(*arguments: Any, **options: Any) -> Any:
        is_last = call.__name__ == "settle" and "rag_package" in arguments
        moments.pass_one(PACKAGED if is_last else "called")
        found = await call(*arguments, **options)
        moments.pass_one()
        return found

    return made


async def execute(base: Path, engine: str, killed_at: str) -> str:
    """Run the topic, or go on with it; returns its end."""
    here()
    moments = Moments(base / "runs", killed_at)
    store = SqliteRunStore(base / "runs.db")
    for name in CALLS:
        setattr(store, name, counted(getattr(store, name), moments))
    sys.addaudithook(moments.audit)
    runs = DeepResearch(store=store, corpora=[base / "pages"], folder=base / "runs", engine=engine, wall=lambda: NOW)
    try:
        result = await runs.run(inputs(TOPIC), "run")
    except RunBusy as busy:
        return f"busy {json.dumps({'owner': busy.owner, 'seconds': busy.seconds})}"
    finally:
        await store.aclose()
    return f"ended {json.dumps({'status': result.status, 'moments': moments.count, 'answers': result.answers})}"


if __name__ == "__main__":
    folder, engine, killed_at = sys.argv[1:]
    sys.stdout.write(asyncio.run(execute(Path(folder), engine, killed_at)) + "\n")
