"""Four machines with clocks hours apart, a provider that is ill, and all that may become of a server and a machine.

`SMR_MACHINES_SECONDS=600` makes it ten minutes (the nightly lane).
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager
from itertools import combinations, product
from pathlib import Path
from typing import Any, cast

import pytest

from smart_model_router_providers.fault import Fault, FaultServer
from tests.database_servers import DatabaseServer, PostgresServer, ValkeyServer, running
from tests.e2e.command import STARTED, StartedProgram
from tests.e2e.test_shared_processes import end, line

LOGGER = logging.getLogger(__name__)
PROGRAM = Path(__file__).with_name("machine_program.py")
SECONDS = float(os.environ.get("SMR_MACHINES_SECONDS", "20"))
RUNS_ON = (0, 0, 1, 2, 3)
"""The machine of each process."""
OFFSETS = (0.0, -36_000.0, 7_200.0, 0.7)
"""Seconds by which the clocks of each machine are ahead."""
SETTLED = 4.0
"""Seconds after a server is back, in which every machine looks for it again and hears of the others."""
ILL = (Fault.delay(first=0.2), Fault.status(503))
LIMIT = Fault.limit(rpm=600, headers="openai", burst=20)


class Times:
    """The instants of a test, as shares of its seconds, and when machines could not hear each other."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self.apart: list[tuple[float, float]] = []

    async def reach(self, share: float) -> None:
        """Wait until so much of the test is over."""
        await asyncio.sleep(self._began + share * SECONDS - time.monotonic())

    @contextmanager
    def apart_until(self) -> Generator[None]:
        """Machines do not hear each other within this block."""
        begin = time.monotonic()
        yield
        self.apart.append((begin, time.monotonic() + SETTLED))

    def together(self, begin: float, end: float) -> bool:
        """True when all machines could hear each other all the time between two instants."""
        return all(end < left or begin > back for left, back in self.apart)


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", [ValkeyServer, PostgresServer])
async def test_four_machines_keep_every_promise(kind: type[DatabaseServer], tmp_path: Path) -> None:
    """Every request is answered, and the operator's word stays.

    One of them probes at a time while they hear each other, and one process of a machine while they do not.
    """
    with running(kind) as shared:
        url = shared.new_database() if isinstance(shared, PostgresServer) else cast("ValkeyServer", shared).url
        async with FaultServer() as ill, FaultServer([LIMIT]) as limited, FaultServer() as spare:
            urls = (ill.base_url, limited.base_url, spare.base_url)
            for number in RUNS_ON:
                (tmp_path / f"m{number}").mkdir(exist_ok=True)
                machine = f"m{number}", tmp_path / f"m{number}", OFFSETS[number]
                STARTED.append(StartedProgram(PROGRAM, url, *machine, *urls))
            processes = list(STARTED)
            assert {await asyncio.to_thread(line, process) for process in processes} == {"ready"}
            times = Times()
            await _storm(times, shared, ill, processes)
            stories = await asyncio.gather(*(asyncio.to_thread(end, process) for process in processes))
    LOGGER.info("answered, probes, refused: %s", [(s["answered"], len(s["probes"]), s["refused"]) for s in stories])
    assert [story["failed"] for story in stories] == [[]] * len(RUNS_ON)
    assert all(story["answered"] for story in stories)
    assert _beside_each_other(stories, times) == []
    assert sum(len(story["probes"]) for story in stories) > 1
    assert [story["agrees"] for story in stories] == [True] * len(RUNS_ON), stories
    assert [story["isolated"] for story in stories] == [["kept/m"]] * len(RUNS_ON)


def _beside_each_other(stories: list[dict[str, Any]], times: Times) -> list[Any]:
    """The pairs of probes at the same time of processes that heard each other, or that decided alone on one machine."""
    found = []
    for (machine, one), (other_machine, other) in combinations(zip(RUNS_ON, stories, strict=True), 2):
        for (begin, ended), (other_begin, other_ended) in product(one["probes"], other["probes"]):
            first, last = min(begin, other_begin), max(ended, other_ended)
            alone = machine == other_machine and _is(True, one, first, last) and _is(True, other, first, last)
            shares = _is(False, one, first - SETTLED, last) and _is(False, other, first - SETTLED, last)
            together = shares and times.together(first, last)
            if max(begin, other_begin) < min(ended, other_ended) and (alone or together):
                found.append((machine, begin, ended, other_machine, other_begin, other_ended))
    return found


def _is(alone: bool, story: dict[str, Any], begin: float, ended: float) -> bool:
    """True when the process decided alone (or else, shared) all the time between two instants."""
    before = [False, *(degraded for at, degraded in story["alone"] if at < begin)]
    return before[-1] is alone and not any(begin <= at <= ended for at, _ in story["alone"])


async def _storm(times: Times, shared: DatabaseServer, ill: FaultServer, processes: list[StartedProgram]) -> None:
    """A provider falls ill; the server is killed, a machine stopped; the provider is well, and the server stopped."""
    processes[0].tell("isolate\n")
    await times.reach(0.05)
    ill.set(ILL)
    await times.reach(0.45)
    with times.apart_until():
        await asyncio.to_thread(shared.kill)
        await times.reach(0.5)
        await asyncio.to_thread(shared.start)
    await times.reach(0.7)
    with times.apart_until():
        processes[3].send_signal(signal.SIGSTOP)
        await times.reach(0.75)
        processes[3].send_signal(signal.SIGCONT)
    ill.set(None)
    await times.reach(0.8)
    with times.apart_until():
        shared.suspend()
        await times.reach(0.85)
        shared.resume()
    await times.reach(1.0)
