"""`make bench-peers`: this router and what a user would pick instead, over real sockets, with the same seed.

Every peer runs in an environment of its own, made here with the newest releases that resolve. About nine minutes
once they are there. Prints a Markdown table for each scene; exits with 1 when this router broke a promise.
"""

from __future__ import annotations

import asyncio
import sys

from benchmarks.peers.playing import Played, Scene, play_all
from benchmarks.peers.rows import ROWS, install
from benchmarks.peers.scenes import FIGURES, OUTAGE, RETRY_AFTER, TWO_KEYS, broken_promises
from benchmarks.retry_after import measure

AT_ONCE = {OUTAGE.name: 1}
"""Rows at a time where seconds are measured; elsewhere all of them: they share the machine, not a limit."""


def table(scene: Scene, all_played: list[Played]) -> str:
    """One scene in Markdown."""
    figures = {played.row.name: FIGURES[scene.name](played) for played in all_played}
    headings = ("", *next(iter(figures.values())))
    lines = [headings, ("---",) * len(headings), *((name, *row.values()) for name, row in figures.items())]
    return f"{scene.name}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


async def compare() -> list[str]:
    """Play every scene with every row and print the tables; the promises that were broken."""
    broken: list[str] = []
    for scene in (OUTAGE, *TWO_KEYS, RETRY_AFTER):
        all_played = await play_all(ROWS, scene, at_once=AT_ONCE.get(scene.name, len(ROWS)))
        if scene is OUTAGE:
            print("; ".join(dict.fromkeys(played.version for played in all_played)) + "\n")
        print(table(scene, all_played), flush=True)
        broken += broken_promises(all_played[0])
    return broken


def main() -> int:
    """Install, compare, judge; the exit code."""
    install()
    broken = asyncio.run(compare())
    factor = measure()
    print(factor.line())
    broken += [factor.line()] if factor.value > factor.limit else []
    for promise in broken:
        print(f"BROKEN {promise}")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
