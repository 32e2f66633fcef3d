"""`smr targets ...`: look at, enable and isolate the targets of a running gateway."""

from __future__ import annotations

from pathlib import Path

import typer

from smart_model_router.cli.exit_codes import finish
from smart_model_router.cli.options import Config, Json, Name, Url, Why

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
        from smart_model_router.cli.targets import run  # noqa: PLC0415 - only the command that runs pays

        return run(action, name, why=why, url=url, config=config, as_json=as_json)

    finish(command, as_json=as_json)
