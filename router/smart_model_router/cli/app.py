"""The commands of `smr`, their options and their help; what each does is in a module of its own."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from smart_model_router.cli import config_commands, rehearsal_commands, search_commands, store_commands, target_commands
from smart_model_router.cli.ending import finish
from smart_model_router.cli.options import Config, Json, Model, Prompt, Through, Tier, Timeout

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


for _commands in (
    store_commands.commands,
    search_commands.commands,
    rehearsal_commands.commands,
    target_commands.targets,
    config_commands.settings,
    config_commands.imports,
    local,
):
    app.add_typer(_commands)
