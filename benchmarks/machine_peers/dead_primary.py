"""A primary that is dead for a while before four processes: the calls that it gets meanwhile, and at its recovery."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from benchmarks.machine_peers.fleets import OURS, SHUFFLE, Kind, ready

from smart_model_router_providers.fault import Fault, FaultServer

PROCESSES = 4
DEAD_FROM, DEAD_UNTIL, END = 3.0, 15.0, 25.0
HEARD_SECONDS = 1.0
"""Seconds after the first error from which on every process may know."""
ARRIVALS = tuple(number / 5 for number in range(round(5 * END)))
"""Seconds, of each process."""
_ERROR_SECONDS = 0.3
TUNED = {"litellm_router": {"num_retries": 2, "allowed_fails": 1, "cooldown_time": 5}}
SCRIPT = (
    Fault.delay(_ERROR_SECONDS, start=DEAD_FROM, stop=DEAD_UNTIL),
    Fault.status(500, start=DEAD_FROM, stop=DEAD_UNTIL),
)


async def _dead(kind: Kind) -> Mapping[str, str]:
    async with (
        FaultServer(SCRIPT, keep_requests=100_000) as primary,
        FaultServer(keep_requests=100_000) as backup,
        ready([kind], primary.base_url, backup.base_url, processes=PROCESSES, more=TUNED) as members,
    ):
        primary.reset()
        began = asyncio.get_running_loop().time()
        told = await asyncio.gather(*(one.driver.round(within=END, arrivals=ARRIVALS) for one in members))
        calls = [(call.at - began, call.status) for call in primary.requests]
    requests = [request for each in told for request in each["requests"]]
    dead = [at for at, _ in calls if DEAD_FROM <= at < DEAD_UNTIL]
    later = sum(at > DEAD_FROM + _ERROR_SECONDS + HEARD_SECONDS for at in dead)
    back = [at for at, _ in calls if at >= DEAD_UNTIL]
    return {
        "answered": f"{sum(each['error'] is None for each in requests)} of {len(requests)}",
        "calls to it while dead": f"{len(dead)}",
        "of them a second after the first error and later": f"{later}",
        "first call after": f"{back[0] - DEAD_UNTIL:.1f} s" if back else "never",
    }


async def dead_primary() -> Mapping[str, Mapping[str, str]]:
    """Both routers at once, each with its own providers and server."""
    kinds = (OURS, SHUFFLE)
    found = await asyncio.gather(*map(_dead, kinds))
    return {kind.name: figures for kind, figures in zip(kinds, found, strict=True)}
