"""`smr serve` that measures how long eight turns of its loop take, as many as a small request needs.

The time is CPU time of the whole process, its threads included: the delay that the gateway itself is the cause of, on a
machine that other programs share. Run as a program by liveness.py: the file for the figures, then the arguments of
`smr`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

from smart_model_router.cli import main
from smart_model_router.gateway import uvicorn_server

TURNS = 8
EVERY = 0.01
_taken: list[tuple[float, float]] = []
_settle = uvicorn_server.settle  # a benchmark looks inside
_task: asyncio.Task[None] | None = None


async def _measure() -> None:
    while True:
        start = time.process_time()
        for _ in range(TURNS):
            await asyncio.sleep(0)
        _taken.append((time.time(), (time.process_time() - start) * 1e3))
        await asyncio.sleep(EVERY)


def _ready() -> None:
    global _task  # noqa: PLW0603 - a process of its own
    _settle()
    _task = asyncio.get_running_loop().create_task(_measure())


if __name__ == "__main__":
    file = Path(sys.argv.pop(1))
    uvicorn_server.settle = _ready  # as above
    try:
        main()
    finally:
        file.write_text(json.dumps(_taken), encoding="ascii")
