"""Statistics read from a store: as `router.stats()` has them, and as the past of a new process."""

from __future__ import annotations

import json
import sqlite3
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

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
    """Every target's past, `now` being the instant that is `wall` seconds since the epoch. Raises sqlite3.Error."""
    minute = int(wall // 60)
    connection.execute("BEGIN")  # all from one snapshot
    try:
        everything = connection.execute(_ALL_TIME).fetchall()
        spans = {"minute": minute, "minutes": RollingHistogram.MINUTES}
        minutes = connection.execute(_MINUTES, spans).fetchall()
        averages = connection.execute(_AVERAGES, {**spans, "minutes": AVERAGED_MINUTES}).fetchall()
    finally:
        connection.execute("COMMIT")
    return pasts_of(everything, minutes, averages, wall, now)


def pasts_of(
    all_time: Iterable[tuple[Any, ...]],
    minutes: Iterable[tuple[Any, ...]],
    averaged: Iterable[tuple[Any, ...]],
    wall: float,
    now: float,
) -> list[Past]:
    """The past of every target, from rows of a store.

    `all_time` has target, kind, bucket and count, `minutes` the minute after the kind as well, `averaged` a target, its
    newest minute, and the averages of latency, first content and pace.

    Minutes count from their first second, so that nothing is recent for longer than it should be. Minutes that have
    not begun yet (the wall clock went back) are in the figures of all time alone.
    """
    everything: defaultdict[tuple[str, int], LatencyHistogram] = defaultdict(LatencyHistogram)
    recent: defaultdict[tuple[str, int], dict[float, LatencyHistogram]] = defaultdict(dict)
    averages: dict[str, tuple[float, tuple[float | None, float | None, float | None]]] = {}
    for name, kind, bucket, count in all_time:
        everything[name, kind].add(bucket, count)
    for name, kind, number, bucket, count in minutes:
        begun = (now - wall + 60.0 * number) // 60.0
        recent[name, kind].setdefault(begun, LatencyHistogram()).add(bucket, count)
    for name, number, *values in averaged:
        averages[name] = (min(now, now - wall + 60.0 * (number + 1)), (values[0], values[1], values[2]))
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
    `problem` is the reason why the store cannot be written at present, None when it can. `isolated` are the
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


_ELSEWHERE = "it is not in this store; ask a gateway (smr targets --url)"

Rows = Callable[..., list[dict[str, Any]]]
"""Asks a query of the views, with a value for each `?` in it."""


class StoreReader(ABC):
    """Reads a store while others write to it. Every method blocks and raises StoreUnavailableError."""

    SCOPE: ClassVar[Literal["store", "fleet"]]
    _NOW: ClassVar[str]
    """Seconds since the epoch, in SQL."""

    def __init__(self, name: str, label: str, state: Path | None) -> None:
        self._state = state
        self.name = name
        """The place of the store, for people: the whole path, or the address without secrets."""
        self.label = label
        """The short form of it."""

    @abstractmethod
    def looking(self) -> AbstractContextManager[Rows]:
        """The store at one instant."""

    def view(self) -> StoreView:
        """Return the figures, for people."""
        with self.looking() as rows:
            levels = {level: _level(rows, level) for level in LEVELS}
            (told,) = rows(
                "SELECT coalesce(sum(observed), 0) AS observed, coalesce(sum(stats_dropped), 0) AS dropped, "
                f"count(*) FILTER (WHERE seen_at > {self._NOW} - 10) AS writers FROM v_writers"
            )
            percentiles_at = max(
                (row["percentiles_at"] for row in rows("SELECT percentiles_at FROM v_target_now")), default=0.0
            )
            problem = self._problem(rows)
        figures = StatsView(levels["target"], levels["model"], levels["provider"], scope=self.SCOPE)
        isolated, unknown = (None, _ELSEWHERE) if self._state is None else isolated_beside(self._state)
        return StoreView(
            figures,
            int(told["observed"]),
            int(told["dropped"]),
            told["writers"],
            percentiles_at,
            problem,
            isolated,
            unknown,
        )

    @abstractmethod
    def _problem(self, rows: Rows) -> str | None:
        """The reason why no process can write to it at present."""


class FileReader(StoreReader):
    """Reads a statistics file. `state` is the store beside which its processes share what the operator said."""

    SCOPE = "store"
    _NOW = "(julianday('now') - 2440587.5) * 86400.0"

    def __init__(self, path: Path, state: Path | None) -> None:
        super().__init__(str(path), path.name, state)
        self.path = path

    @contextmanager
    def looking(self) -> Generator[Rows]:
        """The file at one instant."""
        try:
            with closing(open_to_read(self.path, STATS_MIGRATIONS)) as connection:
                connection.row_factory = sqlite3.Row
                connection.execute("BEGIN")
                yield lambda query, *values: [dict(row) for row in connection.execute(query, values)]
        except sqlite3.Error as error:
            raise StoreUnavailableError(self.path, f"it cannot be read: {error}") from None

    def _problem(self, rows: Rows) -> str | None:
        del rows
        return writable_problem(self.path)


def read_store(path: Path) -> StoreView:
    """Read a statistics file while others write to it. Raises StoreUnavailableError."""
    return FileReader(path, path).view()


def isolated_beside(path: Path) -> tuple[tuple[Isolation, ...] | None, str | None]:
    """The targets that the operator keeps out, as `isolations` has them; None, and why, where that cannot be read."""
    try:
        return isolations(path), None
    except StoreUnavailableError as error:
        return None, error.reason


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


def _level(rows: Rows, level: str) -> dict[str, ModelStats]:
    return {row[level]: _stats(row) for row in rows(f"SELECT * FROM v_{level}_now")}


_ADDED = {"cached_prompt_tokens": 0}
"""Columns that a file of an older release gets when a router of this one writes to it, and their values until then."""
_SPREAD = {f"{kind}_{span}" for kind in KINDS for span in SPANS}
_PLAIN = [field.name for field in fields(ModelStats) if field.name not in _SPREAD | {"failures"}]


def _stats(row: dict[str, Any]) -> ModelStats:
    values: dict[str, Any] = {name: row[name] if name in row else _ADDED[name] for name in _PLAIN}
    for name in _SPREAD:
        values[name] = Percentiles(row[f"{name}_count"], *(row[f"{name}_p{percent}"] for percent in PERCENTS))
    failures = json.loads(row["failures"])
    return ModelStats(**values, failures={each: failures[each] for each in FailureClass if each in failures})
