CREATE TABLE {schema}.head (
  namespace text PRIMARY KEY, epoch text NOT NULL, timeline text NOT NULL, news bigint NOT NULL, writes bigint NOT NULL
);
-- Revisions of rows of one table in the order of their locks. A lease of which none is told takes no lock on the head: its
-- row may be seen a little late.
CREATE SEQUENCE {schema}.revision;
CREATE TABLE {schema}.shared_row (
  namespace text NOT NULL, id text NOT NULL, revision bigint NOT NULL, body text NOT NULL, expires double precision,
  PRIMARY KEY (namespace, id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX shared_row_revision ON {schema}.shared_row (namespace, revision);
CREATE TABLE {schema}.call (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, namespace text NOT NULL, target text NOT NULL,
  body text NOT NULL, good boolean NOT NULL
);
CREATE INDEX call_target ON {schema}.call (namespace, target, number);
CREATE TABLE {schema}.maker (
  number bigint GENERATED ALWAYS AS IDENTITY, namespace text NOT NULL, thing text NOT NULL, body text NOT NULL,
  at double precision NOT NULL, PRIMARY KEY (namespace, thing)
);
CREATE INDEX maker_at ON {schema}.maker (namespace, at);

-- Writes rows if the rows that were read are still the same, and returns what changed since the caller last looked.
-- No rule is in here: which row may take the place of another is decided by the caller.
CREATE FUNCTION {schema}.exchange(space text, asked jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  head {schema}.head;
  now_ double precision := extract(epoch FROM clock_timestamp());
  line text := substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
  since bigint := (asked->>'since')::bigint;
  reads boolean := NOT (asked ? 'writes' OR asked ? 'calls' OR asked ? 'makers');
  done boolean;
  whole boolean;
  changed jsonb;
BEGIN
  SELECT * INTO head FROM {schema}.head h WHERE h.namespace = space;
  IF NOT FOUND THEN
    INSERT INTO {schema}.head VALUES (space, '1-' || (asked->>'fresh'), line, 0, 0) ON CONFLICT DO NOTHING;
  END IF;
  -- A server that lost writes, one that was promoted, or one whose clock was set begins a new epoch.
  IF reads AND head.timeline = line AND (asked->>'epoch' <> head.epoch
      OR (since <= head.writes AND NOT (asked->>'stepped')::boolean)) THEN
    NULL;
  ELSE
    SELECT * INTO head FROM {schema}.head h WHERE h.namespace = space FOR UPDATE;
    IF head.timeline <> line
        OR (asked->>'epoch' = head.epoch AND (since > head.writes OR (asked->>'stepped')::boolean)) THEN
      head.epoch := (greatest(split_part(head.epoch, '-', 1)::bigint,
        coalesce(nullif(split_part(asked->>'epoch', '-', 1), ''), '0')::bigint) + 1) || '-' || (asked->>'fresh');
      UPDATE {schema}.head h SET epoch = head.epoch, timeline = line WHERE h.namespace = space;
    END IF;
  END IF;

  done := reads OR (asked->>'epoch' = head.epoch
    AND (NOT asked ? 'news' OR (asked->>'news')::bigint = head.news)
    AND NOT EXISTS (
      SELECT FROM jsonb_each_text(coalesce(asked->'expected', '{{}}')) AS wanted
      LEFT JOIN {schema}.shared_row r ON r.namespace = space AND r.id = wanted.key
      WHERE coalesce(r.revision, 0) <> wanted.value::bigint));
  IF done AND NOT reads THEN
    INSERT INTO {schema}.shared_row
      SELECT space, w.value->>0, nextval('{schema}.revision'), w.value->>1, now_ + (w.value->>2)::double precision
      FROM jsonb_array_elements(coalesce(asked->'writes', '[]')) AS w
      ON CONFLICT (namespace, id) DO UPDATE
      SET revision = excluded.revision, body = excluded.body, expires = excluded.expires;
    head.writes := nextval('{schema}.revision');
    head.news := head.news + (asked->>'tells')::boolean::int;
    UPDATE {schema}.head h SET news = head.news, writes = head.writes WHERE h.namespace = space;
    IF asked ? 'calls' THEN
      INSERT INTO {schema}.call (namespace, target, body, good)
        SELECT space, c.value->>0, c.value->>1, (c.value->>2)::boolean FROM jsonb_array_elements(asked->'calls') AS c;
      DELETE FROM {schema}.call c USING (SELECT DISTINCT value->>0 AS target FROM jsonb_array_elements(asked->'calls')) AS t
      WHERE c.namespace = space AND c.target = t.target
        AND c.number NOT IN (SELECT n.number FROM {schema}.call n WHERE n.namespace = space AND n.target = t.target
          ORDER BY n.number DESC LIMIT (asked->>'calls_kept')::int)
        AND c.number IS DISTINCT FROM (SELECT max(n.number) FROM {schema}.call n
          WHERE n.namespace = space AND n.target = t.target AND n.good);
    END IF;
    IF asked ? 'makers' THEN
      DELETE FROM {schema}.maker m USING jsonb_array_elements(asked->'makers') AS n
        WHERE m.namespace = space AND m.thing = n.value->>0;
      INSERT INTO {schema}.maker (namespace, thing, body, at)
        SELECT space, m.value->>0, m.value->>1, (m.value->>2)::double precision
        FROM jsonb_array_elements(asked->'makers') AS m ON CONFLICT DO NOTHING;
      DELETE FROM {schema}.maker m WHERE m.namespace = space
        AND (m.at < (asked->>'makers_since')::double precision
          OR m.number <= (SELECT max(n.number) FROM {schema}.maker n WHERE n.namespace = space) - (asked->>'makers_kept')::bigint);
    END IF;
    DELETE FROM {schema}.shared_row r WHERE r.namespace = space AND r.id IN (
      SELECT e.id FROM {schema}.shared_row e WHERE e.namespace = space AND e.expires < now_ LIMIT 20 FOR UPDATE SKIP LOCKED);
  END IF;

  whole := asked->>'epoch' <> head.epoch OR since < 0;
  SELECT coalesce(jsonb_agg(jsonb_build_array(r.id, r.revision, r.body)), '[]') INTO changed
    FROM {schema}.shared_row r WHERE r.namespace = space AND (whole OR r.revision > since);
  RETURN jsonb_build_object('done', done, 'epoch', head.epoch, 'news', head.news, 'last', head.writes, 'at', now_,
    'full', whole, 'rows', changed);
END $$;
