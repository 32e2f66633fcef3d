"""`make bench-machine-peers`: processes that share their state, beside LiteLLM's Router with Redis, over real sockets.

The same scripted providers and the same arrivals for each row, and a server of its own (the Valkey of the tests'
wheel, or SMR_TEST_VALKEY). LiteLLM runs as its documentation advises, in the newest release that resolves. Four
minutes once it is installed. Prints Markdown tables.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping

from benchmarks._server import served
from benchmarks.machine_peers.dead_primary import dead_primary
from benchmarks.machine_peers.fleets import ready
from benchmarks.machine_peers.limits import SCENES, used_up
from benchmarks.machine_peers.one_process import ALONE, SHARING, costs, idle, while_away
from benchmarks.peers.rows import install

NO_SUCH_THING = {
    "a lease for the probe of a dead target": ("one process probes at a time", "none: each asks after its cooldown"),
    "an operator's word (`isolate`) heard by all processes": ("`benchmarks.machines`: 170 ms", "no such call"),
}


def table(rows: Mapping[str, Mapping[str, str]]) -> str:
    """Rows by their names, each with its figures by theirs, in Markdown."""
    headings = ("", *next(iter(rows.values())))
    lines: Iterable[tuple[str, ...]] = [
        headings,
        ("---",) * len(headings),
        *((name, *row.values()) for name, row in rows.items()),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


async def _one_process() -> None:
    with served(events=1) as provider:
        async with ready([*ALONE, *SHARING], provider) as members:
            print("; ".join(dict.fromkeys(member.driver.version for member in members)) + "\n")
            print("A process by itself\n\n" + table(await costs(members)))
            sharing = [member for member in members if member.kind in SHARING]
            print("Idle\n\n" + table(await idle(sharing)))
            print("Requests while the server is away\n\n" + table(await while_away(sharing)), flush=True)


async def _fleets() -> None:
    found, dead = await asyncio.gather(used_up(), dead_primary())
    for scene in SCENES:
        print(f"A limit of 600 a minute, {scene.name}\n\n" + table(found[scene.name]))
    print("A dead primary\n\n" + table(dead))


def main() -> None:
    """Install, measure, print."""
    install(("litellm_router",))
    asyncio.run(_one_process())
    asyncio.run(_fleets())
    told = {name: {"smart-model-router": ours, "LiteLLM": theirs} for name, (ours, theirs) in NO_SUCH_THING.items()}
    print(table(told))
    print("load " + " ".join(f"{each:.1f}" for each in os.getloadavg()))


if __name__ == "__main__":
    main()
