"""Failing providers inside a workflow, over real sockets and with its run in a file: what they cost is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from smart_model_router import SmartModelRouter
from smart_model_router_providers.fault import Fault, FaultServer
from smart_model_router_research.engine import ExecutionContext, ExecutionResult, KahnEngine, RunState, SqliteRunStore
from tests.e2e.gateways import fleet
from tests.e2e.run_program import NEEDS, workflow

pytestmark = pytest.mark.asyncio


async def run(path: Path, *servers: FaultServer) -> ExecutionResult:
    """Run the twelve steps one after another with these providers, the first preferred; what is kept is what ended."""
    store = SqliteRunStore(path)
    async with SmartModelRouter.from_config(fleet(*servers), seed=1) as router:
        context = ExecutionContext(run_id="r", services={"router": router}, max_concurrency=1)
        result = await KahnEngine(store).execute(workflow(), context)
    kept = await store.load("r")
    assert {name: step.result for name, step in kept.steps.items()} == result.steps
    assert (kept.state, kept.spent) == (result.status, result.usage)
    await store.aclose()
    return result


async def test_a_provider_that_fails_costs_a_workflow_calls_and_no_step(tmp_path: Path) -> None:
    """Every step has its answer from the next one, and the run has paid for the calls that failed."""
    async with FaultServer([Fault.status(500)]) as ill, FaultServer() as well:
        result = await run(tmp_path / "runs.db", ill, well)
        assert (result.status, result.reason) == (RunState.COMPLETED, "")
        assert [step.outputs and step.outputs["target"] for step in result.steps.values()] == ["bo/big"] * len(NEEDS)
        assert well.calls() == len(NEEDS)
        assert result.usage.calls == ill.calls() + well.calls() > len(NEEDS)
        keys = [request.headers["idempotency-key"] for request in well.requests]
        assert len(set(keys)) == len(NEEDS)


async def test_providers_that_all_fail_fail_their_steps_and_skip_what_needs_them(tmp_path: Path) -> None:
    """The result names the step and the reason; the calls that failed are paid for."""
    async with FaultServer([Fault.status(400)]) as ill:
        result = await run(tmp_path / "runs.db", ill)
        assert result.status is RunState.FAILED
        said = "ao/big says that the request is not valid (400 invalid_request_error): Bad Request"
        assert result.reason == f"step a failed: InvalidRequest: {said}"
        roots = [name for name, needs in NEEDS.items() if not needs]
        assert [name for name, step in result.steps.items() if step.state == "failed"] == roots
        assert {step.skip_reason for name, step in result.steps.items() if name not in roots} == {"dependency_failed"}
        assert result.usage.calls == ill.calls() == len(roots)
