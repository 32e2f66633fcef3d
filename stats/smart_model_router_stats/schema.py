"""The tables of stats.db, which merge by addition or by maximum, and its views, a stable contract (docs/statistics.md).

A new column comes last, so that a reader which takes columns by their place finds the others where they were.

Columns have the names and meanings of the figures of `router.stats()`; `scope` says whose calls they are.
"""

from __future__ import annotations

import sqlite3

from smart_model_router_stats.estimators import COUNTED, LAST_BUCKET, middle_of
from smart_model_router_stats.open_db import Migration

# ruff: noqa: S608 - made of the constants of this package


VIEWS_VERSION = 4
"""The version of the views; it grows with each addition. Readers find it in `v_contract`."""

PERCENTS = (50, 75, 90, 95, 99)
SPANS = ("15_min", "all_time")
KINDS = {"latency": 0, "ttft": 1}

LEVELS = {"target": "t.name", "model": "t.model", "provider": "t.provider"}
"""The groups of figures, and the column of `target t` for each."""

_COUNTED = ", ".join(f"'{failure.value}'" for failure in sorted(COUNTED))
_NOW = "(julianday('now') - 2440587.5) * 86400.0"
_MINUTE = "CAST(strftime('%s', 'now') AS INTEGER) / 60"


def _percentile_columns() -> str:
    columns = []
    for kind in KINDS:
        for span in SPANS:
            columns.append(f"coalesce({kind}_{span}.count, 0) AS {kind}_{span}_count")
            columns += [f"{kind}_{span}.p{percent} AS {kind}_{span}_p{percent}" for percent in PERCENTS]
    return ",\n  ".join(columns)


def _percentile_joins(level: str) -> str:
    joins = []
    for kind, number in KINDS.items():
        for span in SPANS:
            name = f"{kind}_{span}"
            # They are not updated while no process runs: figures of the 15 minutes before are then of no interest.
            current = " AND keeping.refreshed_at > clock.now - 900" if span == "15_min" else ""
            joins.append(
                f"LEFT JOIN percentile {name} ON {name}.level = '{level}' AND {name}.name = totals.key"
                f" AND {name}.span = '{span}' AND {name}.kind = {number}{current}"
            )
    return "\n".join(joins)


def _now_view(level: str) -> str:
    key = LEVELS[level]
    of_target = "t.provider AS provider, t.model AS model," if level == "target" else ""
    target = "JOIN target t ON t.name = totals.key" if level == "target" else ""
    # The averages: the last 5 minutes, each weighing half of the one after it.
    weight = "(1.0 / (1 << max(0, clock.minute - s.minute)))"
    return f"""
WITH clock (now, minute) AS (SELECT {_NOW}, {_MINUTE}),
totals AS (
  SELECT {key} AS key, sum(o.count) AS calls, coalesce(sum(o.count) FILTER (WHERE o.class = 'OK'), 0) AS successes
  FROM outcome_total o JOIN target t ON t.id = o.target GROUP BY {key}
),
failed AS (
  SELECT key, json_group_object(class, count) AS failures FROM (
    SELECT {key} AS key, o.class AS class, sum(o.count) AS count
    FROM outcome_total o JOIN target t ON t.id = o.target WHERE o.class <> 'OK' GROUP BY {key}, o.class
  ) GROUP BY key
),
recent AS (
  SELECT {key} AS key, coalesce(sum(o.count) FILTER (WHERE o.class = 'OK'), 0) AS successes, sum(o.count) AS outcomes
  FROM clock CROSS JOIN outcome_minute o JOIN target t ON t.id = o.target
  WHERE o.minute > clock.minute - 5 AND (o.class = 'OK' OR o.class IN ({_COUNTED})) GROUP BY {key}
),
ema AS (
  SELECT {key} AS key,
    sum(s.latency_sum * {weight}) / nullif(sum(s.latency_count * {weight}), 0) AS latency,
    sum(s.ttft_sum * {weight}) / nullif(sum(s.ttft_count * {weight}), 0) AS ttft,
    sum(s.pace_sum * {weight}) / nullif(sum(s.pace_count * {weight}), 0) AS pace
  FROM clock CROSS JOIN sum_minute s JOIN target t ON t.id = s.target WHERE s.minute > clock.minute - 5 GROUP BY {key}
),
sums AS (
  SELECT {key} AS key, max(s.last_success) AS last_success, max(s.last_failure) AS last_failure,
    CAST(sum(s.prompt_tokens) AS INTEGER) AS prompt_tokens,
    CAST(sum(s.completion_tokens) AS INTEGER) AS completion_tokens, sum(s.cost_usd) AS cost_usd,
    CAST(sum(s.cached_prompt_tokens) AS INTEGER) AS cached_prompt_tokens
  FROM sum_total s JOIN target t ON t.id = s.target GROUP BY {key}
)
SELECT
  'store' AS scope,
  totals.key AS {level}, {of_target}
  totals.calls AS calls,
  totals.successes AS successes,
  coalesce(failed.failures, '{{}}') AS failures,
  (coalesce(recent.successes, 0) + 4.0) / (coalesce(recent.outcomes, 0) + 5.0) AS success_rate,
  coalesce(recent.successes, 0) AS recent_successes,
  coalesce(recent.outcomes, 0) AS recent_outcomes,
  ema.latency AS latency_ema,
  ema.ttft AS ttft_ema,
  ema.pace AS seconds_per_100_tokens,
  {_percentile_columns()},
  max(0.0, clock.now - sums.last_success) AS last_success_age,
  sums.last_success AS last_success_wall,
  max(0.0, clock.now - sums.last_failure) AS last_failure_age,
  sums.last_failure AS last_failure_wall,
  sums.prompt_tokens AS prompt_tokens,
  sums.completion_tokens AS completion_tokens,
  sums.cost_usd AS cost_usd,
  keeping.refreshed_at AS percentiles_at,
  sums.cached_prompt_tokens AS cached_prompt_tokens
FROM clock CROSS JOIN keeping CROSS JOIN totals {target}
LEFT JOIN failed ON failed.key = totals.key
LEFT JOIN recent ON recent.key = totals.key
LEFT JOIN ema ON ema.key = totals.key
LEFT JOIN sums ON sums.key = totals.key
{_percentile_joins(level)}
ORDER BY totals.key
"""


def _minute_percentile(kind: str, percent: int, members: str) -> str:
    return f"""(
    SELECT b.seconds FROM (
      SELECT h.bucket, sum(sum(h.count)) OVER (ORDER BY h.bucket) AS upto, sum(sum(h.count)) OVER () AS total
      FROM hist_minute h WHERE h.minute = g.minute AND h.target IN {members} AND h.kind = {KINDS[kind]}
      GROUP BY h.bucket
    ) r JOIN bucket b ON b.number = r.bucket WHERE r.upto * 100 >= {percent} * r.total ORDER BY r.bucket LIMIT 1
  ) AS {kind}_p{percent}"""


def _minute_view(level: str) -> str:
    key = LEVELS[level]
    members = "(g.id)" if level == "target" else f"(SELECT t.id FROM target t WHERE {key} = g.key)"
    # Scalar subqueries: a percentile costs only queries that select it, and a condition on `minute` reaches the tables.
    outcomes = f"FROM outcome_minute o WHERE o.minute = g.minute AND o.target IN {members}"
    percentiles = [_minute_percentile(kind, percent, members) for kind in KINDS for percent in (50, 95, 99)]
    return f"""
SELECT
  'store' AS scope,
  g.minute AS minute,
  g.minute * 60 AS at,
  g.key AS {level},
  (SELECT sum(o.count) {outcomes}) AS calls,
  coalesce((SELECT sum(o.count) {outcomes} AND o.class = 'OK'), 0) AS successes,
  (SELECT json_group_object(f.class, f.count) FROM (
    SELECT o.class, sum(o.count) AS count {outcomes} AND o.class <> 'OK' GROUP BY o.class) f) AS failures,
  g.latency_sum / nullif(g.latency_count, 0) AS latency_mean,
  g.ttft_sum / nullif(g.ttft_count, 0) AS ttft_mean,
  g.pace_sum / nullif(g.pace_count, 0) AS seconds_per_100_tokens,
  {", ".join(percentiles)},
  g.prompt_tokens AS prompt_tokens,
  g.completion_tokens AS completion_tokens,
  g.cost_usd AS cost_usd,
  g.cached_prompt_tokens AS cached_prompt_tokens,
  datetime(g.minute * 60, 'unixepoch') AS time
FROM (
  SELECT s.minute AS minute, {key} AS key, min(t.id) AS id,
    sum(s.latency_sum) AS latency_sum, sum(s.latency_count) AS latency_count,
    sum(s.ttft_sum) AS ttft_sum, sum(s.ttft_count) AS ttft_count,
    sum(s.pace_sum) AS pace_sum, sum(s.pace_count) AS pace_count,
    CAST(sum(s.prompt_tokens) AS INTEGER) AS prompt_tokens,
    CAST(sum(s.completion_tokens) AS INTEGER) AS completion_tokens, sum(s.cost_usd) AS cost_usd,
    CAST(sum(s.cached_prompt_tokens) AS INTEGER) AS cached_prompt_tokens
  FROM sum_minute s JOIN target t ON t.id = s.target GROUP BY s.minute, {key}
) g
"""


VIEWS = {
    **{f"v_{level}_now": _now_view(level) for level in LEVELS},
    **{f"v_{level}_minute": _minute_view(level) for level in ("target", "model")},
    "v_events": """
SELECT 'store' AS scope, id, at, writer, kind, subject, detail, datetime(at, 'unixepoch') AS time
FROM event ORDER BY id DESC
""",
    "v_requests": """
SELECT 'store' AS scope, at, writer, request_id, dialect, model, outcome, target, requested_tier, actual_tier, degraded,
  last_resort, attempts, refusals, seconds, waited_seconds, ttft_seconds, complete, notes,
  datetime(at, 'unixepoch') AS time
FROM request ORDER BY id DESC
""",
    "v_writers": """
SELECT 'store' AS scope, id AS writer, pid, started_at, seen_at, observed, dropped AS stats_dropped,
  datetime(seen_at, 'unixepoch') AS seen
FROM writer ORDER BY seen_at DESC
""",
    "v_contract": f"SELECT {VIEWS_VERSION} AS version, {_MINUTE} AS minute",
}
"""By name: the query of each."""


# ruff: noqa: S608 - made of the constants of this package


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


def _fourth(connection: sqlite3.Connection) -> None:
    # Times as text, and the minute of now: for these every database has functions of its own.
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
    Migration("times as text", "0.1.0", _fourth),
)
