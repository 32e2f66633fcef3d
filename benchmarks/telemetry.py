"""The cost of observability for a request: metrics, log, traces, dashboard and store together, and each alone.

CPU time a request with everything its threads do for it, over the same router without any of them: the median over
pairs of neighbours, because other work on the machine inflates both of a pair alike. It is one router that is watched
and unwatched by turns: of two, which lie elsewhere in memory, one is up to a tenth quicker.
Requests come as fast as they are answered, so that the threads have no idle time to work in.
The OpenTelemetry SDK is the application's: its own cost stands beside ours, and no limit is set for it.
"""

from __future__ import annotations

import asyncio
import math
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks._fleet import BODY, CONFIG, PROVIDERS, InstantProvider
from benchmarks._measure import Figure, report

from smart_model_router import SmartModelRouter
from smart_model_router.domain.ports import EventSink, StatsStore
from smart_model_router.observability.dashboard_history import DashboardHistory
from smart_model_router.observability.metrics import Metrics
from smart_model_router.observability.spans import SpanSink
from smart_model_router.observability.worker import QueuedSink
from smart_model_router_stats.sqlite import SqliteStore

PAIRS = 90
PART_PAIRS = 20
SDK_PAIRS = 6
CALLS = 1_000
"""About what comes in between two writes of the store, at this pace."""
LIMIT_US = 60.0


def watched(folder: Path) -> SmartModelRouter:
    """The benchmark's fleet with everything that watches on."""
    log = {"to": str(folder / "log.jsonl")}
    telemetry = {"metrics": True, "log": log, "traces": {"enabled": True}}
    config = {**CONFIG, "telemetry": telemetry, "store": {"path": str(folder / "stats.db")}}
    router = SmartModelRouter.from_config(config, seed=1, providers=dict.fromkeys(PROVIDERS, InstantProvider()))
    router.monitor.watch(DashboardHistory())
    return router


@dataclass(frozen=True, slots=True)
class Way:
    """The observers of a router: some of its sinks, and its store or none."""

    sinks: tuple[EventSink, ...] = ()
    store: StatsStore | None = None

    def begin(self, router: SmartModelRouter) -> None:
        """From now on like this."""
        router._state.sinks, router._state.store = self.sinks, self.store


PARTS = {
    "metrics": Metrics,
    "log": QueuedSink,
    "traces without an SDK": SpanSink,
    "dashboard": DashboardHistory,
    "store": SqliteStore,
}
"""The class of each part of observability."""


def ways(router: SmartModelRouter) -> dict[str, Way]:
    """Each part of what watches this router, nothing, and everything."""
    sinks, store = tuple(router._state.sinks), router._state.store
    alone = {name: Way(tuple(sink for sink in sinks if isinstance(sink, kind))) for name, kind in PARTS.items()}
    return {"none": Way(), **alone, "store": replace(alone["store"], store=store), "all": Way(sinks, store)}


async def cost_us(router: SmartModelRouter) -> float:
    """Microseconds of CPU a request, threads included: until their queues are empty."""
    start = time.process_time()
    for _ in range(CALLS):
        await router.chat(BODY)
    workers = [worker for sink in router._state.sinks if (worker := getattr(sink, "worker", None)) is not None]
    while not all(worker.idle for worker in workers):  # noqa: ASYNC110 - threads
        await asyncio.sleep(0.1)  # looking costs something, too
    if isinstance(store := router._state.store, SqliteStore):
        await store.flush()  # or its thread would still write while the next one is measured
    return (time.process_time() - start) / CALLS * 1e6


@dataclass(frozen=True, slots=True)
class Cost:
    """Return what observability adds to a request of `bare` us: the median over pairs, with its standard error."""

    added: float
    error: float
    bare: float

    def line(self, name: str) -> str:
        """One line for people."""
        return f"{name}: {self.added:.1f} us a request (+-{self.error:.1f})"


async def cost(router: SmartModelRouter, way: Way, pairs: int) -> Cost:
    """Watched and unwatched one right after the other, either one first as often."""
    taken: list[tuple[float, float]] = []
    for pair in range(pairs + 1):
        figures: dict[Way, float] = {}
        for turn in (way, Way()) if pair % 2 else (Way(), way):
            turn.begin(router)
            figures[turn] = await cost_us(router)
        if pair:  # the first fills caches
            taken.append((figures[way], figures[Way()]))
    added = [watched - bare for watched, bare in taken]
    low, middle, high = statistics.quantiles(added, n=4)
    error = 1.2533 * (high - low) / 1.349 / math.sqrt(len(added))  # of a median, the spread read off the quartiles
    return Cost(middle, error, statistics.median(bare for _, bare in taken))


async def with_sdk(router: SmartModelRouter, traces: Way) -> Cost:
    """Return what traces add with the SDK's own recording and its batch processor, exported to nowhere."""
    from opentelemetry import trace  # noqa: PLC0415 - it is measured, not used
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter  # noqa: PLC0415

    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:  # noqa: ASYNC230 - before anything is measured
        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter(out=nowhere)))
        trace.set_tracer_provider(provider)
        measured = await cost(router, traces, SDK_PAIRS)
        provider.shutdown()
    return measured


async def main() -> int:
    """Measure and print; 1 when all of it together costs more than its limit."""
    with tempfile.TemporaryDirectory() as folder:
        router = watched(Path(folder))
        everything = ways(router)
        together = await cost(router, everything["all"], PAIRS)
        for name in PARTS:
            print((await cost(router, everything[name], PART_PAIRS)).line(name))
        sdk = await with_sdk(router, everything["traces without an SDK"])
        everything["all"].begin(router)  # whose threads it has to end
        await router.aclose()
    print(f"{sdk.line('traces with an SDK (batched, to nowhere)')}, the SDK's affair")
    note = f"+-{together.error:.1f}"
    figure = Figure(
        "telemetry", together.added, "us CPU", together.bare, "the same router, unwatched", LIMIT_US, note=note
    )
    return report(figure)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
