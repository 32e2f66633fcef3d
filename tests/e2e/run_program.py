"""Programs that run a workflow from one file of runs, each a process of its own of test_run_processes.py.

Each prints the events as they are kept, one a line, and at the end how the run ended.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from smart_model_router import SmartModelRouter, SmartRouterError
from smart_model_router.flow.clock import here
from smart_model_router_research.engine import (
    ExecutionContext,
    KahnEngine,
    LangGraphEngine,
    RunBusy,
    RunEvent,
    RunNotFound,
    SqliteRunStore,
)
from smart_model_router_research.workflow import WorkflowDefinition, parse_workflow

ENGINES = {"kahn": KahnEngine, "langgraph": LangGraphEngine}
NEEDS = {
    "a": "",
    "b": "",
    "c": "",
    "d": "ab",
    "e": "bc",
    "f": "d",
    "g": "de",
    "h": "e",
    "i": "fg",
    "j": "gh",
    "k": "ij",
    "l": "k",
}
"""The twelve steps, and those that each needs."""


def workflow() -> WorkflowDefinition:
    """Make a workflow whose steps each ask a model with the answers that they need."""
    lines = ["name: twelve", "steps:"]
    for step, needs in NEEDS.items():
        prompt = " ".join([step, *(f"${{steps.{need}.outputs.text}}" for need in needs)])
        body = {"model": "smart", "messages": [{"role": "user", "content": prompt}]}
        lines.append(f"  - {json.dumps({'name': step, 'kind': 'model', 'needs': list(needs), 'body': body})}")
    lines.append('outputs: {text: "${steps.l.outputs.text}"}')
    return parse_workflow("\n".join(lines))


def make_router(url: str) -> SmartModelRouter:
    """Make a router of one target."""
    return SmartModelRouter.from_config(
        {
            "version": 1,
            "providers": {"p": {"kind": "openai_compatible", "base_url": url, "api_key": "k"}},
            "models": {"smart": {"tiers": [{"targets": ["p/m"]}], "last_resort": []}},
        }
    )


def tell(*words: object) -> None:
    """Print one line for the test."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def told(event: RunEvent) -> None:
    """Print an event."""
    tell(event.kind, event.step)


async def execute(path: str, run_id: str, url: str, engine_name: str = "kahn") -> None:
    """Run the workflow on an engine, or go on with it; the last line is its end, or the error."""
    store = SqliteRunStore(path)
    async with make_router(url) as router:
        context = ExecutionContext(
            run_id=run_id, services={"router": router}, max_concurrency=3, store=store, observers=(told,)
        )
        engine = ENGINES[engine_name]()
        try:
            try:
                result = await engine.resume(workflow(), context)
            except RunNotFound:
                result = await engine.execute(workflow(), context)
        except RunBusy as busy:
            tell("busy", json.dumps({"owner": busy.owner, "seconds": busy.seconds, "pid": os.getpid()}))
        except SmartRouterError as error:
            tell(type(error).__name__, error)
        else:
            tell("ended", json.dumps({"status": result.status, "outputs": result.outputs, "calls": result.usage.calls}))
    await store.aclose()


async def cramped(path: str, run_id: str, url: str, room: str) -> None:
    """Do the same on a disk that is full after so many bytes of a file."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(room), int(room)))
    await execute(path, run_id, url)


async def read_only(path: str, run_id: str, url: str) -> None:
    """Do the same with a file that cannot be written, as a user who may read it."""
    await make_router(url).aclose()  # loads what could not be loaded from root's folders afterwards
    workflow()
    here()
    await asyncio.to_thread(int)
    if os.geteuid() == 0:
        for place in (Path(path), Path(path).parent):
            os.chown(place, 65_534, 65_534)
        os.setuid(65_534)
    Path(path).chmod(0o400)  # noqa: ASYNC240 - nothing else runs yet
    await execute(path, run_id, url)


PROGRAMS: dict[str, Callable[..., Any]] = {each.__name__: each for each in (execute, cramped, read_only)}

if __name__ == "__main__":
    asyncio.run(PROGRAMS[sys.argv[1]](*sys.argv[2:]))
