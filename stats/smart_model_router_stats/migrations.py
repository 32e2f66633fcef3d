"""Numbered migrations: each runs once a file, in one transaction with its own record."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version

_RECORDS = """
CREATE TABLE IF NOT EXISTS migration (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  applied_at REAL NOT NULL,  -- seconds since the epoch
  needs TEXT NOT NULL        -- the first smart-model-router that has it: what a reader has to install at least
)
"""
_NOW = "(julianday('now') - 2440587.5) * 86400.0"


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of a schema, in every release from `since` on.

    `apply` executes plain statements: no transaction of its own, no executescript.
    """

    name: str
    since: str
    apply: Callable[[sqlite3.Connection], None]


class NewerSchemaError(Exception):
    """The file was written by a newer smart-model-router; the message says which one to install."""


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    """Bring the file to the newest schema. Several processes may do so at once: the file's lock orders them.

    The connection must be in autocommit mode. Raises NewerSchemaError and sqlite3.Error.
    """
    newest = len(migrations)
    while (number := check(connection, newest) + 1) <= newest:
        connection.execute("BEGIN IMMEDIATE")
        try:
            if check(connection, newest) + 1 == number:  # no other process was faster
                _apply(connection, number, migrations[number - 1])
            connection.execute("COMMIT")
        except BaseException:
            connection.rollback()
            raise


def check(connection: sqlite3.Connection, newest: int) -> int:
    """The number of the file's newest migration, 0 for an empty file. Raises NewerSchemaError beyond `newest`."""
    number: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if number > newest:
        raise NewerSchemaError(_advice(connection, number))
    return number


def _apply(connection: sqlite3.Connection, number: int, migration: Migration) -> None:
    connection.execute(_RECORDS)
    migration.apply(connection)
    connection.execute(
        f"INSERT INTO migration (number, name, applied_at, needs) VALUES (?, ?, {_NOW}, ?)",  # noqa: S608 - a constant
        (number, migration.name, migration.since),
    )
    connection.execute(f"PRAGMA user_version = {number}")


def _advice(connection: sqlite3.Connection, number: int) -> str:
    try:
        record = connection.execute("SELECT needs FROM migration ORDER BY number DESC LIMIT 1").fetchone()
    except sqlite3.DatabaseError:
        record = None
    ours = version("smart-model-router")
    if record is None or record[0] == ours:
        needed = f"a newer smart-model-router than this {ours}"
    else:
        needed = f"smart-model-router {record[0]} or newer"
    return f"its schema {number} is newer than this smart-model-router knows: install {needed}"
