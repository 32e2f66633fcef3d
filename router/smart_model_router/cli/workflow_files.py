"""`smr workflow check`, `expand` and `graph`: a workflow's file, its faults, its steps, its picture."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smart_model_router.cli.output import ExitCode, print_answer, print_json, print_line
from smart_model_router.cli.workflow_store import section_of
from smart_model_router.config.sections import WorkflowsConfig
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_providers.local.model_file import data_directory
from smart_model_router_research.assembly import run_store
from smart_model_router_research.engine import select_engine
from smart_model_router_research.workflow import WorkflowDefinition, WorkflowError, WorkflowFault, load_workflow
from smart_model_router_research.workflow.printing import as_mermaid, as_yaml

if TYPE_CHECKING:
    from smart_model_router.cli.workflow_commands import WorkflowCheck, WorkflowExpand, WorkflowGraph


def functions_in(file: Path | None) -> dict[str, Any]:
    """Return the public async functions that a Python file defines, by name. Raises ConfigurationError."""
    if file is None:
        return {}
    wanted = "a Python file with async functions is needed"
    spec = importlib.util.spec_from_file_location("workflow_functions", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise ConfigurationError("--functions", str(file), wanted)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a script may end itself; this is not the end of the command
        raise ConfigurationError("--functions", str(file), f"{wanted}: {type(error).__name__}: {error}") from error
    own = {name: each for name, each in vars(module).items() if getattr(each, "__module__", None) == spec.name}
    found = {name: each for name, each in own.items() if inspect.iscoroutinefunction(each) and not name.startswith("_")}
    if not found:
        raise ConfigurationError("--functions", str(file), f"{wanted}: it has no public `async def`")
    return found


def run_check(asked: WorkflowCheck) -> int:
    """Print every fault, or the engine that runs it and why; 3 when there is a fault, or no engine."""
    workflow = loaded(asked.file, asked.functions, as_json=asked.as_json)
    if workflow is None:
        return ExitCode.CONFIGURATION
    # Without --config no configuration is read: a workflow can be checked where the keys of providers are not.
    section = WorkflowsConfig() if asked.config is None else section_of(asked.config)
    chosen = select_engine(workflow, asked.engine or section.engine, store=run_store(section, data_directory()))
    if asked.as_json:
        engine = {"engine": chosen.engine.name, "engine_reason": chosen.reason}
        print_json({"file": str(asked.file), "faults": [], **_facts(workflow), **engine})
    print_line(f"{asked.file}: {workflow.name}, {len(workflow.steps)} steps, no problems; {chosen.reason}")
    return ExitCode.OK


def run_expand(asked: WorkflowExpand) -> int:
    """Print the steps; 3 and the faults where it has some."""
    return _print(asked, "yaml", as_yaml)


def run_graph(asked: WorkflowGraph) -> int:
    """Print the flowchart; 3 and the faults where it has some."""
    return _print(asked, "mermaid", as_mermaid)


def _print(asked: WorkflowExpand | WorkflowGraph, form: str, text_of: Callable[[WorkflowDefinition], str]) -> int:
    workflow = loaded(asked.file, asked.functions, as_json=asked.as_json)
    if workflow is None:
        return ExitCode.CONFIGURATION
    if asked.as_json:
        print_json({**_facts(workflow), form: text_of(workflow)})
    else:
        print_answer(text_of(workflow))
    return ExitCode.OK


def loaded(file: Path, functions: Path | None, *, as_json: bool) -> WorkflowDefinition | None:
    """Return the workflow of a file; None when its faults are printed. Raises ConfigurationError for the functions."""
    try:
        return load_workflow(file, functions_in(functions))
    except WorkflowError as error:
        if as_json:
            print_json({"file": str(file), "faults": [*map(_as_dict, error.faults)]})
        for fault in error.faults if not as_json else ():
            print_answer(f"{fault.place or file}: {fault.key}: {fault.as_error().shown} - {fault.expected}\n")
        print_line(f"{file}: {len(error.faults)} {'problem' if len(error.faults) == 1 else 'problems'}")
        return None


def _facts(workflow: WorkflowDefinition) -> Mapping[str, Any]:
    return {"name": workflow.name, "steps": [step.name for step in workflow.steps], "hash": workflow.hash}


def _as_dict(fault: WorkflowFault) -> Mapping[str, Any]:
    return {"place": fault.place, "key": fault.key, "value": fault.value, "expected": fault.expected}
