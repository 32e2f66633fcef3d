"""The commands of `smr research`, their options and their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smart_model_router.cli.command import Command, Json, command

research = typer.Typer(name="research", no_args_is_help=True, rich_markup_mode=None)


@research.callback()
def _research() -> None:
    """Answers whose every statement code can check against its source."""


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

    folder: Annotated[
        Path, typer.Argument(metavar="DIR", exists=True, file_okay=False, help="The folder of artefacts.")
    ]
    as_json: Json = False
