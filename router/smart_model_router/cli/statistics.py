"""`smr stats`, `smr top` and `smr dashboard`: the figures in a store while routers write to it."""

from __future__ import annotations

import itertools
import socket
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from smart_model_router.cli.configured import configured
from smart_model_router.cli.output import (
    ExitCode,
    console,
    print_answer,
    print_json,
    print_line,
    print_table,
    printable,
)
from smart_model_router.cli.serve import listening
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.shared_state import Isolation
from smart_model_router.observability.store_reader import reader_at, reader_of
from smart_model_router_stats.figures import ModelStats
from smart_model_router_stats.open_db import StoreUnavailableError
from smart_model_router_stats.reading import StoreReader, StoreView

if TYPE_CHECKING:
    from smart_model_router.cli.commands import Dashboard, Stats, Top

WATCH_SECONDS = 1.0
HEADINGS = (
    *("target", "calls", "ok", "now ok", "p50", "p95", "p99", "first p50", "first p95", "last ok", "cached", "USD"),
    "failures",
)


ISOLATED_HEADINGS = ("isolated", "since", "by", "why")


def run_stats(asked: Stats) -> int:
    """Print the figures; with `watch` every second until Ctrl-C. 3 when no process can write to the store.

    Raises ConfigurationError when it cannot be read.
    """
    reader = store_reader(asked.db, asked.config)
    while True:
        view = look(reader)
        if asked.as_json:
            print_json(view.to_dict())
        else:
            print_table(HEADINGS, rows(view), sys.stdout)
            if view.isolated:
                print_table(ISOLATED_HEADINGS, isolated_rows(view.isolated), sys.stdout)
            print_line(summary(view))
        if view.problem is not None:
            print_line(f"smr: {reader.name}: {view.problem}: routers keep their statistics in memory")
        if not asked.watch:
            return ExitCode.OK if view.problem is None else ExitCode.CONFIGURATION
        time.sleep(WATCH_SECONDS)


def store_reader(db: str | None, config: Path | None) -> StoreReader:
    """The store to read: `db`, else that of the configuration. Raises ConfigurationError."""
    if db is not None:
        return reader_at(db)
    found = configured(config)
    reader = reader_of(found.config.store)
    if reader is None:
        wanted = f"a statistics file is needed: there, or as --db; or store.stats_url ({found.source})"
        raise ConfigurationError("store.path", None, wanted)
    return reader


def look(reader: StoreReader) -> StoreView:
    """Read the store. Raises ConfigurationError."""
    try:
        return reader.view()
    except StoreUnavailableError as error:
        raise ConfigurationError("store", reader.name, error.reason) from None


def rows(view: StoreView) -> Iterator[tuple[str, ...]]:
    """A line for each target: percentiles of the last 15 minutes in seconds, ages in words, cached share of prompts."""
    for name, stats in view.figures.targets.items():
        latency, first = stats.latency_15_min, stats.ttft_15_min
        yield (
            name,
            str(stats.calls),
            _share(stats.successes, stats.calls),
            _share(stats.recent_successes, stats.recent_outcomes),
            *(_seconds(figure) for figure in (latency.p50, latency.p95, latency.p99, first.p50, first.p95)),
            _age(stats),
            _share(stats.cached_prompt_tokens, stats.prompt_tokens),
            f"{stats.cost_usd:.4f}",
            _failures(stats),
        )


def isolated_rows(isolated: Iterable[Isolation]) -> Iterator[tuple[str, ...]]:
    """A line for each target that the operator keeps out."""
    for one in isolated:
        yield (one.target, instant(one.since), one.by, one.why)


def instant(seconds: float) -> str:
    """Seconds since the epoch as people read them, in UTC."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):  # a row written by hand
        return "?"


def summary(view: StoreView) -> str:
    """The store in one line."""
    calls = sum(stats.calls for stats in view.figures.targets.values())
    dropped = f", {view.stats_dropped} observations dropped" if view.stats_dropped else ""
    targets, writers = len(view.figures.targets), view.writers
    return f"{calls} calls at {targets} targets; {writers} processes are writing{dropped}{_isolated(view)}"


def _isolated(view: StoreView) -> str:
    if view.isolated is None:
        return f"; which targets are isolated is not known: {view.state_problem}"
    return f"; isolated: {', '.join(one.target for one in view.isolated)}" if view.isolated else ""


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def _failures(stats: ModelStats) -> str:
    """The most frequent classes: a bad key or a used-up quota must not look like bad luck."""
    most = sorted(stats.failures.items(), key=lambda item: -item[1])[:3]
    return ", ".join(f"{name} {count}" for name, count in most if count)


def _seconds(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:.3g} s"


def _age(stats: ModelStats) -> str:
    age = stats.last_success_age
    if age is None:
        return "never"
    for length, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if age >= length:
            return f"{age / length:.0f} {name} ago"
    return f"{age:.0f} s ago"


_HOST = "127.0.0.1"


def run_dashboard(asked: Dashboard) -> int:
    """Show it until SIGINT or SIGTERM; the exit code. Raises ConfigurationError when the store cannot be read."""
    try:
        from smart_model_router.gateway.dashboard import standalone  # noqa: PLC0415 - an extra, and only this command pays
    except ModuleNotFoundError as missing:
        expected = "the dashboard comes with an extra: pip install 'smart-model-router[gateway]'"
        raise ConfigurationError("smr dashboard", missing.name, expected) from None

    def ready(address: str) -> None:
        if asked.as_json:
            print_json({"url": address})
            return
        print_answer(address + "\n")
        print_line("open it in a browser on this machine; Ctrl-C ends it")

    reader = store_reader(asked.db, asked.config)
    with listening(_HOST, asked.port):
        listener = socket.create_server((_HOST, asked.port))
    with listener:
        try:
            standalone.run(reader, listener, on_ready=ready)
        except StoreUnavailableError as error:
            raise ConfigurationError("store", reader.name, error.reason) from None
    return ExitCode.OK


def run_top(asked: Top) -> int:
    """Show the figures anew every `seconds`, `times` times (None: until Ctrl-C); with `as_json` a line for each look.

    Raises ConfigurationError.
    """
    if asked.fleet:
        from smart_model_router.cli.top_fleet import run_fleet  # noqa: PLC0415 - brings the client of a server

        return run_fleet(asked)
    reader, seconds = store_reader(asked.db, asked.config), asked.seconds
    view = None
    if asked.as_json:
        for view, _ in _looks(reader, seconds, asked.times):
            print_json(view.to_dict())
    else:
        with Live(console=console(sys.stdout), auto_refresh=False) as live:
            for view, before in _looks(reader, seconds, asked.times):
                live.update(_screen(reader.name, view, before, seconds), refresh=True)
    return ExitCode.OK if view is None or view.problem is None else ExitCode.CONFIGURATION


def _looks(reader: StoreReader, seconds: float, times: int | None) -> Iterator[tuple[StoreView, dict[str, int]]]:
    """Yield the content of the store, with the calls of each target at the look before."""
    before: dict[str, int] = {}
    for number in itertools.count(1):
        view = look(reader)
        yield view, before
        if number == times:
            return
        before = {name: stats.calls for name, stats in view.figures.targets.items()}
        time.sleep(seconds)


def _screen(place: str, view: StoreView, before: dict[str, int], seconds: float) -> Group:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in (*HEADINGS, "calls/s"):
        table.add_column(heading, justify="left" if heading == "target" else "right")
    for cells, (name, stats) in zip(rows(view), view.figures.targets.items(), strict=True):
        rate = "-" if name not in before else f"{(stats.calls - before[name]) / seconds:.1f}"
        table.add_row(*(Text(printable(cell)) for cell in cells), rate)
    problem = "" if view.problem is None else f"; {view.problem}"
    return Group(table, Text(printable(f"{place}: {summary(view)}{problem}")))
