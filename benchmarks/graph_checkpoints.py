"""RunSaver in a file beside LangGraph's own AsyncSqliteSaver: a checkpoint kept and read, and its bytes on disk.

The other one has an environment of its own, which is installed at the first run. Both are measured in turn.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks import _checkpointing
from benchmarks._environments import install
from benchmarks._measure import Figure, report

from smart_model_router_research.engine import RunSaver, SqliteRunStore

RUNS = 3
PEER = ("langgraph>=1.2,<1.3", "langgraph-checkpoint-sqlite", "langgraph-checkpoint-conformance")


@asynccontextmanager
async def opened(path: Path) -> AsyncGenerator[RunSaver]:
    """Open ours."""
    store = SqliteRunStore(path)
    yield RunSaver(store)
    await store.aclose()


def ours() -> dict[str, float]:
    """Measure ours, in this process."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_checkpointing.measured(Path(folder), opened))


def theirs(interpreter: Path) -> dict[str, float]:
    """Measure the other one, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(interpreter), str(_checkpointing.__file__), folder]
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own program
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main() -> int:
    """Measure, print, and say by the exit code whether the limits hold."""
    interpreter = install("checkpoints", *PEER)
    pairs = [(ours(), theirs(interpreter)) for _ in range(RUNS)]
    mine, other = (
        {key: statistics.median(run[key] for run in runs) for key in runs[0]} for runs in zip(*pairs, strict=True)
    )
    there, steps = f"at {_checkpointing.THERE:,} checkpoints", f"{_checkpointing.STEPS} supersteps of 100 KB"
    rows = [
        ("put cpu", f"put {there}, CPU", "ms", 2.0),
        ("put wall", f"put {there}, wall clock", "ms", 2.0),
        ("get cpu", f"get_tuple {there}, CPU", "ms", 1.0),
        ("get wall", f"get_tuple {there}, wall clock", "ms", 1.0),
        ("same", f"{steps} that do not change, on disk", "MB", 1.0),
        ("changing", f"{steps} that change each time, on disk", "MB", 5.0),
    ]
    notes = {"put wall": f"a bare insert, on the disk: {mine['flush']:.2g} ms"}
    code: int = report(
        *(
            Figure(name, mine[key], unit, other[key], "AsyncSqliteSaver", limit, notes.get(key, ""))
            for key, name, unit, limit in rows
        )
    )
    return code


if __name__ == "__main__":
    sys.exit(main())
