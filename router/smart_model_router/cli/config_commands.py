"""`smr config ...` and `smr import ...`: the configuration, and where it may come from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smart_model_router.cli.ending import finish
from smart_model_router.cli.options import Config, Json

settings = typer.Typer(name="config", help="The configuration.", no_args_is_help=True, rich_markup_mode=None)
imports = typer.Typer(name="import", help="Come from another router.", no_args_is_help=True, rich_markup_mode=None)


@settings.command()
def check(config: Config = None, as_json: Json = False) -> None:
    """Say everything that is wrong with it, and what will hurt some day."""

    def command() -> int:
        from smart_model_router.cli.config_check import run  # noqa: PLC0415 - only the command that runs pays

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
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 when a value has no counterpart.")] = False,
    as_json: Json = False,
) -> None:
    """Convert a LiteLLM configuration; list what has no counterpart, and why."""

    def command() -> int:
        from smart_model_router.cli.importing import run  # noqa: PLC0415 - as above

        return run(source, output=output, as_json=as_json, strict=strict)

    finish(command, as_json=as_json)
