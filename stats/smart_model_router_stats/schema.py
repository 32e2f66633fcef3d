"""The tables of stats.db. Everything in them merges by addition or by maximum, from any writer."""

# ruff: noqa: S608 - made of the constants of this package

from __future__ import annotations

import sqlite3

from smart_model_router_stats.estimators import LAST_BUCKET, middle_of
from smart_model_router_stats.migrations import Migration
from smart_model_router_stats.views import VIEWS

LATENCY, TTFT = 0, 1
"""`kind` of a histogram: whole answers, and the first content of streams. In seconds both."""

_FIRST_SUMS = (
    "prompt_tokens",
    "completion_tokens",
    "cost_usd",
    "latency_count",
    "latency_sum",
    "ttft_count",
    "ttft_sum",
    "pace_count",
    "pace_sum",
)
SUMS = (*_FIRST_SUMS, "cached_prompt_tokens")
"""Columns that merge by addition. `pace` is seconds per 100 output tokens."""
LASTS = ("last_success", "last_failure")
"""Columns that merge by maximum: seconds since the epoch."""

_SUM_COLUMNS = "".join(f"  {name} REAL NOT NULL,\n" for name in _FIRST_SUMS) + "".join(
    f"  {name} REAL,\n" for name in LASTS
)

# Rows are clustered by their keys (WITHOUT ROWID): a minute's rows lie together, so that writing them touches few
# pages and deleting the oldest minutes frees whole ones.
_TABLES = f"""
CREATE TABLE target (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, provider TEXT NOT NULL, model TEXT NOT NULL
);
CREATE TABLE bucket (number INTEGER PRIMARY KEY, seconds REAL NOT NULL);
CREATE TABLE outcome_minute (
  minute INTEGER, target INTEGER, class TEXT, count INTEGER NOT NULL, PRIMARY KEY (minute, target, class)
) WITHOUT ROWID;
CREATE TABLE outcome_total (
  target INTEGER, class TEXT, count INTEGER NOT NULL, PRIMARY KEY (target, class)
) WITHOUT ROWID;
CREATE TABLE sum_minute (
  minute INTEGER,
  target INTEGER,
{_SUM_COLUMNS}  PRIMARY KEY (minute, target)
) WITHOUT ROWID;
CREATE TABLE sum_total (
  target INTEGER,
{_SUM_COLUMNS}  PRIMARY KEY (target)
) WITHOUT ROWID;
CREATE TABLE hist_minute (
  minute INTEGER, target INTEGER, kind INTEGER, bucket INTEGER, count INTEGER NOT NULL,
  PRIMARY KEY (minute, target, kind, bucket)
) WITHOUT ROWID;
CREATE TABLE hist_recent (  -- the minutes after keeping.recent_floor, merged
  target INTEGER, kind INTEGER, bucket INTEGER, count INTEGER NOT NULL, PRIMARY KEY (target, kind, bucket)
) WITHOUT ROWID;
CREATE TABLE hist_total (
  target INTEGER, kind INTEGER, bucket INTEGER, count INTEGER NOT NULL, PRIMARY KEY (target, kind, bucket)
) WITHOUT ROWID;
CREATE TABLE percentile (  -- read off the histograms every second or so: too slow for a view
  level TEXT, name TEXT, span TEXT, kind INTEGER, count INTEGER NOT NULL,
  p50 REAL, p75 REAL, p90 REAL, p95 REAL, p99 REAL, PRIMARY KEY (level, name, span, kind)
) WITHOUT ROWID;
CREATE TABLE keeping (
  one INTEGER PRIMARY KEY CHECK (one = 1), recent_floor INTEGER NOT NULL, refreshed_at REAL NOT NULL,
  owner TEXT NOT NULL, lease_until REAL NOT NULL
);
INSERT INTO keeping VALUES (1, 0, 0, '', 0);
CREATE TABLE writer (
  id TEXT PRIMARY KEY, pid INTEGER NOT NULL, started_at REAL NOT NULL, seen_at REAL NOT NULL, batch INTEGER NOT NULL,
  observed INTEGER NOT NULL, dropped INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE event (
  id INTEGER PRIMARY KEY, at REAL NOT NULL, writer TEXT NOT NULL, kind TEXT NOT NULL, subject TEXT,
  detail TEXT NOT NULL
);
CREATE TABLE request (
  id INTEGER PRIMARY KEY, at REAL NOT NULL, writer TEXT NOT NULL, request_id TEXT NOT NULL, dialect TEXT NOT NULL,
  model TEXT NOT NULL, outcome TEXT NOT NULL, target TEXT, requested_tier TEXT NOT NULL, actual_tier TEXT,
  degraded INTEGER NOT NULL, last_resort INTEGER NOT NULL, attempts INTEGER NOT NULL, refusals INTEGER NOT NULL,
  seconds REAL NOT NULL, waited_seconds REAL NOT NULL, ttft_seconds REAL
);
"""


def _first(connection: sqlite3.Connection) -> None:
    for statement in _TABLES.split(";"):
        connection.execute(statement)
    buckets = ((number, middle_of(number)) for number in range(LAST_BUCKET + 1))
    connection.executemany("INSERT INTO bucket VALUES (?, ?)", buckets)


def _second(connection: sqlite3.Connection) -> None:
    for table in ("sum_minute", "sum_total"):
        # The default is for processes of the older release that have the file open: they go on writing without it.
        connection.execute(f"ALTER TABLE {table} ADD COLUMN cached_prompt_tokens REAL NOT NULL DEFAULT 0")


def _third(connection: sqlite3.Connection) -> None:
    # Requests of an older release: not known, and no notes.
    connection.execute("ALTER TABLE request ADD COLUMN complete INTEGER")
    connection.execute("ALTER TABLE request ADD COLUMN notes TEXT NOT NULL DEFAULT '[]'")
    _make_views(connection)


def _make_views(connection: sqlite3.Connection) -> None:
    """Replace the views of an older release; the newest migration does so, after the tables are as views need them."""
    for name, view in VIEWS.items():
        connection.execute(f"DROP VIEW IF EXISTS {name}")
        connection.execute(f"CREATE VIEW {name} AS {view}")


STATS_MIGRATIONS = (
    Migration("tables", "0.1.0", _first),
    Migration("cached tokens", "0.1.0", _second),
    Migration("complete answers", "0.1.0", _third),
)
