"""The cost of routing a call: plan, admit, settle and observe over ten targets in three tiers, without any I/O.

CPU time a call, median of several runs. The baseline is the same provider awaited directly with the same body made
into JSON: the cost of any client. A second row is of a name that a wildcard stands for, against the same
model under a plain name. A third is of a thousand targets that are all full while a thousand requests wait, against the
same thousand without them.
"""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import sys
import time
from typing import Any

from benchmarks._fleet import BODY, HeldProvider, InstantProvider, instant_router
from benchmarks._measure import Figure, cpu_us, medians, report

from smart_model_router import SmartModelRouter
from smart_model_router.domain.ports import Provider, ProviderCall

RUNS = 9
CALLS = 2_000
LIMIT_US = 120.0
WILDCARD_US = 5.0
"""The most that a wildcard may add."""
STRETCH_US = 60.0
PROVIDERS = [f"p{number}" for number in range(100)]
MODELS = 10
SLOTS = 10
WAITING = 1_000
SATURATED_RUNS = 3
SATURATED_CALLS = 100
SATURATED_LIMIT = 3.0
"""Times the cost of the call without waiting requests."""


async def measure() -> Figure:
    """Ten targets, one call after another."""
    provider = InstantProvider()

    async def bare() -> object:
        payload = json.dumps(BODY).encode()
        return await provider.call(ProviderCall("chat", "m0", payload, BODY))

    async with instant_router(provider) as router:
        taken = await medians({"bare": bare, "routed": lambda: router.chat(BODY)}, runs=RUNS, calls=CALLS)
    return Figure(
        "route_call",
        taken["routed"],
        "us CPU",
        taken["bare"],
        "the provider awaited directly, and json.dumps",
        LIMIT_US,
        note=f"stretch {STRETCH_US:g}",
    )


async def measure_wildcard() -> Figure:
    """A plain name and one that a wildcard stands for, of two targets each, asked in turn."""
    config = {
        "version": 1,
        "providers": {name: {"kind": "scripted", "bulkhead": 100} for name in ("p0", "p1")},
        "models": {
            "plain": {"targets": ["p0/m", "p1/m"], "last_resort": []},
            "any/*": {"targets": ["p0/*", "p1/*"], "last_resort": []},
        },
    }
    plain, wild = {**BODY, "model": "plain"}, {**BODY, "model": "any/w"}
    providers: dict[str, Provider] = dict.fromkeys(("p0", "p1"), InstantProvider())
    async with SmartModelRouter.from_config(config, seed=1, providers=providers) as router:
        works = {"plain": lambda: router.chat(plain), "wild": lambda: router.chat(wild)}
        taken = await medians(works, runs=3 * RUNS, calls=CALLS // 2)
    more = taken["wild"] - taken["plain"]
    return Figure("route_call_wildcard", more, "us CPU more", taken["plain"], "the plain name's call", WILDCARD_US)


def _thousand(provider: Provider) -> SmartModelRouter:
    """A router with a thousand targets in one tier."""
    config: dict[str, Any] = {
        "version": 1,
        "providers": {name: {"kind": "scripted", "bulkhead": SLOTS} for name in PROVIDERS},
        "models": {
            "smart": {
                "tiers": [{"targets": [f"{name}/m{number}" for number in range(MODELS) for name in PROVIDERS]}],
                "last_resort": [],
            }
        },
        "routing": {"max_waiting": 2 * WAITING},
    }
    return SmartModelRouter.from_config(config, seed=1, providers=dict.fromkeys(PROVIDERS, provider))


async def _saturated() -> float:
    """Microseconds a request of 1,000 full targets and 1,000 waiters: one ends, one takes its slot, one more comes."""
    provider, slots = HeldProvider(), len(PROVIDERS) * SLOTS
    async with _thousand(provider) as router:
        asking = {asyncio.ensure_future(router.chat(BODY, timeout=600)) for _ in range(slots + WAITING)}
        await provider.holds(slots)
        gc.collect()  # what came before has its own cost
        start = time.process_time()
        for _ in range(SATURATED_CALLS):
            provider.answer_oldest()
            asking.add(asyncio.ensure_future(router.chat(BODY, timeout=600)))
            await provider.holds(slots)
        taken = (time.process_time() - start) / SATURATED_CALLS * 1e6
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    return taken


async def measure_saturated() -> Figure:
    """A thousand targets: full, with a thousand waiters, against idle."""
    idle, full = [], []
    for _ in range(SATURATED_RUNS):
        async with _thousand(InstantProvider()) as router:
            await cpu_us(lambda: router.chat(BODY), SATURATED_CALLS // 4)
            idle.append(await cpu_us(lambda: router.chat(BODY), SATURATED_CALLS))
        full.append(await _saturated())
    nobody = statistics.median(idle)
    return Figure(
        "route_call_saturated",
        statistics.median(full),
        "us CPU",
        nobody,
        "the same 1,000 targets without waiting requests",
        SATURATED_LIMIT * nobody,
    )


async def _all() -> tuple[Figure, ...]:
    return await measure(), await measure_wildcard(), await measure_saturated()


if __name__ == "__main__":
    sys.exit(report(*asyncio.run(_all())))
