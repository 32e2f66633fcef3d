"""The schema of runs.db, in numbered migrations."""

from __future__ import annotations

import sqlite3

from smart_model_router_stats.open_db import Migration

_TABLES = (
    """
CREATE TABLE runs (
  id TEXT PRIMARY KEY, workflow TEXT NOT NULL, workflow_hash TEXT NOT NULL, step_hashes TEXT NOT NULL,
  inputs TEXT NOT NULL, engine TEXT NOT NULL, origin TEXT NOT NULL, state TEXT NOT NULL,
  outputs TEXT NOT NULL DEFAULT '{}', reason TEXT NOT NULL DEFAULT '', deadline TEXT, forked_from TEXT,
  created_at REAL NOT NULL, changed_at REAL NOT NULL,  -- seconds since 1970
  size INTEGER NOT NULL DEFAULT 0,                     -- characters of inputs and results
  owner TEXT NOT NULL DEFAULT '', fence INTEGER NOT NULL DEFAULT 0, lease TEXT, holder TEXT,
  cancel_asked INTEGER NOT NULL DEFAULT 0
)
""",
    "CREATE INDEX runs_changed ON runs (changed_at)",
    """
CREATE TABLE run_steps (
  run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, step TEXT NOT NULL, input_hash TEXT NOT NULL,
  number INTEGER,              -- its place among the settled
  size INTEGER NOT NULL,       -- its part of the run's
  result TEXT NOT NULL,
  PRIMARY KEY (run, step)
)
""",
    """
CREATE TABLE events (
  run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, seq INTEGER NOT NULL, kind TEXT NOT NULL, at REAL NOT NULL,
  step TEXT NOT NULL, data TEXT NOT NULL,
  PRIMARY KEY (run, seq)
)
""",
    """
CREATE TABLE approvals (
  run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, step TEXT NOT NULL, message TEXT NOT NULL,
  asked_at REAL NOT NULL, until TEXT, decision TEXT,
  PRIMARY KEY (run, step)
)
""",
    """
CREATE TABLE ledger (
  run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, step TEXT NOT NULL, tokens REAL NOT NULL, usd REAL NOT NULL,
  seconds REAL NOT NULL, calls REAL NOT NULL,
  PRIMARY KEY (run, step)
)
""",
    """
CREATE TABLE checkpoints (
  run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, number INTEGER NOT NULL, step TEXT NOT NULL, at REAL NOT NULL,
  PRIMARY KEY (run, number)
)
""",
)
_GRAPHS = (
    """
CREATE TABLE graph_threads (
  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
  changed_at REAL NOT NULL     -- seconds since 1970
)
""",
    "CREATE INDEX graph_threads_changed ON graph_threads (changed_at)",
    """
CREATE TABLE graph_values (
  number INTEGER PRIMARY KEY, thread INTEGER NOT NULL REFERENCES graph_threads ON DELETE CASCADE,
  digest BLOB NOT NULL,        -- SHA-256 of type and content: an equal value is kept once in a thread
  type TEXT NOT NULL, content BLOB NOT NULL,
  UNIQUE (thread, digest)
)
""",
    """
CREATE TABLE graph_checkpoints (
  thread INTEGER NOT NULL REFERENCES graph_threads ON DELETE CASCADE, space TEXT NOT NULL, id TEXT NOT NULL,
  parent TEXT, run TEXT,
  format INTEGER NOT NULL,     -- `v` of LangGraph
  channels TEXT NOT NULL,      -- JSON: the version of each channel, and the number of its value or null
  deltas TEXT NOT NULL,        -- JSON: names of channels whose value begins at an earlier checkpoint
  body_type TEXT NOT NULL, body BLOB NOT NULL, metadata_type TEXT NOT NULL, metadata BLOB NOT NULL,
  PRIMARY KEY (thread, space, id)
)
""",
    "CREATE INDEX graph_checkpoints_runs ON graph_checkpoints (run) WHERE run IS NOT NULL",
    """
CREATE TABLE graph_writes (
  thread INTEGER NOT NULL REFERENCES graph_threads ON DELETE CASCADE, space TEXT NOT NULL,
  checkpoint TEXT NOT NULL,    -- may not be there yet: both are written at once
  path TEXT NOT NULL, task TEXT NOT NULL, position INTEGER NOT NULL, channel TEXT NOT NULL, value INTEGER NOT NULL,
  PRIMARY KEY (thread, space, checkpoint, task, position)
) WITHOUT ROWID
""",
)


def _runs(connection: sqlite3.Connection) -> None:
    for statement in _TABLES:
        connection.execute(statement)


def create_graph_tables(connection: sqlite3.Connection) -> None:
    """Create the tables in which threads of graphs are kept."""
    for statement in _GRAPHS:
        connection.execute(statement)


RUN_MIGRATIONS = (Migration("runs", "0.1.0", _runs), Migration("graphs", "0.1.0", create_graph_tables))
