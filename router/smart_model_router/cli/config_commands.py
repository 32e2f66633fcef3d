"""`smr config ...` and `smr import ...`: the configuration, and where it may come from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smart_model_router.cli.command import Command, command
from smart_model_router.cli.options import Config, Json

settings = typer.Typer(name="config", help="The configuration.", no_args_is_help=True, rich_markup_mode=None)
imports = typer.Typer(name="import", help="Come from another router.", no_args_is_help=True, rich_markup_mode=None)


@command(settings, "check")
class Check(Command):
    """Report everything that is wrong with it, and warn of later trouble."""

    config: Config = None
    as_json: Json = False

    def run(self) -> int:
        """See config_check.py."""
        from smart_model_router.cli.config_check import run  # noqa: PLC0415 - only the command that runs pays

        return run(self)


@command(settings, "show")
class Show(Command):
    """Show every value in force; secrets are masked."""

    config: Config = None
    origin: Annotated[bool, typer.Option("--origin", help="A line for each value, with where it comes from.")] = False
    as_json: Json = False

    def run(self) -> int:
        """See config_show.py."""
        from smart_model_router.cli.config_show import run  # noqa: PLC0415 - as above

        return run(self)


@command(settings, "schema")
class Schema(Command):
    """Print the JSON Schema of the file, for editors; with --json on one line."""

    as_json: Json = False

    def run(self) -> int:
        """See config_schema.py."""
        from smart_model_router.cli.config_schema import run  # noqa: PLC0415 - as above

        return run(self)


@imports.callback()
def _imports() -> None:
    """Come from another router."""


@command(imports, "litellm")
class ImportLitellm(Command):
    """Convert a LiteLLM configuration; list the values without a counterpart, and why."""

    source: Annotated[Path, typer.Argument(metavar="FILE", help="The config.yaml of LiteLLM's proxy.")]
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write it; else stdout.")
    ] = None
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 when a value has no counterpart.")] = False
    as_json: Json = False

    def run(self) -> int:
        """See importing/."""
        from smart_model_router.cli.importing import run  # noqa: PLC0415 - as above

        return run(self)
