"""`smr workflow run`, `resume` and `fork`: runs of workflows, kept in their store."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import shlex
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smart_model_router.assembly import load
from smart_model_router.cli.output import ExitCode, print_answer, print_json, print_line, tell
from smart_model_router.cli.workflow_files import functions_in, loaded
from smart_model_router.cli.workflow_store import in_store, opened_store, section_of, settled
from smart_model_router.config.sections import WorkflowsConfig
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.router import SmartModelRouter
from smart_model_router_research.engine import (
    Approval,
    Budget,
    CheckpointRef,
    DbosEngine,
    ExecutionContext,
    ExecutionResult,
    ForkChanges,
    PendingApproval,
    RunBusy,
    RunEvent,
    RunEventKind,
    RunState,
    ShadowEngine,
    StepResult,
    StoredRun,
    select_engine,
)
from smart_model_router_research.workflow import Costs, WorkflowDefinition, WorkflowInput, parse_workflow

if TYPE_CHECKING:
    from smart_model_router.cli.workflow_commands import (
        WorkflowFork,
        WorkflowResume,
        WorkflowRun,
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
    origin = _origin(asked, asked.file)
    begun = Begun(
        _new_id(workflow) if asked.run_id is None else asked.run_id,
        workflow,
        origin,
        asked.engine,
        asked.out,
        asked.config,
        asked.as_json,
    )
    if asked.queue:
        return asyncio.run(_queued(begun, inputs))
    return _performed(begun, inputs, lambda engine, context: engine.execute(workflow, context))


def run_resume(asked: WorkflowResume) -> int:
    """Go on with a run; the exit code. Raises RunNotFound, ConfigurationError and what the store raises."""
    known = asyncio.run(_load(asked.config, asked.run_id))
    origin = {**known.origin, **_origin(asked)}
    workflow = workflow_of(known.run_id, origin)
    decided = asked.approve or asked.reject or asked.payload is not None
    payload = None if asked.payload is None else _json("--payload", asked.payload)
    approval = Approval(approved=not asked.reject, payload=payload, step=asked.step) if decided else None
    begun = Begun(known.run_id, workflow, origin, asked.engine, asked.out, asked.config, asked.as_json)
    return _performed(begun, known.inputs, lambda engine, context: engine.resume(workflow, context, approval))


def run_fork(asked: WorkflowFork) -> int:
    """Begin a run at a checkpoint; the exit code. Raises RunNotFound, ConfigurationError and what the store raises."""
    ref = CheckpointRef.parse(asked.checkpoint)
    known = asyncio.run(_load(asked.config, ref.run_id))
    origin = {**known.origin, **_origin(asked, asked.file)}
    workflow = workflow_of(known.run_id, origin)
    changes = _changes(workflow, asked.changes)
    run_id = _new_id(workflow) if asked.run_id is None else asked.run_id
    begun = Begun(run_id, workflow, origin, asked.engine, asked.out, asked.config, asked.as_json)
    return _performed(begun, {}, lambda engine, context: engine.fork(ref, workflow, context, changes))


# ------------------------------------------------------------------------------------------------ to perform


def _performed(begun: Begun, inputs: Mapping[str, Any], go: Going) -> int:
    """Perform a run and print what became of it; the exit code."""
    if begun.out is not None and (begun.out.is_dir() or not begun.out.absolute().parent.is_dir()):
        raise ConfigurationError("--out", str(begun.out), "a file in a folder that exists is needed")
    resume = f"smr workflow resume {begun.run_id}"
    if begun.config is not None:
        resume += f" --config {shlex.quote(str(begun.config))}"
    try:
        result, waiting = asyncio.run(_perform(begun, inputs, go))
    except KeyboardInterrupt:
        print_line(f"interrupted; to go on: {resume}")
        raise
    except RunBusy as error:
        tell(error, begun.as_json)
        return ExitCode.BUSY
    # Half a character, which no file can hold, becomes its escape: the same in JSON.
    text = json.dumps(result.outputs, ensure_ascii=False, indent=2).encode("utf-8", "backslashreplace")
    outputs = f"{text.decode()}\n"
    unwritten = None if result.status is RunState.PAUSED else _unwritten(begun.out, outputs)
    if begun.as_json:
        print_json(_result_as_dict(result))
    elif result.status is not RunState.PAUSED:
        print_answer(outputs)
    reason = f": {result.reason}" if result.reason else ""
    print_line(f"run {begun.run_id} {result.status}{reason}{_cost(result.usage)}")
    if result.status is RunState.PAUSED and not waiting:  # the time to decide has run out meanwhile
        print_line(f"to go on: {resume}")
    for each in waiting:
        step = f" --step {each.step}" if len(waiting) > 1 else ""
        print_line(f"to decide: {resume}{step} --approve, or --reject")
    if unwritten is not None:
        print_line(f"smr: --out: {unwritten}; the outputs are kept with the run: {resume} --out FILE")
        return ExitCode.FAILED
    return _CODES.get(result.status, ExitCode.FAILED)


def _unwritten(out: Path | None, outputs: str) -> OSError | None:
    """Write the outputs to a file, if to one; the error where that cannot be."""
    try:
        if out is not None:
            out.write_text(outputs, encoding="utf-8")
    except OSError as error:
        return error
    return None


async def _perform(
    begun: Begun, inputs: Mapping[str, Any], go: Going
) -> tuple[ExecutionResult, Sequence[PendingApproval]]:
    """Perform a run; its result, and the decisions that it waits for, each of which has been told."""
    progress = _Progress(begun.run_id, begun.as_json)
    async with opened_store(begun.config) as store, _services(begun) as services:
        section = section_of(begun.config)
        chosen = select_engine(begun.workflow, begun.engine or section.engine, store=store)
        context = context_of(
            begun.run_id,
            begun.origin,
            section,
            inputs=inputs,
            services=services,
            store=store,
            observers=[progress],
            engine_reason=chosen.reason,
        )
        result = await go(chosen.engine, context)
        waiting = await store.approvals(begun.run_id) if result.status is RunState.PAUSED else ()
        if isinstance(chosen.engine, ShadowEngine):
            await _tell_differences(chosen.engine)
    for each in waiting:
        progress.ask(each.step, each.message)
    return result, waiting


def context_of(run_id: str, origin: Mapping[str, Any], section: WorkflowsConfig, **options: Any) -> ExecutionContext:
    """Return the surroundings of a run, by what it is kept with and by the configuration."""
    return ExecutionContext(
        run_id=run_id,
        budget=Budget(**origin["budget"]) if origin.get("budget") else None,
        max_concurrency=section.max_concurrency,
        lease=section.lease,
        heartbeat=section.heartbeat,
        origin=origin,
        **options,
    )


async def _queued(begun: Begun, inputs: Mapping[str, Any]) -> int:
    """Create a run for the workers; the exit code. Raises ConfigurationError and what the store raises."""
    section = section_of(begun.config)
    async with opened_store(begun.config, section) as store:
        engine = DbosEngine(store)
        context = context_of(begun.run_id, begun.origin, section, inputs=inputs, store=store)
        await engine.enqueue(begun.workflow, context)
    if begun.as_json:
        print_json({"run": begun.run_id, "state": RunState.RUNNING})
    else:
        print_answer(f"{begun.run_id}\n")
    return ExitCode.OK


async def _tell_differences(engine: ShadowEngine) -> None:
    """Wait for the other engine and tell what it made otherwise. Ctrl-C ends the waiting: the run has its result."""
    try:
        for each in await engine.differences():
            print_line(f"shadow: {each}")
    except asyncio.CancelledError:
        print_line("shadow: not waited for")
        if (task := asyncio.current_task()) is not None:
            task.uncancel()


@dataclass(slots=True)
class _Progress:
    """The lines on stderr while a run goes on: its id once it has begun, and what becomes of its steps."""

    run_id: str
    as_json: bool
    begun: bool = False
    asked: set[str] = field(default_factory=set)

    def __call__(self, event: RunEvent) -> None:
        """Tell an event."""
        if not self.begun:
            self.begun = True
            print_line(f"run {self.run_id}")
        if self.as_json:
            return
        data = event.data
        if event.kind is RunEventKind.STEP_SETTLED:
            print_line(f"  {event.step}: {settled(StepResult.from_json(data))}")
        elif event.kind is RunEventKind.STEP_RETRYING:
            print_line(f"  {event.step}: again after {data.get('error') or data.get('reason')}")
        elif event.kind is RunEventKind.STEP_PAUSED and "message" in data:
            self.ask(event.step, data["message"])

    def ask(self, step: str, message: str) -> None:
        """Tell a question, unless it was told."""
        if step not in self.asked and not self.as_json:
            self.asked.add(step)
            print_line(f"  {step}: waits for a decision: {message}")


def _cost(usage: Costs) -> str:
    usd = f", {usage.usd:.6f} USD" if usage.usd else ""
    calls = f"{usage.calls:g} {'call' if usage.calls == 1 else 'calls'}"
    return f"; {calls}, {usage.tokens:g} tokens{usd}" if usage.calls else ""


@asynccontextmanager
async def _services(begun: Begun) -> AsyncGenerator[Mapping[str, Any]]:
    """The things that steps use: a router, where a step asks a model."""
    if not asks_models(begun.workflow):
        yield {}
        return
    async with SmartModelRouter.from_config(load(begun.config, given=frozenset())) as router:
        yield {"router": router}


def asks_models(workflow: WorkflowDefinition) -> bool:
    """Return whether a step asks a model, those of subgraphs included."""
    inner = (step.workflow for step in workflow.steps if step.workflow is not None)
    return any(step.kind == "model" for step in workflow.steps) or any(map(asks_models, inner))


# ------------------------------------------------------------------------------------------------ the run


async def _load(config: Path | None, run_id: str) -> StoredRun:
    found: StoredRun = await in_store(config, lambda store: store.load(run_id))
    return found


def workflow_of(run_id: str, origin: Mapping[str, Any]) -> WorkflowDefinition:
    """Return the workflow that a run was kept with. Raises ConfigurationError for a run that a program began."""
    if not origin.get("text"):
        raise ConfigurationError("run", run_id, "the program that began it is needed: it is not of a file")
    functions = origin.get("functions")
    return parse_workflow(origin["text"], origin["file"], functions_in(None if functions is None else Path(functions)))


# ------------------------------------------------------------------------------------------------ options


def _origin(asked: WorkflowRun | WorkflowResume | WorkflowFork, file: Path | None = None) -> dict[str, Any]:
    """Return what a run is kept with, as far as the options say it. Raises ConfigurationError for the budget."""
    budget = {name: _number(f"--budget {name}", value) for name, value in _pairs("--budget", asked.budget)}
    for name in budget.keys() - set(_BUDGETS):
        raise ConfigurationError("--budget", name, f"one of {', '.join(_BUDGETS)} is needed")
    origin: dict[str, Any] = {"budget": budget} if budget else {}
    if asked.functions is not None:
        origin["functions"] = str(asked.functions.resolve())
    if file is not None:
        origin |= {"file": str(file.resolve()), "text": file.read_text("utf-8-sig")}
    return origin


def _new_id(workflow: WorkflowDefinition) -> str:
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", workflow.name).strip("-._")[:40] or "run"
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
        value = json.loads(text)
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(key, text, f"JSON is needed, where a text has quotes: '\"yes\"' ({error})") from None
    return value


def _given(workflow: WorkflowDefinition, name: str, text: str) -> Any:
    """Return the value of an input: a text as it stands where a text is wanted, else JSON, else a text."""
    return _typed(workflow.inputs.get(name), text)


def _typed(wanted: WorkflowInput | None, text: str) -> Any:
    if wanted is not None and wanted.type == "string":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
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
