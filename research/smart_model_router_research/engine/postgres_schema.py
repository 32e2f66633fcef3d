"""The schema of runs on PostgreSQL, and its numbered migrations. `run_tables` reads and writes the tables."""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA = "smr_runs"
"""The schema that all tables of ours are in: others of the database have none of ours."""


@dataclass(frozen=True, slots=True)
class ServerMigration:
    """One step of a schema, in every release from `since` on. `statements` are one text, without parameters."""

    name: str
    since: str
    statements: str


_RUNS = """
CREATE TABLE runs (
  id text PRIMARY KEY, workflow text NOT NULL, workflow_hash text NOT NULL, step_hashes text NOT NULL,
  inputs text NOT NULL, engine text NOT NULL, origin text NOT NULL, state text NOT NULL,
  outputs text NOT NULL DEFAULT '{}', reason text NOT NULL DEFAULT '', deadline text, forked_from text,
  created_at double precision NOT NULL, changed_at double precision NOT NULL,  -- seconds since 1970
  size bigint NOT NULL DEFAULT 0,                                              -- characters of inputs and results
  owner text NOT NULL DEFAULT '', fence bigint NOT NULL DEFAULT 0, lease text, holder text,
  cancel_asked integer NOT NULL DEFAULT 0
);
CREATE INDEX runs_changed ON runs (changed_at);
CREATE INDEX runs_open ON runs (changed_at) WHERE state IN ('running', 'paused');
CREATE TABLE run_steps (
  run text NOT NULL REFERENCES runs ON DELETE CASCADE, step text NOT NULL, input_hash text NOT NULL,
  number integer,          -- its place among the settled
  size bigint NOT NULL,    -- its part of the run's
  result text NOT NULL,
  PRIMARY KEY (run, step)
);
CREATE TABLE events (
  run text NOT NULL REFERENCES runs ON DELETE CASCADE, seq integer NOT NULL, kind text NOT NULL,
  at double precision NOT NULL, step text NOT NULL, data text NOT NULL,
  PRIMARY KEY (run, seq)
);
CREATE TABLE approvals (
  run text NOT NULL REFERENCES runs ON DELETE CASCADE, step text NOT NULL, message text NOT NULL,
  asked_at double precision NOT NULL, until text, decision text,
  PRIMARY KEY (run, step)
);
CREATE TABLE ledger (
  run text NOT NULL REFERENCES runs ON DELETE CASCADE, step text NOT NULL, tokens double precision NOT NULL,
  usd double precision NOT NULL, seconds double precision NOT NULL, calls double precision NOT NULL,
  PRIMARY KEY (run, step)
);
CREATE TABLE checkpoints (
  run text NOT NULL REFERENCES runs ON DELETE CASCADE, number integer NOT NULL, step text NOT NULL,
  at double precision NOT NULL,
  PRIMARY KEY (run, number)
);
CREATE TABLE documents (
  id text PRIMARY KEY,     -- the SHA-256 of the content in hex
  content bytea NOT NULL
)
"""
SERVER_MIGRATIONS = (ServerMigration("runs", "0.1.0", _RUNS),)
