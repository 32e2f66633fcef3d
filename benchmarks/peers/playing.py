"""One row against one fleet: servers that count, a driver in a process of its own, and what both saw."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.peers.drivers import started
from benchmarks.peers.driving import Endpoint
from benchmarks.peers.rows import Row

from smart_model_router_providers.fault import FaultServer
from smart_model_router_providers.fault.backend import RecordedRequest
from smart_model_router_providers.fault.script import Script

SEED = 1


@dataclass(frozen=True, slots=True)
class Scene:
    """A fleet and its callers: a script for each server, the keys that are used there, and when requests arrive."""

    name: str
    servers: tuple[Script, ...]
    keys: tuple[str, ...]
    arrivals: tuple[float, ...]
    timeout: float
    pause: float = 0.05


@dataclass(frozen=True, slots=True)
class Call:
    """A call as its server saw it, in seconds since the start; `ended` is None while it was open."""

    at: float
    ended: float | None
    status: int | None
    key: str

    @property
    def wasted(self) -> bool:
        """Return whether it came to nothing: refused, failed, or left by its caller."""
        return self.status != 200 or self.ended is None


@dataclass(frozen=True, slots=True)
class Played:
    """The result of a scene: the requests as their callers saw them, the calls as each server did.

    `cpu_seconds` are the driver's; `load` is the machine's at the end, over a minute: seconds measured while more
    processes than cores want to run say little about the work for a request.
    """

    row: Row
    version: str
    requests: tuple[dict[str, Any], ...]
    cpu_seconds: float
    load: float
    calls: tuple[tuple[Call, ...], ...]
    scene: Scene


async def play(row: Row, scene: Scene) -> Played:
    """Let one row live through a scene."""
    async with AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(FaultServer(script, SEED, text="By the sun.", keep_requests=100_000))
            for script in scene.servers
        ]
        endpoints = [
            Endpoint(name, server.base_url, key)
            for name, server, key in zip("ab", servers * len(scene.keys), scene.keys, strict=False)
        ]
        warm_up = await stack.enter_async_context(FaultServer())
        job = {
            "warm_up": asdict(Endpoint("w", warm_up.base_url, "k")),
            "endpoints": [asdict(endpoint) for endpoint in endpoints],
            "ranked": len(servers) > 1,
            "arrivals": scene.arrivals,
            "timeout": scene.timeout,
            "pause": scene.pause,
            "options": dict(row.options),
        }
        driver = await stack.enter_async_context(started(row, job))
        for server in servers:
            server.reset()  # the script's seconds begin now
        began = time.monotonic()
        last = scene.arrivals[-1] if scene.arrivals else scene.timeout
        told = await driver.round(within=last + scene.timeout)
        calls = tuple(tuple(_seen(request, began) for request in server.requests) for server in servers)
    return Played(row, driver.version, tuple(told["requests"]), told["cpu_seconds"], os.getloadavg()[0], calls, scene)


async def play_all(rows: Sequence[Row], scene: Scene, *, at_once: int) -> list[Played]:
    """Every row, so many at a time: they share the machine, never a server."""
    room = asyncio.Semaphore(at_once)

    async def one(row: Row) -> Played:
        async with room:
            return await play(row, scene)

    async with asyncio.TaskGroup() as group:
        playing = [group.create_task(one(row)) for row in rows]
    return [task.result() for task in playing]


def _seen(request: RecordedRequest, began: float) -> Call:
    ended = None if request.ended_at is None or request.ending == "abandoned" else request.ended_at - began
    return Call(request.at - began, ended, request.status, request.key)
