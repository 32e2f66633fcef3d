"""The cost of slots of the host: two processes that share state.db, each with slots of its own or with those of both.

Calls take 50 ms of no CPU, with a pause of up to 20 ms after each. CPU time a call of both processes, calls a second,
and what a request waits beyond its call; each row in turn with its baseline, the same with `bulkhead_scope: process`.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks._fleet import BODY, InstantProvider
from benchmarks._measure import Figure, report

from smart_model_router import SmartModelRouter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smart_model_router.domain.outcome import Outcome
    from smart_model_router.domain.ports import ProviderCall

SLOTS = 8
CALL_SECONDS = 0.05
PAUSE_SECONDS = 0.02
WARM_SECONDS = 1.0
SECONDS = 5.0
RUNS = 3
ROWS = {"below three quarters": (3, 3), "all slots": (4, 4), "all slots, unevenly": (7, 1)}
"""Calls that the processes keep under way."""
LIMITS = {"below three quarters": 1.1, "all slots": 1.5, "all slots, unevenly": 1.5}
"""CPU a call, times that with slots of each process."""


class _SlowProvider(InstantProvider):
    """Answers after a while."""

    async def call(self, call: ProviderCall) -> Outcome:
        """Wait, and answer."""
        await asyncio.sleep(CALL_SECONDS)
        return await super().call(call)


Measured = tuple[int, float, list[float]]
"""Calls, CPU seconds, and the seconds of each call."""


async def _work(path: str, scope: str, workers: int) -> Measured:
    config: dict[str, Any] = {
        "version": 1,
        "providers": {"p": {"kind": "scripted", "bulkhead": SLOTS, "bulkhead_scope": scope}},
        "models": {"smart": {"tiers": [{"targets": ["p/m0"]}], "last_resort": []}},
        "store": {"path": path},
    }
    taken: list[float] = []
    async with SmartModelRouter.from_config(config, providers={"p": _SlowProvider()}) as router:

        async def keep(seed: int) -> None:
            dice = random.Random(seed)  # noqa: S311 - a repeatable load, not a secret
            while True:
                began = time.perf_counter()
                await router.chat(BODY, timeout=600)
                taken.append(time.perf_counter() - began)
                await asyncio.sleep(dice.uniform(0.0, PAUSE_SECONDS))

        tasks = [asyncio.create_task(keep(seed)) for seed in range(workers)]
        await asyncio.sleep(WARM_SECONDS)
        taken.clear()
        began = time.process_time()
        await asyncio.sleep(SECONDS)
        cpu, found = time.process_time() - began, list(taken)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return len(found), cpu, found


def _process(path: str, scope: str, workers: int) -> Measured:
    return asyncio.run(_work(path, scope, workers))


def _run(scope: str, workers: Sequence[int]) -> tuple[float, float, float]:
    """CPU us a call, calls a second, and the p99 of a request's seconds."""
    with tempfile.TemporaryDirectory() as folder, multiprocessing.get_context("spawn").Pool(len(workers)) as pool:
        path = str(Path(folder) / "stats.db")
        made = pool.starmap(_process, [(path, scope, count) for count in workers], chunksize=1)
    calls = sum(count for count, *_ in made)
    taken = sorted(seconds for *_, found in made for seconds in found)
    return sum(cpu for _, cpu, _ in made) / calls * 1e6, calls / SECONDS, taken[int(len(taken) * 0.99)]


def _medians(runs: Sequence[tuple[float, float, float]]) -> list[float]:
    return [statistics.median(column) for column in zip(*runs, strict=True)]


def figures() -> list[Figure]:
    """CPU a call of each row; calls a second and the p99 in the note."""
    made = []
    for row, workers in ROWS.items():
        runs = [(_run("host", workers), _run("process", workers)) for _ in range(RUNS)]
        host, alone = _medians([one for one, _ in runs]), _medians([other for _, other in runs])
        note = (
            f"{host[1]:.0f} calls a second, baseline {alone[1]:.0f}; "
            f"p99 {host[2] * 1e3:.0f} ms, baseline {alone[2] * 1e3:.0f}"
        )
        against, limit = "slots of each process", LIMITS[row] * alone[0]
        made.append(Figure(f"shared_slots {row}", host[0], "us CPU", alone[0], against, limit, note))
    return made


if __name__ == "__main__":
    sys.exit(report(*figures()))
