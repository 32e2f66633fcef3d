"""Metrics of several processes: each writes its figures to a small SQLite file, and reads the sums of all.

Counters of a process that is gone stay in the sum: a counter never goes back, whichever process answers the scrape.
Gauges of a process that has been silent for `LIVE_SECONDS` are outdated and left out.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path

from smart_model_router.observability.registry import BREAKER_STATES, TABLE, Sample, metric_of

_LOG = logging.getLogger(__name__)
LIVE_SECONDS = 10.0
_BUSY_SECONDS = 2.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS writer (id TEXT PRIMARY KEY, seen_at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sample (
  writer TEXT, name TEXT, labels TEXT, value REAL NOT NULL, PRIMARY KEY (writer, name, labels)
) WITHOUT ROWID;
"""
_GAUGES = tuple(metric.name for metric in TABLE if metric.kind == "gauge")
_MARKS = ", ".join("?" for _ in _GAUGES)
# The counters of a process that is gone are added to the sum of all such (the writer ''); its gauges are deleted.
_FOLD = (
    f"DELETE FROM sample WHERE name IN ({_MARKS}) AND writer IN (SELECT id FROM writer WHERE seen_at < ?)",  # noqa: S608
    """INSERT INTO sample SELECT '', name, labels, sum(value) FROM sample
      WHERE writer IN (SELECT id FROM writer WHERE seen_at < ?) GROUP BY name, labels
      ON CONFLICT (writer, name, labels) DO UPDATE SET value = value + excluded.value""",
    "DELETE FROM sample WHERE writer IN (SELECT id FROM writer WHERE seen_at < ?)",
    "DELETE FROM writer WHERE seen_at < ?",
)
_WRITE = "INSERT OR REPLACE INTO sample VALUES (?, ?, ?, ?)"
_TAKE_BACK = "DELETE FROM sample WHERE writer = ? AND name = ? AND labels = ?"


_Figures = dict[tuple[str, str], float]
"""Figures by name and labels."""


class SharedMetrics:
    """This process's part in the file at `path`. Blocks: to be used on a thread, by one at a time."""

    def __init__(
        self,
        path: Path,
        *,
        wall: Callable[[], float] = time.time,  # noqa: TID251 - tells which processes are alive; no decision of routing rests on it
    ) -> None:
        self._path = path
        self._wall = wall
        self._writer = uuid.uuid4().hex
        self._written: _Figures = {}
        self._before: _Figures = {}
        """The value of a counter when its count in the file began: above 0 where this process was taken for gone (the
        file has that much already), below where the counter was forgotten and begins anew."""
        self.problem = ""

    def exchange(self, samples: Iterable[Sample]) -> list[Sample]:
        """Write this process's figures and return those of all; without a usable file, the given ones alone."""
        given = list(samples)
        try:
            with closing(self._open()) as connection:
                connection.execute("BEGIN IMMEDIATE")
                written, before = self._give(connection, given)
                got = _together(connection)
                connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            self._tell(str(error) or type(error).__name__)
            return given
        self._written, self._before = written, before
        self._tell("")
        return got

    def _open(self) -> sqlite3.Connection:
        if not self._path.exists():
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")  # after a loss of power counters may begin anew
        connection.executescript(_SCHEMA)
        return connection

    def _give(self, connection: sqlite3.Connection, samples: Sequence[Sample]) -> tuple[_Figures, _Figures]:
        """Write changed figures and delete gauges that ended; return the written figures and those from before."""
        now = self._wall()
        known = connection.execute("SELECT 1 FROM writer WHERE id = ?", (self._writer,)).fetchone()
        if known is None and self._written:
            self._start_over()
        connection.execute("INSERT OR REPLACE INTO writer VALUES (?, ?)", (self._writer, now))
        given = {(one.name, json.dumps(one.labels, separators=(",", ":"))): one.value for one in samples}
        fresh = {key: value for key, value in given.items() if self._written.get(key) != value}
        before = self._before | {
            key: self._before.get(key, 0.0) - self._written[key]
            for key in fresh.keys() & self._written.keys()
            if fresh[key] < self._written[key] and key[0] not in _GAUGES  # forgotten and begun again in the meantime
        }
        rows = [(self._writer, *key, value - before.get(key, 0.0)) for key, value in fresh.items()]
        connection.executemany(_WRITE, rows)
        gone = {key for key in self._written if key not in given and key[0] in _GAUGES}
        connection.executemany(_TAKE_BACK, [(self._writer, *key) for key in gone])
        limit = (now - LIVE_SECONDS,)
        connection.execute(_FOLD[0], (*_GAUGES, *limit))
        for statement in _FOLD[1:]:
            connection.execute(statement, limit)
        return {key: value for key, value in self._written.items() if key not in gone} | given, before

    def _start_over(self) -> None:
        """This process slept so long that its counters were added up without it, or the file is a new one."""
        self._writer = uuid.uuid4().hex
        self._before = {key: value for key, value in self._written.items() if key[0] not in _GAUGES}
        self._written = {}

    def _tell(self, problem: str) -> None:
        if problem and not self.problem:
            _LOG.warning("metrics are those of this process alone: %s: %s", self._path, problem)
        self.problem = problem


def _together(connection: sqlite3.Connection) -> list[Sample]:
    rows = connection.execute(
        "SELECT name, labels, sum(value), min(value), max(value) FROM sample GROUP BY name, labels"
    )
    samples = [
        Sample(
            name,
            tuple((str(label), str(value)) for label, value in json.loads(labels)),
            {"sum": total, "min": least}.get(metric.merge, most),
        )
        for name, labels, total, least, most in rows
        if (metric := metric_of(name)) is not None
    ]
    return list(_worst_only(samples))


def _worst_only(samples: Sequence[Sample]) -> Iterable[Sample]:
    """Keep the worst of the states of several processes: a one-hot metric stays one."""
    rank = {state: place for place, state in enumerate(BREAKER_STATES)}
    worst: dict[str, str] = {}
    for sample in samples:
        if sample.name == "smr_breaker_state" and sample.value:
            target, state = sample.labels[0][1], sample.labels[1][1]
            worst[target] = min(worst.get(target, state), state, key=lambda one: rank[one])
    for sample in samples:
        if sample.name != "smr_breaker_state":
            yield sample
        else:
            target, state = sample.labels[0][1], sample.labels[1][1]
            yield sample._replace(value=float(worst.get(target) == state))
