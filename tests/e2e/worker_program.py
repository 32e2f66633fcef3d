"""Workers that are killed: `work URL FOLDER` is one, `enqueue URL FOLDER NUMBER` queues so many runs for them."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from smart_model_router.cli.workflow_commands import WorkflowWorker
from smart_model_router.cli.workflow_worker import run_worker
from smart_model_router_research.engine import DbosEngine, ExecutionContext, PostgresRunStore
from smart_model_router_research.workflow import parse_workflow

NEEDS = {"a": "", "b": "a", "c": "a", "d": "bc", "e": "d", "f": "d"}
"""The steps of each run, and what they need."""
FUNCTIONS = """\
import asyncio, os
from pathlib import Path

HERE = Path(__file__).parent

async def work(step):
    with (HERE / "began").open("a") as file:
        file.write(f"{step.run_id} {step.step} {os.getpid()}\\n")
    await asyncio.sleep(0.2)
    while (step.run_id, step.step) == ("r0", "f") and not (HERE / "go").exists():
        await asyncio.sleep(0.05)
    return {"of": step.step}
"""
"""The last step of the run r0 ends once the file `go` is there: until then there is a run to take, however slow the
machine is."""


def workflow_text() -> str:
    """Return the workflow, as YAML."""
    steps = [{"name": name, "function": "work", "needs": list(needs)} for name, needs in NEEDS.items()]
    return json.dumps({"name": "w", "steps": steps})


async def _enqueue(url: str, folder: Path, number: int) -> None:
    from smart_model_router.cli.workflow_files import functions_in

    functions = folder / "f.py"
    functions.write_text(FUNCTIONS, "utf-8")
    text = workflow_text()
    workflow = parse_workflow(text, "w.yaml", functions_in(functions))
    origin = {"file": "w.yaml", "text": text, "functions": str(functions)}
    store = PostgresRunStore(url)
    engine = DbosEngine(store)
    for each in range(number):
        await engine.enqueue(workflow, ExecutionContext(run_id=f"r{each}", origin=origin))
    await store.aclose()
    sys.stdout.write("queued\n")


def _work(url: str, folder: Path) -> None:
    config = folder / f"{url.rpartition('=')[2]}.yaml"
    providers = {"a": {"kind": "scripted"}}
    models = {"m": {"tiers": [{"targets": ["a/m"]}]}}
    workflows = {"store_url": url, "lease": 2, "heartbeat": 0.5}
    config.write_text(json.dumps({"version": 1, "providers": providers, "models": models, "workflows": workflows}))
    run_worker(WorkflowWorker(config=config, concurrency=3))


if __name__ == "__main__":
    if sys.argv[1] == "enqueue":
        asyncio.run(_enqueue(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])))
    else:
        _work(sys.argv[2], Path(sys.argv[3]))
