"""The parts of workflows by the configuration."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from smart_model_router.config.sections import WorkflowsConfig
from smart_model_router_research.assembly import run_store, runs_file
from smart_model_router_research.engine import NewRun, RunState


def test_the_file_of_runs_is_the_configured_one_or_in_the_data_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tilde is the home of the user."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert runs_file(WorkflowsConfig(), Path("/data")) == Path("/data/runs.db")
    assert runs_file(WorkflowsConfig(runs="~/x.db"), Path("/data")) == tmp_path / "x.db"


def test_the_store_keeps_ended_runs_for_the_configured_days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the wall clock."""
    store = run_store(WorkflowsConfig(retention_days=2), tmp_path)
    day = 86_400.0
    assert store.place == str(tmp_path / "runs.db")

    async def kept_after(days: float) -> list[str]:
        now = 1_700_000_000.0
        for run_id, at in (("old", now), ("new", now + days * day)):
            monkeypatch.setattr("time.time", lambda at=at: at)
            new = NewRun(run_id=run_id, workflow="w", workflow_hash="h", step_hashes={}, inputs={}, engine="kahn")
            await store.create(new)
            await store.end(await store.lease(run_id, "one"), RunState.COMPLETED, {}, "")
        found = [run.run_id for run in await store.runs()]
        await store.aclose()
        return found

    assert asyncio.run(kept_after(2.1)) == ["new"]
