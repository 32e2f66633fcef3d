"""`smr demo`, `smr simulate`, `smr chaos` and `smr fault-server`: failures before they happen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smart_model_router.cli.command import Command, command
from smart_model_router.cli.options import Config, Json, Model

commands = typer.Typer()


@command(commands, "demo")
class Demo(Command):
    """Watch a fleet fail in turn, and every question answered."""

    as_json: Json = False

    def run(self) -> int:
        """See demo/."""
        from smart_model_router.cli.demo import run  # noqa: PLC0415 - only the command that runs pays

        return run(self)


@command(commands, "simulate")
class Simulate(Command):
    """Live through an outage in virtual time; 1 when a promise is broken."""

    scenario: Annotated[str | None, typer.Argument(help="The scenario; without: list them.")] = None
    seed: Annotated[int, typer.Option(help="The same seed gives the same history.")] = 0
    off: Annotated[
        list[str] | None, typer.Option("--off", metavar="MEASURE", help="Switch a measure off; may be repeated.")
    ] = None
    cells: Annotated[str | None, typer.Option(metavar="NAME", help="grid: only cells that match this.")] = None
    requests: Annotated[int | None, typer.Option(min=1, help="grid: requests for each seed of a cell.")] = None
    seeds: Annotated[int, typer.Option(min=1, help="grid: how many seeds, from --seed on.")] = 3
    jobs: Annotated[int | None, typer.Option(min=1, help="grid: how many processes; default: one a core.")] = None
    everything: Annotated[bool, typer.Option("--all", help="grid: every cell, not only the named ones.")] = False
    as_json: Json = False

    def run(self) -> int:
        """See simulate.py."""
        from smart_model_router.cli.simulate import run  # noqa: PLC0415 - as above

        return run(self)

    @property
    def narrows_grid(self) -> bool:
        """True when an option was given that only the grid takes."""
        return self.seeds != Simulate.seeds or self.everything or any((self.cells, self.requests, self.jobs))


@command(commands, "chaos")
class Chaos(Command):
    """Rehearse failures of your own providers on this machine; 1 unless all scenarios pass."""

    config: Config = None
    scenario: Annotated[str | None, typer.Option(help="Only this one (see --list).")] = None
    model: Model = None
    speed: Annotated[
        float, typer.Option(min=1, max=100, help="So many times shorter is every duration; 1: as configured.")
    ] = 10.0
    seed: Annotated[int, typer.Option(help="Repeats the router's and the servers' luck.")] = 0
    list_only: Annotated[bool, typer.Option("--list", help="List the scenarios.")] = False
    as_json: Json = False

    def run(self) -> int:
        """See chaos.py."""
        from smart_model_router.cli.chaos import run  # noqa: PLC0415 - as above

        return run(self)


@command(commands, "fault-server")
class ServeFaults(Command):
    """Serve as a provider that fails as scripted, until Ctrl-C."""

    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 0
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1"
    script: Annotated[Path | None, typer.Option(metavar="FILE", help="Faults as YAML; without: no faults.")] = None
    seed: Annotated[int, typer.Option(help="Repeats its luck.")] = 0
    as_json: Json = False

    def run(self) -> int:
        """See faults.py."""
        from smart_model_router.cli.faults import run  # noqa: PLC0415 - as above

        return run(self)
