"""Kept responses in a file: responses.db, which every process of the host reads and writes. Its owner's alone."""

from __future__ import annotations

import secrets
import zlib
from typing import TYPE_CHECKING

from smart_model_router.domain.shared_state import LONGEST_CHAIN, KeptResponse
from smart_model_router_stats.memory import SECRET_BYTES
from smart_model_router_stats.open_db import Migration, filesystem_of
from smart_model_router_stats.sqlite_file import SqliteFile

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from pathlib import Path

_TABLES = (
    """
CREATE TABLE response (
  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, parent TEXT, until REAL NOT NULL,
  size INTEGER NOT NULL, input BLOB NOT NULL, answer BLOB NOT NULL
)
""",
    "CREATE INDEX response_until ON response (until, number)",
    "CREATE TABLE total (one INTEGER PRIMARY KEY CHECK (one = 1), size INTEGER NOT NULL, secret BLOB NOT NULL)",
    "CREATE TRIGGER response_added AFTER INSERT ON response BEGIN UPDATE total SET size = size + new.size; END",
    "CREATE TRIGGER response_gone AFTER DELETE ON response BEGIN UPDATE total SET size = size - old.size; END",
)
_CHAIN = """
WITH RECURSIVE chain (number, parent) AS (
  SELECT number, parent FROM response WHERE id = :id AND owner = :owner
  UNION SELECT r.number, r.parent FROM chain JOIN response r ON r.id = chain.parent AND r.owner = :owner
)
"""
_AT_ONCE = 16
"""The number of the oldest ones that are dropped before the size is measured again."""


def _first(connection: sqlite3.Connection) -> None:
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute("INSERT INTO total VALUES (1, 0, ?)", (secrets.token_bytes(SECRET_BYTES),))


RESPONSE_MIGRATIONS = (Migration("kept responses", "0.1.0", _first),)


def responses_path(stats: Path) -> Path:
    """The file of the kept responses that belongs to a statistics file: `responses.db` beside `stats.db`."""
    stats = stats.expanduser().absolute()
    return stats.with_name("responses.db" if stats.name == "stats.db" else f"{stats.stem}-responses.db")


def secret_of(connection: sqlite3.Connection) -> bytes:
    """The secret under which the ids of this file's answers are made."""
    return bytes(connection.execute("SELECT secret FROM total").fetchone()[0])


def add(connection: sqlite3.Connection, rows: Sequence[KeptResponse], now: float, ttl: float, most: int) -> None:
    """Add these; what they go on from is kept as long as they are. What is too old, or too much, goes."""
    for row in rows:
        packed = (zlib.compress(row.input, 1), zlib.compress(row.answer, 1))
        size = sum(map(len, packed)) + len(row.id)
        if size > most:
            continue
        connection.execute(
            "INSERT OR IGNORE INTO response (id, owner, parent, until, size, input, answer)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (row.id, row.owner, row.parent, now + ttl, size, *packed),
        )
        extend = f"{_CHAIN} UPDATE response SET until = :until WHERE number IN (SELECT number FROM chain)"  # noqa: S608 - a constant
        connection.execute(extend, {"id": row.id, "owner": row.owner, "until": now + ttl})
    # The lifetime may have been made shorter, or the wall clock have gone back.
    connection.execute("UPDATE response SET until = :most WHERE until > :most", {"most": now + ttl})
    connection.execute("DELETE FROM response WHERE until <= ?", (now,))
    drop = "DELETE FROM response WHERE number IN (SELECT number FROM response ORDER BY until, number LIMIT ?)"
    while connection.execute("SELECT size > ? FROM total", (most,)).fetchone()[0]:
        connection.execute(drop, (_AT_ONCE if _is_far_beyond(connection, most) else 1,))


def _is_far_beyond(connection: sqlite3.Connection, most: int) -> bool:
    """True when the limit became much smaller: dropping rows one by one would take long."""
    return bool(connection.execute("SELECT size > 2 * ? FROM total", (most,)).fetchone()[0])


def chain(
    connection: sqlite3.Connection, response: str, owner: str, now: float, most: int = -1
) -> tuple[KeptResponse, ...]:
    """An answer and those it goes on from, the newest first, up to LONGEST_CHAIN; () when it is not there.

    No more than `most` of them are read, all for -1.
    """
    rows = connection.execute(
        f"{_CHAIN} SELECT r.id, r.owner, r.parent, r.input, r.answer FROM chain JOIN response r USING (number)"  # noqa: S608 - a constant
        " WHERE r.until > :now ORDER BY r.number DESC LIMIT :most",
        {"id": response, "owner": owner, "now": now, "most": most},
    )
    found: list[KeptResponse] = []
    size = 0
    for r in rows:  # one at a time: what is small when it is compressed may be very large
        found.append(
            KeptResponse(id=r[0], owner=r[1], parent=r[2], input=zlib.decompress(r[3]), answer=zlib.decompress(r[4]))
        )
        size += found[-1].size
        if size > LONGEST_CHAIN:
            break
    return tuple(found) if found and found[0].id == response else ()


def remove(connection: sqlite3.Connection, response: str, owner: str) -> bool:
    """Forget an answer. False when it is not there."""
    return connection.execute("DELETE FROM response WHERE id = ? AND owner = ?", (response, owner)).rowcount > 0


class SqliteResponses:
    """One process's way to the file (ports.ResponseStore). `wall` gives epoch seconds.

    An answer is kept for `ttl` seconds; beyond `most` bytes (compressed) the oldest go.
    """

    in_memory = False

    def __init__(
        self,
        path: Path,
        *,
        ttl: float,
        most: int,
        wall: Callable[[], float],
        filesystem: Callable[[Path], str] = filesystem_of,
    ) -> None:
        # What was deleted is to be gone from the file, too.
        self._file = SqliteFile(path, RESPONSE_MIGRATIONS, filesystem=filesystem, pragmas=("secure_delete = ON",))
        self._ttl = ttl
        self._most = most
        self._wall = wall

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self._file.path

    async def secret(self) -> bytes:
        """The secret under which the ids of this file's answers are made."""
        return await self._file.ask(secret_of)

    async def add(self, rows: Sequence[KeptResponse]) -> None:
        """Keep these."""
        now = self._wall()
        await self._file.write(lambda connection: add(connection, rows, now, self._ttl, self._most))

    async def chain(self, response: str, owner: str, generations: int | None = None) -> tuple[KeptResponse, ...]:
        """An answer and those it goes on from, the newest first; () when it is not there."""
        now, most = self._wall(), -1 if generations is None else generations
        return await self._file.ask(lambda connection: chain(connection, response, owner, now, most))

    async def remove(self, response: str, owner: str) -> bool:
        """Forget an answer. False when it is not there."""
        removed = await self._file.write(lambda connection: remove(connection, response, owner))
        if removed:
            await self._file.empty_log()
        return removed

    async def aclose(self) -> None:
        """Close the file."""
        await self._file.aclose()
