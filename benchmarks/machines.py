"""Sharing state over a server: what it costs a request, a claim, a lease, the server; and how well limits are used.

Beside it the same on a file (one host). The servers are those of the tests' wheels, or what SMR_TEST_VALKEY and
SMR_TEST_POSTGRES name.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from benchmarks._fleet import BODY, InstantProvider
from benchmarks._measure import Figure, medians, report

from smart_model_router import SmartModelRouter
from smart_model_router.domain.shared_state import BreakerRow, BucketAsk, Changes, Deadline, SharedStateError
from smart_model_router.flow.clock import boottime, here
from smart_model_router_stats.server_clock import ServerClock
from smart_model_router_stats.shared_optimistic import ServerSharedState
from smart_model_router_stats.shared_postgres import postgres_rows
from smart_model_router_stats.shared_schema import state_path
from smart_model_router_stats.shared_sqlite import SqliteSharedState
from smart_model_router_stats.shared_valkey import valkey_rows
from tests.database_servers import PostgresServer, ValkeyServer, running

PROCESSES, EACH = 5, 10
"""So many processes with so many states each: fifty in all, which is more than this machine has cores for."""
CLAIMS = 150
LEASES_A_SECOND = 4
LEASE_SECONDS = 8.0
IDLE_SECONDS = 8.0
_ASKED = frozenset({"cmdstat_get", "cmdstat_evalsha"})
LEASE_LIMITS_MS = {"valkey": (2.0, 20.0), "postgres": (10.0, 80.0), "file": (50.0, 500.0)}
"""p50 and p99."""


def state_at(where: str) -> Any:
    """One process's way to what is shared at a URL, or in a file."""
    if "://" not in where:
        return SqliteSharedState(state_path(Path(where)), here)
    rows = postgres_rows if where.startswith("postgresql") else valkey_rows
    return ServerSharedState(rows(where, "bench"), ServerClock(boottime, here), boottime)


@contextmanager
def places() -> Generator[dict[str, str]]:
    """A file and a server of each kind."""
    with tempfile.TemporaryDirectory() as folder, running(ValkeyServer) as one, running(PostgresServer) as two:
        yield {
            "valkey": cast("ValkeyServer", one).url,
            "postgres": cast("PostgresServer", two).new_database(),
            "file": str(Path(folder) / "stats.db"),
        }


def router_at(where: str | None, **facts: Any) -> SmartModelRouter:
    """A router over one target, which shares its state there."""
    store = {} if where is None else {"shared_url": where} if "://" in where else {"path": where}
    config = {
        "version": 1,
        "providers": {"p": {"kind": "scripted", "rpm": 10_000_000, "bulkhead": 100, "bulkhead_scope": "process"}},
        "models": {"smart": {"tiers": [{"targets": ["p/m0"]}], "last_resort": []}},
        "store": store,
    }
    return SmartModelRouter.from_config(config, providers={"p": InstantProvider()}, **facts)


async def _request_cost(places: dict[str, str]) -> list[Figure]:
    routers = {name: router_at(where) for name, where in {"alone": None, **places}.items()}
    works = {name: (lambda router=router: router.chat(BODY)) for name, router in routers.items()}
    found = await medians(works, runs=7, calls=300)
    for router in routers.values():
        await router.aclose()
    file, note = found["file"], f"shares nothing: {found['alone']:.0f}"
    return [
        Figure(f"machines request {name}", found[name], "us CPU", file, "a file", 1.05 * file, note) for name in places
    ]


async def _claims(where: str) -> tuple[float, float]:
    """The median and the longest of the seconds in which fifty states learn which of them has a probe that came due."""
    states, taken = [state_at(where) for _ in range(PROCESSES * EACH)], []
    for number in range(CLAIMS):
        owner = f"t{number}/m"
        until = Deadline.after(0.0, here())
        row = BreakerRow(owner=owner, kind="whole", provider=f"t{number}", state="open", until=until)
        await states[0].publish(Changes((row,)))
        asks = [
            replace(row, state="half_open", until=Deadline.after(30.0, here()), holder=str(n))
            for n in range(len(states))
        ]
        began = time.perf_counter()
        claims = await asyncio.gather(*(state.claim([ask]) for state, ask in zip(states, asks, strict=True)))
        taken.append(time.perf_counter() - began)
        assert sum(bool(claim.granted) for claim in claims) == 1, number
    await asyncio.gather(*(state.aclose() for state in states))
    return statistics.median(taken) / len(states), max(taken) / len(states)


async def _leasing(where: str, seconds: float) -> list[float]:
    states = [state_at(where) for _ in range(EACH)]
    ask = BucketAsk(key="p requests", capacity=1e6, rate=1e4, most=1e6, want=1, least=1)
    taken: list[float] = []
    for state in states:  # a lease, not the way to the first one
        with suppress(SharedStateError):
            await state.lease([ask])

    async def keep(place: int, state: Any) -> None:
        await asyncio.sleep(place / EACH / LEASES_A_SECOND)
        end = time.perf_counter() + seconds
        while (began := time.perf_counter()) < end:
            with suppress(SharedStateError):  # a busy machine takes long for the first one, and the router asks again
                await state.lease([ask])
                taken.append(time.perf_counter() - began)
            await asyncio.sleep(max(0.0, 1 / LEASES_A_SECOND + began - time.perf_counter()))

    await asyncio.gather(*(keep(place, state) for place, state in enumerate(states)))
    await asyncio.gather(*(state.aclose() for state in states))
    return taken


def _leases(where: str, seconds: float) -> list[float]:
    return asyncio.run(_leasing(where, seconds))


def _lease_figures(places: dict[str, str]) -> list[Figure]:
    made = []
    found: dict[str, list[float]] = {}
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        for name, where in places.items():
            pool.starmap(_leases, [(where, 1.0)] * PROCESSES, chunksize=1)
            runs = pool.starmap(_leases, [(where, LEASE_SECONDS)] * PROCESSES, chunksize=1)
            found[name] = sorted(seconds for run in runs for seconds in run)
    for part, name_of_part in ((0.5, "p50"), (0.99, "p99")):
        values = {name: 1000 * taken[int(part * (len(taken) - 1))] for name, taken in found.items()}
        for name in places:
            limit = LEASE_LIMITS_MS[name][name_of_part == "p99"]
            made.append(
                Figure(f"machines lease {name_of_part} {name}", values[name], "ms", values["file"], "a file", limit)
            )
    return made


async def _heard_by_all(where: str) -> float:
    """The seconds until all of fifty routers obey the operator."""
    routers = [router_at(where) for _ in range(PROCESSES * EACH)]
    await asyncio.gather(*(router.chat(BODY) for router in routers))
    await asyncio.sleep(0.5)
    began = time.perf_counter()
    routers[0].isolate("p/m0")
    while not all(any(target.isolated for target in router.targets()) for router in routers):  # noqa: ASYNC110 - no event
        await asyncio.sleep(0.005)
    took = time.perf_counter() - began
    await asyncio.gather(*(router.aclose() for router in routers))
    return took


async def _idle_commands(server: ValkeyServer) -> float:
    """Commands a second that a server gets from fifty idle routers; those inside a script are part of it."""
    routers = [router_at(server.url) for _ in range(PROCESSES * EACH)]
    await asyncio.gather(*(router.chat(BODY) for router in routers))
    await asyncio.sleep(1.0)
    with server.client() as client:

        def asked() -> int:
            return sum(told["calls"] for name, told in client.info("commandstats").items() if name in _ASKED)

        before = asked()
        began = time.perf_counter()
        await asyncio.sleep(IDLE_SECONDS)
        found = (asked() - before) / (time.perf_counter() - began)
    await asyncio.gather(*(router.aclose() for router in routers))
    return float(found)


async def _restart(server: ValkeyServer) -> tuple[float, float, int, int]:
    """p99 of requests in seconds before and while the server is restarted; requests, and those answered."""
    router, taken, answered = router_at(server.url), [], 0

    async def some(seconds: float) -> list[float]:
        nonlocal answered
        found: list[float] = []
        end = time.perf_counter() + seconds
        while (began := time.perf_counter()) < end:
            await router.chat(BODY)
            answered += 1
            found.append(time.perf_counter() - began)
            await asyncio.sleep(0.002)
        taken.extend(found)
        return sorted(found)

    before = await some(3.0)
    restart = asyncio.get_running_loop().run_in_executor(None, server.restart)
    during = await some(3.0)
    await restart
    await router.aclose()
    p99: Callable[[list[float]], float] = lambda found: found[int(0.99 * (len(found) - 1))]  # noqa: E731
    return p99(before), p99(during), len(taken), answered


def figures() -> Iterator[Figure]:
    """One after another, as each takes a while."""
    with places() as found:
        yield from asyncio.run(_request_cost(found))
        claims = {name: asyncio.run(_claims(where)) for name, where in found.items()}
        file = 1000 * claims["file"][0]
        for name, (median, longest) in claims.items():
            note = f"{CLAIMS} times one winner of {PROCESSES * EACH}; longest {1000 * longest:.2f} ms each"
            yield Figure(f"machines claim {name}", 1000 * median, "ms each", file, "a file", 20.0, note)
        yield from _lease_figures(found)
    with running(ValkeyServer) as server:
        valkey = cast("ValkeyServer", server)
        heard = asyncio.run(_heard_by_all(valkey.url))
        yield Figure("machines heard by all of 50", 1000 * heard, "ms", 100.0, "the interval of polls", 500.0)
    with running(ValkeyServer) as server:
        valkey = cast("ValkeyServer", server)
        commands = asyncio.run(_idle_commands(valkey))
        yield Figure(
            "machines commands of 50 idle processes", commands, "a second", 250.0, "five polls a second each", 300.0
        )
    with running(ValkeyServer) as server:
        before, during, asked, answered = asyncio.run(_restart(cast("ValkeyServer", server)))
        note = f"{answered} of {asked} answered"
        yield Figure(
            "machines p99 while the server restarts", 1000 * during, "ms", 1000 * before, "before", 2000 * before, note
        )


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    sys.exit(max(report(figure) for figure in figures()))
