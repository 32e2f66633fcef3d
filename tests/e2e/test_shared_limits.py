"""One key, several processes, a provider that counts: the limit is used up and not run into."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from smart_model_router_providers.fault import Fault, FaultServer
from tests.e2e.command import StartedProgram
from tests.e2e.eventually import becomes

if TYPE_CHECKING:
    from smart_model_router_providers.fault.effects import LimitKind

PROGRAM = Path(__file__).with_name("shared_program.py")
PROCESSES = 4
WORKERS = 2
"""Of each process: so many calls of it are under way."""
LIMIT = 300
WINDOW = 600.0
"""Seconds; longer than the test takes on any machine."""


@pytest.mark.parametrize("refill", ["continuous", "window"])
@pytest.mark.asyncio
async def test_four_processes_use_one_limit_up(tmp_path: Path, refill: LimitKind) -> None:
    """300 in ten minutes, 8 workers: 90 % of what is due is granted, and only what was under way at its end is refused.

    They work until that is so, however long it takes; then for a while against the end of the limit.
    """
    limit = Fault.limit(rpm=LIMIT, window=WINDOW, kind=refill, headers="openai")
    async with FaultServer([limit], keep_requests=10_000) as server:
        arguments = ("limited", tmp_path / "stats.db", server.base_url, WORKERS)
        programs = [StartedProgram(PROGRAM, *arguments) for _ in range(PROCESSES)]
        used_up = await becomes(lambda: used(server) >= 0.9 * due(server, refill), within=100)
        await asyncio.sleep(5.0)  # real time: a slow machine asks less often, and is refused less often
        outs = [(await asyncio.to_thread(program.communicate))[0] for program in programs]
    assert used_up, (used(server), due(server, refill))
    assert all(json.loads(out)["refused"] <= WORKERS for out in outs), outs


def used(server: FaultServer) -> int:
    """How many requests it has granted."""
    return sum(request.status == 200 for request in server.requests)


def due(server: FaultServer, refill: LimitKind) -> float:
    """A full bucket (or window) at the start, and what came back since the first request."""
    if refill == "window" or not server.requests:
        return LIMIT
    return LIMIT + LIMIT / WINDOW * (server.requests[-1].at - server.requests[0].at)
