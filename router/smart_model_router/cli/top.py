"""`smr top`: the statistics file as a table that stays on the screen and follows what is written to it."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from smart_model_router.cli.output import ExitCode, console, print_json, printable
from smart_model_router.cli.statistics import HEADINGS, look, rows, store_path, summary
from smart_model_router_stats.reading import StoreView

if TYPE_CHECKING:
    from smart_model_router.cli.commands import Top


def run(asked: Top) -> int:
    """Show the figures anew every `seconds`, `times` times (None: until Ctrl-C); with `as_json` a line for each look.

    Raises ConfigurationError.
    """
    path, seconds = store_path(asked.db, asked.config), asked.seconds
    view = None
    if asked.as_json:
        for view, _ in _looks(path, seconds, asked.times):
            print_json(view.to_dict())
    else:
        with Live(console=console(sys.stdout), auto_refresh=False) as live:
            for view, before in _looks(path, seconds, asked.times):
                live.update(_screen(path, view, before, seconds), refresh=True)
    return ExitCode.OK if view is None or view.problem is None else ExitCode.CONFIGURATION


def _looks(path: Path, seconds: float, times: int | None) -> Iterator[tuple[StoreView, dict[str, int]]]:
    """Yield the content of the file, with the calls of each target at the look before."""
    before: dict[str, int] = {}
    for number in itertools.count(1):
        view = look(path)
        yield view, before
        if number == times:
            return
        before = {name: stats.calls for name, stats in view.figures.targets.items()}
        time.sleep(seconds)


def _screen(path: Path, view: StoreView, before: dict[str, int], seconds: float) -> Group:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in (*HEADINGS, "calls/s"):
        table.add_column(heading, justify="left" if heading == "target" else "right")
    for cells, (name, stats) in zip(rows(view), view.figures.targets.items(), strict=True):
        rate = "-" if name not in before else f"{(stats.calls - before[name]) / seconds:.1f}"
        table.add_row(*(Text(printable(cell)) for cell in cells), rate)
    problem = "" if view.problem is None else f"; {view.problem}"
    return Group(table, Text(printable(f"{path}: {summary(view)}{problem}")))
