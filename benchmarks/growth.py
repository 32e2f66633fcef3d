"""Measures the memory that a router keeps of routed calls: less than 5 MB from the 20,000th to the 200,000th.

That is what the process holds (RSS). What Python has allocated (tracemalloc) is looked at over the 20,000 calls after
those, with the limit a ninth as high: tracing makes a call several times slower. The calls are of all sorts: every one
belongs to another session, one in ten streams, one in twenty streams is left before its end, one in a hundred answers
is empty and falls back to the next target.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import sys
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks._fleet import BODY, InstantProvider, instant_router
from benchmarks._measure import Figure, report

if TYPE_CHECKING:
    from smart_model_router import SmartModelRouter

FROM, TO = 20_000, 200_000
LIMIT_MB = 5.0
TRACED_FROM = 202_000
"""Later than TO, where tracing begins: what is kept of the newest calls must have been replaced by what is traced."""
TRACED_TO = TRACED_FROM + (TO - FROM) // 9
MEGABYTE = 1024.0 * 1024.0


async def call(router: SmartModelRouter, number: int) -> None:
    """The call with this number."""
    session = f"session-{number}"
    if number % 10:
        await router.chat(BODY, session=session)
        return
    async with router.stream_chat(BODY, session=session) as stream:
        async for _ in stream:
            if number % 200 == 0:
                break


async def calls(router: SmartModelRouter, start: int, stop: int) -> None:
    """The calls from `start` up to `stop`, garbage collected."""
    for number in range(start, stop):
        await call(router, number)
    gc.collect()


def rss_mb() -> float:
    """Megabytes this process holds."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / MEGABYTE


def traced_mb() -> float:
    """Megabytes of everything allocated since tracing began."""
    return tracemalloc.get_traced_memory()[0] / MEGABYTE


async def measure() -> list[Figure]:
    """Two looks at the same router, without and with tracing."""
    async with instant_router(InstantProvider(empty_every=100)) as router:
        await calls(router, 0, FROM)
        rss = rss_mb()
        await calls(router, FROM, TO)
        rss_after = rss_mb()
        tracemalloc.start()
        await calls(router, TO, TRACED_FROM)
        traced = traced_mb()
        await calls(router, TRACED_FROM, TRACED_TO)
        traced_after = traced_mb()
    return [
        Figure("growth_rss", rss_after - rss, "MB", rss, f"held at call {FROM:,}", LIMIT_MB),
        Figure("growth_traced", traced_after - traced, "MB", traced, "the newest calls", LIMIT_MB / 9),
    ]


if __name__ == "__main__":
    sys.exit(report(*asyncio.run(measure())))
