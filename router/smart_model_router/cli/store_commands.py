"""`smr stats`, `smr top` and `smr dashboard`: over a file that routers write to."""

from __future__ import annotations

from typing import Annotated

import typer

from smart_model_router.cli.ending import finish
from smart_model_router.cli.options import Config, Db, Json

commands = typer.Typer()


@commands.command()
def stats(
    db: Db = None,
    config: Config = None,
    watch: Annotated[bool, typer.Option("--watch", help="Again every second, until Ctrl-C.")] = False,
    as_json: Json = False,
) -> None:
    """Show what routers wrote to their statistics file."""

    def command() -> int:
        from smart_model_router.cli.statistics import run  # noqa: PLC0415 - only the command that runs pays

        return run(db=db, config=config, as_json=as_json, watch=watch)

    finish(command, as_json=as_json)


@commands.command()
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


@commands.command()
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
