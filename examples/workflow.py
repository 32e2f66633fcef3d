"""A workflow of three models with a budget, which waits for a person and goes on in another process's place.

Run: python examples/workflow.py

Two models draft at once, a third one weighs the drafts, and nothing is sent before a person approves. One of the
providers fails: the router falls back, and the workflow does not see it. What has settled is in `runs.db`: the second
half of this program knows nothing but the run's name, as a process that starts a week later would.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from smart_model_router import SmartModelRouter
from smart_model_router_providers.fault import Fault, FaultServer
from smart_model_router_research.engine import (
    Approval,
    Budget,
    ExecutionContext,
    KahnEngine,
    RunState,
    SqliteRunStore,
)
from smart_model_router_research.workflow import WorkflowDefinition, parse_workflow

LETTER = """
name: letter
inputs: {topic: {type: string, required: true}}
steps:
  - name: short
    kind: model
    estimate: {calls: 1}
    body: {model: fast, messages: [{role: user, content: "In one line: ${inputs.topic}"}]}
  - name: long
    kind: model
    estimate: {calls: 1}
    body: {model: careful, messages: [{role: user, content: "At length: ${inputs.topic}"}]}
  - name: choice
    kind: model
    needs: [short, long]
    estimate: {calls: 1}
    body: {model: judge, messages: [{role: user, content: "${steps.short.outputs.text} or ${steps.long.outputs.text}"}]}
  - name: release
    kind: approval
    needs: [choice]
    message: "Send this? ${steps.choice.outputs.text}"
  - name: sent
    kind: model
    needs: [choice, release]
    when: ${steps.release.outputs.approved}
    estimate: {calls: 1}
    body: {model: fast, messages: [{role: user, content: "Signed ${steps.release.outputs.payload}"}]}
outputs: {letter: "${steps.sent.outputs.text}"}
"""


def fleet(ill: FaultServer, well: FaultServer) -> dict[str, object]:
    """Three models; the first target of each is at a provider that is down."""
    providers = {
        name: {"kind": "openai_compatible", "base_url": server.base_url, "api_key": "k"}
        for name, server in (("ill", ill), ("well", well))
    }
    models = {
        name: {"tiers": [{"targets": [f"ill/{name}", f"well/{name}"]}], "last_resort": []}
        for name in ("fast", "careful", "judge")
    }
    return {"version": 1, "providers": providers, "models": models}


async def until_the_pause(workflow: WorkflowDefinition, runs: Path, router: SmartModelRouter) -> None:
    """Begin the run: three calls, then it waits, held by no process."""
    context = ExecutionContext(
        run_id="letter-1",
        inputs={"topic": "why bees find their way home"},
        services={"router": router},
        budget=Budget(calls=20),
    )
    result = await KahnEngine(SqliteRunStore(runs)).execute(workflow, context)
    assert result.status is RunState.PAUSED, result
    print(f"{result.run_id}: {result.status} after {result.usage.calls:g} calls: {result.reason}")
    for name, step in result.steps.items():
        if step.outputs is not None:
            print(f"  {name}: {step.state} by {step.outputs['target']}")


async def after_the_decision(workflow: WorkflowDefinition, runs: Path, router: SmartModelRouter) -> None:
    """Go on, with a new store and a new engine: nothing that has settled is asked again."""
    context = ExecutionContext(run_id="letter-1", services={"router": router}, budget=Budget(calls=20))
    result = await KahnEngine(SqliteRunStore(runs)).resume(workflow, context, Approval(payload="by Ann"))
    assert result.status is RunState.COMPLETED, result
    print(f"{result.run_id}: {result.status} after {result.usage.calls:g} calls")
    print(f"  {result.outputs['letter']}")


async def main() -> None:
    """Run both halves."""
    workflow = parse_workflow(LETTER, "letter.yaml")
    with FaultServer([Fault.status(500)]) as ill, FaultServer() as well, tempfile.TemporaryDirectory() as folder:
        async with SmartModelRouter.from_config(fleet(ill, well)) as router:
            await until_the_pause(workflow, Path(folder) / "runs.db", router)
            asked = well.calls()
            await after_the_decision(workflow, Path(folder) / "runs.db", router)
            assert well.calls() == asked + 1, "only the last step was asked"


asyncio.run(main())
