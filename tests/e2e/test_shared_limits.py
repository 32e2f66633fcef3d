"""One key, several processes, a provider that counts: the limit is used up and not run into."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from smart_model_router_providers.fault import Fault, FaultServer

if TYPE_CHECKING:
    from smart_model_router_providers.fault.effects import LimitKind

PROGRAM = Path(__file__).with_name("shared_program.py")
PROCESSES = 4
LIMIT = 300


# The window lasts longer than the test: nothing comes back that would be worth waiting for.
@pytest.mark.parametrize(("refill", "seconds"), [("continuous", 16.0), ("window", 10.0)])
@pytest.mark.asyncio
async def test_four_processes_use_one_limit_up(tmp_path: Path, refill: LimitKind, seconds: float) -> None:
    """300 a minute, 8 workers: 90 % of what is due is granted, and no process is refused more than once."""
    environment = {"PYTHONPATH": str(Path(__file__).parents[2])}
    async with FaultServer([Fault.limit(rpm=LIMIT, kind=refill, headers="openai")], keep_requests=10_000) as server:
        arguments = ("limited", str(tmp_path / "stats.db"), server.base_url, str(seconds))
        programs = [
            await asyncio.create_subprocess_exec(
                sys.executable, PROGRAM, *arguments, stdout=asyncio.subprocess.PIPE, env=environment
            )
            for _ in range(PROCESSES)
        ]
        outs = [(await program.communicate())[0] for program in programs]
    statuses = Counter(request.status for request in server.requests)
    granted = [request.at for request in server.requests if request.status == 200]
    # A full bucket (or window) at the start, and what came back while they ran.
    due = LIMIT + (LIMIT / 60 * (max(granted) - min(granted)) if refill == "continuous" else 0)
    assert statuses[200] >= 0.9 * due
    assert all(json.loads(out)["refused"] <= 1 for out in outs), outs
