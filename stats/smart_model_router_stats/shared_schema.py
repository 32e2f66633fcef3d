"""The tables of state.db, and how their rows are read: whatever is in them, a row or nothing comes out."""

# ruff: noqa: S608 - made of the constants of this file

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from smart_model_router.domain.shared_state import (
    BreakerRow,
    BucketRow,
    BudgetRow,
    CallRow,
    MakerRow,
    MemberRow,
    OperatorRow,
    RestRow,
    SlotRow,
)
from smart_model_router_stats.memory import CALLS_KEPT, MAKER_SECONDS, MAKERS_KEPT
from smart_model_router_stats.open_db import Migration
from smart_model_router_stats.shared_rows import (
    breaker_columns,
    breaker_of,
    bucket_columns,
    bucket_of,
    budget_columns,
    budget_of,
    call_columns,
    call_of,
    maker_of,
    member_columns,
    member_of,
    rest_columns,
    rest_of,
    slots_columns,
    slots_of,
    word_columns,
    word_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from smart_model_router_stats.transactions import Key

_DEADLINE = """
  boot TEXT NOT NULL, boottime REAL NOT NULL, boottime_until REAL NOT NULL,
  wall REAL NOT NULL, wall_until REAL NOT NULL, duration REAL NOT NULL,
"""
_TABLES = f"""
CREATE TABLE breaker (
  owner TEXT, kind TEXT, provider TEXT NOT NULL, state TEXT NOT NULL, {_DEADLINE}
  step INTEGER NOT NULL, reason TEXT NOT NULL, holder TEXT NOT NULL, gen INTEGER NOT NULL, PRIMARY KEY (owner, kind)
) WITHOUT ROWID;
CREATE TABLE rest (
  owner TEXT, reason TEXT, {_DEADLINE}
  cause TEXT, hinted INTEGER NOT NULL, step INTEGER NOT NULL, over INTEGER NOT NULL, gen INTEGER NOT NULL,
  PRIMARY KEY (owner, reason)
) WITHOUT ROWID;
CREATE TABLE bucket (
  key TEXT PRIMARY KEY, boot TEXT NOT NULL, at REAL NOT NULL, level REAL NOT NULL, capacity REAL NOT NULL,
  rate REAL NOT NULL, window REAL, resets_at REAL NOT NULL, held_until REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE call (
  id INTEGER PRIMARY KEY, target TEXT NOT NULL, boot TEXT NOT NULL, boottime REAL NOT NULL, wall REAL NOT NULL,
  failure TEXT, stream INTEGER NOT NULL, seconds REAL NOT NULL, ttft_seconds REAL, completion_tokens INTEGER,
  anew INTEGER NOT NULL
);
CREATE INDEX call_target ON call (target, id);
CREATE TABLE version (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL);
INSERT INTO version VALUES (1, 0);
"""


def _first(connection: sqlite3.Connection) -> None:
    for statement in _TABLES.split(";"):
        connection.execute(statement)


_OPERATOR = """
CREATE TABLE operator (
  target TEXT PRIMARY KEY, word TEXT NOT NULL, spoken_by TEXT NOT NULL, why TEXT NOT NULL,
  boot TEXT NOT NULL, boottime REAL NOT NULL, wall REAL NOT NULL, gen INTEGER NOT NULL
) WITHOUT ROWID
"""


def _second(connection: sqlite3.Connection) -> None:
    connection.execute(_OPERATOR)


_MAKERS = (
    """
CREATE TABLE maker (
  number INTEGER PRIMARY KEY AUTOINCREMENT, thing BLOB NOT NULL UNIQUE, target TEXT NOT NULL, owner TEXT NOT NULL,
  at REAL NOT NULL
)
""",
    "CREATE INDEX maker_at ON maker (at)",
)


def _third(connection: sqlite3.Connection) -> None:
    for statement in _MAKERS:
        connection.execute(statement)


_BUDGET = f"""
CREATE TABLE budget (
  key TEXT PRIMARY KEY, used INTEGER NOT NULL, reserved INTEGER NOT NULL, {_DEADLINE.strip().rstrip(",")}
) WITHOUT ROWID
"""


def _fourth(connection: sqlite3.Connection) -> None:
    connection.execute(_BUDGET)


_SLOTS = """
CREATE TABLE slots (
  key TEXT, holder TEXT, boot TEXT NOT NULL, held INTEGER NOT NULL, until REAL NOT NULL, waits REAL NOT NULL,
  PRIMARY KEY (key, holder)
) WITHOUT ROWID
"""


def _fifth(connection: sqlite3.Connection) -> None:
    connection.execute(_SLOTS)


_MEMBERS = """
CREATE TABLE member (
  holder TEXT PRIMARY KEY, machine TEXT NOT NULL, version TEXT NOT NULL, pid INTEGER NOT NULL,
  boot TEXT NOT NULL, boottime REAL NOT NULL, wall REAL NOT NULL
) WITHOUT ROWID
"""


def _sixth(connection: sqlite3.Connection) -> None:
    connection.execute(_MEMBERS)


STATE_MIGRATIONS = (
    Migration("breakers, rests, limits and recent calls", "0.1.0", _first),
    Migration("the operator's words", "0.1.0", _second),
    Migration("makers of things kept at providers", "0.1.0", _third),
    Migration("budgets of virtual keys", "0.1.0", _fourth),
    Migration("slots of bulkheads", "0.1.0", _fifth),
    Migration("the processes that share the state", "0.1.0", _sixth),
)

_FORGET_CALLS = """
DELETE FROM call WHERE target = :target
  AND id NOT IN (SELECT id FROM call WHERE target = :target ORDER BY id DESC LIMIT :kept)
  AND id IS NOT (SELECT max(id) FROM call WHERE target = :target AND failure IS NULL)
"""
_VERSION = "UPDATE version SET number = number + 1"


def state_path(stats: Path) -> Path:
    """The file of the shared state that belongs to a statistics file: `state.db` beside `stats.db`."""
    stats = stats.expanduser().absolute()
    return stats.with_name("state.db" if stats.name == "stats.db" else f"{stats.stem}-state.db")


class SqliteTables:
    """The rows of one open file, inside a transaction that the caller has begun."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def version(self) -> int:
        """Grows with everything that others are to hear."""
        (number,) = self._connection.execute("SELECT number FROM version").fetchone()
        return int(number)

    def breakers(self) -> Iterable[BreakerRow]:
        """All of them."""
        return [breaker_of(row) for row in self._connection.execute("SELECT * FROM breaker").fetchall()]

    def breaker(self, key: Key) -> BreakerRow | None:
        """One of them."""
        row = self._connection.execute("SELECT * FROM breaker WHERE owner = ? AND kind = ?", key).fetchone()
        return None if row is None else breaker_of(row)

    def put_breaker(self, row: BreakerRow) -> None:
        """Add or replace it."""
        self._put("breaker", breaker_columns(row))
        self._connection.execute(_VERSION)

    def rests(self) -> Iterable[RestRow]:
        """All of them."""
        rows = self._connection.execute("SELECT * FROM rest").fetchall()
        return [row for row in map(rest_of, rows) if row is not None]

    def rest(self, key: Key) -> RestRow | None:
        """One of them."""
        row = self._connection.execute("SELECT * FROM rest WHERE owner = ? AND reason = ?", key).fetchone()
        return None if row is None else rest_of(row)

    def put_rest(self, row: RestRow) -> None:
        """Add or replace it."""
        self._put("rest", rest_columns(row))
        self._connection.execute(_VERSION)

    def bucket(self, key: str) -> BucketRow | None:
        """One limit."""
        row = self._connection.execute("SELECT * FROM bucket WHERE key = ?", (key,)).fetchone()
        return None if row is None else bucket_of(row)

    def buckets(self) -> Iterable[BucketRow]:
        """All limits."""
        rows = self._connection.execute("SELECT * FROM bucket").fetchall()
        return [row for row in map(bucket_of, rows) if row is not None]

    def put_bucket(self, row: BucketRow, *, news: bool) -> None:
        """Add or replace it."""
        self._put("bucket", bucket_columns(row))
        if news:
            self._connection.execute(_VERSION)

    def budget(self, key: str) -> BudgetRow | None:
        """One budget."""
        row = self._connection.execute("SELECT * FROM budget WHERE key = ?", (key,)).fetchone()
        return None if row is None else budget_of(row)

    def budgets(self) -> Iterable[BudgetRow]:
        """All budgets."""
        return [budget_of(row) for row in self._connection.execute("SELECT * FROM budget").fetchall()]

    def put_budget(self, row: BudgetRow) -> None:
        """Add or replace it."""
        self._put("budget", budget_columns(row))

    def slots(self, key: str) -> Iterable[SlotRow]:
        """The slots of a bulkhead that are leased or waited for."""
        return [
            slots_of(row) for row in self._connection.execute("SELECT * FROM slots WHERE key = ?", (key,)).fetchall()
        ]

    def all_slots(self) -> Iterable[SlotRow]:
        """The slots of all bulkheads."""
        return [slots_of(row) for row in self._connection.execute("SELECT * FROM slots").fetchall()]

    def put_slots(self, row: SlotRow, *, news: bool) -> None:
        """Add or replace it."""
        self._put("slots", slots_columns(row))
        if news:
            self._connection.execute(_VERSION)

    def drop_slots(self, row: SlotRow, *, news: bool) -> None:
        """Remove it."""
        self._connection.execute("DELETE FROM slots WHERE key = ? AND holder = ?", (row.key, row.holder))
        if news:
            self._connection.execute(_VERSION)

    def calls(self) -> Iterable[CallRow]:
        """Those kept, oldest first."""
        rows = self._connection.execute("SELECT * FROM call ORDER BY id").fetchall()
        return [call_of(row[1:]) for row in rows]

    def add_calls(self, rows: Sequence[CallRow]) -> None:
        """Add them; of each target the newest 50 are kept, and its newest success."""
        self._connection.executemany(
            "INSERT INTO call VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [call_columns(row) for row in rows]
        )
        for target in {row.target for row in rows}:
            self._connection.execute(_FORGET_CALLS, {"target": target, "kept": CALLS_KEPT})

    def words(self) -> Iterable[OperatorRow]:
        """The operator's newest word on each target."""
        return words_in(self._connection)

    def word(self, target: str) -> OperatorRow | None:
        """That on one of them."""
        row = self._connection.execute("SELECT * FROM operator WHERE target = ?", (target,)).fetchone()
        return None if row is None else word_of(row)

    def put_word(self, row: OperatorRow) -> None:
        """Add or replace it."""
        self._put("operator", word_columns(row))
        self._connection.execute(_VERSION)

    def makers(self, things: Sequence[bytes]) -> Iterable[MakerRow]:
        """The makers of these things, as far as they are known."""
        ask = "SELECT thing, target, owner, at FROM maker WHERE thing = ?"
        found = (self._connection.execute(ask, (thing,)).fetchone() for thing in things)
        return [maker_of(row) for row in found if row]

    def add_makers(self, rows: Sequence[MakerRow]) -> None:
        """Add or replace them; the old ones go."""
        self._connection.executemany(
            "INSERT OR REPLACE INTO maker (thing, target, owner, at) VALUES (?, ?, ?, ?)",
            [(row.thing, row.target, row.owner, row.at) for row in rows],
        )
        oldest = max(row.at for row in rows) - MAKER_SECONDS
        self._connection.execute("DELETE FROM maker WHERE at < ?", (oldest,))
        self._connection.execute(
            "DELETE FROM maker WHERE number <= (SELECT max(number) FROM maker) - ?", (MAKERS_KEPT,)
        )

    def members(self) -> Iterable[MemberRow]:
        """All processes that wrote a row of theirs."""
        return members_in(self._connection)

    def put_member(self, row: MemberRow, *, news: bool) -> None:
        """Add or replace it."""
        self._put("member", member_columns(row))
        if news:
            self._connection.execute(_VERSION)

    def drop_member(self, row: MemberRow) -> None:
        """Remove it."""
        self._connection.execute("DELETE FROM member WHERE holder = ?", (row.holder,))

    def _put(self, table: str, values: tuple[Any, ...]) -> None:
        places = ", ".join("?" * len(values))
        self._connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({places})", values)


def words_in(connection: sqlite3.Connection) -> list[OperatorRow]:
    """The operator's newest word on each target, as far as it is one that is known here; none in an older file."""
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'operator'").fetchone() is None:
        return []
    rows = connection.execute("SELECT * FROM operator").fetchall()
    return [row for row in map(word_of, rows) if row is not None]


def members_in(connection: sqlite3.Connection) -> list[MemberRow]:
    """All processes that wrote a row of theirs; none in an older file."""
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'member'").fetchone() is None:
        return []
    return [member_of(row) for row in connection.execute("SELECT * FROM member").fetchall()]
