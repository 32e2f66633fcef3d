"""The work that a checkpoint saver is measured by; run with a peer's interpreter, it measures that one.

It imports LangGraph and nothing of ours: the environment of a peer has no more.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

THERE = 1_000
"""Checkpoints that a thread has when the next ones are measured."""
MEASURED = 300
STEPS = 40
LARGE = "x" * 100_000
MESSAGES = [{"role": "user", "content": f"message {n}: " + "words " * 20} for n in range(20)]


def of(checkpoint: str | None) -> Any:
    """Return the configuration of a checkpoint."""
    return {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": checkpoint}}


async def puts(saver: Any, start: int, count: int) -> tuple[float, float]:
    """Keep checkpoints of ten channels, two of which change; returns CPU and the median wall clock of one, in ms."""
    walls, begun = [], time.process_time()
    for number in range(start, start + count):
        values = {f"c{n}": MESSAGES[n] for n in range(8)} | {"messages": MESSAGES[number % 20], "step": number}
        versions = dict.fromkeys(values, 1) | {"messages": number + 1, "step": number + 1}
        checkpoint = {"v": 4, "id": f"{number:08}", "ts": "", "channel_values": values, "channel_versions": versions}
        checkpoint |= {"versions_seen": {"node": versions}, "updated_channels": None}
        changed = versions if number == 0 else {name: versions[name] for name in ("messages", "step")}
        at = time.perf_counter()
        parent = f"{number - 1:08}" if number else None
        await saver.aput(of(parent), checkpoint, {"source": "loop", "step": number, "parents": {}}, changed)
        walls.append(time.perf_counter() - at)
    return 1e3 * (time.process_time() - begun) / count, 1e3 * statistics.median(walls)


async def gets(saver: Any, count: int) -> tuple[float, float]:
    """Read the latest checkpoint; returns the same."""
    walls, begun = [], time.process_time()
    for _ in range(count):
        at = time.perf_counter()
        assert (await saver.aget_tuple(of(None))).checkpoint["channel_values"]["c7"] == MESSAGES[7]
        walls.append(time.perf_counter() - at)
    return 1e3 * (time.process_time() - begun) / count, 1e3 * statistics.median(walls)


def flushed(path: Path) -> float:
    """Return the median wall clock of an insert that is on the disk, in ms: what any saver waits for."""
    walls = []
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (text TEXT)")
        for _ in range(MEASURED):
            at = time.perf_counter()
            connection.execute("INSERT INTO t VALUES ('x')")
            walls.append(time.perf_counter() - at)
    return 1e3 * statistics.median(walls)


def megabytes(folder: Path, name: str) -> float:
    """Return the size of a database, with the files beside it."""
    return sum(each.stat().st_size for each in folder.glob(f"{name}.db*")) / 1e6


class Documents(TypedDict):
    """The state of a graph of one node."""

    text: str
    step: int


async def supersteps(saver: Any, text: Callable[[int], str]) -> None:
    """Run a graph of 40 supersteps, whose state has 100 KB of text."""

    async def node(state: Documents) -> dict[str, Any]:
        step = state["step"] + 1
        changed = text(step)
        return {"step": step} if changed == state["text"] else {"step": step, "text": changed}

    graph = StateGraph(Documents)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_conditional_edges("node", lambda state: END if state["step"] == STEPS else "node")
    app = graph.compile(checkpointer=saver)
    thread: Any = {"configurable": {"thread_id": "t"}}
    await app.ainvoke({"text": text(0), "step": 0}, thread, durability="sync")


async def measured(folder: Path, opened: Callable[[Path], Any]) -> dict[str, float]:
    """Measure the savers that `opened` opens, an async context manager each, on files in a folder."""
    figures = {"flush": flushed(folder / "flush.db")}
    async with opened(folder / "times.db") as saver:
        await puts(saver, 0, THERE)
        figures["put cpu"], figures["put wall"] = await puts(saver, THERE, MEASURED)
        figures["get cpu"], figures["get wall"] = await gets(saver, MEASURED)
    texts: dict[str, Callable[[int], str]] = {"same": lambda _: LARGE, "changing": lambda step: f"{step} {LARGE}"}
    for name, text in texts.items():
        async with opened(folder / f"{name}.db") as saver:
            await supersteps(saver, text)
        figures[name] = megabytes(folder, name)
    return figures


def main(folder: str) -> None:
    """Print the figures of AsyncSqliteSaver."""
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver  # type: ignore[import-not-found]  # noqa: PLC0415 - there

    print(json.dumps(asyncio.run(measured(Path(folder), lambda path: AsyncSqliteSaver.from_conn_string(str(path))))))


if __name__ == "__main__":
    main(sys.argv[1])
