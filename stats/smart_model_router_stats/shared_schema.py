"""The tables of state.db, and how their rows are read: whatever is in them, a row or nothing comes out."""

# ruff: noqa: S608 - made of the constants of this file

from __future__ import annotations

import math
import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast, get_args

from smart_model_router.domain.outcome import FailureClass, RestReason
from smart_model_router.domain.shared_state import (
    BreakerRow,
    BucketRow,
    BudgetRow,
    CallRow,
    ClockReading,
    Deadline,
    MakerRow,
    OperatorRow,
    OperatorWord,
    RestRow,
    SlotRow,
)
from smart_model_router_stats.memory import CALLS_KEPT, MAKER_SECONDS, MAKERS_KEPT
from smart_model_router_stats.open_db import Migration

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from smart_model_router.domain.shared_state import BreakerKind, SharedBreakerState
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


STATE_MIGRATIONS = (
    Migration("breakers, rests, limits and recent calls", "0.1.0", _first),
    Migration("the operator's words", "0.1.0", _second),
    Migration("makers of things kept at providers", "0.1.0", _third),
    Migration("budgets of virtual keys", "0.1.0", _fourth),
    Migration("slots of bulkheads", "0.1.0", _fifth),
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
        return [_breaker(row) for row in self._connection.execute("SELECT * FROM breaker").fetchall()]

    def breaker(self, key: Key) -> BreakerRow | None:
        """One of them."""
        row = self._connection.execute("SELECT * FROM breaker WHERE owner = ? AND kind = ?", key).fetchone()
        return None if row is None else _breaker(row)

    def put_breaker(self, row: BreakerRow) -> None:
        """Add or replace it."""
        values = (*row.key, row.provider, row.state, *_columns(row.until), row.step, row.reason, row.holder, row.gen)
        self._put("breaker", values)
        self._connection.execute(_VERSION)

    def rests(self) -> Iterable[RestRow]:
        """All of them."""
        rows = self._connection.execute("SELECT * FROM rest").fetchall()
        return [_rest(row) for row in rows if row[1] in _RESTS]

    def rest(self, key: Key) -> RestRow | None:
        """One of them."""
        row = self._connection.execute("SELECT * FROM rest WHERE owner = ? AND reason = ?", key).fetchone()
        return None if row is None else _rest(row)

    def put_rest(self, row: RestRow) -> None:
        """Add or replace it."""
        cause = None if row.cause is None else row.cause.value
        values = (*row.key, *_columns(row.until), cause, int(row.hinted), row.step, int(row.over), row.gen)
        self._put("rest", values)
        self._connection.execute(_VERSION)

    def bucket(self, key: str) -> BucketRow | None:
        """One limit."""
        row = self._connection.execute("SELECT * FROM bucket WHERE key = ?", (key,)).fetchone()
        return None if row is None else _bucket(row)

    def buckets(self) -> Iterable[BucketRow]:
        """All limits."""
        rows = self._connection.execute("SELECT * FROM bucket").fetchall()
        return [row for row in map(_bucket, rows) if row is not None]

    def put_bucket(self, row: BucketRow, *, news: bool) -> None:
        """Add or replace it."""
        values = (row.key, row.boot, row.at, row.level, row.capacity, row.rate)
        self._put("bucket", (*values, row.window, row.resets_at, row.held_until))
        if news:
            self._connection.execute(_VERSION)

    def budget(self, key: str) -> BudgetRow | None:
        """One budget."""
        row = self._connection.execute("SELECT * FROM budget WHERE key = ?", (key,)).fetchone()
        return None if row is None else _budget(row)

    def budgets(self) -> Iterable[BudgetRow]:
        """All budgets."""
        return [_budget(row) for row in self._connection.execute("SELECT * FROM budget").fetchall()]

    def put_budget(self, row: BudgetRow) -> None:
        """Add or replace it."""
        self._put("budget", (row.key, row.used, row.reserved, *_columns(row.until)))

    def slots(self) -> Iterable[SlotRow]:
        """All slots that are leased or waited for."""
        return [_slots(row) for row in self._connection.execute("SELECT * FROM slots").fetchall()]

    def put_slots(self, row: SlotRow, *, news: bool) -> None:
        """Add or replace it."""
        self._put("slots", (row.key, row.holder, row.boot, row.held, row.until, row.waits))
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
        return [_call(row) for row in rows]

    def add_calls(self, rows: Sequence[CallRow]) -> None:
        """Add them; of each target the newest 50 are kept, and its newest success."""
        self._connection.executemany(
            "INSERT INTO call VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    row.target,
                    row.at.boot,
                    row.at.boottime,
                    row.at.wall,
                    None if row.failure is None else row.failure.value,
                    int(row.stream),
                    row.seconds,
                    row.ttft_seconds,
                    row.completion_tokens,
                    int(row.anew),
                )
                for row in rows
            ],
        )
        for target in {row.target for row in rows}:
            self._connection.execute(_FORGET_CALLS, {"target": target, "kept": CALLS_KEPT})

    def words(self) -> Iterable[OperatorRow]:
        """The operator's newest word on each target."""
        return words_in(self._connection)

    def word(self, target: str) -> OperatorRow | None:
        """That on one of them."""
        row = self._connection.execute("SELECT * FROM operator WHERE target = ?", (target,)).fetchone()
        return None if row is None or row[1] not in _WORDS else _word(row)

    def put_word(self, row: OperatorRow) -> None:
        """Add or replace it."""
        at = row.at
        self._put("operator", (row.target, row.word, row.by, row.why, at.boot, at.boottime, at.wall, row.gen))
        self._connection.execute(_VERSION)

    def makers(self, things: Sequence[bytes]) -> Iterable[MakerRow]:
        """The makers of these things, as far as they are known."""
        ask = "SELECT thing, target, owner, at FROM maker WHERE thing = ?"
        found = (self._connection.execute(ask, (thing,)).fetchone() for thing in things)
        return [MakerRow(thing=bytes(r[0]), target=str(r[1]), owner=str(r[2]), at=_number(r[3])) for r in found if r]

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

    def _put(self, table: str, values: tuple[Any, ...]) -> None:
        places = ", ".join("?" * len(values))
        self._connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({places})", values)


def words_in(connection: sqlite3.Connection) -> list[OperatorRow]:
    """The operator's newest word on each target, as far as it is one that is known here; none in an older file."""
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'operator'").fetchone() is None:
        return []
    return [_word(row) for row in connection.execute("SELECT * FROM operator").fetchall() if row[1] in _WORDS]


_RESTS = frozenset(get_args(RestReason))
_WORDS = frozenset(get_args(OperatorWord))
_STATES = frozenset({"closed", "open", "half_open"})


def _columns(deadline: Deadline) -> tuple[Any, ...]:
    return (
        deadline.boot,
        deadline.boottime,
        deadline.boottime_until,
        deadline.wall,
        deadline.wall_until,
        deadline.duration,
    )


def _deadline(columns: Sequence[Any]) -> Deadline:
    return Deadline(str(columns[0]), *(_number(column) for column in columns[1:]))


def _number(value: Any) -> float:
    """A figure; NaN for what is none: the rules of shared know what to make of that."""
    with suppress(TypeError, ValueError):
        return float(value)
    return math.nan


def _count(value: Any) -> int:
    number = _number(value)
    return int(number) if math.isfinite(number) else 0


def _breaker(row: Sequence[Any]) -> BreakerRow:
    return BreakerRow(
        owner=str(row[0]),
        kind=cast("BreakerKind", row[1]),
        provider=str(row[2]),
        state=cast("SharedBreakerState", row[3] if row[3] in _STATES else "open"),
        until=_deadline(row[4:10]),
        step=_count(row[10]),
        reason=str(row[11]),
        holder=str(row[12]),
        gen=_count(row[13]),
    )


def _rest(row: Sequence[Any]) -> RestRow:
    return RestRow(
        owner=str(row[0]),
        reason=cast("RestReason", row[1]),
        until=_deadline(row[2:8]),
        cause=_failure(row[8]),
        hinted=bool(_count(row[9])),
        step=_count(row[10]),
        over=bool(_count(row[11])),
        gen=_count(row[12]),
    )


def _failure(value: Any) -> FailureClass | None:
    return FailureClass(value) if value in FailureClass.__members__ else None


def _bucket(row: Sequence[Any]) -> BucketRow | None:
    figures = [_number(value) for value in (*row[2:6], *row[7:9])]
    window = None if row[6] is None else _number(row[6])
    if not all(map(math.isfinite, (*figures, window or 0.0))) or figures[3] <= 0:
        return None
    at, level, capacity, rate, resets_at, held_until = figures
    return BucketRow(
        key=str(row[0]),
        boot=str(row[1]),
        at=at,
        level=level,
        capacity=capacity,
        rate=rate,
        window=window,
        resets_at=resets_at,
        held_until=held_until,
    )


def _budget(row: Sequence[Any]) -> BudgetRow:
    used = max(0, _count(row[1]))
    return BudgetRow(key=str(row[0]), used=used, reserved=min(used, max(0, _count(row[2]))), until=_deadline(row[3:9]))


def _slots(row: Sequence[Any]) -> SlotRow:
    held, until, waits = max(0, _count(row[3])), _number(row[4]), _number(row[5])  # NaN is over
    return SlotRow(key=str(row[0]), holder=str(row[1]), boot=str(row[2]), held=held, until=until, waits=waits)


def _call(row: Sequence[Any]) -> CallRow:
    seconds, ttft = _number(row[7]), None if row[8] is None else _number(row[8])
    return CallRow(
        target=str(row[1]),
        at=ClockReading(str(row[2]), _number(row[3]), _number(row[4])),
        failure=_failure(row[5]) or (None if row[5] is None else FailureClass.SERVER_ERROR),
        stream=bool(_count(row[6])),
        seconds=seconds if seconds >= 0 and math.isfinite(seconds) else 0.0,
        ttft_seconds=ttft if ttft is not None and ttft >= 0 and math.isfinite(ttft) else None,
        completion_tokens=None if row[9] is None else max(0, _count(row[9])),
        anew=bool(_count(row[10])),
    )


def _word(row: Sequence[Any]) -> OperatorRow:
    return OperatorRow(
        target=str(row[0]),
        word=cast("OperatorWord", row[1]),
        by=str(row[2]),
        why=str(row[3]),
        at=ClockReading(str(row[4]), _number(row[5]), _number(row[6])),
        gen=_count(row[7]),
    )
