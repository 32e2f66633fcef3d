"""The commands of `smr`, their options and their help; what each does is in a module of its own."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from smart_model_router.cli import commands, research_commands, workflow_commands
from smart_model_router.cli.command import Command, Config, Json, Model, Prompt, Through, Tier, Timeout, command

# Help and usage errors stay plain: rich would double what `smr --help` costs.
app = typer.Typer(
    name="smr",
    help="A resilient router between you and every model provider.",
    epilog="Exit codes: 0 ok, 1 failed, 2 usage, 3 configuration, 4 no target could answer, 5 degraded, "
    "6 a report withheld or below what was asked for, 7 waits for a decision, 8 held by another process.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
local = typer.Typer(name="local", help="The embedded model.", no_args_is_help=True, rich_markup_mode=None)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version  # noqa: PLC0415 - only --version pays

        typer.echo(f"smr {version('smart-model-router')}")
        raise typer.Exit


@app.callback()
def _smr(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """A resilient router between you and every model provider."""


@command(app, "ask", "ask:run_ask")
class Ask(Command):
    """Ask a model; the answer comes from the first target that can give it."""

    prompt: Prompt
    config: Config = None
    model: Model = None
    tier: Tier = None
    timeout: Timeout = None
    url: Through = None
    stream: Annotated[bool, typer.Option("--stream/--no-stream", help="Print the answer as it comes.")] = True
    explain: Annotated[bool, typer.Option("--explain", help="Print to stderr which target answered and why.")] = False
    fail_on_degraded: Annotated[
        bool, typer.Option("--fail-on-degraded", help="Exit with 5 when a lower tier or the last resort answered.")
    ] = False
    as_json: Json = False

    def check(self) -> None:
        """Refuse `--fail-on-degraded` with `--url`. Raises typer.BadParameter."""
        if self.fail_on_degraded and self.url is not None:
            raise typer.BadParameter("only the gateway knows whether its answer is degraded: not with --url")


@command(app, "chat", "ask:run_chat")
class Chat(Command):
    """Converse with a model; from a pipe, each line is a question."""

    config: Config = None
    model: Model = None
    tier: Tier = None
    timeout: Timeout = None
    url: Through = None
    system: Annotated[str | None, typer.Option("--system", "-s", help="The system message of the conversation.")] = None
    explain: Annotated[bool, typer.Option("--explain", help="Print to stderr which target answered and why.")] = False
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for each answer.")] = False


@command(app, "explain", "models:run_explain")
class Explain(Command):
    """Show which target would answer a prompt, without sending it."""

    prompt: Prompt
    config: Config = None
    model: Model = None
    tier: Tier = None
    as_json: Json = False


@command(app, "models", "models:run_models")
class Models(Command):
    """List models, tiers, targets and prices."""

    config: Config = None
    as_json: Json = False


@command(app, "doctor", "doctor:run")
class Doctor(Command):
    """Check the set-up without spending a token."""

    config: Config = None
    online: Annotated[
        bool, typer.Option("--online", help="Ask each provider for its list of models: key, URL, names.")
    ] = False
    as_json: Json = False


@command(app, "serve", "serve:run")
class Serve(Command):
    """Serve OpenAI and Anthropic clients over HTTP, until Ctrl-C."""

    config: Config = None
    host: Annotated[str | None, typer.Option(help="The address to listen on; else gateway.host.")] = None
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="0 takes a free one; else gateway.port.")] = None
    server: Annotated[Literal["uvicorn", "granian"], typer.Option(hidden=True)] = "uvicorn"
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="Processes, which share their state through the store.")
    ] = 1
    as_json: Json = False


@local.callback()
def _local() -> None:
    """The embedded model."""


@command(local, "install", "models:run_install")
class Install(Command):
    """Fetch the embedded model (93 MB, once) and check it."""

    as_json: Json = False


for _commands in (
    commands.commands,
    commands.keys,
    commands.targets,
    commands.settings,
    commands.imports,
    workflow_commands.workflows,
    research_commands.research,
    local,
):
    app.add_typer(_commands)
