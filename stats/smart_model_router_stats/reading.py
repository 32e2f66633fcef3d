"""The figures of a store as `router.stats()` has them, read through its views."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from smart_model_router.domain.outcome import FailureClass
from smart_model_router_stats.figures import ModelStats, Percentiles, StatsView
from smart_model_router_stats.open_db import StoreUnavailableError, open_to_read, writable_problem
from smart_model_router_stats.schema import STATS_MIGRATIONS
from smart_model_router_stats.shared_schema import STATE_MIGRATIONS, state_path, words_in
from smart_model_router_stats.views import KINDS, LEVELS, PERCENTS, SPANS

if TYPE_CHECKING:
    from pathlib import Path

    from smart_model_router.domain.shared_state import Isolation


@dataclass(frozen=True, slots=True)
class StoreView:
    """The content of a store at one instant. `figures` are those of every process that writes or wrote to it.

    `observed` and `stats_dropped` count observations of the writers that are remembered; `writers` is how many wrote
    in the last 10 seconds. `percentiles_at` is seconds since the epoch, 0 when they were never computed.
    `problem` is the reason why the file cannot be written at present, None when it can. `isolated` are the
    targets that the operator keeps out; None while the shared state cannot be read, and `state_problem` says why.
    """

    figures: StatsView
    observed: int
    stats_dropped: int
    writers: int
    percentiles_at: float
    problem: str | None
    isolated: tuple[Isolation, ...] | None = ()
    state_problem: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values: those of StatsView, and the rest beside them."""
        return {
            **self.figures.to_dict(),
            "observed": self.observed,
            "stats_dropped": self.stats_dropped,
            "writers": self.writers,
            "percentiles_at": self.percentiles_at,
            "problem": self.problem,
            "isolated": None if self.isolated is None else [asdict(one) for one in self.isolated],
            "state_problem": self.state_problem,
        }


def read_store(path: Path) -> StoreView:
    """Read a store while others write to it. Raises StoreUnavailableError."""
    try:
        with closing(open_to_read(path, STATS_MIGRATIONS)) as connection:
            connection.row_factory = sqlite3.Row
            connection.execute("BEGIN")  # every view from one snapshot
            levels = {level: _level(connection, level) for level in LEVELS}
            observed, dropped, writers = connection.execute(
                "SELECT coalesce(sum(observed), 0), coalesce(sum(stats_dropped), 0), "
                "count(*) FILTER (WHERE seen_at > (julianday('now') - 2440587.5) * 86400.0 - 10) FROM v_writers"
            ).fetchone()
            (percentiles_at,) = connection.execute("SELECT refreshed_at FROM keeping").fetchone()
    except sqlite3.Error as error:
        raise StoreUnavailableError(path, f"it cannot be read: {error}") from None
    figures = StatsView(levels["target"], levels["model"], levels["provider"], scope="store")
    view = StoreView(figures, observed, dropped, writers, percentiles_at, writable_problem(path))
    try:
        return replace(view, isolated=isolations(path))
    except StoreUnavailableError as error:
        return replace(view, isolated=None, state_problem=error.reason)


def isolations(path: Path) -> tuple[Isolation, ...]:
    """The targets that the operator keeps out, as the shared state beside the store at `path` has them.

    Raises StoreUnavailableError.
    """
    path = state_path(path)
    if not path.exists():
        return ()
    try:
        with closing(open_to_read(path, STATE_MIGRATIONS)) as connection:
            return tuple(found for row in words_in(connection) if (found := row.isolation) is not None)
    except sqlite3.Error as error:
        raise StoreUnavailableError(path, f"it cannot be read: {error}") from None


def _level(connection: sqlite3.Connection, level: str) -> dict[str, ModelStats]:
    rows = connection.execute(f"SELECT * FROM v_{level}_now")  # noqa: S608 - one of three names
    return {row[level]: _stats(row) for row in rows}


_ADDED = {"cached_prompt_tokens": 0}
"""Columns that a file of an older release gets when a router of this one writes to it, and their values until then."""
_SPREAD = {f"{kind}_{span}" for kind in KINDS for span in SPANS}
_PLAIN = [field.name for field in fields(ModelStats) if field.name not in _SPREAD | {"failures"}]


def _stats(row: sqlite3.Row) -> ModelStats:
    there = row.keys()
    values: dict[str, Any] = {name: row[name] if name in there else _ADDED[name] for name in _PLAIN}
    for name in _SPREAD:
        values[name] = Percentiles(row[f"{name}_count"], *(row[f"{name}_p{percent}"] for percent in PERCENTS))
    failures = json.loads(row["failures"])
    return ModelStats(**values, failures={each: failures[each] for each in FailureClass if each in failures})
