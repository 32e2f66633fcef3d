"""Limits used up and not run into, over real sockets: grants by a limiter that counts, and what it refused.

Eight workers against one key of 600 a minute, for each header family in its own manner, continuous refill or fixed
window; then two keys of thirty a minute under four requests a second. About eight minutes; `QUICK=1` halves them.
tests/simulation/test_rate_limits.py shows the same in virtual time, over longer runs and more families.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks._measure import Figure, report

from smart_model_router import SmartModelRouter
from smart_model_router.errors import SmartRouterError
from smart_model_router_providers.fault import Fault, FaultServer

if TYPE_CHECKING:
    from smart_model_router_providers.fault.effects import LimitKind, LimitStyle

BODY: dict[str, Any] = {"model": "smart", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 20}
LIMIT = 600
SECONDS = 60.0 if os.environ.get("QUICK") else 90.0
WORKERS = 8


@dataclass(frozen=True, slots=True)
class Family:
    """A provider kind, its manner of speaking about limits, and how its limiter refills."""

    kind: str
    style: LimitStyle
    refill: LimitKind


FAMILIES = (
    Family("openai", "openai", "continuous"),
    Family("anthropic", "anthropic", "continuous"),
    Family("openai_compatible", "ietf", "continuous"),
    Family("openai_compatible", "openai", "window"),
    Family("github", "github", "window"),
    Family("cerebras", "cerebras", "window"),
    Family("mistral", "mistral", "window"),
)


def router_for(server: FaultServer, kind: str, keys: list[str]) -> SmartModelRouter:
    """One model at one provider."""
    tree = {
        "version": 1,
        "providers": {"p": {"kind": kind, "base_url": server.base_url, "api_key": keys, "bulkhead": 50}},
        "routing": {"max_wait": "120s"},
        "models": {"smart": {"tiers": [{"targets": ["p/m"]}], "last_resort": []}},
    }
    return SmartModelRouter.from_config(tree, seed=1)


async def grants(family: Family) -> tuple[Figure, Figure]:
    """The share of the limit that eight workers were granted, and how many refusals it took."""
    limit = Fault.limit(rpm=LIMIT, kind=family.refill, headers=family.style)
    async with FaultServer([limit], keep_requests=100_000) as server, router_for(server, family.kind, ["k"]) as router:
        ask = router.messages if family.kind == "anthropic" else router.chat
        started = time.monotonic()

        async def worker() -> None:
            while time.monotonic() < started + SECONDS:
                await ask(BODY)

        workers = [asyncio.create_task(worker()) for _ in range(WORKERS)]
        await asyncio.sleep(SECONDS)
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        granted = sum(r.status == 200 for r in server.requests)
        refused = sum(r.status == 429 for r in server.requests)
    # A window that began is granted whole; so is what a full bucket holds at the start, which is not asked for here.
    due = LIMIT * SECONDS / 60
    name = f"rate_limits[{family.style}, {family.refill}]"
    share = Figure(f"{name} not granted", 100 * max(0.0, 1 - granted / due), "%", due, "calls due", 2.0, f"{granted}")
    return share, Figure(f"{name} refused", refused, "calls", granted, "calls granted", 1.0)


async def two_keys(refill: LimitKind) -> tuple[Figure, Figure]:
    """Requests nobody answered, and the refusals of the unluckiest key."""
    limit = Fault.limit(rpm=30, kind=refill)
    async with FaultServer([limit]) as server, router_for(server, "openai_compatible", ["k1", "k2"]) as router:

        async def ask() -> bool:
            try:
                await router.chat(BODY)
            except SmartRouterError:
                return False
            return True

        asks = []
        for _ in range(100):
            asks.append(asyncio.create_task(ask()))
            await asyncio.sleep(0.25)
        answered = sum(await asyncio.gather(*asks))
        refusals = Counter(r.key for r in server.requests if r.status == 429)
    name = f"rate_limits[two keys, {refill}]"
    return (
        Figure(f"{name} not answered", 100 - answered, "%", 100, "requests", 1.0),
        Figure(f"{name} refused, worst key", max(refusals.values(), default=0), "calls", 100, "requests", 1.0),
    )


async def measure() -> list[Figure]:
    """Every family, one after another: they share the machine, not a limit."""
    figures: list[Figure] = []
    for family in FAMILIES:
        figures += await grants(family)
    for refill in ("continuous", "window"):
        figures += await two_keys(refill)
    return figures


if __name__ == "__main__":
    sys.exit(report(*asyncio.run(measure())))
