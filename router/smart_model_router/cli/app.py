"""The commands of `smr`, their options and their help; what each does is in a module of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

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
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]


@app.command()
def ask(
    prompt: Prompt,
    config: Config = None,
    model: Model = None,
    tier: Tier = None,
    timeout: Annotated[float | None, typer.Option(min=0.001, help="Seconds in all.")] = None,
    stream: Annotated[bool, typer.Option("--stream/--no-stream", help="Print the answer as it comes.")] = True,
    explain: Annotated[bool, typer.Option("--explain", help="Say on stderr who answered and why.")] = False,
    fail_on_degraded: Annotated[
        bool, typer.Option("--fail-on-degraded", help="Exit with 5 when a lower tier or the last resort answered.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Ask a model; the answer comes from whoever can give it."""

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
) -> None:
    """Follow the statistics file while routers write to it."""

    def command() -> int:
        from smart_model_router.cli.top import run  # noqa: PLC0415 - as above

        return run(db=db, config=config, seconds=seconds, times=times)

    finish(command)


@app.command()
def serve(
    config: Config = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on; else gateway.host.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="0 takes a free one; else gateway.port.")] = None,
    as_json: Json = False,
) -> None:
    """Be an OpenAI and Anthropic endpoint for any client, until Ctrl-C."""

    def command() -> int:
        from smart_model_router.cli.serving import run  # noqa: PLC0415 - as above

        return run(config=config, host=host, port=port, as_json=as_json)

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
