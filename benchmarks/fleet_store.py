"""The cost of statistics on PostgreSQL beside the file: CPU of a process and of the server, and its views."""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, cast

from benchmarks._measure import Figure, report
from benchmarks.store import RATE, VIEWS, attempts, feed

from smart_model_router_stats.batched_store import BatchedStore
from smart_model_router_stats.postgres_reading import FleetReader
from smart_model_router_stats.postgres_server import StatsServer
from smart_model_router_stats.postgres_stats import PostgresStatsStore
from smart_model_router_stats.sqlite import SqliteStore
from tests.database_servers import PostgresServer, running

SECONDS = 4.0
TARGETS = 200


def written(store: BatchedStore) -> tuple[float, int]:
    """RATE calls a second for a while: CPU of this process for each in microseconds, and how many were written."""

    async def run() -> int:
        sent = await feed(store, attempts(20_000, TARGETS), SECONDS)
        await store.aclose()
        return sent

    start = time.process_time()
    sent = asyncio.run(run())
    return (time.process_time() - start) / sent * 1e6, store.acknowledged


def queries(server: StatsServer) -> list[Figure]:
    """Each view over all targets."""
    figures = []
    for view in VIEWS:
        taken, found = list[float](), list[dict[str, Any]]()
        with FleetReader(server).looking() as rows:
            for _ in range(7):
                start = time.perf_counter()
                found = rows(f"SELECT * FROM {view}")  # noqa: S608 - one of ours
                taken.append(1e3 * (time.perf_counter() - start))
        took, many = statistics.median(taken), f"{len(found)} rows"
        figures.append(Figure(f"{view}, {TARGETS} targets", took, "ms", 150, "limit of the file", 300, many))
    return figures


def server_seconds(pid: int) -> float:
    """CPU of a process and of those of its children that have ended (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return float(sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK"))


def main() -> int:
    """Measure, print, and say by the exit code whether the limits hold."""
    with tempfile.TemporaryDirectory() as name:
        in_file, _ = written(SqliteStore(Path(name) / "s.db"))
    with running(PostgresServer) as running_server:
        made = cast("PostgresServer", running_server)
        server = StatsServer(made.new_database())
        before = server_seconds(made.pid)
        on_server, stored = written(PostgresStatsStore(server))
        time.sleep(1.0)  # the process of its connection ends
        theirs = (server_seconds(made.pid) - before) / stored * 1e6
        figures = queries(server)
    note = f"{RATE:,} calls a second, {stored:,} stored"
    code: int = report(
        Figure("a process's CPU a call", on_server, "us", in_file, "SQLite in the process", 40, note),
        Figure("the server's CPU a call", theirs, "us", in_file, "SQLite in the process", 60),
        *figures,
    )
    return code


if __name__ == "__main__":
    sys.exit(main())
