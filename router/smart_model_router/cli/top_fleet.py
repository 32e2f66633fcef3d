"""`smr top --fleet`: the processes that share state, and the breakers, rests and commands that all of them know."""

from __future__ import annotations

import asyncio
import itertools
import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from smart_model_router.assembly import server_rows
from smart_model_router.cli.configured import configured
from smart_model_router.cli.output import ExitCode, console, print_json, printable
from smart_model_router.config import Secret, StoreConfig
from smart_model_router.config.server_urls import POSTGRES_SCHEMES, VALKEY_SCHEMES, server_fault, shown_url
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.shared_state import (
    ClockReading,
    Deadline,
    SharedStateError,
    SharedView,
    is_member,
    remaining,
    silent_for,
)
from smart_model_router.flow.clock import boottime, here
from smart_model_router_stats import transactions
from smart_model_router_stats.open_db import StoreUnavailableError, open_to_read
from smart_model_router_stats.server_clock import ServerClock
from smart_model_router_stats.shared_optimistic import ServerSharedState
from smart_model_router_stats.shared_schema import STATE_MIGRATIONS, SqliteTables, state_path

if TYPE_CHECKING:
    from smart_model_router.cli.commands import Top

_PATIENCE = 5.0
_MEMBERS = ("machine", "version", "pid", "last heard")
_SHARED = ("shared", "state", "still", "held by", "why")


@dataclass(frozen=True, slots=True)
class _Look:
    """Everything shared, and the clock that it is read by."""

    view: SharedView
    here: ClockReading


def run_fleet(asked: Top) -> int:
    """Show the fleet anew every `seconds`, `times` times (None: until Ctrl-C); with `as_json` a line for each look.

    Raises ConfigurationError.
    """
    store = _store(asked)
    place = str(_file(store)) if store.shared_url is None else shown_url(store.shared_url.reveal())
    looks = _looks(store, asked.seconds, asked.times)
    if asked.as_json:
        for look in looks:
            print_json(_told(look))
        return ExitCode.OK
    with Live(console=console(sys.stdout), auto_refresh=False) as live:
        for look in looks:
            live.update(_screen(place, look), refresh=True)
    return ExitCode.OK


def _store(asked: Top) -> StoreConfig:
    """Where the state is. Raises ConfigurationError."""
    if asked.db is not None and "://" not in asked.db:
        return StoreConfig(path=asked.db)
    if asked.db is not None:
        if fault := server_fault(asked.db, (*VALKEY_SCHEMES, *POSTGRES_SCHEMES)):
            raise ConfigurationError("--db", shown_url(asked.db), fault)
        return StoreConfig(shared_url=Secret(asked.db))
    found = configured(asked.config)
    if not found.config.store.shares_state:
        expected = f"shared state is needed: store.path, or store.shared_url for many machines ({found.source})"
        raise ConfigurationError("store", None, expected)
    return found.config.store


def _file(store: StoreConfig) -> Path:
    return state_path(Path(store.path or "").expanduser())


def _looks(store: StoreConfig, seconds: float, times: int | None) -> Iterator[_Look]:
    for number in itertools.count(1):
        yield _look_at_file(_file(store)) if store.shared_url is None else asyncio.run(_look_at_server(store))
        if number == times:
            return
        time.sleep(seconds)


def _look_at_file(path: Path) -> _Look:
    """Read the file. Raises ConfigurationError."""
    try:
        with closing(open_to_read(path, STATE_MIGRATIONS)) as connection:
            return _Look(transactions.view(SqliteTables(connection)), here())
    except StoreUnavailableError as error:
        raise ConfigurationError("store", str(path), error.reason) from None


async def _look_at_server(store: StoreConfig) -> _Look:
    """Ask the server. Raises ConfigurationError."""
    clock = ServerClock(boottime, here)
    state = ServerSharedState(server_rows(store), clock, boottime)
    try:
        async with asyncio.timeout(_PATIENCE):
            view = await state.poll()
        return _Look(view or SharedView(), clock())
    except (SharedStateError, TimeoutError) as error:
        shown = "" if store.shared_url is None else shown_url(store.shared_url.reveal())
        raise ConfigurationError("store.shared_url", shown, str(error) or "it does not answer") from None
    finally:
        await state.aclose()


def _told(look: _Look) -> dict[str, Any]:
    """The look for programs."""
    return {
        "members": [
            dict(zip(("machine", "version", "pid", "heard_seconds"), row, strict=True)) for row in _members(look)
        ],
        "shared": [dict(zip(("name", "state", "seconds", "holder", "why"), row, strict=True)) for row in _rows(look)],
    }


def _members(look: _Look) -> list[tuple[str, str, int, float]]:
    living = [row for row in look.view.members if is_member(row, look.here)]
    living.sort(key=lambda row: (row.machine, row.pid, row.holder))
    return [(row.machine, row.version, row.pid, round(max(0.0, silent_for(row, look.here)), 1)) for row in living]


def _rows(look: _Look) -> list[tuple[str, str, float, str, str]]:
    """Breakers that are not closed, rests that last, and isolated targets."""

    def left(until: Deadline) -> float:
        return round(remaining(until, look.here, math.inf), 1)

    breakers = [
        (f"{row.owner} ({row.kind})", row.state, left(row.until), row.holder, row.reason)
        for row in look.view.breakers
        if row.state != "closed"
    ]
    rests = [
        (row.owner, row.reason, left(row.until), "", "" if row.cause is None else row.cause.value)
        for row in look.view.rests
        if not row.over and left(row.until) > 0
    ]
    isolated = [(row.target, "isolated", 0.0, row.by, row.why) for row in look.view.words if row.word == "isolate"]
    return [*sorted(breakers), *sorted(rests), *sorted(isolated)]


def _screen(place: str, look: _Look) -> Group:
    members = _members(look)
    heard = [(machine, version, str(pid), f"{ago:.0f} s ago") for machine, version, pid, ago in members]
    shared = [(name, state, f"{left:.0f} s", holder[:8], why) for name, state, left, holder, why in _rows(look)]
    machines = len({machine for machine, *_ in members})
    line = f"{place}: {len(members)} processes of {machines} machines share their state"
    return Group(_table(_MEMBERS, heard), _table(_SHARED, shared), Text(printable(line)))


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading)
    for cells in rows:
        table.add_row(*(Text(printable(cell)) for cell in cells))
    return table
