"""1,000 streams at once through the router: all finish, no event comes 50 ms late, memory stays below 400 MB.

The same streams are read by aiohttp alone, the fastest client at hand, in the same minutes (runs in turn). What the
router adds to the gap between two events is the difference of the 99th percentiles of two runs that follow each other;
of several such pairs the median counts. The server runs in another process; memory is the peak of this one.
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import sys
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import aiohttp
from benchmarks._fleet import BODY
from benchmarks._measure import Figure, report
from benchmarks._server import served

from smart_model_router import SmartModelRouter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

STREAMS = 1_000
EVENTS = 15
EACH_SECONDS = 0.4
RUNS = 3
ADDED_MS = 50.0
MEGABYTE = 1024.0 * 1024.0
RSS_MB = 400.0
_CONTENT = b'"delta":{"content":"word"}'

Arrivals = list[float]
"""The arrival times of the content events of one stream, in monotonic seconds."""


async def routed(router: SmartModelRouter) -> Arrivals:
    """Read one stream through the router."""
    arrivals: Arrivals = []
    async for chunk in router.stream_chat(BODY):
        if any(choice["delta"].get("content") for choice in chunk["choices"]):
            arrivals.append(time.monotonic())
    return arrivals


async def bare(session: aiohttp.ClientSession, url: str) -> Arrivals:
    """Read one stream with nothing around the HTTP client, and nothing of an event but that it came."""
    arrivals: Arrivals = []
    async with session.post(url, json={**BODY, "model": "fault", "stream": True}) as response:
        async for piece in response.content.iter_any():
            arrivals.extend([time.monotonic()] * piece.count(_CONTENT))
    return arrivals


async def p99_gap_ms(read: Callable[[], Awaitable[Arrivals]]) -> tuple[float, int]:
    """The 99th percentile of all gaps between events of STREAMS streams at once, and how many of them were complete."""
    all_arrivals = await asyncio.gather(*(read() for _ in range(STREAMS)))
    gaps = [later - earlier for each in all_arrivals for earlier, later in pairwise(each)]
    return statistics.quantiles(gaps, n=100)[98] * 1e3, sum(len(each) == EVENTS for each in all_arrivals)


def megabytes() -> float:
    """The most memory this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MEGABYTE


async def measure(base_url: str) -> tuple[list[Figure], int]:
    """The figures, and the least number of streams that a routed run finished."""
    before = megabytes()
    config = {
        "version": 1,
        "providers": {
            "a": {"kind": "openai_compatible", "base_url": base_url, "api_key": "k", "bulkhead": STREAMS},
        },
        "models": {"smart": {"tiers": [{"targets": ["a/fault"]}], "last_resort": []}},
    }
    url = f"{base_url}/chat/completions"
    ours: list[float] = []
    theirs: list[float] = []
    finished = STREAMS
    async with (
        SmartModelRouter.from_config(config) as router,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
    ):
        for _ in range(RUNS):
            gap, complete = await p99_gap_ms(lambda: routed(router))
            ours.append(gap)
            finished = min(finished, complete)
            gap, _ = await p99_gap_ms(lambda: bare(session, url))
            theirs.append(gap)
    added = statistics.median(gap - usual for gap, usual in zip(ours, theirs, strict=True))
    against = f"between events (p99), aiohttp alone; sent every {EACH_SECONDS * 1e3:.0f}"
    note = f"{finished} of {STREAMS} finished"
    return [
        Figure("streams_added_gap", added, "ms", statistics.median(theirs), against, ADDED_MS, note),
        Figure("streams_memory", megabytes(), "MB RSS", before, "before the first stream", RSS_MB),
    ], finished


def main() -> int:
    """Measure against a server in another process; a stream that did not finish is a failure, whatever the figures."""
    with served(events=EVENTS, each=EACH_SECONDS) as base_url:
        figures, finished = asyncio.run(measure(base_url))
    return report(*figures) or int(finished < STREAMS)


if __name__ == "__main__":
    sys.exit(main())
