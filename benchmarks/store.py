"""The cost of the statistics file: the request path, the loop, 100,000 calls a second of four processes, its readers.

`--minute` holds a reader's snapshot for a minute under that load as well, and says how far the write-ahead log grew.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from benchmarks._measure import Figure, report

from smart_model_router.domain.events import AttemptFinished
from smart_model_router.domain.outcome import FailureClass, Usage
from smart_model_router_stats.batched_store import BatchedStore
from smart_model_router_stats.open_db import MIB
from smart_model_router_stats.reading import read_store
from smart_model_router_stats.sqlite import SqliteStore

PROCESSES = 4
RATE = 25_000
SECONDS = 8.0
WRITTEN_AT_ONCE = 100
VIEWS = ("v_target_now", "v_model_now", "v_provider_now")


def attempts(count: int, targets: int) -> list[AttemptFinished]:
    """Calls of now: half of them streams, one in ten failed, latencies spread as real ones are."""
    dice = random.Random(1)  # noqa: S311 - a repeatable load, not a secret
    now = time.monotonic()
    made = []
    for number in range(count):
        seconds = dice.lognormvariate(1.0, 0.6)
        stream, failed = dice.random() < 0.5, dice.random() < 0.1
        made.append(
            AttemptFinished(
                at=now,
                admitted_at=now - seconds,
                target=f"p{number % 4}/m{number % targets}",
                provider=f"p{number % 4}",
                model=f"m{number % targets}",
                stream=stream,
                seconds=seconds,
                failure_class=FailureClass.SERVER_ERROR if failed else None,
                ttft_seconds=seconds / 5 if stream and not failed else None,
                usage=None if failed else Usage(800, dice.randint(1, 900)),
            )
        )
    return made


async def feed(store: BatchedStore, made: list[AttemptFinished], seconds: float) -> int:
    """RATE observations a second; how many there were."""
    sent = 0
    began = time.perf_counter()
    while (passed := time.perf_counter() - began) < seconds:
        due = min(int(passed * RATE) - sent, WRITTEN_AT_ONCE)
        for number in range(due):
            store.observe(made[(sent + number) % len(made)])
        sent += due
        await asyncio.sleep(0.001)
    return sent


def writer(path: Path, seconds: float, told: multiprocessing.Queue[tuple[int, int]]) -> None:
    """One of the processes."""

    async def run() -> None:
        store = SqliteStore(path)
        sent = await feed(store, attempts(2_000, 10), seconds)
        await store.aclose()
        told.put((sent, store.stats_dropped))

    asyncio.run(run())


def observing(folder: Path) -> Figure:
    """CPU of one observation on the request path, against a dict increment and a list append."""

    async def run() -> tuple[float, float]:
        made = attempts(10_000, 10)
        costs, baselines = [], []
        for number in range(9):
            store = SqliteStore(folder / f"observe-{number}.db")
            start = time.process_time()
            for event in made:
                store.observe(event)
            costs.append((time.process_time() - start) / len(made) * 1e6)
            await store.aclose()
            counts: dict[str, int] = {}
            seen: list[float] = []
            start = time.process_time()
            for event in made:
                counts[event.target] = counts.get(event.target, 0) + 1
                seen.append(event.seconds)
            baselines.append((time.process_time() - start) / len(made) * 1e6)
        return statistics.median(costs), statistics.median(baselines)

    cost, baseline = asyncio.run(run())
    return Figure("observe", cost, "us", baseline, "dict increment and list append", 5.0)


def loop_turns(folder: Path) -> Figure:
    """The longest turn of the loop under one process's share of the load, in CPU: a busy machine does not count."""
    made, turns = attempts(2_000, 10), list[float]()
    # Every turn of the loop passes here.
    run_handle = asyncio.events.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        start = time.thread_time()
        run_handle(handle)
        turns.append(1e3 * (time.thread_time() - start))

    async def run(store: SqliteStore) -> int:
        sent = await feed(store, made, 4.0)
        await store.aclose()
        return sent

    asyncio.events.Handle._run = timed  # type: ignore[method-assign, assignment]
    try:
        sent = asyncio.run(run(SqliteStore(folder / "turns.db")))
    finally:
        asyncio.events.Handle._run = run_handle  # type: ignore[method-assign]
    feeding = statistics.median(turns)
    note = f"{len(turns):,} turns for {sent:,} observations"
    return Figure("longest turn of the loop", max(turns), "ms", feeding, "median turn", 5.0, note)


def load(folder: Path, *, snapshot_seconds: float = 0.0) -> list[Figure]:
    """All processes at once, and a dashboard that reads every second, or holds one snapshot all the time."""
    path = folder / f"load-{snapshot_seconds:.0f}.db"
    seconds = snapshot_seconds or SECONDS
    spawn = multiprocessing.get_context("spawn")
    told = spawn.Queue()
    writers = [spawn.Process(target=writer, args=(path, seconds, told)) for _ in range(PROCESSES)]
    for process in writers:
        process.start()
    time.sleep(2.0)
    reads: dict[str, list[float]] = {view: [] for view in VIEWS}
    wal = path.with_name(path.name + "-wal")
    largest = 0
    with closing(sqlite3.connect(path, isolation_level=None, timeout=5)) as reader:
        if snapshot_seconds:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM v_target_now").fetchall()
        until = time.monotonic() + seconds - 1.0
        while time.monotonic() < until:
            largest = max(largest, wal.stat().st_size)
            for view in VIEWS if not snapshot_seconds else ():
                start = time.perf_counter()
                reader.execute(f"SELECT * FROM {view}").fetchall()  # noqa: S608 - one of ours
                reads[view].append(1e3 * (time.perf_counter() - start))
            time.sleep(1.0)
    results = [told.get() for _ in writers]
    for process in writers:
        process.join()
    sent, dropped = sum(each for each, _ in results), sum(each for _, each in results)
    stored = sum(stats.calls for stats in read_store(path).figures.targets.values())
    note = f"{sent / seconds:,.0f} a second from {PROCESSES} processes, {stored:,} stored"
    figures = [
        Figure("observations dropped", dropped, "calls", sent, "observed", 0, note),
        Figure("observations lost", sent - stored, "calls", sent, "observed", 0, note),
    ]
    if snapshot_seconds:
        held = f"a snapshot was held for {snapshot_seconds:.0f} s"
        return [*figures, Figure("WAL at its largest", largest / MIB, "MiB", 64, "its limit", 66, held)]
    return [
        *figures,
        *(Figure(f"{view} under load", statistics.median(reads[view]), "ms", 50, "limit", 50) for view in VIEWS),
    ]


def many_targets(folder: Path) -> list[Figure]:
    """The views over 200 targets with twenty minutes of calls."""
    path = folder / "many.db"

    async def fill() -> None:
        store = SqliteStore(path)
        made = attempts(200_000, 200)
        for number, event in enumerate(made):
            object.__setattr__(event, "at", event.at - 1200.0 * number / len(made))
            store.observe(event)
            if number % 500 == 0:
                await asyncio.sleep(0)
        await store.aclose()

    asyncio.run(fill())
    figures = []
    with closing(sqlite3.connect(path)) as reader:
        queries = {view: f"SELECT * FROM {view}" for view in VIEWS}  # noqa: S608 - ours
        for view, query in queries.items():
            taken = []
            for _ in range(7):
                start = time.perf_counter()
                reader.execute(query).fetchall()
                taken.append(1e3 * (time.perf_counter() - start))
            note = f"{len(reader.execute(query).fetchall())} rows"
            figures.append(Figure(f"{view}, 200 targets", statistics.median(taken), "ms", 150, "limit", 150, note))
    return figures


def main() -> int:
    """Measure, print, and say by the exit code whether the limits hold."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures = [observing(folder), loop_turns(folder), *load(folder), *many_targets(folder)]
        if "--minute" in sys.argv[1:]:
            figures += load(folder, snapshot_seconds=60.0)
        code: int = report(*figures)
        return code


if __name__ == "__main__":
    sys.exit(main())
