"""`smr stats`, `smr top` and `smr dashboard`: over a file that routers write to."""

from __future__ import annotations

from typing import Annotated

import typer

from smart_model_router.cli.command import Command, command
from smart_model_router.cli.options import Config, Db, Json

commands = typer.Typer()


@command(commands, "stats")
class Stats(Command):
    """Show the statistics that routers wrote to their file."""

    db: Db = None
    config: Config = None
    watch: Annotated[bool, typer.Option("--watch", help="Again every second, until Ctrl-C.")] = False
    as_json: Json = False

    def run(self) -> int:
        """See statistics.py."""
        from smart_model_router.cli.statistics import run  # noqa: PLC0415 - only the command that runs pays

        return run(self)


@command(commands, "top")
class Top(Command):
    """Follow the statistics file while routers write to it."""

    db: Db = None
    config: Config = None
    seconds: Annotated[float, typer.Option(min=0.1, help="Between two looks.")] = 1.0
    times: Annotated[int | None, typer.Option(min=1, help="How many looks; without: until Ctrl-C.")] = None
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout for each look.")] = False

    def run(self) -> int:
        """See top.py."""
        from smart_model_router.cli.top import run  # noqa: PLC0415 - as above

        return run(self)


@command(commands, "dashboard")
class Dashboard(Command):
    """Show a statistics file as a web page, until Ctrl-C; smr serve has its own at /dashboard."""

    db: Db = None
    config: Config = None
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8001
    as_json: Json = False

    def run(self) -> int:
        """See dashboard.py."""
        from smart_model_router.cli.dashboard import run  # noqa: PLC0415 - as above

        return run(self)
