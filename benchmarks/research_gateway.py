"""Twenty runs of research through one worker of `smr serve`: the latency of other requests beside them, and without.

Requests come from four clients, one after another each, to a provider in another process. The runs are read from a
corpus of 200 pages, by code alone, as fast as the worker performs them: 20 are always under way.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
from benchmarks._measure import Figure, report
from benchmarks._server import served
from benchmarks.gateway import SERVE, SMALL, Process, gateway_config, one, started
from benchmarks.research import pages

RUNS = 20
CLIENTS = 4
SECONDS = 15.0
ADDED_MS = 20.0


@contextmanager
def gateway(upstream: str) -> Generator[Process]:
    """One worker of `smr serve` with research over the pages."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        corpus = pages(base / "pages", 200)
        config = {
            **gateway_config(upstream),
            "research": {"gateway": True, "corpora": [str(corpus)], "runs_per_key": RUNS},
            "workflows": {"runs": str(base / "runs.db")},
        }
        file = base / "smart-router.yaml"
        file.write_text(json.dumps(config), encoding="utf-8")
        os.environ["SMART_ROUTER_DATA_DIR"] = str(base / "data")
        with started(*SERVE, "-c", str(file), "--port", "0", "--json") as process:
            yield process


async def waits(session: aiohttp.ClientSession, url: str) -> list[float]:
    """Return the milliseconds of each request of the clients, for so many seconds."""
    body, taken, end = json.dumps(SMALL).encode(), list[float](), time.perf_counter() + SECONDS

    async def client() -> None:
        while (start := time.perf_counter()) < end:
            await one(session, url, body)
            taken.append(1e3 * (time.perf_counter() - start))
            await asyncio.sleep(0.01)

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return taken


async def research(session: aiohttp.ClientSession, url: str, ended: list[str]) -> None:
    """Begin runs for as long as this is not cancelled, the next when one has ended."""
    number = 0

    async def begun() -> None:
        nonlocal number
        while True:
            number += 1
            asked = {"topic": f"What is the capital of Land{number % 200 + 1}?"}
            async with session.post(f"{url}/research", json=asked) as answer:
                assert answer.status == 202, await answer.text()
                place = answer.headers["location"]
            async with session.get(f"{url}{place}/events") as events:
                async for _ in events.content:
                    pass
            ended.append(place)

    await asyncio.gather(*(begun() for _ in range(RUNS)))


def p99(taken: list[float]) -> float:
    """Return the 99th percentile."""
    return statistics.quantiles(taken, n=100)[98]


async def measure(url: str) -> Figure:
    """Measure the requests alone, then beside the runs."""
    ended: list[str] = []
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        async with session.post(f"{url}/research", json={"topic": "What is the capital of Land1?"}) as answer:
            first: dict[str, Any] = await answer.json()
        async with session.get(f"{url}/research/{first['run']}/events") as events:
            await events.read()  # by now the corpus has its index
        alone = await waits(session, url)
        running = asyncio.create_task(research(session, url, ended))
        await asyncio.sleep(1.0)
        beside = await waits(session, url)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert ended
    note = f"{len(ended)} runs ended meanwhile, {len(beside)} requests against {len(alone)}; p50 " + " and ".join(
        f"{statistics.median(taken):.1f}" for taken in (alone, beside)
    )
    limit = p99(alone) + ADDED_MS
    return Figure("beside_research", p99(beside), "ms a request (p99)", p99(alone), "without runs", limit, note)


def main() -> int:
    """Measure and report."""
    with served(events=10, each=0.0) as upstream, gateway(upstream) as ours:
        return report(asyncio.run(measure(ours.url)))


if __name__ == "__main__":
    sys.exit(main())
