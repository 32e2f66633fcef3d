"""`smr workflow run`, `resume`, `runs`, `cancel`, `history` and `fork`: runs of workflows, kept in their store."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smart_model_router.assembly import load
from smart_model_router.cli.output import ExitCode, print_answer, print_json, print_line, print_table, tell
from smart_model_router.cli.statistics import instant
from smart_model_router.cli.workflow_files import functions_in, loaded
from smart_model_router.config.files import default_file
from smart_model_router.config.sections import WorkflowsConfig
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.router import SmartModelRouter
from smart_model_router_providers.local.model_file import data_directory
from smart_model_router_research.assembly import run_store
from smart_model_router_research.engine import (
    Approval,
    Budget,
    CheckpointRef,
    ExecutionContext,
    ExecutionResult,
    ForkChanges,
    KahnEngine,
    RunBusy,
    RunEvent,
    RunEventKind,
    RunState,
    SqliteRunStore,
    StoredRun,
    select_engine,
)
from smart_model_router_research.workflow import Costs, WorkflowDefinition, WorkflowInput, parse_workflow

if TYPE_CHECKING:
    from smart_model_router.cli.workflow_commands import (
        WorkflowCancel,
        WorkflowFork,
        WorkflowHistory,
        WorkflowResume,
        WorkflowRun,
        WorkflowRuns,
    )

_CODES = {RunState.COMPLETED: ExitCode.OK, RunState.PAUSED: ExitCode.PAUSED}
"""All others are FAILED."""
_BUDGETS = tuple(each.name for each in fields(Costs))
Going = Callable[[Any, ExecutionContext], Awaitable[ExecutionResult]]


@dataclass(frozen=True, slots=True)
class Begun:
    """A run to perform: what it is kept with, and the options of the command that performs it."""

    run_id: str
    workflow: WorkflowDefinition
    origin: Mapping[str, Any]
    engine: str | None
    out: Path | None
    config: Path | None
    as_json: bool


def run_run(asked: WorkflowRun) -> int:
    """Run a workflow; the exit code. Raises ConfigurationError and what the store raises."""
    workflow = loaded(asked.file, asked.functions, as_json=asked.as_json)
    if workflow is None:
        return ExitCode.CONFIGURATION
    inputs = {name: _given(workflow, name, value) for name, value in _pairs("--input", asked.inputs)}
    budget = {name: _number(f"--budget {name}", value) for name, value in _pairs("--budget", asked.budget)}
    for name in budget.keys() - set(_BUDGETS):
        raise ConfigurationError("--budget", name, f"one of {', '.join(_BUDGETS)} is needed")
    origin = {
        "file": str(asked.file.resolve()),
        "text": asked.file.read_text("utf-8-sig"),
        "functions": None if asked.functions is None else str(asked.functions.resolve()),
        "budget": budget,
    }
    begun = Begun(
        _new_id(workflow) if asked.run_id is None else asked.run_id,
        workflow,
        origin,
        asked.engine,
        asked.out,
        asked.config,
        asked.as_json,
    )
    return _performed(begun, inputs, lambda engine, context: engine.execute(workflow, context))


def run_resume(asked: WorkflowResume) -> int:
    """Go on with a run; the exit code. Raises RunNotFound, ConfigurationError and what the store raises."""
    known = asyncio.run(_load(asked.config, asked.run_id))
    workflow = _workflow_of(known)
    decided = asked.approve or asked.reject or asked.payload is not None
    payload = None if asked.payload is None else _json("--payload", asked.payload)
    approval = Approval(approved=not asked.reject, payload=payload, step=asked.step) if decided else None
    begun = Begun(known.run_id, workflow, known.origin, asked.engine, asked.out, asked.config, asked.as_json)
    return _performed(begun, known.inputs, lambda engine, context: engine.resume(workflow, context, approval))


def run_fork(asked: WorkflowFork) -> int:
    """Begin a run at a checkpoint; the exit code. Raises RunNotFound, ConfigurationError and what the store raises."""
    ref = CheckpointRef.parse(asked.checkpoint)
    known = asyncio.run(_load(asked.config, ref.run_id))
    origin = dict(known.origin)
    if asked.file is not None:
        origin |= {"file": str(asked.file.resolve()), "text": asked.file.read_text("utf-8-sig")}
    workflow = _workflow_of(known) if asked.file is None else _read(origin)
    changes = _changes(workflow, asked.changes)
    run_id = _new_id(workflow) if asked.run_id is None else asked.run_id
    begun = Begun(run_id, workflow, origin, asked.engine, asked.out, asked.config, asked.as_json)
    return _performed(begun, {}, lambda engine, context: engine.fork(ref, workflow, context, changes))


def run_runs(asked: WorkflowRuns) -> int:
    """List the runs; the exit code."""

    async def look(store: SqliteRunStore) -> Sequence[StoredRun]:
        return await store.runs(asked.limit)

    runs = asyncio.run(_in_store(asked.config, look))
    if asked.as_json:
        print_json({"runs": [_run_as_dict(run) for run in runs]})
        return ExitCode.OK
    rows = ((run.run_id, run.workflow, run.state, instant(run.changed_at), run.owner, run.reason) for run in runs)
    print_table(("run", "workflow", "state", "changed", "held by", "reason"), rows, sys.stdout)
    return ExitCode.OK


def run_cancel(asked: WorkflowCancel) -> int:
    """Cancel a run; the exit code. Raises RunNotFound."""

    async def cancel(store: SqliteRunStore) -> RunState:
        return (await KahnEngine(store).cancel(asked.run_id)).state

    state = asyncio.run(_in_store(asked.config, cancel))
    if asked.as_json:
        print_json({"run": asked.run_id, "state": state})
    else:
        held = "; the process that holds it was asked to end it" if state is RunState.RUNNING else ""
        print_line(f"run {asked.run_id}: {state}{held}")
    return ExitCode.OK


def run_history(asked: WorkflowHistory) -> int:
    """List the checkpoints of a run; the exit code. Raises RunNotFound."""

    async def look(store: SqliteRunStore) -> Sequence[CheckpointRef]:
        return await store.checkpoints(asked.run_id)

    found = asyncio.run(_in_store(asked.config, look))
    if asked.as_json:
        print_json({"checkpoints": [{"checkpoint": str(ref), "step": ref.step, "time": ref.time} for ref in found]})
        return ExitCode.OK
    rows = ((str(ref), ref.step, instant(ref.time)) for ref in found)
    print_table(("checkpoint", "settled", "at"), rows, sys.stdout)
    return ExitCode.OK


# ------------------------------------------------------------------------------------------------ to perform


def _performed(begun: Begun, inputs: Mapping[str, Any], go: Going) -> int:
    """Perform a run and print what became of it; the exit code."""
    print_line(f"run {begun.run_id}")
    resume = f"smr workflow resume {begun.run_id}"
    try:
        result = asyncio.run(_perform(begun, inputs, go))
    except KeyboardInterrupt:
        print_line(f"interrupted; to go on: {resume}")
        raise
    except RunBusy as error:
        tell(error, begun.as_json)
        return ExitCode.BUSY
    if begun.out is not None:
        begun.out.write_text(json.dumps(result.outputs, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    if begun.as_json:
        print_json(_result_as_dict(result))
    elif result.status is not RunState.PAUSED:
        print_answer(json.dumps(result.outputs, ensure_ascii=False, indent=2) + "\n")
    reason = f": {result.reason}" if result.reason else ""
    print_line(f"run {begun.run_id} {result.status}{reason}{_cost(result.usage)}")
    if result.status is RunState.PAUSED:
        print_line(f"to decide: {resume} --approve, or --reject")
    return _CODES.get(result.status, ExitCode.FAILED)


async def _perform(begun: Begun, inputs: Mapping[str, Any], go: Going) -> ExecutionResult:
    async with _store(begun.config) as store, _services(begun) as services:
        section = _section(begun.config)
        chosen = select_engine(begun.workflow, begun.engine or section.engine, store=store)
        context = ExecutionContext(
            run_id=begun.run_id,
            inputs=inputs,
            services=services,
            budget=Budget(**begun.origin["budget"]) if begun.origin.get("budget") else None,
            max_concurrency=section.max_concurrency,
            lease=section.lease,
            heartbeat=section.heartbeat,
            store=store,
            observers=() if begun.as_json else (_told,),
            origin=begun.origin,
            engine_reason=chosen.reason,
        )
        return await go(chosen.engine, context)


def _told(event: RunEvent) -> None:
    """Say on stderr what happens."""
    data = event.data
    if event.kind is RunEventKind.STEP_SETTLED:
        why = data.get("error") or data.get("skip_reason") or ""
        print_line(f"  {event.step}: {data.get('state')}{f' ({why})' if why else ''}")
    elif event.kind is RunEventKind.STEP_RETRYING:
        print_line(f"  {event.step}: again after {data.get('error') or data.get('reason')}")
    elif event.kind is RunEventKind.STEP_PAUSED:
        print_line(f"  {event.step}: waits for a decision: {data.get('message')}")


def _cost(usage: Costs) -> str:
    usd = f", {usage.usd:.6f} USD" if usage.usd else ""
    return f"; {usage.calls:g} calls, {usage.tokens:g} tokens{usd}" if usage.calls else ""


@asynccontextmanager
async def _services(begun: Begun) -> AsyncGenerator[Mapping[str, Any]]:
    """The things that steps use: a router, where a step asks a model."""
    if not _asks_models(begun.workflow):
        yield {}
        return
    async with SmartModelRouter.from_config(load(begun.config, given=frozenset())) as router:
        yield {"router": router}


def _asks_models(workflow: WorkflowDefinition) -> bool:
    inner = (step.workflow for step in workflow.steps if step.workflow is not None)
    return any(step.kind == "model" for step in workflow.steps) or any(map(_asks_models, inner))


# ------------------------------------------------------------------------------------------------ the store


def _section(config: Path | None) -> WorkflowsConfig:
    """The section `workflows`; its defaults where there is no configuration, as not every workflow asks a model."""
    if config is None and default_file(os.environ) is None:
        return WorkflowsConfig()
    return load(config, given=frozenset()).workflows


@asynccontextmanager
async def _store(config: Path | None) -> AsyncGenerator[SqliteRunStore]:
    store = run_store(_section(config), data_directory())
    try:
        yield store
    finally:
        await store.aclose()


async def _in_store(config: Path | None, look: Callable[[SqliteRunStore], Awaitable[Any]]) -> Any:
    async with _store(config) as store:
        return await look(store)


async def _load(config: Path | None, run_id: str) -> StoredRun:
    found: StoredRun = await _in_store(config, lambda store: store.load(run_id))
    return found


def _workflow_of(run: StoredRun) -> WorkflowDefinition:
    """Return the workflow as the run began with it. Raises ConfigurationError for a run that another program began."""
    if not run.origin.get("text"):
        raise ConfigurationError("run", run.run_id, "the program that began it is needed: it is not of a file")
    return _read(run.origin)


def _read(origin: Mapping[str, Any]) -> WorkflowDefinition:
    functions = origin.get("functions")
    return parse_workflow(origin["text"], origin["file"], functions_in(None if functions is None else Path(functions)))


# ------------------------------------------------------------------------------------------------ options


def _new_id(workflow: WorkflowDefinition) -> str:
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", workflow.name).strip("-.")[:40] or "run"
    return f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def _pairs(option: str, given: Sequence[str] | None) -> list[tuple[str, str]]:
    pairs = [(name, value, one) for one in given or () for name, equals, value in [one.partition("=")] if equals]
    for one in given or ():
        if "=" not in one:
            raise ConfigurationError(option, one, "NAME=VALUE is needed")
    return [(name, value) for name, value, _ in pairs]


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigurationError(key, text, "a number is needed") from None


def _json(key: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigurationError(key, text, f"JSON is needed ({error})") from None


def _given(workflow: WorkflowDefinition, name: str, text: str) -> Any:
    """Return the value of an input: a text as it stands where a text is wanted, else JSON, else a text."""
    return _typed(workflow.inputs.get(name), text)


def _typed(wanted: WorkflowInput | None, text: str) -> Any:
    if wanted is not None and wanted.type == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _changes(workflow: WorkflowDefinition, given: Sequence[str] | None) -> ForkChanges:
    inputs: dict[str, Any] = {}
    outputs: dict[str, dict[str, Any]] = {}
    for path, text in _pairs("--set", given):
        kind, *rest = path.split(".")
        if kind == "inputs" and len(rest) == 1:
            inputs[rest[0]] = _given(workflow, rest[0], text)
        elif kind == "steps" and len(rest) > 2 and rest[-2] == "outputs":
            outputs.setdefault(".".join(rest[:-2]), {})[rest[-1]] = _typed(None, text)
        else:
            raise ConfigurationError("--set", path, "inputs.NAME or steps.STEP.outputs.NAME is needed")
    return ForkChanges(inputs=inputs, outputs=outputs)


# ------------------------------------------------------------------------------------------------ JSON


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


def _result_as_dict(result: ExecutionResult) -> Mapping[str, Any]:
    return {
        "run": result.run_id,
        "state": result.status,
        "reason": result.reason,
        "outputs": result.outputs,
        "steps": {name: each.as_json() for name, each in result.steps.items()},
        "usage": asdict(result.usage),
        "engine": result.engine,
        "engine_reason": result.engine_reason,
    }
