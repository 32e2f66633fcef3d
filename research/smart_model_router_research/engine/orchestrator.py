"""Coroutines as the steps of a workflow, for programs that have no definition: run on the engine that is selected."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace

from smart_model_router_research.engine.engine_selector import select_engine
from smart_model_router_research.engine.protocol import ExecutionContext, ExecutionResult
from smart_model_router_research.workflow.definition import Run, Step, WorkflowDefinition

Task = Run | tuple[Run, Sequence[str]]
"""The work of a step, alone or with the names of the tasks that it needs."""


async def execute_as_dag(
    tasks: Mapping[str, Task], context: ExecutionContext | None = None, *, engine: str = "auto"
) -> ExecutionResult:
    """Run tasks, each as soon as all that it needs has succeeded; a task that failed skips those that need it.

    A task is an async function that takes a StepInput, whose `steps` has the outputs of those that it needs, and
    returns its own: values of JSON by name. `context` names the run, and limits it; without one the run has a random
    id. Raises WorkflowError for unknown needs and cycles, and as the engine does.
    """
    pairs = {name: task if isinstance(task, tuple) else (task, ()) for name, task in tasks.items()}
    workflow = WorkflowDefinition("tasks", [Step(name, run, needs) for name, (run, needs) in pairs.items()])
    given = ExecutionContext(run_id=f"run-{secrets.token_hex(8)}") if context is None else context
    selected = select_engine(workflow, engine, store=given.store)
    return await selected.engine.execute(workflow, replace(given, engine_reason=selected.reason))
