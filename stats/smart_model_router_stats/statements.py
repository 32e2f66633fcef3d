"""The scripts that write stats.db. Each runs as one job, so that it cannot be stopped between two statements.

`SETUP` makes a connection's own tables, through which the other scripts get their arguments.
"""

# ruff: noqa: S608 - made of the constants of this package

from __future__ import annotations

from smart_model_router_stats.schema import LASTS, LEVELS, PERCENTS, SUMS

_COLUMNS = ", ".join((*SUMS, *LASTS))
_ADD = ", ".join(f"{name} = {name} + excluded.{name}" for name in SUMS)
_MAX = ", ".join(
    f"{name} = max(coalesce({name}, excluded.{name}), coalesce(excluded.{name}, {name}))" for name in LASTS
)
_MERGE = f"DO UPDATE SET {_ADD}, {_MAX}"

SAME = (
    "dialect",
    "model",
    "outcome",
    "target",
    "requested_tier",
    "actual_tier",
    "degraded",
    "last_resort",
    "attempts",
    "refusals",
    "waited_seconds",
    "complete",
    "notes",
)
"""Columns that most requests of a batch have just like others: they are given once, and only their place again.

The table in the file has these. A field that is new in RequestFinished enters here with a migration of its column.
"""
OWN = ("at", "request_id", "seconds", "ttft_seconds")
TABLES: dict[str, tuple[str, ...]] = {
    "cell": ("id", "name", "provider", "model", "minute", *SUMS, *LASTS),
    "outcome": ("cell", "class", "count"),
    "bar": ("cell", "kind", "bucket", "count"),
    "new_event": ("at", "kind", "subject", "detail"),
    "same": ("id", *SAME),
    "new_request": (*OWN, "same"),
}
"""The parts of a batch: the connection's own tables, and the columns of the rows for each."""

# A batch that is in the file already (its commit came through, but the news of it did not) empties the temporary
# tables, and with them every statement after that.
_ADD_UP = f"""
  DELETE FROM batch WHERE EXISTS (SELECT 1 FROM writer w WHERE w.id = batch.writer AND w.batch >= batch.number);
  DELETE FROM cell WHERE NOT EXISTS (SELECT 1 FROM batch);
  INSERT INTO writer (id, pid, started_at, seen_at, batch, observed, dropped)
    SELECT writer, pid, started_at, seen_at, number, observed, dropped FROM batch WHERE true
    ON CONFLICT (id) DO UPDATE SET
      seen_at = excluded.seen_at, batch = excluded.batch, observed = excluded.observed, dropped = excluded.dropped;
  INSERT OR IGNORE INTO target (name, provider, model) SELECT name, provider, model FROM cell;
  UPDATE cell SET target = (SELECT t.id FROM target t WHERE t.name = cell.name);
  INSERT INTO outcome_minute (minute, target, class, count)
    SELECT c.minute, c.target, o.class, o.count FROM outcome o JOIN cell c ON c.id = o.cell WHERE true
    ON CONFLICT (minute, target, class) DO UPDATE SET count = count + excluded.count;
  INSERT INTO outcome_total (target, class, count)
    SELECT c.target, o.class, o.count FROM outcome o JOIN cell c ON c.id = o.cell WHERE true
    ON CONFLICT (target, class) DO UPDATE SET count = count + excluded.count;
  INSERT INTO sum_minute (minute, target, {_COLUMNS})
    SELECT minute, target, {_COLUMNS} FROM cell WHERE true ON CONFLICT (minute, target) {_MERGE};
  INSERT INTO sum_total (target, {_COLUMNS})
    SELECT target, {_COLUMNS} FROM cell WHERE true ON CONFLICT (target) {_MERGE};
  INSERT INTO hist_minute (minute, target, kind, bucket, count)
    SELECT c.minute, c.target, h.kind, h.bucket, h.count FROM bar h JOIN cell c ON c.id = h.cell WHERE true
    ON CONFLICT (minute, target, kind, bucket) DO UPDATE SET count = count + excluded.count;
  INSERT INTO hist_recent (target, kind, bucket, count)
    SELECT c.target, h.kind, h.bucket, h.count FROM bar h JOIN cell c ON c.id = h.cell
    WHERE c.minute > (SELECT recent_floor FROM keeping)
    ON CONFLICT (target, kind, bucket) DO UPDATE SET count = count + excluded.count;
  INSERT INTO hist_total (target, kind, bucket, count)
    SELECT c.target, h.kind, h.bucket, h.count FROM bar h JOIN cell c ON c.id = h.cell WHERE true
    ON CONFLICT (target, kind, bucket) DO UPDATE SET count = count + excluded.count;
  INSERT INTO event (at, writer, kind, subject, detail)
    SELECT e.at, b.writer, e.kind, e.subject, e.detail FROM batch b, new_event e;
  INSERT INTO request (writer, {", ".join((*OWN, *SAME))})
    SELECT b.writer, {", ".join(f"r.{name}" for name in OWN)}, {", ".join(f"s.{name}" for name in SAME)}
    FROM batch b CROSS JOIN new_request r CROSS JOIN same s ON s.id = r.same;
"""

SETUP = f"""
CREATE TEMP TABLE batch (
  one INTEGER PRIMARY KEY CHECK (one = 1), writer TEXT, pid INTEGER, started_at REAL, seen_at REAL,
  number INTEGER, observed INTEGER, dropped INTEGER
);
CREATE TEMP TABLE cell (
  id INTEGER PRIMARY KEY, name TEXT, provider TEXT, model TEXT, minute INTEGER, target INTEGER, {_COLUMNS}
);
CREATE TEMP TABLE bar (cell INTEGER, kind INTEGER, bucket INTEGER, count INTEGER);
CREATE TEMP TABLE outcome (cell INTEGER, class TEXT, count INTEGER);
CREATE TEMP TABLE new_event ({", ".join(TABLES["new_event"])});
CREATE TEMP TABLE same (id INTEGER PRIMARY KEY, {", ".join(SAME)});
CREATE TEMP TABLE new_request ({", ".join(TABLES["new_request"])});
CREATE TEMP TABLE chore (one INTEGER PRIMARY KEY CHECK (one = 1), now REAL, floor INTEGER);
CREATE TEMP TABLE fresh (level TEXT, name TEXT, span TEXT, kind INTEGER, count INTEGER, p50, p75, p90, p95, p99);
CREATE TEMP TABLE given (one);
CREATE TEMP TRIGGER empty AFTER INSERT ON batch BEGIN
  {" ".join(f"DELETE FROM {table};" for table in TABLES)}
END;
CREATE TEMP TRIGGER add_up AFTER INSERT ON given BEGIN
  {_ADD_UP}
  DELETE FROM given;
END;
"""
"""Triggers are compiled once, and run without the interpreter: a script would wait for it at each of its statements,
with the file's lock in its hands."""

GIVE_BATCH = "INSERT OR REPLACE INTO temp.batch VALUES (1, ?, ?, ?, ?, ?, ?, ?)"
"""writer, pid, started_at, seen_at, number, observed, dropped; a trigger empties the connection's own tables."""

ADD_UP = "INSERT INTO temp.given VALUES (1)"
"""Has a trigger add up in the file what the connection's own tables were given."""

GIVE_CHORE = "INSERT OR REPLACE INTO temp.chore VALUES (1, ?, ?)"
"""now, the minute before the 15 that are recent"""

# hist_recent is the sum of the minutes after recent_floor: minutes that leave are taken out; when the clock went
# back, minutes come in again, and it is made anew.
AGE = """
BEGIN IMMEDIATE;
INSERT INTO main.hist_recent (target, kind, bucket, count)
  SELECT target, kind, bucket, -sum(count) FROM main.hist_minute
  WHERE minute > (SELECT recent_floor FROM main.keeping) AND minute <= (SELECT floor FROM temp.chore)
  GROUP BY target, kind, bucket
  ON CONFLICT (target, kind, bucket) DO UPDATE SET count = count + excluded.count;
DELETE FROM main.hist_recent
  WHERE (SELECT k.recent_floor > c.floor FROM main.keeping k, temp.chore c);
INSERT INTO main.hist_recent (target, kind, bucket, count)
  SELECT target, kind, bucket, sum(count) FROM main.hist_minute
  WHERE minute > (SELECT floor FROM temp.chore)
    AND (SELECT k.recent_floor > c.floor FROM main.keeping k, temp.chore c)
  GROUP BY target, kind, bucket;
DELETE FROM main.hist_recent
  WHERE (SELECT k.recent_floor < c.floor FROM main.keeping k, temp.chore c) AND count <= 0;
UPDATE main.keeping SET recent_floor = (SELECT floor FROM temp.chore);
COMMIT;
"""


def _percentiles(level: str, span: str, table: str) -> str:
    key = LEVELS[level]
    source = f"""
    SELECT {key} AS name, h.kind AS kind, h.bucket AS bucket, sum(h.count) AS count
    FROM main.{table} h JOIN main.target t ON t.id = h.target GROUP BY {key}, h.kind, h.bucket"""
    ranked = ", ".join(f"min(r.bucket) FILTER (WHERE r.upto * 100 >= {percent} * n.total)" for percent in PERCENTS)
    return f"""
INSERT INTO temp.fresh
  WITH bar AS MATERIALIZED ({source}),
  n AS MATERIALIZED (SELECT name, kind, sum(count) AS total FROM bar GROUP BY name, kind)
  SELECT '{level}', r.name, '{span}', r.kind, n.total, {ranked}
  FROM (
    SELECT name, kind, bucket,
      sum(count) OVER (PARTITION BY name, kind ORDER BY bucket ROWS UNBOUNDED PRECEDING) AS upto
    FROM bar
  ) r JOIN n ON n.name = r.name AND n.kind = r.kind
  GROUP BY r.name, r.kind;
"""


_SECONDS = ", ".join(f"(SELECT seconds FROM main.bucket WHERE number = f.p{percent})" for percent in PERCENTS)

# Read without the file's lock; only the few rows that come of it are written under it.
REFRESH = f"""
DELETE FROM temp.fresh;
{"".join(_percentiles(level, "15_min", "hist_recent") for level in LEVELS)}
{"".join(_percentiles(level, "all_time", "hist_total") for level in LEVELS)}
BEGIN IMMEDIATE;
DELETE FROM main.percentile;
INSERT INTO main.percentile SELECT f.level, f.name, f.span, f.kind, f.count, {_SECONDS} FROM temp.fresh f;
UPDATE main.keeping SET refreshed_at = (SELECT now FROM temp.chore);
COMMIT;
"""

TAKE_LEASE = """
UPDATE keeping SET owner = :owner, lease_until = :now + :seconds
WHERE owner = :owner OR lease_until <= :now OR lease_until > :now + :seconds
"""
"""One of all processes keeps the file in order. A lease beyond its length is of a clock that went back."""

CHANGED = "SELECT total(batch), count(*) FROM writer"
"""Differs after every write."""

FORGET_MINUTES = tuple(
    f"DELETE FROM {table} WHERE minute <= :minute" for table in ("outcome_minute", "sum_minute", "hist_minute")
)
FORGET_ROWS = tuple(
    f"DELETE FROM {table} WHERE id <= (SELECT max(id) FROM {table}) - :keep OR (at < :before AND id <= "
    f"(SELECT min(id) FROM {table}) + 1000)"
    for table in ("event", "request")
)
FORGET_WRITERS = "DELETE FROM writer WHERE seen_at < :before AND id <> :owner"
OLDEST_MINUTE = "SELECT min(minute) FROM sum_minute"
USED_BYTES = (
    "SELECT (c.page_count - f.freelist_count) * s.page_size "
    "FROM pragma_page_count c, pragma_freelist_count f, pragma_page_size s"
)
