"""A process by itself: the cost of its requests, what it asks of the server, and requests while that is away."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from benchmarks.machine_peers.fleets import LITELLM_ALONE, OURS, OURS_ALONE, SHUFFLE, USAGE, Member, Reads

ALONE = (OURS_ALONE, LITELLM_ALONE)
SHARING = (OURS, USAGE, SHUFFLE)
ROUNDS = 4
ROUND_SECONDS = 1.5
"""The first round of each is not counted."""
IDLE_SECONDS = 5.0
ARRIVALS = tuple(number / 10 for number in range(50))
"""Seconds: ten requests a second for five seconds."""
AWAY_SECONDS = 2.0
BACK_SECONDS = 3.0

Table = Mapping[str, Mapping[str, str]]


async def costs(members: Sequence[Member]) -> Table:
    """CPU of a request, one after another, and the times that the server is asked for it; in turn."""
    taken: dict[str, list[float]] = {member.kind.name: [] for member in members}
    asked: dict[str, list[float]] = {member.kind.name: [] for member in members}
    for _ in range(ROUNDS):
        for member in members:
            reads = Reads(member.server)
            told = await member.driver.round(within=ROUND_SECONDS, callers=1, seconds=ROUND_SECONDS)
            count = len(told["requests"])
            taken[member.kind.name].append(1e6 * told["cpu_seconds"] / count)
            asked[member.kind.name].append(reads.stop() / count)
    return {
        name: {
            "CPU a request": f"{statistics.median(taken[name][1:]):,.0f} us",
            "round trips a request": f"{statistics.median(asked[name][1:]):.2f}",
        }
        for name in taken
    }


async def idle(members: Sequence[Member]) -> Table:
    """Return how often each process asks its server while it has no requests."""
    await asyncio.sleep(1.0)
    reads = [Reads(member.server) for member in members]
    await asyncio.sleep(IDLE_SECONDS)
    return {
        member.kind.name: {"round trips a second of an idle process": f"{each.stop() / IDLE_SECONDS:.1f}"}
        for member, each in zip(members, reads, strict=True)
    }


async def while_away(members: Sequence[Member]) -> Table:
    """Requests as long as all is well, the server stands still, and it is killed and restarted later."""
    found: dict[str, dict[str, str]] = {member.kind.name: {} for member in members}

    async def measure(name: str, happens: Callable[[Member], Awaitable[None]] | None = None) -> None:
        async def one(member: Member) -> dict[str, Any]:
            round_ = member.driver.round(within=ARRIVALS[-1], arrivals=ARRIVALS)
            told, _ = await asyncio.gather(round_, happens(member) if happens else asyncio.sleep(0.0))
            return dict(told)

        for member, told in zip(members, await asyncio.gather(*map(one, members)), strict=True):
            taken = sorted(each["seconds"] for each in told["requests"] if each["error"] is None)
            p50, p99 = (f"{1e3 * taken[int(part * (len(taken) - 1))]:,.0f}" if taken else "-" for part in (0.5, 0.99))
            found[member.kind.name][name] = f"{len(taken)} of {len(told['requests'])}; {p50}; {p99} ms"

    await measure("well: answered; p50; p99")
    for member in members:
        member.server.suspend()
    await measure("stands still for 5 s")
    for member in members:
        member.server.resume()
    await asyncio.sleep(BACK_SECONDS)
    await measure("killed, back after 2 s", _restarted)
    return found


async def _restarted(member: Member) -> None:
    await asyncio.to_thread(member.server.kill)
    await asyncio.sleep(AWAY_SECONDS)
    await asyncio.to_thread(member.server.start)
