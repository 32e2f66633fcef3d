"""The commands of `smr`, their options and their help; what each does is in a module of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from smart_model_router.cli.ending import finish

# Help and usage errors stay plain: rich would double what `smr --help` costs.
app = typer.Typer(
    name="smr",
    help="A resilient router between you and every model provider.",
    epilog="Exit codes: 0 ok, 1 failed, 2 usage, 3 configuration, 4 nobody could answer, 5 degraded.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
local = typer.Typer(name="local", help="The embedded model.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(local)
targets = typer.Typer(name="targets", rich_markup_mode=None)
app.add_typer(targets)
settings = typer.Typer(name="config", help="The configuration.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(settings)
imports = typer.Typer(name="import", help="Come from another router.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(imports)


def _prompt(given: str) -> str:
    """The prompt itself, or that on stdin for `-`."""
    raw = sys.stdin.buffer.read() if given == "-" else os.fsencode(given)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"it is not UTF-8 (byte {error.start})") from None
    if not text.strip():
        raise typer.BadParameter("it is empty")
    return text


Prompt = Annotated[str, typer.Argument(help="What to ask; - reads it from stdin.", callback=_prompt)]
Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="The configuration; else it is looked for (see smr doctor)."),
]
Model = Annotated[str | None, typer.Option("--model", "-m", help="A public model name (see smr models).")]
Tier = Annotated[str | None, typer.Option("--tier", "-t", help="A tier other than the first.")]
Db = Annotated[Path | None, typer.Option("--db", metavar="FILE", help="The file; else the configuration's store.")]
Index = Annotated[
    Path | None, typer.Option("--db", metavar="FILE", help="The index; else search.index, else the user's own.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
Url = Annotated[str | None, typer.Option("--url", help="The gateway's address; else the configuration's.")]
Through = Annotated[
    str | None, typer.Option("--url", help="Ask through the gateway at this address; its key: see smr targets.")
]
Timeout = Annotated[float | None, typer.Option(min=0.001, help="Seconds in all.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A target (see smr targets), or a provider: all of its.")]


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version  # noqa: PLC0415 - only who asks pays

        typer.echo(f"smr {version('smart-model-router')}")
        raise typer.Exit


@app.callback()
def _smr(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """A resilient router between you and every model provider."""


@app.command()
def ask(
    prompt: Prompt,
    config: Config = None,
    model: Model = None,
    tier: Tier = None,
    timeout: Timeout = None,
    url: Through = None,
    stream: Annotated[bool, typer.Option("--stream/--no-stream", help="Print the answer as it comes.")] = True,
    explain: Annotated[bool, typer.Option("--explain", help="Say on stderr who answered and why.")] = False,
    fail_on_degraded: Annotated[
        bool, typer.Option("--fail-on-degraded", help="Exit with 5 when a lower tier or the last resort answered.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Ask a model; the answer comes from whoever can give it."""
    if fail_on_degraded and url is not None:
        raise typer.BadParameter("only the gateway knows whether its answer is degraded: not with --url")

    def command() -> int:
        from smart_model_router.cli.asking import Asking, run  # noqa: PLC0415 - only the command that runs pays

        return run(
            Asking(
                prompt=prompt,
                config=config,
                model=model,
                tier=tier,
                timeout=timeout,
                stream=stream,
                explain=explain,
                fail_on_degraded=fail_on_degraded,
                as_json=as_json,
                url=url,
            )
        )

    finish(command, as_json=as_json)


@app.command()
def chat(
    config: Config = None,
    model: Model = None,
    tier: Tier = None,
    timeout: Timeout = None,
    url: Through = None,
    system: Annotated[str | None, typer.Option("--system", "-s", help="What the model is told first.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say on stderr who answered and why.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for each answer.")] = False,
) -> None:
    """Converse with a model; from a pipe, each line is a question."""

    def command() -> int:
        from smart_model_router.cli.chatting import Chatting, run  # noqa: PLC0415 - as above

        return run(
            Chatting(
                config=config,
                model=model,
                tier=tier,
                timeout=timeout,
                url=url,
                system=system,
                explain=explain,
                as_json=as_json,
            )
        )

    finish(command, as_json=as_json)


@app.command()
def explain(
    prompt: Prompt, config: Config = None, model: Model = None, tier: Tier = None, as_json: Json = False
) -> None:
    """Show who would answer a prompt, without sending it."""

    def command() -> int:
        from smart_model_router.cli.planning import run  # noqa: PLC0415 - as above

        return run(prompt, config=config, model=model, tier=tier, as_json=as_json)

    finish(command, as_json=as_json)


@app.command()
def models(config: Config = None, as_json: Json = False) -> None:
    """List models, tiers, targets and prices."""

    def command() -> int:
        from smart_model_router.cli.listing import run  # noqa: PLC0415 - as above

        return run(config=config, as_json=as_json)

    finish(command, as_json=as_json)


@app.command()
def doctor(config: Config = None, as_json: Json = False) -> None:
    """Check the set-up without spending a token."""

    def command() -> int:
        from smart_model_router.cli.checking import run  # noqa: PLC0415 - as above

        return run(config=config, as_json=as_json)

    finish(command, as_json=as_json)


@app.command()
def stats(
    db: Db = None,
    config: Config = None,
    watch: Annotated[bool, typer.Option("--watch", help="Again every second, until Ctrl-C.")] = False,
    as_json: Json = False,
) -> None:
    """Show what routers wrote to their statistics file."""

    def command() -> int:
        from smart_model_router.cli.statistics import run  # noqa: PLC0415 - as above

        return run(db=db, config=config, as_json=as_json, watch=watch)

    finish(command, as_json=as_json)


@app.command()
def top(
    db: Db = None,
    config: Config = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="Between two looks.")] = 1.0,
    times: Annotated[int | None, typer.Option(min=1, help="How many looks; without: until Ctrl-C.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout for each look.")] = False,
) -> None:
    """Follow the statistics file while routers write to it."""

    def command() -> int:
        from smart_model_router.cli.top import run  # noqa: PLC0415 - as above

        return run(db=db, config=config, seconds=seconds, times=times, as_json=as_json)

    finish(command, as_json=as_json)


@app.command()
def serve(
    config: Config = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on; else gateway.host.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="0 takes a free one; else gateway.port.")] = None,
    server: Annotated[
        Literal["uvicorn", "granian"], typer.Option(help="What speaks HTTP; granian is an extra of its own.")
    ] = "uvicorn",
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="Processes, which share their state through the store.")
    ] = 1,
    as_json: Json = False,
) -> None:
    """Be an OpenAI and Anthropic endpoint for any client, until Ctrl-C."""

    def command() -> int:
        from smart_model_router.cli.serving import Serving, run  # noqa: PLC0415 - as above

        return run(Serving(config, host, port, server, workers, as_json))

    finish(command, as_json=as_json)


@app.command()
def index(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Markdown, text and HTML in it are read.")],
    db: Index = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Index a folder for smr query; again, only what changed is read."""

    def command() -> int:
        from smart_model_router.cli.indexing import run  # noqa: PLC0415 - as above

        return run(folder, db=db, config=config, as_json=as_json)

    finish(command, as_json=as_json)


@app.command()
def query(
    question: Prompt,
    db: Index = None,
    config: Config = None,
    top_n: Annotated[int, typer.Option("--top-n", "-n", min=1, max=100, help="How many results.")] = 5,
    explain: Annotated[bool, typer.Option("--explain", help="Say how each score came about.")] = False,
    answer: Annotated[bool, typer.Option("--answer", help="Have a model answer from what is found.")] = False,
    as_json: Json = False,
) -> None:
    """Search an index; each result says how sure it is."""

    def command() -> int:
        from smart_model_router.cli.querying import Query, run  # noqa: PLC0415 - as above

        return run(Query(question, db=db, config=config, top_n=top_n, explain=explain, answer=answer, as_json=as_json))

    finish(command, as_json=as_json)


@app.command()
def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Rankings as TREC has them: query Q0 id rank score tag.")],
    qrels: Annotated[Path, typer.Argument(metavar="QRELS", help="Judgements as TREC has them: query 0 id grade.")],
    ab: Annotated[
        Path | None, typer.Option("--ab", metavar="RUN", help="Another run (B): is it better than the first (A)?")
    ] = None,
    keep: Annotated[Path | None, typer.Option(metavar="FILE", help="Append the figures to this Markdown file.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Repeats the chance in intervals and tests.")] = 0,
    as_json: Json = False,
) -> None:
    """Measure rankings against judgements; --ab compares two of them."""

    def command() -> int:
        from smart_model_router.cli.evaluating import run as judge  # noqa: PLC0415 - as above

        return judge(run, qrels, ab=ab, keep=keep, seed=seed, as_json=as_json)

    finish(command, as_json=as_json)


@app.command()
def dashboard(
    db: Db = None,
    config: Config = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8001,
    as_json: Json = False,
) -> None:
    """Show a statistics file as a web page, until Ctrl-C; smr serve has its own at /dashboard."""

    def command() -> int:
        from smart_model_router.cli.dashboard import run  # noqa: PLC0415 - as above

        return run(db=db, config=config, port=port, as_json=as_json)

    finish(command, as_json=as_json)


@app.command("fault-server")
def fault_server(
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 0,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    script: Annotated[Path | None, typer.Option(metavar="FILE", help="Faults as YAML; without: always well.")] = None,
    seed: Annotated[int, typer.Option(help="Repeats its luck.")] = 0,
    as_json: Json = False,
) -> None:
    """Be a provider that fails as scripted, until Ctrl-C."""

    def command() -> int:
        from smart_model_router.cli.faults import run  # noqa: PLC0415 - as above

        return run(host=host, port=port, script=script, seed=seed, as_json=as_json)

    finish(command, as_json=as_json)


@app.command()
def demo(as_json: Json = False) -> None:
    """Watch a fleet fail in turn, and every question answered."""

    def command() -> int:
        from smart_model_router.cli.demo import run  # noqa: PLC0415 - as above

        return run(as_json=as_json)

    finish(command, as_json=as_json)


@app.command()
def simulate(
    scenario: Annotated[str | None, typer.Argument(help="Which one; without: list them.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same history.")] = 0,
    off: Annotated[
        list[str] | None, typer.Option("--off", metavar="MEASURE", help="Switch a measure off; may be repeated.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Live through an outage in virtual time; 1 when a promise is broken."""

    def command() -> int:
        from smart_model_router.cli.simulate import run  # noqa: PLC0415 - as above

        return run(scenario, seed=seed, off=off or (), as_json=as_json)

    finish(command, as_json=as_json)


@app.command()
def chaos(
    config: Config = None,
    scenario: Annotated[str | None, typer.Option(help="Only this one (see --list).")] = None,
    model: Model = None,
    speed: Annotated[
        float, typer.Option(min=1, max=100, help="So many times shorter is every duration; 1: as configured.")
    ] = 10.0,
    seed: Annotated[int, typer.Option(help="Repeats the router's and the servers' luck.")] = 0,
    list_only: Annotated[bool, typer.Option("--list", help="Say which scenarios there are.")] = False,
    as_json: Json = False,
) -> None:
    """Rehearse failures of your own providers on this machine; 1 unless all scenarios pass."""

    def command() -> int:
        from smart_model_router.cli.chaos import run  # noqa: PLC0415 - as above

        return run(
            config=config,
            model=model,
            scenario=scenario,
            speed=speed,
            seed=seed,
            list_only=list_only,
            as_json=as_json,
        )

    finish(command, as_json=as_json)


@settings.command()
def check(config: Config = None, as_json: Json = False) -> None:
    """Say everything that is wrong with it, and what will hurt some day."""

    def command() -> int:
        from smart_model_router.cli.config_check import run  # noqa: PLC0415 - as above

        return run(config=config, as_json=as_json)

    finish(command, as_json=as_json)


@settings.command()
def show(
    config: Config = None,
    origin: Annotated[bool, typer.Option("--origin", help="A line for each value, with where it comes from.")] = False,
    as_json: Json = False,
) -> None:
    """Show every value in force; secrets are masked."""

    def command() -> int:
        from smart_model_router.cli.config_show import run  # noqa: PLC0415 - as above

        return run(config=config, origin=origin, as_json=as_json)

    finish(command, as_json=as_json)


@settings.command()
def schema(as_json: Json = False) -> None:
    """Print the JSON Schema of the file, for editors; with --json on one line."""

    def command() -> int:
        from smart_model_router.cli.config_schema import run  # noqa: PLC0415 - as above

        return run(as_json=as_json)

    finish(command, as_json=as_json)


@imports.callback()
def _imports() -> None:
    """Come from another router."""


@imports.command()
def litellm(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="The config.yaml of LiteLLM's proxy.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write it; else stdout.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Convert a LiteLLM configuration; list what has no counterpart, and why."""

    def command() -> int:
        from smart_model_router.cli.importing import run  # noqa: PLC0415 - as above

        return run(source, output=output, as_json=as_json)

    finish(command, as_json=as_json)


@local.callback()
def _local() -> None:
    """The embedded model."""


@local.command()
def install(as_json: Json = False) -> None:
    """Fetch the embedded model (93 MB, once) and check it."""

    def command() -> int:
        from smart_model_router.cli.installing import run  # noqa: PLC0415 - as above

        return run(as_json=as_json)

    finish(command, as_json=as_json)


@targets.callback(invoke_without_command=True)
def _targets(context: typer.Context, config: Config = None, url: Url = None, as_json: Json = False) -> None:
    """Show how a running gateway's targets stand; enable or isolate one."""
    if context.invoked_subcommand is None:
        _operate(context, None, "", config, url, as_json)


@targets.command()
def enable(context: typer.Context, name: Name, config: Config = None, url: Url = None, as_json: Json = False) -> None:
    """Ask a target again: its breakers close; waits, walls and being off end, its credential's too."""
    _operate(context, "enable", name, config, url, as_json)


@targets.command()
def isolate(context: typer.Context, name: Name, config: Config = None, url: Url = None, as_json: Json = False) -> None:
    """Send a target nothing until it is enabled."""
    _operate(context, "isolate", name, config, url, as_json)


def _operate(
    context: typer.Context, action: str | None, name: str, config: Path | None, url: str | None, as_json: bool
) -> None:
    """Options may stand before the action or after it."""
    before = {} if context.parent is None else context.parent.params
    config, url = config or before.get("config"), url or before.get("url")
    as_json = as_json or bool(before.get("as_json"))

    def command() -> int:
        from smart_model_router.cli.targets import run  # noqa: PLC0415 - only the command that runs pays

        return run(action, name, url=url, config=config, as_json=as_json)

    finish(command, as_json=as_json)
