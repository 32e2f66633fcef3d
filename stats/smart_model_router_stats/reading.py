"""Statistics read from a file: as `router.stats()` has them, and as the past of a new process."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from contextlib import closing
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from smart_model_router.domain.outcome import FailureClass
from smart_model_router_stats.estimators import LatencyHistogram, RollingHistogram
from smart_model_router_stats.figures import ModelStats, Percentiles, StatsView
from smart_model_router_stats.open_db import StoreUnavailableError, open_to_read, writable_problem
from smart_model_router_stats.schema import KINDS, LATENCY, LEVELS, PERCENTS, SPANS, STATS_MIGRATIONS, TTFT
from smart_model_router_stats.shared_schema import STATE_MIGRATIONS, state_path, words_in

if TYPE_CHECKING:
    from pathlib import Path

    from smart_model_router.domain.shared_state import Isolation

# ruff: noqa: S608 - made of the constants of this file


AVERAGED_MINUTES = 5
"""Older minutes have no part in an average (docs/design/routing.md section 1)."""

_ALL_TIME = """
SELECT t.name, h.kind, h.bucket, h.count FROM hist_total h JOIN target t ON t.id = h.target
"""
_MINUTES = """
SELECT t.name, h.kind, h.minute, h.bucket, h.count FROM hist_minute h JOIN target t ON t.id = h.target
WHERE h.minute > :minute - :minutes AND h.minute <= :minute
"""
# A minute weighs half of the one after it, as in the views.
_WEIGHT = "1.0 / (1 << (:minute - s.minute))"
_AVERAGES = f"""
SELECT t.name, max(s.minute),
  sum(s.latency_sum * {_WEIGHT}) / nullif(sum(s.latency_count * {_WEIGHT}), 0),
  sum(s.ttft_sum * {_WEIGHT}) / nullif(sum(s.ttft_count * {_WEIGHT}), 0),
  sum(s.pace_sum * {_WEIGHT}) / nullif(sum(s.pace_count * {_WEIGHT}), 0)
FROM sum_minute s JOIN target t ON t.id = s.target
WHERE s.minute > :minute - :minutes AND s.minute <= :minute GROUP BY t.id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The past of one target: histograms of seconds, and averages as of the instant `averaged_at`.

    `pace` is seconds per 100 output tokens. An average is None when there was no sample in the last 5 minutes.
    """

    target: str
    latency: RollingHistogram
    ttft: RollingHistogram
    averaged_at: float
    averages: tuple[float | None, float | None, float | None] = (None, None, None)
    """latency, ttft, pace"""


def read_past(connection: sqlite3.Connection, wall: float, now: float) -> list[Past]:
    """Every target's past, `now` being the instant that is `wall` seconds since the epoch. Raises sqlite3.Error.

    Minutes count from their first second, so that nothing is recent for longer than it should be. Minutes that have
    not begun yet (the wall clock went back) are in the figures of all time alone.
    """
    minute = int(wall // 60)
    everything: defaultdict[tuple[str, int], LatencyHistogram] = defaultdict(LatencyHistogram)
    recent: defaultdict[tuple[str, int], dict[float, LatencyHistogram]] = defaultdict(dict)
    averages: dict[str, tuple[float, tuple[float | None, float | None, float | None]]] = {}
    connection.execute("BEGIN")  # all from one snapshot
    try:
        for name, kind, bucket, count in connection.execute(_ALL_TIME):
            everything[name, kind].add(bucket, count)
        spans = {"minute": minute, "minutes": RollingHistogram.MINUTES}
        for name, kind, number, bucket, count in connection.execute(_MINUTES, spans):
            begun = (now - wall + 60.0 * number) // 60.0
            recent[name, kind].setdefault(begun, LatencyHistogram()).add(bucket, count)
        spans["minutes"] = AVERAGED_MINUTES
        for name, number, *values in connection.execute(_AVERAGES, spans):
            averages[name] = (min(now, now - wall + 60.0 * (number + 1)), (values[0], values[1], values[2]))
    finally:
        connection.execute("COMMIT")
    found = []
    for name in dict.fromkeys([*(name for name, _ in everything), *averages]):
        latency, ttft = (RollingHistogram.of(everything[name, kind], recent[name, kind]) for kind in (LATENCY, TTFT))
        averaged_at, values_of = averages.get(name, (now, (None, None, None)))
        found.append(Past(target=name, latency=latency, ttft=ttft, averaged_at=averaged_at, averages=values_of))
    return found


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
    rows = connection.execute(f"SELECT * FROM v_{level}_now")
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
