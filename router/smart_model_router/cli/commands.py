"""The commands of `smr` beside those of a conversation, their options and their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smart_model_router.cli.command import Command, Config, Db, Index, Json, Model, Name, Prompt, Url, Why, command
from smart_model_router.cli.output import finish

commands = typer.Typer()


@command(commands, "init", "init:run")
class Init(Command):
    """Write a commented smart-router.yaml for the keys and model servers found."""

    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Where to write it; else ./smart-router.yaml.")
    ] = None
    as_json: Json = False


keys = typer.Typer(name="keys", help="The gateway's virtual keys.", no_args_is_help=True, rich_markup_mode=None)


@keys.callback()
def _keys() -> None:
    """The gateway's virtual keys."""


@command(keys, "new", "new_key:run")
class NewKey(Command):
    """Print a new virtual key once, and its lines for the configuration."""

    name: Annotated[str, typer.Argument(metavar="NAME", help="The client's name in the configuration and in logs.")]
    rpm: Annotated[int | None, typer.Option(min=1, help="Requests a minute.")] = None
    tpm: Annotated[int | None, typer.Option(min=1, help="Tokens a minute.")] = None
    usd_per_day: Annotated[
        float | None, typer.Option("--usd-per-day", min=0.000001, max=1_000_000, help="USD in 24 hours.")
    ] = None
    as_json: Json = False


@command(commands, "stats", "statistics:run_stats")
class Stats(Command):
    """Show the statistics that routers wrote to their file."""

    db: Db = None
    config: Config = None
    watch: Annotated[bool, typer.Option("--watch", help="Again every second, until Ctrl-C.")] = False
    as_json: Json = False


@command(commands, "top", "statistics:run_top")
class Top(Command):
    """Follow the statistics file while routers write to it."""

    db: Db = None
    config: Config = None
    seconds: Annotated[float, typer.Option(min=0.1, help="Between two looks.")] = 1.0
    times: Annotated[int | None, typer.Option(min=1, help="How many looks; without: until Ctrl-C.")] = None
    fleet: Annotated[
        bool, typer.Option("--fleet", help="Follow the processes that share state, and what they share.")
    ] = False
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout for each look.")] = False


@command(commands, "dashboard", "statistics:run_dashboard")
class Dashboard(Command):
    """Show a statistics file as a web page, until Ctrl-C; smr serve has its own at /dashboard."""

    db: Db = None
    config: Config = None
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8001
    as_json: Json = False


@command(commands, "index", "search_index:run_index")
class IndexFolder(Command):
    """Index a folder for smr query; later runs read only changed files."""

    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Markdown, text, HTML and PDF in it are read; or one such file.")
    ]
    db: Index = None
    config: Config = None
    as_json: Json = False


@command(commands, "query", "search_index:run_query")
class Query(Command):
    """Search an index; each result has a confidence."""

    question: Prompt
    db: Index = None
    config: Config = None
    top_n: Annotated[int, typer.Option("--top-n", "-n", min=1, max=100, help="How many results.")] = 5
    explain: Annotated[bool, typer.Option("--explain", help="Explain how each score came about.")] = False
    show: Annotated[bool, typer.Option("--show", help="Print the lines of each result, and some around them.")] = False
    answer: Annotated[bool, typer.Option("--answer", help="Have a model answer from the results.")] = False
    as_json: Json = False


@command(commands, "evaluate", "evaluate:run")
class Evaluate(Command):
    """Measure rankings against judgements, or tune search on them: --tune and --fit, with an index."""

    ranking: Annotated[
        Path | None, typer.Argument(metavar="RUN", help="Rankings as TREC has them: query Q0 id rank score tag.")
    ] = None
    qrels: Annotated[
        Path | None, typer.Argument(metavar="QRELS", help="Judgements as TREC has them: query 0 id grade.")
    ] = None
    ab: Annotated[
        Path | None, typer.Option("--ab", metavar="RUN", help="Another run (B): is it better than the first (A)?")
    ] = None
    keep: Annotated[Path | None, typer.Option(metavar="FILE", help="Append the figures to this Markdown file.")] = None
    seed: Annotated[int, typer.Option(min=0, help="Repeats the chance in intervals and tests.")] = 0
    tune: Annotated[bool, typer.Option("--tune", help="Choose fusion and weights on your questions.")] = False
    fit: Annotated[bool, typer.Option("--fit", help="Choose min_confidence and curves on your questions.")] = False
    db: Annotated[Path | None, typer.Option("--index", metavar="FILE", help="--tune, --fit: the index.")] = None
    questions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="--tune, --fit: your questions, `id question` a line.")
    ] = None
    judgements: Annotated[
        Path | None, typer.Option("--qrels", metavar="FILE", help="--tune, --fit: judgements of documents, as QRELS.")
    ] = None
    away: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="--fit: questions that nothing in the index answers, one a line."),
    ] = None
    write: Annotated[
        Path | None, typer.Option(metavar="CONFIG", help="--tune, --fit: set what is better in this configuration.")
    ] = None
    config: Config = None
    as_json: Json = False

    def check(self) -> None:
        """Refuse a mixture of the two uses, and neither."""
        tuning = {"--index": self.db, "--questions": self.questions, "--qrels": self.judgements, "--away": self.away}
        tuning |= {"--write": self.write, "--config": self.config}
        measuring = {"RUN": self.ranking, "QRELS": self.qrels, "--ab": self.ab, "--keep": self.keep}
        tunes = self.tune or self.fit
        wrong = [name for name, value in (measuring if tunes else tuning).items() if value is not None]
        if wrong:
            raise typer.BadParameter(f"{', '.join(wrong)} {'without' if tunes else 'with'} --tune or --fit only")
        if not tunes and (self.ranking is None or self.qrels is None):
            raise typer.BadParameter("RUN and QRELS are needed, or --tune or --fit")


@command(commands, "demo", "demo:run")
class Demo(Command):
    """Watch a fleet fail in turn, and every question answered."""

    as_json: Json = False


@command(commands, "simulate", "simulate:run")
class Simulate(Command):
    """Live through an outage in virtual time; 1 when a promise is broken."""

    scenario: Annotated[str | None, typer.Argument(help="The scenario; without: list them.")] = None
    seed: Annotated[int, typer.Option(help="The same seed gives the same history.")] = 0
    off: Annotated[
        list[str] | None, typer.Option("--off", metavar="MEASURE", help="Switch a measure off; may be repeated.")
    ] = None
    cells: Annotated[str | None, typer.Option(metavar="NAME", help="grid: only cells that match this.")] = None
    requests: Annotated[int | None, typer.Option(min=1, help="grid: requests for each seed of a cell.")] = None
    seeds: Annotated[int, typer.Option(min=1, help="grid: how many seeds, from --seed on.")] = 3
    jobs: Annotated[int | None, typer.Option(min=1, help="grid: how many processes; default: one a core.")] = None
    everything: Annotated[bool, typer.Option("--all", help="grid: every cell, not only the named ones.")] = False
    as_json: Json = False

    @property
    def narrows_grid(self) -> bool:
        """True when an option was given that only the grid takes."""
        return self.seeds != Simulate.seeds or self.everything or any((self.cells, self.requests, self.jobs))


@command(commands, "chaos", "chaos:run_chaos")
class Chaos(Command):
    """Rehearse failures of your own providers on this machine; 1 unless all scenarios pass."""

    config: Config = None
    scenario: Annotated[str | None, typer.Option(help="Only this one (see --list).")] = None
    model: Model = None
    speed: Annotated[
        float, typer.Option(min=1, max=100, help="So many times shorter is every duration; 1: as configured.")
    ] = 10.0
    seed: Annotated[int, typer.Option(help="Repeats the router's and the servers' luck.")] = 0
    list_only: Annotated[bool, typer.Option("--list", help="List the scenarios.")] = False
    as_json: Json = False


@command(commands, "fault-server", "chaos:run_fault_server")
class ServeFaults(Command):
    """Serve as a provider that fails as scripted, until Ctrl-C."""

    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 0
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1"
    script: Annotated[Path | None, typer.Option(metavar="FILE", help="Faults as YAML; without: no faults.")] = None
    seed: Annotated[int, typer.Option(help="Repeats its luck.")] = 0
    as_json: Json = False


targets = typer.Typer(name="targets", rich_markup_mode=None)


@targets.callback(invoke_without_command=True)
def _targets(context: typer.Context, config: Config = None, url: Url = None, as_json: Json = False) -> None:
    """Show how a running gateway's targets stand; enable or isolate one."""
    if context.invoked_subcommand is None:
        _operate(context, None, "", "", config, url, as_json)


@targets.command()
def enable(
    context: typer.Context, name: Name, why: Why = "", config: Config = None, url: Url = None, as_json: Json = False
) -> None:
    """Ask a target again: its breakers close; waits, walls and being off end, its credential's too."""
    _operate(context, "enable", name, why, config, url, as_json)


@targets.command()
def isolate(
    context: typer.Context, name: Name, why: Why = "", config: Config = None, url: Url = None, as_json: Json = False
) -> None:
    """Send a target nothing until it is enabled."""
    _operate(context, "isolate", name, why, config, url, as_json)


def _operate(
    context: typer.Context,
    action: str | None,
    name: str,
    why: str,
    config: Path | None,
    url: str | None,
    as_json: bool,
) -> None:
    """Options may stand before the action or after it."""
    before = {} if context.parent is None else context.parent.params
    config, url = config or before.get("config"), url or before.get("url")
    as_json = as_json or bool(before.get("as_json"))

    def command() -> int:
        from smart_model_router.cli.gateway_client import run_targets as run  # noqa: PLC0415 - only the command that runs pays

        return run(action, name, why=why, url=url, config=config, as_json=as_json)

    finish(command, as_json=as_json)


settings = typer.Typer(name="config", help="The configuration.", no_args_is_help=True, rich_markup_mode=None)
imports = typer.Typer(name="import", help="Come from another router.", no_args_is_help=True, rich_markup_mode=None)


@command(settings, "check", "configuration:run_check")
class Check(Command):
    """Report everything that is wrong with it, and warn of later trouble."""

    config: Config = None
    as_json: Json = False


@command(settings, "show", "configuration:run_show")
class Show(Command):
    """Show every value in force; secrets are masked."""

    config: Config = None
    origin: Annotated[bool, typer.Option("--origin", help="A line for each value, with where it comes from.")] = False
    as_json: Json = False


@command(settings, "schema", "configuration:run_schema")
class Schema(Command):
    """Print the JSON Schema of the file, for editors; with --json on one line."""

    as_json: Json = False


@imports.callback()
def _imports() -> None:
    """Come from another router."""


@command(imports, "litellm", "importing:run")
class ImportLitellm(Command):
    """Convert a LiteLLM configuration; list the values without a counterpart, and why."""

    source: Annotated[Path, typer.Argument(metavar="FILE", help="The config.yaml of LiteLLM's proxy.")]
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write it; else stdout.")
    ] = None
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 when a value has no counterpart.")] = False
    as_json: Json = False
