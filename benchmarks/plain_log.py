"""The cost of the standard log for a request that its first choice serves: the router's own listener, by its level.

One such request is made and its events are kept; then they are given to the listener again and again, as the router
gives them, with logging off and at WARNING. The baseline is the request itself.
"""

from __future__ import annotations

import asyncio
import logging
import statistics
import sys
import time

from benchmarks._fleet import BODY, CONFIG, PROVIDERS, InstantProvider
from benchmarks._measure import Figure, cpu_us, report

from smart_model_router import SmartModelRouter
from smart_model_router.domain.events import Event
from smart_model_router.domain.report import RouteReport
from smart_model_router.flow.plain_log import LOG, PlainLog

RUNS, REQUESTS = 7, 20_000
LIMITS = {"off": (logging.CRITICAL + 1, 1.0), "at WARNING": (logging.WARNING, 10.0)}
"""The level of the logger, and the microseconds a request that it may cost."""


class Kept:
    """Keeps the events of a request as they are sent."""

    inline = True

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        """Keep it."""
        self.events.append(event)


async def healthy_request() -> tuple[list[Event], RouteReport, float]:
    """Return the events and the report of a request that is served at once, and its microseconds of CPU."""
    kept = Kept()
    async with SmartModelRouter.from_config(
        CONFIG, seed=1, providers=dict.fromkeys(PROVIDERS, InstantProvider()), sinks=[kept]
    ) as router:
        await router.chat(BODY)
        kept.events.clear()
        reply = await router.chat(BODY)
        events = list(kept.events)
        request_us = await cpu_us(lambda: router.chat(BODY), 1_000)
    return events, reply.report, request_us


def told_us(events: list[Event], served: RouteReport) -> float:
    """Microseconds of CPU that the listener takes for the request."""
    log = PlainLog(time.monotonic, time.time)
    started = time.process_time()
    for _ in range(REQUESTS):
        for event in events:
            log.emit(event)
        log.finished(served, "ok")
    return (time.process_time() - started) / REQUESTS * 1e6


def main() -> int:
    """Measure, and print a line for each level; the exit code."""
    events, served, request_us = asyncio.run(healthy_request())
    figures: list[Figure] = []
    for name, (level, limit) in LIMITS.items():
        LOG.setLevel(level)
        value = statistics.median(told_us(events, served) for _ in range(RUNS))
        note = f"{len(events)} events"
        figures.append(Figure(f"the standard log, {name}", value, "us", request_us, "the request", limit, note))
    return report(*figures)


if __name__ == "__main__":
    sys.exit(main())
