"""The cost that the limit of a virtual key adds to a request, against a key without a limit. CPU time.

The limit is kept with the other processes of the host, in a real state file: what its leases take is counted.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from benchmarks._fleet import CONFIG, PROVIDERS, InstantProvider
from benchmarks._measure import Figure, medians, report

from smart_model_router import SmartModelRouter
from smart_model_router.config import GatewayKeyConfig, Secret
from smart_model_router.domain.ports import Provider
from smart_model_router.gateway.client_keys import ApiClient, KeyRing

RUNS = 9
CALLS = 2_000
RPM = 60_000
LIMIT_US = 20.0


async def measure() -> Figure:
    """Requests of two keys by turns, one after the other."""
    keys = {
        "free": GatewayKeyConfig(key=Secret("free")),
        "limited": GatewayKeyConfig(key=Secret("limited"), rpm=RPM),
    }
    assert RUNS * CALLS < RPM  # a full bucket lets all of them in
    with tempfile.TemporaryDirectory() as folder:
        config = {**CONFIG, "store": {"path": str(Path(folder) / "stats.db")}}
        providers: dict[str, Provider] = dict.fromkeys(PROVIDERS, InstantProvider())
        async with SmartModelRouter.from_config(config, seed=1, providers=providers) as router:
            assert router.client_leases is not None
            ring = KeyRing(keys)
            ring.share(router.client_leases)
            clock = asyncio.get_running_loop().time

            async def visit(api_client: ApiClient) -> None:
                (await api_client.admit(0, 0.0)).settle([], clock())

            free, limited = (ring.api_client({"x-api-key": name}) for name in keys)
            taken = await medians(
                {"free": lambda: visit(free), "limited": lambda: visit(limited)}, runs=RUNS, calls=CALLS
            )
    return Figure(
        "limited_key",
        taken["limited"] - taken["free"],
        "us CPU",
        taken["free"],
        "a key without a limit; the figure is what comes on top",
        LIMIT_US,
        note=f"rpm {RPM:,}",
    )


if __name__ == "__main__":
    sys.exit(report(asyncio.run(measure())))
