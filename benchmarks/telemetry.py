"""What being watched costs a request: metrics, log, traces, dashboard and store together, and each alone.

CPU time a request with everything its threads do for it, over the router without any of them. The least of several
runs: a difference of two figures that other work on the machine inflates would say little.
The OpenTelemetry SDK is the application's: its own cost stands beside ours, and no limit is set for it.
"""

from __future__ import annotations

import asyncio
import os
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

RUNS = 15
CALLS = 300
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
        await asyncio.sleep(0.001)
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


async def measure() -> dict[str, float]:
    """The least cost of each, taken in turn."""
    taken: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        made = {name: make() for name, make in routers(Path(folder)).items()}
        for run in range(RUNS + 1):
            for name, router in made.items():
                figure = await cost_us(router)
                if run:  # the first fills caches
                    taken.setdefault(name, []).append(figure)
        for router in made.values():
            await router.aclose()
    return {name: min(figures) for name, figures in taken.items()}


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
    taken = await measure()
    bare = taken["none"]
    for name in list(taken)[1:-1]:
        print(f"{name}: {taken[name] - bare:.1f} us a request")
    print(f"traces with an SDK (batched, to nowhere): {await with_sdk() - bare:.1f} us a request, the SDK's affair")
    figure = Figure("telemetry", taken["all"] - bare, "us CPU", bare, "the same router, unwatched", LIMIT_US)
    return report(figure)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
