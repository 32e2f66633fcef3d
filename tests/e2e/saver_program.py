"""A process of test_saver_processes.py that has imported LangGraph, and forks one that writes checkpoints when told.

Each line of its input is a file, a thread, a letter and a number. The forked process keeps so many checkpoints, one
after another, whose ids begin with the letter, tells what was acknowledged, and waits; "dead" follows once it is gone.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint

from smart_model_router_research.engine import RunSaver, SqliteRunStore


def of(thread: str, checkpoint: str | None) -> RunnableConfig:
    """Return the configuration of a checkpoint of a thread."""
    return {"configurable": {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": checkpoint}}


def state(number: int) -> dict[str, Any]:
    """Make the values of a checkpoint: one that always changes, one that rarely does, one of many pages."""
    return {"number": number, "rare": f"{number // 10} " * 1_000, "large": f"{number} " * 8_000}


def write(path: str, thread: str, letter: str, most: str) -> None:
    """Keep so many checkpoints with their writes, and wait until this process is killed."""
    saver = RunSaver(SqliteRunStore(path))
    found = [each.checkpoint["id"] for each in saver.list(of(thread, None)) if each.checkpoint["id"][0] == letter]
    parent, start = (found[0], int(found[0][1:]) + 1) if found else (None, 0)
    for number in range(start, start + int(most)):
        name, values = f"{letter}{number:06}", state(number)
        versions: dict[str, str | int | float] = {"number": number, "rare": number // 10, "large": number}
        made = {"v": 4, "id": name, "ts": "", "versions_seen": {}, "updated_channels": None}
        checkpoint: Checkpoint = {**made, "channel_values": values, "channel_versions": versions}  # type: ignore[typeddict-item]
        changed = {key: versions[key] for key in versions if parent is None or key != "rare" or number % 10 == 0}
        saver.put(of(thread, parent), checkpoint, {"step": number}, changed)
        tell("put", name)
        saver.put_writes(of(thread, name), [("number", number), ("large", values["large"])], "task")
        tell("wrote", name)
        parent = name
    signal.pause()


def tell(*words: object) -> None:
    """Print one line for the test, at once and whole."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


if __name__ == "__main__":
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            tell("writes", os.getpid())
            write(*line.split())
        os.waitpid(child, 0)
        tell("dead", child)
