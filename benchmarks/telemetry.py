"""What being watched costs a request: metrics, log, traces, dashboard and store together, and each alone.

CPU time a request with everything its threads do for it, over the router without any of them: the median over turns
of the difference between neighbours, because other work on the machine inflates both of a turn alike.
The OpenTelemetry SDK is the application's: its own cost stands beside ours, and no limit is set for it.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks._fleet import BODY, CONFIG, PROVIDERS, InstantProvider
from benchmarks._measure import Figure, report

from smart_model_router import SmartModelRouter
from smart_model_router.monitor.recorder import Recorder
from smart_model_router_stats.sqlite import SqliteStore

RUNS = 40
CALLS = 500
LIMIT_US = 60.0


def router_of(telemetry: Mapping[str, Any], *, store: Path | None = None, recorder: bool = False) -> SmartModelRouter:
    """The benchmark's fleet, watched like this."""
    config = {**CONFIG, "telemetry": telemetry, **({} if store is None else {"store": {"path": str(store)}})}
    made = SmartModelRouter.from_config(config, seed=1, providers=dict.fromkeys(PROVIDERS, InstantProvider()))
    if recorder:
        made.monitor.watch(Recorder())
    return made


async def cost_us(router: SmartModelRouter) -> float:
    """Microseconds of CPU a request, threads included: until their queues are empty."""
    start = time.process_time()
    for _ in range(CALLS):
        await router.chat(BODY)
    workers = [worker for sink in router._state.sinks if (worker := getattr(sink, "worker", None)) is not None]
    while not all(worker.idle for worker in workers):  # noqa: ASYNC110 - threads
        await asyncio.sleep(0.02)
    if isinstance(store := router._state.store, SqliteStore):
        await store.flush()  # or its thread would still write while the next one is measured
    return (time.process_time() - start) / CALLS * 1e6


def routers(folder: Path) -> dict[str, Callable[[], SmartModelRouter]]:
    """Each way of being watched."""
    log = {"log": {"to": str(folder / "log.jsonl")}}
    traces = {"traces": {"enabled": True}}
    off: dict[str, Any] = {"metrics": False}
    everything = {"metrics": True, **log, **traces}
    return {
        "none": lambda: router_of(off),
        "metrics": lambda: router_of({"metrics": True}),
        "log": lambda: router_of({**off, **log}),
        "traces without an SDK": lambda: router_of({**off, **traces}),
        "dashboard": lambda: router_of(off, recorder=True),
        "store": lambda: router_of(off, store=folder / "alone.db"),
        "all": lambda: router_of(everything, store=folder / "stats.db", recorder=True),
    }


async def measure() -> tuple[float, dict[str, float]]:
    """The router unwatched, and what each way of being watched adds."""
    taken: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        made = {name: make() for name, make in routers(Path(folder)).items()}
        for run in range(RUNS + 1):
            for name in random.sample(list(made), len(made)):  # nobody always comes after the same one
                figure = await cost_us(made[name])
                if run:  # the first fills caches
                    taken.setdefault(name, []).append(figure)
        for router in made.values():
            await router.aclose()
    bare = taken["none"]
    watched = [name for name in made if name != "none"]
    added = {name: [one - none for one, none in zip(taken[name], bare, strict=True)] for name in watched}
    return statistics.median(bare), {name: statistics.median(figures) for name, figures in added.items()}


async def with_sdk() -> float:
    """Traces with the SDK's own recording and its batch processor, exported to nowhere."""
    from opentelemetry import trace  # noqa: PLC0415 - it is measured, not used
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter  # noqa: PLC0415

    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:  # noqa: ASYNC230 - before anything is measured
        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter(out=nowhere)))
        trace.set_tracer_provider(provider)
        router = router_of({"metrics": False, "traces": {"enabled": True}})
        figures = [await cost_us(router) for _ in range(5)]
        await router.aclose()
        provider.shutdown()
    return min(figures[1:])


async def main() -> int:
    """Measure and print; 1 when all of it together costs more than its limit."""
    bare, added = await measure()
    for name in list(added)[:-1]:
        print(f"{name}: {added[name]:.1f} us a request")
    print(f"traces with an SDK (batched, to nowhere): {await with_sdk() - bare:.1f} us a request, the SDK's affair")
    figure = Figure("telemetry", added["all"], "us CPU", bare, "the same router, unwatched", LIMIT_US)
    return report(figure)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
