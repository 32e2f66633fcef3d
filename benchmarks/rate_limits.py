"""Limits used up and not run into, over real sockets: grants by a limiter that counts, and what it refused.

Eight workers against one key of 600 a minute, for each header family in its own manner, continuous refill or fixed
window; then two keys of thirty a minute under four requests a second. About eight minutes; `QUICK=1` halves them.
`--processes 4` shares one key between so many processes and one state file instead, `--processes 1` gives it to one
(`--seconds 300` for five minutes of each manner of refill).
tests/simulation/test_rate_limits.py shows the same in virtual time, over longer runs and more families.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks._measure import Figure, report

from smart_model_router import SmartModelRouter
from smart_model_router.domain.errors import SmartRouterError
from smart_model_router.domain.outcome import FailureClass
from smart_model_router_providers.fault import Fault, FaultServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

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


def router_for(url: str, kind: str, keys: list[str], store: dict[str, Any] | None = None) -> SmartModelRouter:
    """One model at one provider."""
    tree = {
        "version": 1,
        "providers": {"p": {"kind": kind, "base_url": url, "api_key": keys, "bulkhead": 50}},
        "store": store or {},
        "routing": {"max_wait": "120s"},
        "models": {"smart": {"tiers": [{"targets": ["p/m"]}], "last_resort": []}},
    }
    return SmartModelRouter.from_config(tree, seed=1)


async def use_up(ask: Callable[[dict[str, Any]], Awaitable[object]], workers: int, seconds: float) -> None:
    """So many workers that ask again as soon as they were answered, for so long."""

    async def worker() -> None:
        while True:
            await ask(BODY)

    tasks = [asyncio.create_task(worker()) for _ in range(workers)]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def grants(family: Family) -> tuple[Figure, Figure]:
    """The share of the limit that eight workers were granted, and how many refusals it took."""
    limit = Fault.limit(rpm=LIMIT, kind=family.refill, headers=family.style)
    async with (
        FaultServer([limit], keep_requests=100_000) as server,
        router_for(server.base_url, family.kind, ["k"]) as router,
    ):
        await use_up(router.messages if family.kind == "anthropic" else router.chat, WORKERS, SECONDS)
        granted = sum(r.status == 200 for r in server.requests)
        refused = sum(r.status == 429 for r in server.requests)
    # A window that began is granted whole; so is what a full bucket holds at the start, which is not asked for here.
    due = LIMIT * SECONDS / 60
    name = f"rate_limits[{family.style}, {family.refill}]"
    share = Figure(f"{name} not granted", 100 * max(0.0, 1 - granted / due), "%", due, "calls due", 2.0, f"{granted}")
    return share, Figure(f"{name} refused", refused, "calls", granted, "calls granted", 1.0)


async def two_keys(refill: LimitKind) -> tuple[Figure, Figure]:
    """Requests without an answer, and the refusals of the unluckiest key."""
    limit = Fault.limit(rpm=30, kind=refill)
    async with FaultServer([limit]) as server, router_for(server.base_url, "openai_compatible", ["k1", "k2"]) as router:

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


async def one_of_several(url: str, store: str, workers: int, seconds: float) -> None:
    """A process of `shared`; prints how often it was refused."""
    kept = {"shared_url": store} if "://" in store else {"path": store}
    async with router_for(url, "openai", ["k"], kept) as router:
        await use_up(router.chat, workers, seconds)
        print(router.stats().targets["p/m"].failures.get(FailureClass.RATE_LIMITED, 0))


@dataclass(frozen=True, slots=True)
class Manner:
    """The refill of a limiter: all the time up to `burst`, or once a minute."""

    name: str
    refill: LimitKind
    burst: float = LIMIT

    def due(self, began: float, asked: list[float]) -> float:
        """The most requests that may be granted from the first to the last instant; `began` is when its windows did.

        A window in whose second half the first call arrives is too short to be used up, and not counted.
        """
        first, last = (min(asked) - began) / 60, (max(asked) - began) / 60
        if self.refill == "window":
            return LIMIT * (math.floor(last) - round(first) + 1)
        return self.burst + LIMIT * (last - first)


MANNERS = (
    Manner("continuous", "continuous"),
    Manner("continuous, a second's worth at once", "continuous", LIMIT / 60),
    Manner("window", "window"),
)


async def shared(manner: Manner, processes: int, seconds: float, store: str | None) -> tuple[Figure, Figure]:
    """The share of one limit that processes with one store are granted, and the refusals of the unluckiest one."""
    limit = Fault.limit(rpm=LIMIT, kind=manner.refill, headers="openai", burst=manner.burst)
    workers = max(1, WORKERS // processes)
    with tempfile.TemporaryDirectory() as folder:
        async with FaultServer([limit], keep_requests=100_000) as server:
            began = asyncio.get_running_loop().time()
            worker = (server.base_url, store or f"{folder}/stats.db", str(workers), str(seconds))
            started = [
                await asyncio.create_subprocess_exec(
                    sys.executable, "-m", "benchmarks.rate_limits", "--worker", *worker, stdout=asyncio.subprocess.PIPE
                )
                for _ in range(processes)
            ]
            refused = [int((await process.communicate())[0]) for process in started]
            granted = [r.at for r in server.requests if r.status == 200]
    due = manner.due(began, granted)  # until the last one ended: they begin and end a little apart
    name = f"rate_limits[openai, {manner.name}, {processes} process{'es' if processes > 1 else ''}]"
    missed = 100 * max(0.0, 1 - len(granted) / due)
    lasted = f"{len(granted)} in {max(granted) - min(granted):.0f} s"
    return (
        Figure(f"{name} not granted", missed, "%", due, "calls due", 10.0 if processes > 1 else 2.0, lasted),
        Figure(f"{name} refused, worst process", max(refused), "calls", len(granted), "calls granted", 1.0),
    )


async def measure_shared(processes: int, seconds: float, store: str | None) -> list[Figure]:
    """Every manner of refill, one after the other."""
    figures: list[Figure] = []
    for manner in MANNERS:
        figures += await shared(manner, processes, seconds, store)
    return figures


async def measure() -> list[Figure]:
    """Every family, one after another: they share the machine, not a limit."""
    figures: list[Figure] = []
    for family in FAMILIES:
        figures += await grants(family)
    for refill in ("continuous", "window"):
        figures += await two_keys(refill)
    return figures


def main() -> int:
    """The exit code: 1 when a figure is over its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, help="how many processes share one key")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long, with --processes")
    parser.add_argument("--store", metavar="URL", help="a server that they share, with --processes (else a file)")
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker is not None:
        url, store, workers, seconds = given.worker
        asyncio.run(one_of_several(url, store, int(workers), float(seconds)))
        return 0
    if given.processes:
        return report(*asyncio.run(measure_shared(given.processes, given.seconds, given.store)))
    return report(*asyncio.run(measure()))


if __name__ == "__main__":
    sys.exit(main())
