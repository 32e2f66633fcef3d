"""Four machines with clocks hours apart, a provider that is ill, and all that may become of a server and a machine.

`SMR_MACHINES_SECONDS=600` makes it ten minutes (the nightly lane).
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest

from smart_model_router_providers.fault import Fault, FaultServer
from tests.database_servers import DatabaseServer, PostgresServer, ValkeyServer, running
from tests.e2e.command import StartedProgram
from tests.e2e.test_shared_processes import STARTED, end, line

LOGGER = logging.getLogger(__name__)
PROGRAM = Path(__file__).with_name("machine_program.py")
SECONDS = float(os.environ.get("SMR_MACHINES_SECONDS", "20"))
OFFSETS = (0.0, -36_000.0, 7_200.0, 0.7)
"""Seconds by which the clocks of each machine are ahead."""
SETTLED = 4.0
"""Seconds after a server is back, in which every machine looks for it again and hears of the others."""
ILL = (Fault.delay(first=0.2), Fault.status(503))
LIMIT = Fault.limit(rpm=600, headers="openai", burst=20)


@pytest.fixture(autouse=True)
def _none_outlives_its_test() -> Iterator[None]:
    yield
    while STARTED:
        program = STARTED.pop()
        program.kill()
        program.communicate()


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
async def test_four_machines_keep_every_promise(kind: type[DatabaseServer]) -> None:
    """Every request is answered; one of them probes at a time while they hear each other; the operator's word stays."""
    with running(kind) as shared:
        url = shared.new_database() if isinstance(shared, PostgresServer) else cast("ValkeyServer", shared).url
        async with FaultServer() as ill, FaultServer([LIMIT]) as limited, FaultServer() as spare:
            urls = (ill.base_url, limited.base_url, spare.base_url)
            machines = [StartedProgram(PROGRAM, url, f"m{n}", offset, *urls) for n, offset in enumerate(OFFSETS)]
            STARTED.extend(machines)
            assert [await asyncio.to_thread(line, machine) for machine in machines] == ["ready"] * 4
            times = Times()
            await _storm(times, shared, ill, machines)
            stories = await asyncio.gather(*(asyncio.to_thread(end, machine) for machine in machines))
    LOGGER.info("answered, probes, refused: %s", [(s["answered"], len(s["probes"]), s["refused"]) for s in stories])
    assert [story["failed"] for story in stories] == [[]] * 4
    assert all(story["answered"] for story in stories)
    probes = sorted((begin, end) for story in stories for begin, end in story["probes"])
    assert len(probes) > 1
    for (begin, ended), (following, _) in pairwise(probes):
        assert following >= ended or not times.together(begin, ended), probes
    assert [story["agrees"] for story in stories] == [True] * 4, stories
    assert [story["isolated"] for story in stories] == [["kept/m"]] * 4


async def _storm(times: Times, shared: DatabaseServer, ill: FaultServer, machines: list[StartedProgram]) -> None:
    """A provider falls ill; the server is killed, a machine stopped; the provider is well, and the server stopped."""
    machines[0].tell("isolate\n")
    await times.reach(0.05)
    ill.set(ILL)
    await times.reach(0.45)
    with times.apart_until():
        await asyncio.to_thread(shared.kill)
        await times.reach(0.5)
        await asyncio.to_thread(shared.start)
    await times.reach(0.7)
    with times.apart_until():
        machines[2].send_signal(signal.SIGSTOP)
        await times.reach(0.75)
        machines[2].send_signal(signal.SIGCONT)
    ill.set(None)
    await times.reach(0.8)
    with times.apart_until():
        shared.suspend()
        await times.reach(0.85)
        shared.resume()
    await times.reach(1.0)
