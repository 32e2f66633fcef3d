"""The cost of observability for a request in instructions, counted by valgrind: other work does not disturb them.

`python -m benchmarks._instructions` takes two minutes or more, and is no part of `make bench`: valgrind is Debian's.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks._fleet import BODY
from benchmarks.telemetry import watched, ways

from smart_model_router.observability import worker
from smart_model_router_stats import housekeeping
from smart_model_router_stats.batched_store import INTERVAL_SECONDS
from smart_model_router_stats.sqlite import SqliteStore

CALLS = (400, 1_600)
"""The difference between so many calls and so many is what a call takes; the rest is the start of the program."""
_SLOWER = 60
"""Under valgrind a program takes so many times as long: what goes by the clock has to wait as much longer."""


async def serve(name: str, calls: int) -> None:
    """So many calls of a router that is watched like this."""
    worker._GATHER_SECONDS *= _SLOWER
    housekeeping._REFRESH_SECONDS *= _SLOWER
    with tempfile.TemporaryDirectory() as folder:
        router = watched(Path(folder))
        everything = ways(router)
        everything[name].begin(router)
        if isinstance(store := router._state.store, SqliteStore):
            store._interval = INTERVAL_SECONDS * _SLOWER
        for _ in range(calls):
            await router.chat(BODY)
        everything["all"].begin(router)  # whose threads it has to end
        await router.aclose()


def counted(name: str, calls: int) -> int:
    """Instructions of a whole program that does this."""
    tool = ["valgrind", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={os.devnull}"]
    command = [*tool, sys.executable, "-m", "benchmarks._instructions", name, str(calls)]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, env=environment)  # noqa: S603
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    assert found is not None, done.stderr
    return int(found[1].replace(",", ""))


def main() -> int:
    """Count and print."""
    if sys.argv[1:]:
        asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
        return 0
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is needed: apt-get install valgrind")
    few, many = CALLS
    bare = 0.0
    for name in ("none", "log", "store", "all"):
        each = (counted(name, many) - counted(name, few)) / (many - few)
        bare = bare or each
        print(f"{name}: {each:,.0f} instructions a request, {each - bare:,.0f} ({(each - bare) / bare:.0%}) more")
    return 0


if __name__ == "__main__":
    sys.exit(main())
