"""What routing costs a call: plan, admit, settle and observe over ten targets in three tiers, without any I/O.

CPU time a call, median of several runs. The baseline is the same provider awaited directly with the same body made
into JSON: what anybody who sends a request pays.
"""

from __future__ import annotations

import asyncio
import json
import sys

from benchmarks._fleet import BODY, InstantProvider, instant_router
from benchmarks._measure import Figure, medians, report

from smart_model_router.ports import ProviderCall

RUNS = 9
CALLS = 2_000
LIMIT_US = 120.0
STRETCH_US = 60.0


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


if __name__ == "__main__":
    sys.exit(report(asyncio.run(measure())))
