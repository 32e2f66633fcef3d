-- lease_tokens, spend and lease_slots of domain/shared_state/ where the rows are held: these are the hot rows, and a lock
-- that a client holds over a round trip is held for as long as a busy machine does not run that client. Numbers are the
-- same doubles; a test compares the rules. Each figure of a row that is written is read again as the same one.
CREATE TYPE {schema}.lease_terms AS (
  boot text, ticks float8, boottime float8, wall float8, clock_error float8, no_room float8, chunk float8, plenty float8,
  under_way float8, half float8, least_share float8, settles_soon float8, slot_seconds float8, waiting_seconds float8,
  left_free float8, kept_for float8
);
CREATE TYPE {schema}.bucket_ask AS (
  key text, capacity float8, rate float8, most float8, "window" float8, steady boolean, resets_in float8,
  held_for float8, debt float8, back float8, want float8, least float8, ours boolean
);
CREATE TYPE {schema}.budget_ask AS (
  key text, capacity float8, period float8, want float8, reserved float8, settled float8, spent float8
);
CREATE TYPE {schema}.slot_ask AS (key text, holder text, slots float8, keeps float8, least float8, want float8);
CREATE TYPE {schema}.deadline AS (
  boot text, boottime float8, boottime_until float8, wall float8, wall_until float8, duration float8
);
CREATE TYPE {schema}.slot AS (holder text, held float8, waits float8, waiting boolean, columns jsonb);
CREATE TYPE {schema}.settled AS (body text, keep float8, tells boolean, granted float8[]);

CREATE FUNCTION {schema}.chunk_of(capacity float8, part float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
  SELECT greatest(1, trunc(capacity * part))
$$;

CREATE FUNCTION {schema}.lease_tokens(body text, ask {schema}.bucket_ask, terms {schema}.lease_terms)
RETURNS {schema}.settled LANGUAGE plpgsql AS $$
DECLARE
  row_ jsonb;
  known boolean := false;
  boot text; at float8; level float8; capacity float8; rate float8; window_ float8; resets_at float8; held_until float8;
  now_ float8; was_plenty boolean; is_news boolean; capacity_before float8; window_before float8;
  ends float8; lag float8; others float8; granted float8 := 0; due float8 := 0;
BEGIN
  IF body <> '' THEN
    BEGIN
      row_ := body::jsonb->1;
      boot := row_->>1; at := row_->>2; level := row_->>3; capacity := row_->>4; rate := row_->>5; window_ := row_->>6;
      resets_at := row_->>7; held_until := row_->>8;
      known := coalesce(body::jsonb->0 = '1' AND rate > 0 AND coalesce(window_ > 0, true)
        AND abs(at) + abs(level) + abs(capacity) + rate + abs(resets_at) + abs(held_until) + coalesce(window_, 0) < 'infinity', false);
    EXCEPTION WHEN OTHERS THEN
      known := false;
    END;
  END IF;
  IF known THEN
    was_plenty := level >= terms.plenty * {schema}.chunk_of(capacity, terms.chunk);
    capacity_before := capacity; window_before := window_;
  END IF;
  is_news := NOT known OR boot IS DISTINCT FROM terms.boot;

  IF is_news OR at > terms.ticks + terms.clock_error THEN
    at := terms.ticks; capacity := ask.capacity; rate := ask.rate; window_ := ask.window;
    level := CASE WHEN ask.window IS NOT NULL THEN ask.capacity ELSE greatest(ask.debt,
      least(ask.capacity, ask.most + ask.debt) - CASE WHEN ask.ours THEN 0 ELSE ask.rate * terms.under_way END) END;
    resets_at := terms.ticks + ask.resets_in; held_until := terms.ticks + ask.held_for;
  END IF;
  now_ := greatest(terms.ticks, at);

  -- What came back since.
  IF window_ IS NULL THEN
    level := least(capacity, level + greatest(0, now_ - greatest(at, held_until)) * rate);
  ELSIF now_ >= resets_at THEN
    level := capacity;
    resets_at := resets_at + window_ * floor((now_ - resets_at) / window_) + window_;
  END IF;

  -- What the process has learned of it.
  level := least(CASE WHEN ask.ours THEN level ELSE level + greatest(0, ask.capacity - capacity) END, ask.capacity);
  capacity := ask.capacity; rate := ask.rate;
  IF ask.held_for <> 0 THEN
    held_until := greatest(held_until, now_ + ask.held_for);
  END IF;
  ends := now_ + ask.resets_in;
  IF ask.window IS NULL THEN
    level := least(level + ask.back - ask.debt, ask.capacity);
    IF window_ IS NULL OR ask.steady THEN
      level := least(level, ask.most);
      resets_at := CASE WHEN window_ IS NULL THEN resets_at ELSE now_ END;
      window_ := NULL;
    END IF;
  ELSIF window_ IS NULL THEN
    others := terms.plenty * {schema}.chunk_of(ask.capacity, terms.chunk);
    level := CASE WHEN now_ - resets_at <= ask.window
      THEN least(level + ask.back - ask.debt, least(ask.capacity, ask.most)) - least((now_ - resets_at) * ask.rate, others)
      ELSE least(ask.capacity, ask.most) - others END;
    window_ := ask.window; resets_at := ends;
  ELSE
    lag := (ends - resets_at) / window_;
    window_ := ask.window;
    IF lag >= -terms.half THEN
      level := least(CASE WHEN lag > terms.half THEN ask.capacity ELSE level END + ask.back - ask.debt, ask.capacity, ask.most);
      resets_at := ends;
    END IF;
  END IF;

  level := CASE WHEN now_ < held_until THEN least(level, 0) ELSE level END;
  IF ask.want > 0 AND level + terms.no_room >= greatest(ask.least, terms.no_room) THEN
    granted := least(ask.want, level, greatest(ask.least, level / terms.least_share));
  END IF;
  IF ask.want = floor(ask.want) THEN
    granted := floor(granted + terms.no_room);
  END IF;
  level := level - granted;
  IF granted = 0 THEN
    due := greatest(0, held_until - now_);
    due := CASE WHEN window_ IS NULL THEN due + greatest(0, ask.least - level) / rate ELSE greatest(due, resets_at - now_) END;
  END IF;
  is_news := NOT ask.ours AND (is_news OR capacity_before <> capacity OR window_before IS DISTINCT FROM window_
    OR was_plenty <> (level >= terms.plenty * {schema}.chunk_of(capacity, terms.chunk)));
  RETURN ROW(
    json_build_array(1, json_build_array(
      ask.key, terms.boot, now_, level, capacity, rate, window_, resets_at, held_until))::text,
    terms.kept_for + greatest(0, resets_at - now_, held_until - now_), is_news, ARRAY[granted, level, due, 0]);
END $$;

-- remaining of clocks.py.
CREATE FUNCTION {schema}.remaining(until {schema}.deadline, terms {schema}.lease_terms, most float8) RETURNS float8
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  longest float8 := least(until.duration, most);
  written float8 := until.wall; ends float8 := until.wall_until; now_ float8 := terms.wall;
BEGIN
  IF terms.boot <> '' AND until.boot = terms.boot THEN
    written := until.boottime; ends := until.boottime_until; now_ := terms.boottime;
  END IF;
  RETURN CASE WHEN longest < 0 THEN 0 WHEN now_ >= written THEN least(greatest(0, ends - now_), longest) ELSE longest END;
END $$;

CREATE FUNCTION {schema}.spend(body text, ask {schema}.budget_ask, terms {schema}.lease_terms)
RETURNS {schema}.settled LANGUAGE plpgsql AS $$
DECLARE
  row_ jsonb;
  until {schema}.deadline;
  used float8; reserved float8; given_back float8; left_ float8 := 0;
  granted float8 := 0; due float8 := 0; ends_in float8;
BEGIN
  IF body <> '' THEN
    BEGIN
      row_ := body::jsonb->1;
      used := greatest(0, trunc((row_->>1)::float8));
      reserved := least(used, greatest(0, trunc((row_->>2)::float8)));
      until := ROW(row_->>3, row_->>4, row_->>5, row_->>6, row_->>7, row_->>8);
      IF body::jsonb->0 = '1' AND used + abs(until.boottime) + abs(until.boottime_until) + abs(until.wall)
          + abs(until.wall_until) + abs(until.duration) < 'infinity' THEN
        left_ := {schema}.remaining(until, terms, ask.period);
      END IF;
    EXCEPTION WHEN OTHERS THEN
      left_ := 0;
    END;
  END IF;
  IF left_ <= 0 THEN
    used := 0; reserved := 0; left_ := ask.period; until := NULL;
  END IF;
  IF until.boot IS DISTINCT FROM terms.boot OR terms.boot = '' THEN
    until := ROW(terms.boot, terms.boottime, terms.boottime + left_, terms.wall, terms.wall + left_, left_);
  END IF;

  reserved := reserved + ask.reserved;
  given_back := least(ask.settled, reserved);
  used := greatest(0, used + ask.reserved + ask.spent - given_back);
  granted := CASE WHEN used < ask.capacity THEN ask.want ELSE 0 END;
  used := used + granted;
  reserved := reserved - given_back + granted;
  ends_in := {schema}.remaining(until, terms, ask.period);
  IF ask.want <> 0 AND granted = 0 THEN
    due := CASE WHEN used - reserved >= ask.capacity THEN ends_in ELSE least(ends_in, terms.settles_soon) END;
  END IF;
  RETURN ROW(
    json_build_array(1, json_build_array(ask.key, used, reserved, until.boot, until.boottime, until.boottime_until,
      until.wall, until.wall_until, until.duration))::text,
    terms.kept_for + ends_in, false, ARRAY[granted, ask.capacity - used, due, ends_in]);
END $$;

CREATE FUNCTION {schema}.lease_slots(body text, ask {schema}.slot_ask, terms {schema}.lease_terms)
RETURNS {schema}.settled LANGUAGE plpgsql AS $$
DECLARE
  leased {schema}.slot[]; mine {schema}.slot;
  held_by_others float8; parts float8; some_wait boolean; lacking float8; ahead float8;
  part float8; due float8; since float8; left_ float8; free float8; idle float8; own float8; held float8;
  is_over boolean; others_wait boolean; waits float8; tells boolean; columns jsonb;
BEGIN
  IF body <> '' THEN
    BEGIN
      leased := ARRAY(
        SELECT ROW(s.value->>1, greatest(0, trunc((s.value->>3)::float8)), s.value->>5, (s.value->>5)::float8 > 0
            AND (s.value->>4)::float8 - terms.ticks >= terms.slot_seconds - terms.waiting_seconds, s.value)::{schema}.slot
        FROM jsonb_array_elements(body::jsonb->1) WITH ORDINALITY AS s
        WHERE body::jsonb->0 = '1' AND s.value->>2 = terms.boot AND (s.value->>4)::float8 > terms.ticks
          AND (s.value->>4)::float8 <= terms.ticks + terms.slot_seconds + terms.clock_error
        ORDER BY s.ordinality);
    EXCEPTION WHEN OTHERS THEN
      leased := NULL;
    END;
  END IF;
  SELECT * INTO mine FROM unnest(leased) AS s WHERE s.holder = ask.holder LIMIT 1;
  SELECT coalesce(sum(s.held), 0), 1 + count(*) FILTER (WHERE s.held > 0 OR s.waiting), coalesce(bool_or(s.waiting), false),
      coalesce(jsonb_agg(s.columns), '[]')
    INTO held_by_others, parts, some_wait, columns FROM unnest(leased) AS s WHERE s.holder <> ask.holder;

  part := floor(ask.slots / parts);
  due := greatest(1, part);
  since := CASE WHEN mine.waits > 0 AND ask.keeps >= mine.held THEN mine.waits ELSE terms.ticks END;
  SELECT coalesce(sum(due - s.held), 0), coalesce(sum(due - s.held) FILTER (WHERE s.waits < since), 0)
    INTO lacking, ahead FROM unnest(leased) AS s WHERE s.holder <> ask.holder AND s.waiting AND s.held < due;
  left_ := ask.slots - held_by_others;
  free := left_ - ask.keeps;
  idle := CASE WHEN some_wait THEN 0 ELSE greatest(0, left_ - ceil(ask.slots * terms.left_free)) END;
  own := greatest(0, least(least(ask.least, due) - ask.keeps, free - ahead));
  held := ask.keeps + own + greatest(0, least(
    greatest(ask.least, least(ask.want, idle)) - ask.keeps - own, free - own - lacking));
  is_over := held > left_;
  others_wait := some_wait OR is_over;
  waits := CASE WHEN held >= ask.least THEN 0 WHEN held > ask.keeps THEN terms.ticks ELSE since END;

  tells := coalesce(mine.waiting, false) <> (waits > 0);
  IF held > coalesce(mine.held, 0) THEN
    tells := tells OR held + held_by_others > ask.slots;
  ELSE
    tells := tells OR (held < coalesce(mine.held, 0) AND others_wait);
  END IF;
  IF held > 0 OR waits > 0 THEN
    columns := columns || jsonb_build_array(jsonb_build_array(
      ask.key, ask.holder, terms.boot, held, terms.ticks + terms.slot_seconds, waits));
  END IF;
  RETURN ROW(json_build_array(1, jsonb_build_array(ask.key) || columns)::text, terms.kept_for, tells,
    ARRAY[held, idle, CASE WHEN lacking > 0 OR is_over THEN part ELSE ask.slots END, others_wait::int::float8]);
END $$;

-- Settles accounts with limits, budgets and bulkheads, in this order, and holds their rows meanwhile. An account with a row
-- of a later version of the router is left alone, and answered by null; all are where another epoch has begun.
CREATE FUNCTION {schema}.lease(space text, asked jsonb) RETURNS jsonb LANGUAGE plpgsql SET extra_float_digits = 1 AS $$
DECLARE
  terms {schema}.lease_terms := jsonb_populate_record(NULL::{schema}.lease_terms, asked->'terms');
  now_ float8;
  name text; ask jsonb; body text;
  settled {schema}.settled;
  tells boolean := false;
  grants jsonb := '[]';
BEGIN
  -- In one order, also where a row has to be made first: no two of these wait for each other.
  FOR name IN SELECT DISTINCT a.value->>'id' AS id FROM jsonb_array_elements(asked->'asks') AS a ORDER BY id LOOP
    PERFORM FROM {schema}.shared_row r WHERE r.namespace = space AND r.id = name FOR UPDATE;
    IF NOT FOUND THEN
      INSERT INTO {schema}.shared_row VALUES (space, name, 0, '', NULL) ON CONFLICT DO NOTHING;
      PERFORM FROM {schema}.shared_row r WHERE r.namespace = space AND r.id = name FOR UPDATE;
    END IF;
  END LOOP;
  now_ := extract(epoch FROM clock_timestamp());
  PERFORM FROM {schema}.head h WHERE h.namespace = space AND h.epoch = asked->>'epoch'
    AND h.timeline = substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
  IF NOT FOUND THEN
    RETURN jsonb_build_object('at', now_, 'grants', NULL);
  END IF;
  -- The rows are held until the write is on disk. What a crash loses of limits and slots is told anew within a second; money
  -- is not.
  IF NOT jsonb_path_exists(asked, '$.asks[*].period') THEN
    PERFORM set_config('synchronous_commit', 'off', true);
  END IF;

  FOR ask IN SELECT a.value FROM jsonb_array_elements(asked->'asks') WITH ORDINALITY AS a ORDER BY a.ordinality LOOP
    name := ask->>'id';
    SELECT r.body INTO body FROM {schema}.shared_row r WHERE r.namespace = space AND r.id = name;
    IF body ~ '^\s*\[\s*([2-9]|[1-9][0-9]+)\s*,' THEN
      grants := grants || jsonb_build_array(NULL);
      CONTINUE;
    END IF;
    IF ask ? 'period' THEN
      settled := {schema}.spend(body, jsonb_populate_record(NULL::{schema}.budget_ask, ask), terms);
    ELSIF ask ? 'holder' THEN
      settled := {schema}.lease_slots(body, jsonb_populate_record(NULL::{schema}.slot_ask, ask), terms);
    ELSE
      settled := {schema}.lease_tokens(body, jsonb_populate_record(NULL::{schema}.bucket_ask, ask), terms);
    END IF;
    tells := tells OR settled.tells;
    grants := grants || jsonb_build_array(settled.granted);
    UPDATE {schema}.shared_row r
      SET body = settled.body, revision = nextval('{schema}.revision'), expires = now_ + settled.keep
      WHERE r.namespace = space AND r.id = name;
  END LOOP;
  IF tells THEN
    UPDATE {schema}.head h SET writes = nextval('{schema}.revision'), news = h.news + 1 WHERE h.namespace = space;
  END IF;
  RETURN jsonb_build_object('at', now_, 'grants', grants);
END $$;
