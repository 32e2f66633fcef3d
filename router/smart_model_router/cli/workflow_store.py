"""`smr workflow runs`, `cancel` and `history`, and the store of the runs that all commands use."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smart_model_router.assembly import load
from smart_model_router.cli.output import ExitCode, print_json, print_line, print_table
from smart_model_router.cli.statistics import instant
from smart_model_router.config.files import default_file
from smart_model_router.config.sections import WorkflowsConfig
from smart_model_router_providers.local.model_file import data_directory
from smart_model_router_research.assembly import run_store
from smart_model_router_research.engine import (
    CheckpointRef,
    KahnEngine,
    RunNotFound,
    RunState,
    StepResult,
    StoredRun,
    TableRunStore,
)

if TYPE_CHECKING:
    from smart_model_router.cli.workflow_commands import WorkflowCancel, WorkflowHistory, WorkflowRuns


def run_runs(asked: WorkflowRuns) -> int:
    """List the runs; the exit code."""

    async def look(store: TableRunStore) -> Sequence[StoredRun]:
        return await store.runs(asked.limit)

    runs = asyncio.run(in_store(asked.config, look))
    if asked.as_json:
        print_json({"runs": [_run_as_dict(run) for run in runs]})
        return ExitCode.OK
    rows = ((run.run_id, run.workflow, run.state, instant(run.changed_at), run.owner, _reason(run)) for run in runs)
    print_table(("run", "workflow", "state", "changed", "held by", "reason"), rows, sys.stdout)
    return ExitCode.OK


def run_cancel(asked: WorkflowCancel) -> int:
    """Cancel a run; the exit code. Raises RunNotFound."""

    async def cancel(store: TableRunStore) -> RunState:
        return (await KahnEngine(store).cancel(asked.run_id)).state

    state = asyncio.run(in_store(asked.config, cancel))
    if asked.as_json:
        print_json({"run": asked.run_id, "state": state})
        return ExitCode.OK
    held = "; the process that holds it was asked to end it" if state is RunState.RUNNING else ""
    ended = "; it had ended before" if state not in (RunState.RUNNING, RunState.CANCELLED) else ""
    print_line(f"run {asked.run_id}: {state}{held}{ended}")
    return ExitCode.OK


def run_history(asked: WorkflowHistory) -> int:
    """List the checkpoints of a run, with what became of its steps; the exit code. Raises RunNotFound."""

    async def look(store: TableRunStore) -> tuple[Sequence[CheckpointRef], StoredRun]:
        return await store.checkpoints(asked.run_id), await store.load(asked.run_id)

    found, run = asyncio.run(in_store(asked.config, look))
    results = {name: step.result for name, step in run.steps.items()}
    if asked.as_json:
        told = [
            {"checkpoint": str(ref), "step": ref.step, "state": results[ref.step].state, "time": ref.time}
            for ref in found
        ]
        print_json({"checkpoints": told})
        return ExitCode.OK
    rows = ((str(ref), ref.step, settled(results[ref.step]), instant(ref.time)) for ref in found)
    print_table(("checkpoint", "settled", "as", "at"), rows, sys.stdout)
    return ExitCode.OK


def settled(result: StepResult) -> str:
    """Return what became of a step, and why, in words."""
    why = result.error or result.skip_reason or ""
    return f"{result.state}{f' ({why})' if why else ''}"


def _reason(run: StoredRun) -> str:
    """Return the reason of the state of a run; the command that goes on, where no process does."""
    interrupted = run.state is RunState.RUNNING and not run.owner
    return f"interrupted; to go on: smr workflow resume {run.run_id}" if interrupted else run.reason


def _run_as_dict(run: StoredRun) -> Mapping[str, Any]:
    return {
        "run": run.run_id,
        "workflow": run.workflow,
        "state": run.state,
        "engine": run.engine,
        "created_at": run.created_at,
        "changed_at": run.changed_at,
        "owner": run.owner,
        "reason": run.reason,
    }


# ------------------------------------------------------------------------------------------------ the store


def section_of(config: Path | None) -> WorkflowsConfig:
    """Return the section `workflows`; its defaults without a configuration, as not every workflow asks a model."""
    if config is None and default_file(os.environ) is None:
        return WorkflowsConfig()
    return load(config, given=frozenset()).workflows


@asynccontextmanager
async def opened_store(config: Path | None, section: WorkflowsConfig | None = None) -> AsyncGenerator[TableRunStore]:
    """Open the store of runs, and close it. A run that it does not have is told with its place: RunNotFound.

    `section` is that of the configuration, where it is read already.
    """
    section = section_of(config) if section is None else section
    store = run_store(section, data_directory())
    try:
        yield store
    except RunNotFound as error:
        raise RunNotFound(error.run_id, store.place) from None
    finally:
        await store.aclose()


async def in_store(config: Path | None, look: Callable[[TableRunStore], Awaitable[Any]]) -> Any:
    """Return what `look` finds in the store. Raises as it does."""
    async with opened_store(config) as store:
        return await look(store)
