"""The tables, functions and views of fleet statistics on PostgreSQL: the contract of docs/statistics.md.

Everything lies in one schema. Minutes are partitioned by day, so that deleting the oldest ones costs nothing and leaves
nothing for a vacuum. The rules of merging are functions there: a batch is one statement, and so one transaction, whose
locks last no round trip.
"""

from __future__ import annotations

from dataclasses import dataclass

from smart_model_router_stats.estimators import COUNTED, LAST_BUCKET, middle_of
from smart_model_router_stats.schema import KINDS, LASTS, LEVELS, PERCENTS, SPANS, SUMS, VIEWS_VERSION
from smart_model_router_stats.statements import OWN, SAME

# ruff: noqa: S608 - made of the constants of this package

SCHEMA = "smr_stats"
DAY_MINUTES = 1440
_LOCK_TIMEOUT = "3s"
"""A lock that is waited for longer is given up at the server, too: no statement stays there without a client."""

BY_DAY = ("outcome_minute", "sum_minute", "hist_minute")

_COUNTED = ", ".join(f"'{failure.value}'" for failure in sorted(COUNTED))
_NOW = "extract(epoch FROM now())::double precision"
_MINUTE = "floor(extract(epoch FROM now()) / 60)::integer"
_SUM_COLUMNS = "".join(f"  {name} double precision NOT NULL,\n" for name in SUMS) + "".join(
    f"  {name} double precision,\n" for name in LASTS
)
# A count that grows is written into the same page, as long as there is room in it, and no index changes.
_ROOM = "WITH (fillfactor = 70)"

_TABLES = f"""
CREATE TABLE target (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, provider text NOT NULL,
  model text NOT NULL
);
CREATE TABLE bucket (number integer PRIMARY KEY, seconds double precision NOT NULL);
CREATE TABLE outcome_minute (
  minute integer, target bigint, class text, count bigint NOT NULL, PRIMARY KEY (minute, target, class)
) PARTITION BY RANGE (minute);
CREATE TABLE outcome_total (
  target bigint, class text, count bigint NOT NULL, PRIMARY KEY (target, class)
) {_ROOM};
CREATE TABLE sum_minute (
  minute integer,
  target bigint,
{_SUM_COLUMNS}  PRIMARY KEY (minute, target)
) PARTITION BY RANGE (minute);
CREATE TABLE sum_total (
  target bigint,
{_SUM_COLUMNS}  PRIMARY KEY (target)
) {_ROOM};
CREATE TABLE hist_minute (
  minute integer, target bigint, kind smallint, bucket smallint, count bigint NOT NULL,
  PRIMARY KEY (minute, target, kind, bucket)
) PARTITION BY RANGE (minute);
CREATE TABLE hist_total (
  target bigint, kind smallint, bucket smallint, count bigint NOT NULL, PRIMARY KEY (target, kind, bucket)
) {_ROOM};
CREATE TABLE keeping (
  one integer PRIMARY KEY CHECK (one = 1), kept_at double precision NOT NULL, days integer NOT NULL
);
CREATE TABLE writer (
  id text PRIMARY KEY, machine text NOT NULL, pid bigint NOT NULL, started_at double precision NOT NULL,
  seen_at double precision NOT NULL, batch bigint NOT NULL, observed bigint NOT NULL, dropped bigint NOT NULL
) {_ROOM};
CREATE TABLE event (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at double precision NOT NULL, writer text NOT NULL,
  kind text NOT NULL, subject text, detail json NOT NULL
);
CREATE TABLE request (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at double precision NOT NULL, writer text NOT NULL,
  request_id text NOT NULL, dialect text NOT NULL, model text NOT NULL, outcome text NOT NULL, target text,
  requested_tier text NOT NULL, actual_tier text, degraded smallint NOT NULL, last_resort smallint NOT NULL,
  attempts integer NOT NULL, refusals integer NOT NULL, seconds double precision NOT NULL,
  waited_seconds double precision NOT NULL, ttft_seconds double precision, complete smallint, notes json NOT NULL
)
"""

_SQL_TYPES = {
    **dict.fromkeys(("attempts", "refusals"), "::integer"),
    **dict.fromkeys(("degraded", "last_resort", "complete"), "::boolean::integer"),
    **dict.fromkeys(("at", "seconds", "ttft_seconds", "waited_seconds"), "::double precision"),
    "notes": "::json",
}
"""The way in which the text of a value in JSON becomes one of its column; others are text."""

_MAKE_DAY = f"""
CREATE OR REPLACE FUNCTION make_day(given_minute integer) RETURNS void LANGUAGE plpgsql
SET search_path = @schema@, pg_temp SET lock_timeout = '{_LOCK_TIMEOUT}' AS $$
DECLARE
  width integer := {DAY_MINUTES} * (SELECT days FROM keeping);
  lower_minute integer := given_minute - given_minute % width;
  part text;
  partition_name text;
BEGIN
  -- The last one that is made: when it is there, all are.
  partition_name := '{BY_DAY[-1]}_' || to_char(to_timestamp(lower_minute * 60.0) AT TIME ZONE 'UTC', 'YYYYMMDD');
  IF to_regclass(partition_name) IS NOT NULL THEN
    RETURN;
  END IF;
  PERFORM pg_advisory_xact_lock(hashtext('@name@'), 1);
  FOREACH part IN ARRAY ARRAY[{", ".join(f"'{table}'" for table in BY_DAY)}] LOOP
    partition_name := part || to_char(to_timestamp(lower_minute * 60.0) AT TIME ZONE 'UTC', '_YYYYMMDD');
    IF to_regclass(partition_name) IS NULL THEN
      EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL) {_ROOM}', partition_name, part);
      EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)',
        part, partition_name, lower_minute, lower_minute + width);
    END IF;
  END LOOP;
END $$
"""


def _merge(table: str) -> str:
    added = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in SUMS)
    greatest = ", ".join(f"{name} = greatest({table}.{name}, excluded.{name})" for name in LASTS)
    return f"DO UPDATE SET {added}, {greatest}"


def _count(table: str) -> str:
    return f"DO UPDATE SET count = {table}.count + excluded.count"


_COLUMNS = ", ".join((*SUMS, *LASTS))
_CELL_VALUES = ", ".join(f"(c.cell ->> {place})::double precision" for place, _ in enumerate((*SUMS, *LASTS), start=5))
_CELL_TOTALS = ", ".join(
    f"{'sum' if place < 5 + len(SUMS) else 'max'}((c.cell ->> {place})::double precision)"
    for place, _ in enumerate((*SUMS, *LASTS), start=5)
)
_REQUEST = (*OWN, *SAME)
_REQUEST_VALUES = ", ".join(f"(r.row ->> {place}){_SQL_TYPES.get(name, '')}" for place, name in enumerate(_REQUEST))
_CELLS = "json_array_elements(given -> 'cell') c(cell)"
_OUTCOMES = "json_array_elements(given -> 'outcome') o(row)"
_BARS = "json_array_elements(given -> 'bar') b(row)"
_PLACE = "(c.cell ->> 0)::integer + 1"

# Rows are written in the order of their keys: two batches never wait for each other.
_ADD_UP = f"""
CREATE OR REPLACE FUNCTION add_up(given json) RETURNS boolean LANGUAGE plpgsql
SET search_path = @schema@, pg_temp SET lock_timeout = '{_LOCK_TIMEOUT}' AS $$
DECLARE
  head json := given -> 'writer';
  ids bigint[];
  minutes integer[];
BEGIN
  INSERT INTO writer AS w (id, machine, pid, started_at, seen_at, batch, observed, dropped)
    VALUES (head ->> 0, given ->> 'machine', (head ->> 1)::bigint, (head ->> 2)::double precision,
      extract(epoch FROM clock_timestamp())::double precision, (head ->> 4)::bigint, (head ->> 5)::bigint,
      (head ->> 6)::bigint)
    ON CONFLICT (id) DO UPDATE SET
      seen_at = excluded.seen_at, batch = excluded.batch, observed = excluded.observed, dropped = excluded.dropped
    WHERE w.batch < excluded.batch;
  IF NOT FOUND THEN  -- it is here: its commit came through, but the news of it did not
    RETURN false;
  END IF;
  PERFORM make_day(day) FROM (
    SELECT DISTINCT (c.cell ->> 4)::integer / {DAY_MINUTES} * {DAY_MINUTES} AS day FROM {_CELLS}
  ) days ORDER BY day;
  INSERT INTO target (name, provider, model)
    SELECT DISTINCT ON (c.cell ->> 1) c.cell ->> 1, c.cell ->> 2, c.cell ->> 3 FROM {_CELLS}
    WHERE NOT EXISTS (SELECT FROM target t WHERE t.name = c.cell ->> 1) ORDER BY c.cell ->> 1
    ON CONFLICT (name) DO NOTHING;
  SELECT array_agg(t.id ORDER BY {_PLACE}), array_agg((c.cell ->> 4)::integer ORDER BY {_PLACE}) INTO ids, minutes
    FROM {_CELLS} JOIN target t ON t.name = c.cell ->> 1;
  INSERT INTO sum_minute (minute, target, {_COLUMNS})
    SELECT minutes[{_PLACE}], ids[{_PLACE}], {_CELL_VALUES} FROM {_CELLS} ORDER BY 1, 2
    ON CONFLICT (minute, target) {_merge("sum_minute")};
  INSERT INTO sum_total (target, {_COLUMNS})
    SELECT ids[{_PLACE}], {_CELL_TOTALS} FROM {_CELLS} GROUP BY 1 ORDER BY 1
    ON CONFLICT (target) {_merge("sum_total")};
  INSERT INTO outcome_minute (minute, target, class, count)
    SELECT minutes[(o.row ->> 0)::integer + 1], ids[(o.row ->> 0)::integer + 1], o.row ->> 1, (o.row ->> 2)::bigint
    FROM {_OUTCOMES} ORDER BY 1, 2, 3
    ON CONFLICT (minute, target, class) {_count("outcome_minute")};
  INSERT INTO outcome_total (target, class, count)
    SELECT ids[(o.row ->> 0)::integer + 1], o.row ->> 1, sum((o.row ->> 2)::bigint)
    FROM {_OUTCOMES} GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (target, class) {_count("outcome_total")};
  INSERT INTO hist_minute (minute, target, kind, bucket, count)
    SELECT minutes[(b.row ->> 0)::integer + 1], ids[(b.row ->> 0)::integer + 1], (b.row ->> 1)::smallint,
      (b.row ->> 2)::smallint, (b.row ->> 3)::bigint
    FROM {_BARS} ORDER BY 1, 2, 3, 4
    ON CONFLICT (minute, target, kind, bucket) {_count("hist_minute")};
  INSERT INTO hist_total (target, kind, bucket, count)
    SELECT ids[(b.row ->> 0)::integer + 1], (b.row ->> 1)::smallint, (b.row ->> 2)::smallint,
      sum((b.row ->> 3)::bigint)
    FROM {_BARS} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (target, kind, bucket) {_count("hist_total")};
  INSERT INTO event (at, writer, kind, subject, detail)
    SELECT (e.row ->> 0)::double precision, head ->> 0, e.row ->> 1, e.row ->> 2, (e.row ->> 3)::json
    FROM json_array_elements(given -> 'new_event') WITH ORDINALITY e(row, place) ORDER BY e.place;
  INSERT INTO request (writer, {", ".join(_REQUEST)})
    SELECT head ->> 0, {_REQUEST_VALUES}
    FROM json_array_elements(given -> 'new_request') WITH ORDINALITY r(row, place) ORDER BY r.place;
  RETURN true;
END $$
"""

_KEEP_SECONDS = 5
"""All processes together keep the statistics in order once in so many seconds."""

# Dropping a partition keeps all others out while it waits for a reader: briefly, and tried again the next time.
_KEEP = f"""
CREATE OR REPLACE FUNCTION keep(retention double precision, size_limit bigint, rows_kept bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path = @schema@, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
  instant double precision := extract(epoch FROM clock_timestamp());
  oldest integer;
  ended integer;
  suffix text;
  used bigint;
  part text;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtext('@name@'), 2) THEN
    RETURN false;
  END IF;
  UPDATE keeping SET kept_at = instant WHERE kept_at < instant - {_KEEP_SECONDS} OR kept_at > instant;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  BEGIN
    PERFORM make_day(floor(instant / 60)::integer);
    PERFORM make_day(floor(instant / 60)::integer + 60);
    SELECT substring(p.bound FROM 'TO \\((-?\\d+)\\)')::integer, right(p.name, 8), p.used
      INTO ended, suffix, used FROM (
      SELECT c.relname AS name, pg_get_expr(c.relpartbound, c.oid) AS bound,
        sum(pg_total_relation_size(c.oid)) OVER () AS used
      FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent IN ({", ".join(f"'{table}'::regclass" for table in BY_DAY)})
    ) p ORDER BY 1 LIMIT 1;
    IF ended * 60.0 <= instant - retention OR (used > size_limit AND ended * 60.0 <= instant) THEN
      FOREACH part IN ARRAY ARRAY[{", ".join(f"'{table}'" for table in BY_DAY)}] LOOP
        EXECUTE format('DROP TABLE IF EXISTS %I', part || '_' || suffix);
      END LOOP;
    END IF;
  EXCEPTION WHEN lock_not_available THEN
    NULL;
  END;
  DELETE FROM event WHERE id <= (SELECT max(id) FROM event) - rows_kept
    OR (at < instant - retention AND id <= (SELECT min(id) FROM event) + 1000);
  DELETE FROM request WHERE id <= (SELECT max(id) FROM request) - rows_kept
    OR (at < instant - retention AND id <= (SELECT min(id) FROM request) + 1000);
  DELETE FROM writer WHERE seen_at < instant - retention;
  RETURN true;
END $$
"""


def _percentile_columns() -> str:
    columns = []
    for kind in KINDS:
        for span in SPANS:
            columns.append(f"coalesce({kind}_{span}.count, 0) AS {kind}_{span}_count")
            columns += [f"{kind}_{span}.p{percent} AS {kind}_{span}_p{percent}" for percent in PERCENTS]
    return ",\n  ".join(columns)


def _percentile_join(level: str, kind: str, span: str) -> str:
    """A join that costs nothing where no column of it is asked for."""
    table, recent = ("hist_minute", f" AND h.minute > {_MINUTE} - 15") if span == "15_min" else ("hist_total", "")
    ranked = ", ".join(
        f"min(b.seconds) FILTER (WHERE r.upto * 100 >= {percent} * r.total) AS p{percent}" for percent in PERCENTS
    )
    return f"""LEFT JOIN (
  SELECT r.key, max(r.total)::bigint AS count, {ranked}
  FROM (
    SELECT key, bucket, sum(count) OVER (PARTITION BY key ORDER BY bucket) AS upto,
      sum(count) OVER (PARTITION BY key) AS total
    FROM (
      SELECT {LEVELS[level]} AS key, h.bucket, sum(h.count)::double precision AS count
      FROM {table} h JOIN target t ON t.id = h.target WHERE h.kind = {KINDS[kind]}{recent}
      GROUP BY {LEVELS[level]}, h.bucket
    ) bars
  ) r JOIN bucket b ON b.number = r.bucket GROUP BY r.key
) {kind}_{span} ON {kind}_{span}.key = totals.key"""


def _now_view(level: str) -> str:
    key = LEVELS[level]
    of_target = "t.provider AS provider, t.model AS model," if level == "target" else ""
    target = "JOIN target t ON t.name = totals.key" if level == "target" else ""
    weight = f"(0.5::double precision ^ greatest(0, {_MINUTE} - s.minute))"
    joins = "\n".join(_percentile_join(level, kind, span) for kind in KINDS for span in SPANS)
    return f"""
WITH totals AS (
  SELECT {key} AS key, sum(o.count)::bigint AS calls,
    coalesce(sum(o.count) FILTER (WHERE o.class = 'OK'), 0)::bigint AS successes
  FROM outcome_total o JOIN target t ON t.id = o.target GROUP BY {key}
)
SELECT
  'fleet' AS scope,
  totals.key AS {level}, {of_target}
  totals.calls AS calls,
  totals.successes AS successes,
  coalesce(failed.failures, '{{}}'::json) AS failures,
  (coalesce(recent.successes, 0) + 4.0::double precision) / (coalesce(recent.outcomes, 0) + 5) AS success_rate,
  coalesce(recent.successes, 0) AS recent_successes,
  coalesce(recent.outcomes, 0) AS recent_outcomes,
  ema.latency AS latency_ema,
  ema.ttft AS ttft_ema,
  ema.pace AS seconds_per_100_tokens,
  {_percentile_columns()},
  greatest(sums.last_success, {_NOW}) - sums.last_success AS last_success_age,
  sums.last_success AS last_success_wall,
  greatest(sums.last_failure, {_NOW}) - sums.last_failure AS last_failure_age,
  sums.last_failure AS last_failure_wall,
  sums.prompt_tokens AS prompt_tokens,
  sums.completion_tokens AS completion_tokens,
  sums.cost_usd AS cost_usd,
  {_NOW} AS percentiles_at,
  sums.cached_prompt_tokens AS cached_prompt_tokens
FROM totals {target}
LEFT JOIN (
  SELECT f.key, json_object_agg(f.class, f.count) AS failures FROM (
    SELECT {key} AS key, o.class, sum(o.count)::bigint AS count
    FROM outcome_total o JOIN target t ON t.id = o.target WHERE o.class <> 'OK' GROUP BY {key}, o.class
  ) f GROUP BY f.key
) failed ON failed.key = totals.key
LEFT JOIN (
  SELECT {key} AS key, coalesce(sum(o.count) FILTER (WHERE o.class = 'OK'), 0)::bigint AS successes,
    sum(o.count)::bigint AS outcomes
  FROM outcome_minute o JOIN target t ON t.id = o.target
  WHERE o.minute > {_MINUTE} - 5 AND (o.class = 'OK' OR o.class IN ({_COUNTED})) GROUP BY {key}
) recent ON recent.key = totals.key
LEFT JOIN (
  SELECT {key} AS key,
    sum(s.latency_sum * {weight}) / nullif(sum(s.latency_count * {weight}), 0) AS latency,
    sum(s.ttft_sum * {weight}) / nullif(sum(s.ttft_count * {weight}), 0) AS ttft,
    sum(s.pace_sum * {weight}) / nullif(sum(s.pace_count * {weight}), 0) AS pace
  FROM sum_minute s JOIN target t ON t.id = s.target WHERE s.minute > {_MINUTE} - 5 GROUP BY {key}
) ema ON ema.key = totals.key
LEFT JOIN (
  SELECT {key} AS key, max(s.last_success) AS last_success, max(s.last_failure) AS last_failure,
    sum(s.prompt_tokens)::bigint AS prompt_tokens, sum(s.completion_tokens)::bigint AS completion_tokens,
    sum(s.cost_usd) AS cost_usd, sum(s.cached_prompt_tokens)::bigint AS cached_prompt_tokens
  FROM sum_total s JOIN target t ON t.id = s.target GROUP BY {key}
) sums ON sums.key = totals.key
{joins}
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


def _time(column: str) -> str:
    return f"to_char(to_timestamp({column}) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')"


def _minute_view(level: str) -> str:
    key = LEVELS[level]
    members = "(g.id)" if level == "target" else f"(SELECT t.id FROM target t WHERE {key} = g.key)"
    outcomes = f"FROM outcome_minute o WHERE o.minute = g.minute AND o.target IN {members}"
    percentiles = [_minute_percentile(kind, percent, members) for kind in KINDS for percent in (50, 95, 99)]
    return f"""
SELECT
  'fleet' AS scope,
  g.minute AS minute,
  g.minute * 60::bigint AS at,
  g.key AS {level},
  (SELECT sum(o.count)::bigint {outcomes}) AS calls,
  (SELECT coalesce(sum(o.count), 0)::bigint {outcomes} AND o.class = 'OK') AS successes,
  (SELECT coalesce(json_object_agg(f.class, f.count), '{{}}'::json) FROM (
    SELECT o.class, sum(o.count)::bigint AS count {outcomes} AND o.class <> 'OK' GROUP BY o.class) f) AS failures,
  g.latency_sum / nullif(g.latency_count, 0) AS latency_mean,
  g.ttft_sum / nullif(g.ttft_count, 0) AS ttft_mean,
  g.pace_sum / nullif(g.pace_count, 0) AS seconds_per_100_tokens,
  {", ".join(percentiles)},
  g.prompt_tokens AS prompt_tokens,
  g.completion_tokens AS completion_tokens,
  g.cost_usd AS cost_usd,
  g.cached_prompt_tokens AS cached_prompt_tokens,
  {_time("g.minute * 60.0")} AS time
FROM (
  SELECT s.minute AS minute, {key} AS key, min(t.id) AS id,
    sum(s.latency_sum) AS latency_sum, sum(s.latency_count) AS latency_count,
    sum(s.ttft_sum) AS ttft_sum, sum(s.ttft_count) AS ttft_count,
    sum(s.pace_sum) AS pace_sum, sum(s.pace_count) AS pace_count,
    sum(s.prompt_tokens)::bigint AS prompt_tokens,
    sum(s.completion_tokens)::bigint AS completion_tokens, sum(s.cost_usd) AS cost_usd,
    sum(s.cached_prompt_tokens)::bigint AS cached_prompt_tokens
  FROM sum_minute s JOIN target t ON t.id = s.target GROUP BY s.minute, {key}
) g
"""


FLEET_VIEWS = {
    **{f"v_{level}_now": _now_view(level) for level in LEVELS},
    **{f"v_{level}_minute": _minute_view(level) for level in ("target", "model")},
    "v_events": f"""
SELECT 'fleet' AS scope, id, at, writer, kind, subject, detail, {_time("at")} AS time FROM event ORDER BY id DESC
""",
    "v_requests": f"""
SELECT 'fleet' AS scope, at, writer, request_id, dialect, model, outcome, target, requested_tier, actual_tier, degraded,
  last_resort, attempts, refusals, seconds, waited_seconds, ttft_seconds, complete, notes, {_time("at")} AS time
FROM request ORDER BY id DESC
""",
    "v_writers": f"""
SELECT 'fleet' AS scope, id AS writer, pid, started_at, seen_at, observed, dropped AS stats_dropped,
  {_time("seen_at")} AS seen, machine
FROM writer ORDER BY seen_at DESC
""",
    "v_contract": f"SELECT {VIEWS_VERSION} AS version, {_MINUTE} AS minute",
}
"""By name: the query of each."""

_BUCKETS = "INSERT INTO bucket VALUES " + ", ".join(
    f"({number}, {middle_of(number)!r})" for number in range(LAST_BUCKET + 1)
)


@dataclass(frozen=True, slots=True)
class FleetMigration:
    """One step of the schema, in every release from `since` on: `@schema@` is the schema, `@name@` its name as text."""

    name: str
    since: str
    statements: tuple[str, ...]


# The newest migration has all functions and views: they are replaced, which keeps what was granted on them.
FLEET_MIGRATIONS = (
    FleetMigration(
        "tables",
        "0.1.0",
        (
            *_TABLES.split(";"),
            "INSERT INTO keeping VALUES (1, 0, @days@)",
            _BUCKETS,
            _MAKE_DAY,
            _ADD_UP,
            _KEEP,
            *(f"CREATE OR REPLACE VIEW {name} AS {view}" for name, view in FLEET_VIEWS.items()),
        ),
    ),
)
