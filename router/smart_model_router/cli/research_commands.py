"""The commands of `smr research`, their options and their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from smart_model_router.cli.command import Command, Config, Json, Prompt, command

research = typer.Typer(name="research", no_args_is_help=True, rich_markup_mode=None)
Level = Literal["full", "moderate", "low"]
RunName = Annotated[str, typer.Argument(metavar="RUN", help="The id of a run (see smr research list).")]
Corpora = Annotated[
    list[str] | None,
    typer.Option(
        "--corpus", metavar="PATH", help="A folder, a document or an index; may be repeated. Else research.corpora."
    ),
]
Backends = Annotated[
    list[str] | None,
    typer.Option(
        "--backend",
        metavar="NAME",
        help="Where to search: corpus, arxiv, tavily, or a name of research.backends; may be repeated.",
    ),
]
Seeds = Annotated[
    list[str] | None, typer.Option("--seed-url", metavar="URL", help="A page of the web to read; may be repeated.")
]
AsOf = Annotated[str | None, typer.Option("--as-of", metavar="DAY", help="The day that ages count to; else today.")]
Domain = Annotated[str | None, typer.Option(help="Its window of recency (evaluation.deep_research.recency_windows).")]
MaxRounds = Annotated[int | None, typer.Option("--max-rounds", min=1, max=4, help="Else research.rounds.")]
MinCi = Annotated[float | None, typer.Option("--min-ci", min=0, max=1, help="The index that passes the gate.")]
MinRecent = Annotated[
    int | None, typer.Option("--min-recent-sources", min=0, help="The recent sources that pass the gate.")
]
BudgetUsd = Annotated[float | None, typer.Option("--budget-usd", min=0, help="The most that models may cost.")]
Seconds = Annotated[float | None, typer.Option("--timeout", min=0.001, help="Seconds; then it ends with what it has.")]
Evaluation = Annotated[Path | None, typer.Option(metavar="FILE", help="The section evaluation from a file of its own.")]
Engine = Annotated[str | None, typer.Option(help="auto, kahn, langgraph or dbos; else workflows.engine.")]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help="Copy the folder of artefacts there, a new folder.")]
FailBelow = Annotated[Level | None, typer.Option("--fail-below", help="Exit with 6 below this level of delivery.")]


@research.callback()
def _research() -> None:
    """Answers whose every statement code can check against its source."""


Model = Annotated[
    str | None, typer.Option(metavar="NAME", help="The model that is asked, of the configuration; else research.model.")
]
Offline = Annotated[bool, typer.Option("--offline", help="Ask no model, whatever research.model says.")]


class ResearchQuestion(Command):
    """The options that decide what a run finds."""

    topic: Prompt
    corpus: Corpora = None
    backend: Backends = None
    seed_url: Seeds = None
    goal: Annotated[str | None, typer.Option(metavar="TEXT", help="The purpose of the answer.")] = None
    as_of: AsOf = None
    domain: Domain = None
    max_rounds: MaxRounds = None
    min_ci: MinCi = None
    min_recent_sources: MinRecent = None
    budget_usd: BudgetUsd = None
    timeout: Seconds = None
    evaluation: Evaluation = None
    model: Model = None
    offline: Offline = False


@command(research, "run", "research_runs:run_run", interrupted="interrupted before it began")
class RunResearch(ResearchQuestion):
    """Answer a question from your documents or the web, each sentence with its source; 6 when it is withheld."""

    deliver: Annotated[
        Literal["auto", "always"] | None, typer.Option(help="always: show a report that is too weak, too.")
    ] = None
    engine: Engine = None
    out: Out = None
    fail_below: FailBelow = None
    config: Config = None
    as_json: Json = False


@command(research, "plan", "research_plan:run_plan")
class PlanResearch(ResearchQuestion):
    """Show the questions, steps, limits and unreachable gates of a run, without running it."""

    config: Config = None
    as_json: Json = False


@command(research, "resume", "research_runs:run_resume")
class ResumeResearch(Command):
    """Go on with a run that was interrupted; one that has ended prints its report again."""

    run_id: RunName
    engine: Engine = None
    out: Out = None
    fail_below: FailBelow = None
    config: Config = None
    as_json: Json = False


@command(research, "watch", "research_runs:run_watch")
class WatchResearch(Command):
    """Follow a run from its beginning, whichever process runs it."""

    run_id: RunName
    config: Config = None
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for each event.")] = False


@command(research, "list", "research_store:run_list")
class ListResearch(Command):
    """List the runs of research, the latest first."""

    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 20
    config: Config = None
    as_json: Json = False


@command(research, "status", "research_store:run_status")
class ShowResearch(Command):
    """Show how a run stands."""

    run_id: RunName
    config: Config = None
    as_json: Json = False


@command(research, "report", "research_store:run_report")
class ReportResearch(Command):
    """Print the report of a run; 6 when it is withheld and not accepted."""

    run_id: RunName
    form: Annotated[Literal["md", "html", "json"], typer.Option("--format", help="Its form.")] = "md"
    accept: Annotated[bool, typer.Option("--accept", help="Show a withheld report, with your name in it.")] = False
    config: Config = None
    as_json: Json = False


@command(research, "cancel", "research_store:run_cancel")
class CancelResearch(Command):
    """Cancel a run for good, whichever process runs it."""

    run_id: RunName
    config: Config = None
    as_json: Json = False


@command(research, "workflow", "research_store:run_workflow")
class ExportResearch(Command):
    """Print the workflow of research, as YAML."""

    as_json: Json = False


@command(research, "mcp", "research_mcp:run_mcp", interrupted="interrupted")
class ServeResearch(Command):
    """Serve research as tools of MCP over stdin and stdout: search, fetch, deep_research, and its runs."""

    corpus: Corpora = None
    config: Config = None
    as_json: Annotated[bool, typer.Option("--json", help="Errors as one JSON object.")] = False


@command(research, "corpus", "research_corpus:run_corpus")
class WriteCorpus(Command):
    """Write a corpus to try things with, as Markdown: the World Factbook, its year 2015, or Python's help topics."""

    name: Annotated[Literal["factbook", "factbook-2015", "pydoc"], typer.Argument(help="Which one.")]
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder, or one that is empty.")]
    as_json: Json = False


@command(research, "check", "research_check:run_check")
class ResearchCheck(Command):
    """Check statements against their sources, of any tool; 5 when less than --fail-below of them are supported."""

    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="JSON lines with statement and source, or of ragas or deepeval; - is stdin."
        ),
    ]
    fail_below: Annotated[
        float | None,
        typer.Option(
            "--fail-below",
            min=0,
            max=1,
            metavar="SHARE",
            help="The least share that is supported; what is left out is not.",
        ),
    ] = None
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for each statement.")] = False


@command(research, "verify", "research_verify:run_verify")
class ResearchVerify(Command):
    """Compute everything in the folder of a finished run again: hashes, claims, metrics, report; 1 when it differs."""

    folder: Annotated[str, typer.Argument(metavar="DIR|RUN", help="The folder of artefacts, or the id of a run.")]
    as_json: Json = False


@command(research, "demo", "research_demo:run_demo")
class ResearchDemonstration(Command):
    """Thirty questions, a contradiction, a killed run, two engines and a damaged folder, without key or network."""

    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep corpora, runs and reports in this folder.")] = (
        None
    )
    with_model: Annotated[
        bool, typer.Option("--with-model", help="Let the embedded model write a summary at the end, too.")
    ] = False
    as_json: Json = False


@command(research, "eval", "research_demo:run_eval")
class ResearchEval(Command):
    """Measure research on questions whose answers are known, with 95 % intervals."""

    questions: Annotated[
        str, typer.Option("--set", metavar="SET", help="factbook, versions, or a JSON file of questions.")
    ] = "factbook"
    corpus: Annotated[
        list[Path] | None,
        typer.Option("--corpus", metavar="PATH", help="Their sources, may be repeated; factbook has its own."),
    ] = None
    as_of: Annotated[str | None, typer.Option("--as-of", metavar="DAY", help="The day that ages count to.")] = None
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Ask this model of the configuration, too; its calls cost money.")
    ] = None
    config: Config = None
    as_json: Json = False
