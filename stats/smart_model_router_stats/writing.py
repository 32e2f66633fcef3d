"""Gives a batch to the file: its rows to the connection's own tables, then one trigger that adds them up there."""

from __future__ import annotations

import sqlite3
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from smart_model_router_stats.statements import ADD_UP, GIVE_BATCH, TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from smart_model_router_stats.delta import Batch, Row
    from smart_model_router_stats.open_db import GuardedConnection

_AT_ONCE = (128, 32, 8, 1)
"""Rows of one statement. One for each row would give the interpreter away, and wait for it, as often."""


def write(connection: GuardedConnection, batch: Batch, header: Sequence[Any]) -> None:
    """Add a batch to the file, all of it or nothing; one that is there already changes nothing.

    `header` is what GIVE_BATCH takes. An error leaves no transaction open. Raises sqlite3.Error.
    """
    rows = {**batch.rows, **_told_once(batch.rows["new_request"])}
    connection.execute(GIVE_BATCH, header)
    for table in TABLES:
        _give(connection, table, rows[table])
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(ADD_UP)
        connection.execute("COMMIT")
    except sqlite3.Error:
        connection.rollback()
        raise


def _told_once(requests: Sequence[Row]) -> dict[str, list[Row]]:
    """The values that requests have in common, once: passing a value takes longer than all the rest."""
    places: dict[Row, int] = {}
    own = [(*row[:-1], places.setdefault(row[-1], len(places))) for row in requests]
    return {"same": [(place, *row) for row, place in places.items()], "new_request": own}


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
    """A lone surrogate can be in a name that a caller chose, and in no file."""
    return (value.encode("utf-8", "replace").decode() if isinstance(value, str) else value for value in values)
