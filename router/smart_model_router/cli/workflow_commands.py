"""The commands of `smr workflow`, their options and their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smart_model_router.cli.command import Command, Config, Json, command

workflows = typer.Typer(name="workflow", no_args_is_help=True, rich_markup_mode=None)
WorkflowFile = Annotated[Path, typer.Argument(metavar="FILE", help="The workflow, as YAML.")]
Functions = Annotated[
    Path | None,
    typer.Option("--functions", metavar="FILE.py", help="The async functions that its steps of kind call name."),
]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="The id of a run (see smr workflow runs).")]
Id = Annotated[
    str | None, typer.Option("--id", metavar="ID", help="The id of the new run; without: one is made, and printed.")
]
Budgets = Annotated[
    list[str] | None,
    typer.Option("--budget", metavar="WHAT=NUMBER", help="The most that it may cost: usd, tokens, calls, seconds."),
]
KeptFunctions = Annotated[
    Path | None,
    typer.Option("--functions", metavar="FILE.py", help="Its functions; else those of the file it began with."),
]
KeptBudget = Annotated[
    list[str] | None,
    typer.Option("--budget", metavar="WHAT=NUMBER", help="Another budget than it began with, as for smr workflow run."),
]
Engine = Annotated[str | None, typer.Option(help="auto, kahn, langgraph, dbos or shadow; else workflows.engine.")]
Out = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the outputs to this file, as JSON.")]


@workflows.callback()
def _workflows() -> None:
    """Workflows of many model calls, which survive kill -9."""


@command(workflows, "check", "workflow_files:run_check")
class WorkflowCheck(Command):
    """Report everything that is wrong with a workflow, with line and column; else which engine runs it."""

    file: WorkflowFile
    engine: Engine = None
    functions: Functions = None
    config: Config = None
    as_json: Json = False


@command(workflows, "expand", "workflow_files:run_expand")
class WorkflowExpand(Command):
    """Print a workflow as it runs: its rounds as single steps."""

    file: WorkflowFile
    functions: Functions = None
    as_json: Json = False


@command(workflows, "graph", "workflow_files:run_graph")
class WorkflowGraph(Command):
    """Draw a workflow as a Mermaid flowchart."""

    file: WorkflowFile
    functions: Functions = None
    as_json: Json = False


@command(workflows, "run", "workflow_runs:run_run")
class WorkflowRun(Command):
    """Run a workflow; 1 when it failed or ended in part, 7 when it waits for a decision."""

    file: WorkflowFile
    inputs: Annotated[
        list[str] | None, typer.Option("--input", "-i", metavar="NAME=VALUE", help="An input; JSON, or a text.")
    ] = None
    budget: Budgets = None
    run_id: Id = None
    engine: Engine = None
    out: Out = None
    queue: Annotated[bool, typer.Option("--queue", help="Leave it to smr workflow worker; print its id.")] = False
    functions: Functions = None
    config: Config = None
    as_json: Json = False

    def check(self) -> None:
        """Refuse a file for outputs that another process will have. Raises typer.BadParameter."""
        if self.queue and (self.out is not None or self.engine not in (None, "auto", "dbos")):
            raise typer.BadParameter("--queue goes with neither --out nor another --engine than dbos")


@command(workflows, "worker", "workflow_worker:run_worker")
class WorkflowWorker(Command):
    """Perform the runs that were queued, and those whose process is gone, until Ctrl-C; on any number of machines."""

    concurrency: Annotated[
        int | None,
        typer.Option(min=1, max=1_000, help="How many runs each worker performs at once; without: as it was (10)."),
    ] = None
    functions: Annotated[
        Path | None,
        typer.Option("--functions", metavar="FILE.py", help="The functions of all runs; else as they began."),
    ] = None
    config: Config = None
    as_json: Json = False


@command(workflows, "resume", "workflow_runs:run_resume")
class WorkflowResume(Command):
    """Go on with a run that was interrupted, or that waits for a decision."""

    run_id: RunId
    approve: Annotated[bool, typer.Option("--approve", help="Approve what it waits for.")] = False
    reject: Annotated[bool, typer.Option("--reject", help="Reject it.")] = False
    payload: Annotated[str | None, typer.Option(metavar="JSON", help="Approve, with this as `payload`.")] = None
    step: Annotated[str | None, typer.Option(metavar="STEP", help="Which one, when several steps wait.")] = None
    budget: KeptBudget = None
    functions: KeptFunctions = None
    engine: Engine = None
    out: Out = None
    config: Config = None
    as_json: Json = False

    def check(self) -> None:
        """Refuse an approval that is a rejection as well. Raises typer.BadParameter."""
        if self.reject and (self.approve or self.payload is not None):
            raise typer.BadParameter("--reject goes with neither --approve nor --payload")
        if self.step is not None and not (self.approve or self.reject or self.payload is not None):
            raise typer.BadParameter("--step goes with --approve, --reject or --payload")


@command(workflows, "runs", "workflow_store:run_runs")
class WorkflowRuns(Command):
    """List the runs, the latest first."""

    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 20
    config: Config = None
    as_json: Json = False


@command(workflows, "cancel", "workflow_store:run_cancel")
class WorkflowCancel(Command):
    """Cancel a run for good, whichever process runs it."""

    run_id: RunId
    config: Config = None
    as_json: Json = False


@command(workflows, "history", "workflow_store:run_history")
class WorkflowHistory(Command):
    """List the checkpoints of a run, oldest first: RUN@NUMBER, for fork."""

    run_id: RunId
    config: Config = None
    as_json: Json = False


@command(workflows, "fork", "workflow_runs:run_fork")
class WorkflowFork(Command):
    """Begin a new run at a checkpoint of another, with changes."""

    checkpoint: Annotated[str, typer.Argument(metavar="RUN@NUMBER", help="A checkpoint (see smr workflow history).")]
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="inputs.NAME or steps.STEP.outputs.NAME, and its new value."),
    ] = None
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="The workflow in another version; else as it was.")
    ] = None
    functions: KeptFunctions = None
    budget: KeptBudget = None
    run_id: Id = None
    engine: Engine = None
    out: Out = None
    config: Config = None
    as_json: Json = False
