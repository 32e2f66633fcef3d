"""`smr demo`, `smr simulate`, `smr chaos` and `smr fault-server`: failures before they happen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smart_model_router.cli.ending import finish
from smart_model_router.cli.options import Config, Json, Model

commands = typer.Typer()


@commands.command()
def demo(as_json: Json = False) -> None:
    """Watch a fleet fail in turn, and every question answered."""

    def command() -> int:
        from smart_model_router.cli.demo import run  # noqa: PLC0415 - only the command that runs pays

        return run(as_json=as_json)

    finish(command, as_json=as_json)


@commands.command()
def simulate(
    scenario: Annotated[str | None, typer.Argument(help="Which one; without: list them.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same history.")] = 0,
    off: Annotated[
        list[str] | None, typer.Option("--off", metavar="MEASURE", help="Switch a measure off; may be repeated.")
    ] = None,
    cells: Annotated[str | None, typer.Option(metavar="NAME", help="grid: only cells that match this.")] = None,
    requests: Annotated[int | None, typer.Option(min=1, help="grid: requests for each seed of a cell.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="grid: how many seeds, from --seed on.")] = 3,
    jobs: Annotated[int | None, typer.Option(min=1, help="grid: how many processes; default: one a core.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="grid: every cell, not only the named ones.")] = False,
    as_json: Json = False,
) -> None:
    """Live through an outage in virtual time; 1 when a promise is broken."""

    def command() -> int:
        from smart_model_router.cli.simulate import run  # noqa: PLC0415 - as above
        from smart_model_router.cli.simulate_grid import GridOptions  # noqa: PLC0415 - as above

        grid = GridOptions(cells=cells, requests=requests, seeds=seeds, jobs=jobs, everything=everything)
        return run(scenario, seed=seed, off=off or (), grid=grid, as_json=as_json)

    finish(command, as_json=as_json)


@commands.command()
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


@commands.command("fault-server")
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
