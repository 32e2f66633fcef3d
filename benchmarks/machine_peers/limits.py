"""A limit of 600 a minute that four processes share: the part of it that they use, and the refusals it takes."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.machine_peers.fleets import OURS, USAGE, Kind, Reads, ready

from smart_model_router_providers.fault import Fault, FaultServer

LIMIT = 600
PROCESSES, CALLERS = 4, 2
SECONDS = 70.0
KINDS = (OURS, USAGE)


@dataclass(frozen=True)
class Scene:
    """A manner of refill, and the requests that are due in so many seconds."""

    name: str
    fault: Fault
    due: Callable[[float], float]


SCENES = (
    Scene(
        "refilled all the time, a second's worth at once",
        Fault.limit(rpm=LIMIT, kind="continuous", headers="openai", burst=LIMIT / 60),
        lambda seconds: LIMIT / 60 * (1 + seconds),
    ),
    Scene(
        "refilled once a minute",
        Fault.limit(rpm=LIMIT, kind="window", headers="openai"),
        lambda seconds: LIMIT * math.ceil(seconds / 60),
    ),
)
Figures = Mapping[str, str]


async def _used_up(scene: Scene, kind: Kind, all_ready: asyncio.Barrier) -> Figures:
    own = {"ours": {"provider": {"rpm": LIMIT}}, "litellm_router": {"deployment": {"rpm": LIMIT}}}
    async with (
        FaultServer([scene.fault], keep_requests=100_000) as provider,
        ready([kind], provider.base_url, processes=PROCESSES, more=own) as members,
    ):
        await all_ready.wait()
        provider.reset()
        reads = Reads(members[0].server)
        rounds = (one.driver.round(within=SECONDS, callers=CALLERS, seconds=SECONDS) for one in members)
        told = await asyncio.gather(*rounds)
        asked = reads.stop() / SECONDS / PROCESSES
        granted = sum(request.status == 200 for request in provider.requests)
        refused = Counter(
            request.body["messages"][0]["content"] for request in provider.requests if request.status == 429
        )
    errors = sum(request["error"] is not None for each in told for request in each["requests"])
    return {
        "used": f"{granted / scene.due(SECONDS):.1%} ({granted:,})",
        "429s of the worst process": f"{max(refused.values(), default=0):,}",
        "429s of all": f"{refused.total():,}",
        "errors of callers": f"{errors:,}",
        "round trips a second of a process": f"{asked:.1f}",
    }


async def used_up() -> Mapping[str, Mapping[str, Figures]]:
    """Every scene with every kind at once: they share the machine, neither a limit nor a server."""
    pairs = [(scene, kind) for scene in SCENES for kind in KINDS]
    all_ready = asyncio.Barrier(len(pairs))
    found = await asyncio.gather(*(_used_up(*pair, all_ready) for pair in pairs))
    made: dict[str, dict[str, Figures]] = {scene.name: {} for scene in SCENES}
    for (scene, kind), figures in zip(pairs, found, strict=True):
        made[scene.name][kind.name] = figures
    return made
