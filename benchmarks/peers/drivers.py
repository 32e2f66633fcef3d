"""A driver's process: it is given a job, then plays rounds of it and says what became of the requests."""

from __future__ import annotations

import asyncio
import json
import os
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.peers.rows import ENVIRONMENT, Row

_STARTING = 600.0
_ENDING = 90.0


class Driver:
    """One that is ready."""

    def __init__(self, process: Process, complaints: asyncio.Task[bytes]) -> None:
        self._process = process
        self._complaints = complaints
        self.version = ""

    async def told(self, word: object, within: float) -> Any:
        """Say one line to it and return its answer. Raises RuntimeError with its last words when it has none."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(word).encode() + b"\n")
        await self._process.stdin.drain()
        line = await asyncio.wait_for(self._process.stdout.readline(), within)
        if not line:
            raise RuntimeError((await self._complaints)[-2000:].decode(errors="replace"))
        return json.loads(line)

    async def round(self, *, within: float, **changes: object) -> Any:
        """Play the job with these changes, which takes so many seconds at most."""
        return await self.told(changes, within + _ENDING)


@asynccontextmanager
async def started(row: Row, job: Mapping[str, Any]) -> AsyncGenerator[Driver]:
    """Start the row's driver with a job; it is killed when the block is left."""
    process = await asyncio.create_subprocess_exec(
        *row.command,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env={**os.environ, **ENVIRONMENT},
        limit=64 * 1024 * 1024,
    )
    assert process.stderr is not None
    complaints = asyncio.create_task(process.stderr.read())
    try:
        driver = Driver(process, complaints)
        driver.version = (await driver.told(job, _STARTING))["version"]
        yield driver
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await complaints
