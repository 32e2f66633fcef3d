"""The cost of workflows whose runs are on PostgreSQL, on each engine, DBOS included, beside runs in a file.

CPU of this process and of the server together; the time that went by is in the notes, and is the figure of a run that
is taken up again. The server is that of the tests' wheel, or what SMR_TEST_POSTGRES names, on this machine, with every
commit on the disk.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, cast

from benchmarks._measure import Figure, report
from benchmarks.engines import DONE, chains
from benchmarks.fleet_store import server_seconds

from smart_model_router_research.engine import (
    DbosEngine,
    ExecutionContext,
    KahnEngine,
    LangGraphEngine,
    NewRun,
    PostgresRunStore,
    RunState,
    RunStore,
    SqliteRunStore,
)
from smart_model_router_research.engine.stored_engine import StoredEngine
from smart_model_router_research.workflow import Step, StepInput, WorkflowDefinition
from tests.database_servers import PostgresServer, running

KEPT = 200
STEPS = 12
"""Of a run, in three chains."""
RUNS = 25
BEHIND = 200
"""Steps that have settled before a run is taken up again."""
_numbers = count()


@dataclass(frozen=True)
class Place:
    """An engine with a place for its runs."""

    name: str
    engine: Callable[[RunStore], StoredEngine]
    store: Callable[[], RunStore]

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[RunStore]:
        """A store of its own there."""
        store = self.store()
        try:
            yield store
        finally:
            await store.aclose()


@dataclass(frozen=True)
class Cost:
    """Milliseconds of one of several: that went by, of this process's CPU, and of the server's."""

    wall: float
    own: float
    server: float

    def figure(self, name: str, base: Cost, against: str, limit: float) -> Figure:
        """Return the CPU of both."""
        parts = f"{self.own:.2f} here, {self.server:.2f} on the server; {self.wall:.1f} ms went by"
        return Figure(name, self.own + self.server, "ms CPU", base.own + base.server, against, limit, parts)


class Watch:
    """Time and CPU from now on."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._begun = self._now()

    def _now(self) -> tuple[float, float, float]:
        return time.perf_counter(), time.process_time(), seconds_of_all(self._server)

    def cost(self, number: int) -> Cost:
        """Return that of each of so many."""
        return Cost(*(1e3 * (now - was) / number for was, now in zip(self._begun, self._now(), strict=True)))


def seconds_of_all(server: PostgresServer) -> float:
    """CPU of the server and of all its processes, those that have ended included (Linux)."""
    while True:
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
        with suppress(FileNotFoundError):  # one has just ended, and is part of the parent's now
            return sum(map(server_seconds, [server.pid, *map(int, children)]))


async def checkpoint(place: Place, server: PostgresServer) -> Cost:
    """All that a step writes: its start, its costs, its result."""
    async with place.opened() as store:
        run_id = f"kept-{next(_numbers)}"
        await store.create(
            NewRun(run_id=run_id, workflow="w", workflow_hash="h", step_hashes={}, inputs={}, engine="kahn")
        )
        lease = await store.lease(run_id, "one")
        watch = Watch(server)
        for number in range(KEPT):
            await store.begin(lease, f"s{number}", 1, "i")
            await store.charge(lease, f"s{number}", DONE.costs)
            await store.settle(lease, f"s{number}", DONE, "i")
        return watch.cost(KEPT)


async def run(place: Place, server: PostgresServer) -> Cost:
    """A run of empty steps, one run after another; the first one, which launches DBOS, is not counted."""
    workflow = chains(STEPS, 3)
    async with place.opened() as store:
        engine = place.engine(store)

        async def one() -> None:
            result = await engine.execute(workflow, ExecutionContext(run_id=f"run-{next(_numbers)}"))
            assert result.status is RunState.COMPLETED

        await one()
        watch = Watch(server)
        for _ in range(RUNS):
            await one()
        return watch.cost(RUNS)


async def resumed(place: Place) -> float:
    """Milliseconds from taking up a run with settled steps to the work of its next step."""
    began: asyncio.Queue[float] = asyncio.Queue()

    async def final(_: StepInput) -> Mapping[str, Any]:
        began.put_nowait(time.perf_counter())
        await asyncio.sleep(3_600)
        return {}

    steps = [*chains(BEHIND).steps, Step("final", final, tuple(f"s{n}" for n in range(BEHIND)))]
    run_id, taken = f"resumed-{next(_numbers)}", list[float]()
    for _ in range(6):  # the first one runs the steps, the others go on
        async with place.opened() as store:
            start = time.perf_counter()
            engine, context = place.engine(store), ExecutionContext(run_id=run_id)
            task = asyncio.create_task(engine.execute(WorkflowDefinition("w", steps), context))
            taken.append(1e3 * (await began.get() - start))
            task.cancel()
            await asyncio.wait((task,))
    return statistics.median(taken[1:])


def figures(folder: Path, server: PostgresServer) -> list[Figure]:
    """Every engine at each of its places."""
    url = server.new_database()
    in_file: Callable[[], RunStore] = partial(SqliteRunStore, folder / "runs.db")
    on_server: Callable[[], RunStore] = partial(PostgresRunStore, url)
    places = [
        Place("Kahn, file", KahnEngine, in_file),
        Place("Kahn, PostgreSQL", KahnEngine, on_server),
        Place("LangGraph, file", LangGraphEngine, in_file),
        Place("LangGraph, PostgreSQL", LangGraphEngine, on_server),
        Place("DBOS, PostgreSQL", DbosEngine, on_server),
    ]

    async def measured() -> list[Figure]:
        made = []
        for name, measure, chosen, limit in (
            ("checkpoint of a step", checkpoint, places[:2], 10.0),
            (f"run of {STEPS} empty steps", run, places, 200.0),
        ):
            costs = {place.name: await measure(place, server) for place in chosen}
            first, base = next(iter(costs.items()))
            made += [cost.figure(f"{name}, {place}", base, first, limit) for place, cost in costs.items()]
        times = {place.name: await resumed(place) for place in places}
        first, fastest = next(iter(times.items()))
        name = f"resume behind {BEHIND} steps, to the next one"
        made += [Figure(f"{name}, {place}", each, "ms", fastest, first, 1_000.0) for place, each in times.items()]
        return made

    return asyncio.run(measured())


def main() -> int:
    """Measure, print, and say by the exit code whether the limits hold."""
    kept = partial(PostgresServer, options=("fsync=on",))
    with tempfile.TemporaryDirectory() as name, running(kept) as server:
        return report(*figures(Path(name), cast("PostgresServer", server)))


if __name__ == "__main__":
    sys.exit(main())
