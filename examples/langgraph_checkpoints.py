"""A LangGraph program whose checkpoints are in a file: it is killed by kill -9, and goes on where it was.

Run: python examples/langgraph_checkpoints.py (needs the extra `langgraph`)

The graph is an ordinary StateGraph; its nodes ask a router, whose first provider is down. This program starts itself as
a process that writes a report, kills it in the middle, and starts another one: what was answered is in `runs.db` and is
not asked again.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import StateGraph

from smart_model_router import SmartModelRouter
from smart_model_router_providers.fault import Fault, FaultServer
from smart_model_router_research.engine import RunSaver, SqliteRunStore

NODES = ("outline", "draft", "review", "letter")


class Report(TypedDict, total=False):
    """The state of the graph."""

    topic: str
    outline: str
    draft: str
    review: str
    letter: str


def config(ill: str, well: str) -> dict[str, object]:
    """A model for each node; the first target of each is at a provider that is down."""
    providers = {
        name: {"kind": "openai_compatible", "base_url": url, "api_key": "k"}
        for name, url in (("ill", ill), ("well", well))
    }
    models = {name: {"tiers": [{"targets": [f"ill/{name}", f"well/{name}"]}], "last_resort": []} for name in NODES}
    return {"version": 1, "providers": providers, "models": models}


def node(router: SmartModelRouter, name: str, before: str) -> Any:
    """A node that asks the model of its name about what the node before it has made."""

    async def ask(state: Report) -> dict[str, str]:
        print("asking", name, flush=True)
        made: dict[str, Any] = {**state}
        body = {"model": name, "messages": [{"role": "user", "content": f"{name} of {made[before]}"}]}
        answer = await router.chat(body)
        return {name: answer.body["choices"][0]["message"]["content"]}

    return ask


async def work(runs: str, ill: str, well: str) -> None:
    """Begin the report, or go on with it: the file knows."""
    store = SqliteRunStore(runs)
    async with SmartModelRouter.from_config(config(ill, well)) as router:
        graph = StateGraph(Report)
        for before, name in pairwise(("topic", *NODES)):
            graph.add_node(name, node(router, name, before))
        for before, name in pairwise(NODES):
            graph.add_edge(before, name)
        graph.set_entry_point(NODES[0])
        app = graph.compile(checkpointer=RunSaver(store))
        thread: Any = {"configurable": {"thread_id": "reports/bees"}}
        begun = (await app.aget_state(thread)).next
        # durability="sync": an answer is on the disk before the next node begins.
        report = await app.ainvoke(None if begun else {"topic": "bees"}, thread, durability="sync")
        print("done", report["letter"])
    await store.aclose()


def main() -> None:
    """Two processes, the first one of which does not live to its end."""
    with FaultServer([Fault.status(500)]) as ill, FaultServer() as well, tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, str(Path(folder) / "runs.db"), ill.base_url, well.base_url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
            for line in first.stdout or ():
                print("first process:", line.strip())
                if line == "asking review\n":
                    os.kill(first.pid, signal.SIGKILL)
        print("first process: ended by signal", -first.returncode)
        second = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        lines = second.stdout.splitlines()
        for line in lines:
            print("second process:", line)
        assert lines[:2] == ["asking review", "asking letter"], lines
        assert [well.calls(name) for name in ("outline", "draft")] == [1, 1], "what was answered is not asked again"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(work(*sys.argv[1:]))
    else:
        main()
