"""Gives a batch to the file: its rows to the connection's own tables, then one script that adds them up there."""

from __future__ import annotations

import sqlite3
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from smart_model_router_stats.statements import GIVE_BATCH, TABLES, WRITE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from smart_model_router_stats.delta import Batch
    from smart_model_router_stats.opening import GuardedConnection

_AT_ONCE = (128, 32, 8, 1)
"""Rows of one statement. One for each row would give the interpreter away, and wait for it, as often."""


def write(connection: GuardedConnection, batch: Batch, header: Sequence[Any]) -> None:
    """Add a batch to the file, all of it or nothing; one that is there already changes nothing.

    `header` is what GIVE_BATCH takes. An error leaves no transaction open. Raises sqlite3.Error.
    """
    for table in TABLES:
        connection.execute(f"DELETE FROM temp.{table}")  # noqa: S608 - a constant of this package
        _give(connection, table, batch.rows[table])
    connection.execute(GIVE_BATCH, header)
    try:
        connection.executescript(WRITE)
    except sqlite3.Error:
        connection.rollback()
        raise


def _give(connection: GuardedConnection, table: str, rows: Sequence[Sequence[Any]]) -> None:
    begin = 0
    for size in _AT_ONCE:
        while len(rows) - begin >= size:
            values = list(chain.from_iterable(rows[begin : begin + size]))
            try:
                connection.execute(_insert(table, size), values)
            except UnicodeEncodeError:
                connection.execute(_insert(table, size), list(_speakable(values)))
            begin += size


@lru_cache(maxsize=len(TABLES) * len(_AT_ONCE))
def _insert(table: str, rows: int) -> str:
    columns = TABLES[table]
    row = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO temp.{table} ({', '.join(columns)}) VALUES {', '.join([row] * rows)}"  # noqa: S608 - as above


def _speakable(values: Iterable[Any]) -> Iterable[Any]:
    """Half a character (a lone surrogate) can be in a name somebody chose, and in no file."""
    return (value.encode("utf-8", "replace").decode() if isinstance(value, str) else value for value in values)
