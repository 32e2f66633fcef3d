"""Shared rows as texts with ids, which servers keep; and the tables of one attempt to change some of them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from smart_model_router.domain.shared_state import (
    BreakerRow,
    BucketRow,
    BudgetRow,
    ClockReading,
    Deadline,
    MemberRow,
    OperatorRow,
    RestRow,
    SlotRow,
    remaining,
)
from smart_model_router_stats import memory
from smart_model_router_stats.row_server import KEPT_SECONDS, SCHEMA, RowExchange, RowWrite
from smart_model_router_stats.shared_rows import (
    Columns,
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
    from smart_model_router.domain.shared_state import CallRow, MakerRow
    from smart_model_router_stats.transactions import Key

R = TypeVar("R")
_GONE_SECONDS = 60.0
_GONE_KEPT = 100
"""Marks of rows that are gone, as many as are known before all rows are read anew: the server removes them untold."""
_FORMAT = 1
"""The version of a row's text. Rows of later versions are neither read nor written."""


@dataclass(frozen=True, slots=True)
class _Slots:
    """All slots of one bulkhead: one row on a server, so that two processes cannot lease the same one."""

    key: str
    rows: tuple[SlotRow, ...]


_COLUMNS: dict[str, tuple[type, Callable[[Any], Columns], Callable[[Sequence[Any]], object]]] = {
    "breaker": (BreakerRow, breaker_columns, breaker_of),
    "rest": (RestRow, rest_columns, rest_of),
    "limit": (BucketRow, bucket_columns, bucket_of),
    "budget": (BudgetRow, budget_columns, budget_of),
    "operator": (OperatorRow, word_columns, word_of),
    "member": (MemberRow, member_columns, member_of),
    "slots": (
        _Slots,
        lambda slots: (slots.key, *(slots_columns(row) for row in slots.rows)),
        lambda columns: _Slots(str(columns[0]), tuple(slots_of(row) for row in columns[1:])),
    ),
}


def row_id(table: str, *key: str) -> str:
    """The id of a row."""
    return "\t".join((table, *key))


def text_of(table: str, row: object) -> str:
    """The text of a row. Floats are written so that the same ones are read again."""
    return json.dumps([_FORMAT, _COLUMNS[table][1](row)], separators=(",", ":"))


def row_of(table: str, text: str) -> object | None:
    """The row of a text; None where it cannot be read, whatever is in it."""
    try:
        version, columns = json.loads(text)
        return _COLUMNS[table][2](columns) if version == _FORMAT else None
    except (ValueError, TypeError, LookupError, KeyError, ArithmeticError):
        return None


def call_of_text(text: str) -> CallRow | None:
    """A call; None where it cannot be read, whatever is in it."""
    try:
        return call_of(json.loads(text))
    except (ValueError, TypeError, LookupError):
        return None


def makers_of_texts(found: Iterable[tuple[bytes, str | bytes | None]]) -> list[MakerRow]:
    """The makers of things that have a text which can be read."""
    makers = []
    for thing, text in found:
        with suppress(ValueError, TypeError, LookupError):
            if text is not None:
                makers.append(maker_of((thing, *json.loads(text))))
    return makers


def request_of(asked: RowExchange) -> dict[str, Any]:
    """The question as servers read it: what there is none of is left out."""
    request: dict[str, Any] = {
        "schema": SCHEMA,
        "since": asked.since,
        "epoch": asked.epoch,
        "fresh": asked.fresh,
        "stepped": asked.stepped,
        "tells": asked.tells,
    }
    if asked.expected:
        request["expected"] = asked.expected
    if asked.news is not None:
        request["news"] = asked.news
    if asked.writes:
        request["writes"] = [(row.id, row.text, row.keep) for row in asked.writes]
    if asked.calls:
        request["calls"] = [(row.target, json.dumps(call_columns(row)), row.failure is None) for row in asked.calls]
        request |= {"calls_kept": memory.CALLS_KEPT, "kept_for": int(KEPT_SECONDS)}
    if asked.makers:
        texts = (json.dumps((row.target, row.owner, row.at)) for row in asked.makers)
        request["makers"] = [(row.thing.hex(), text, row.at) for row, text in zip(asked.makers, texts, strict=True)]
        request["makers_kept"] = memory.MAKERS_KEPT
        request["makers_since"] = max(row.at for row in asked.makers) - memory.MAKER_SECONDS
    return request


def is_newer(text: str) -> bool:
    """True for the text of a later version, which must not be replaced."""
    try:
        version = json.loads(text)[0]
    except (ValueError, TypeError, LookupError):
        return False
    return isinstance(version, int) and version > _FORMAT


@dataclass(frozen=True, slots=True)
class _KeptRow:
    revision: int
    row: object | None
    newer: bool


_ABSENT = _KeptRow(0, None, newer=False)


class KnownRows:
    """The rows of a server as this process has seen them."""

    def __init__(self) -> None:
        self.epoch = ""
        self.news = -1
        self.last = -1
        self._tables: dict[str, dict[str, _KeptRow]] = {table: {} for table in _COLUMNS}
        self._gone: set[str] = set()
        self._most_gone = _GONE_KEPT

    @property
    def is_cluttered(self) -> bool:
        """True when many rows are known to be gone: reading all rows anew forgets them."""
        return len(self._gone) > self._most_gone

    def take(self, epoch: str, news: int, last: int, rows: Iterable[tuple[str, int, str]], *, full: bool) -> None:
        """Take in an answer. One that was overtaken by a later one changes nothing."""
        if not full and epoch != self.epoch:
            return  # asked before the epoch that is known now began
        if full:
            if epoch == self.epoch and last < self.last:
                return
            for kept in self._tables.values():
                kept.clear()
            self._gone.clear()
            self.epoch, self.news, self.last = epoch, news, last
        for name, revision, text in rows:
            table = self._tables.get(name.partition("\t")[0])
            if table is not None and revision >= table.get(name, _ABSENT).revision:
                table[name] = _KeptRow(revision, row_of(name.partition("\t")[0], text), is_newer(text))
                (self._gone.discard if text else self._gone.add)(name)
        if full:
            self._most_gone = max(_GONE_KEPT, 2 * len(self._gone))
        self.news, self.last = max(news, self.news), max(last, self.last)

    def get(self, name: str) -> _KeptRow:
        """One row, as it was last seen."""
        return self._tables[name.partition("\t")[0]].get(name, _ABSENT)

    def all(self, table: str) -> dict[str, _KeptRow]:
        """The rows of a table by id."""
        return self._tables[table]


class AttemptTables:
    """The tables of one attempt (transactions.Tables): reads what is known, and keeps what is to be written.

    It remembers what was read, as the condition under which the server may write.
    """

    def __init__(self, known: KnownRows) -> None:
        self._known = known
        self._written: dict[str, object | None] = {}
        self._read: dict[str, int] = {}
        self.scanned = False
        """True when all breakers were read: then a new one is a conflict as well."""
        self.tells = False
        self.added_calls: tuple[CallRow, ...] = ()
        self.added_makers: tuple[MakerRow, ...] = ()

    @property
    def expected(self) -> dict[str, int]:
        """The revisions of all rows that were read or written."""
        return dict(self._read)

    def writes(self, here: ClockReading) -> list[RowWrite]:
        """The rows to write."""
        return [
            RowWrite(name, "" if row is None else text_of(name.partition("\t")[0], row), _keep(row, here))
            for name, row in self._written.items()
        ]

    def breakers(self) -> Iterable[BreakerRow]:
        """All of them."""
        self.scanned = True
        return self._scan("breaker", BreakerRow)

    def breaker(self, key: Key) -> BreakerRow | None:
        """One of them."""
        return self._one(BreakerRow, "breaker", *key)

    def put_breaker(self, row: BreakerRow) -> None:
        """Add or replace it."""
        self._put(row, "breaker", *row.key)

    def rests(self) -> Iterable[RestRow]:
        """All of them."""
        return self._scan("rest", RestRow)

    def rest(self, key: Key) -> RestRow | None:
        """One of them."""
        return self._one(RestRow, "rest", *key)

    def put_rest(self, row: RestRow) -> None:
        """Add or replace it."""
        self._put(row, "rest", *row.key)

    def bucket(self, key: str) -> BucketRow | None:
        """One limit."""
        return self._one(BucketRow, "limit", key)

    def buckets(self) -> Iterable[BucketRow]:
        """All limits."""
        return self._scan("limit", BucketRow)

    def put_bucket(self, row: BucketRow, *, news: bool) -> None:
        """Add or replace it."""
        self._put(row, "limit", row.key, news=news)

    def budget(self, key: str) -> BudgetRow | None:
        """One budget."""
        return self._one(BudgetRow, "budget", key)

    def budgets(self) -> Iterable[BudgetRow]:
        """All budgets."""
        return self._scan("budget", BudgetRow)

    def put_budget(self, row: BudgetRow) -> None:
        """Add or replace it."""
        self._put(row, "budget", row.key, news=False)

    def slots(self, key: str) -> Iterable[SlotRow]:
        """The slots of a bulkhead that are leased or waited for."""
        found = self._one(_Slots, "slots", key)
        return () if found is None else found.rows

    def all_slots(self) -> Iterable[SlotRow]:
        """The slots of all bulkheads."""
        return [row for slots in self._scan("slots", _Slots) for row in slots.rows]

    def put_slots(self, row: SlotRow, *, news: bool) -> None:
        """Add or replace it."""
        others = [one for one in self.slots(row.key) if one.holder != row.holder]
        self._put(_Slots(row.key, (*others, row)), "slots", row.key, news=news)

    def drop_slots(self, row: SlotRow, *, news: bool) -> None:
        """Remove it."""
        others = [one for one in self.slots(row.key) if one.holder != row.holder]
        self._put(_Slots(row.key, tuple(others)), "slots", row.key, news=news)

    def calls(self) -> Iterable[CallRow]:
        """None: the server is asked for those."""
        return ()

    def add_calls(self, rows: Sequence[CallRow]) -> None:
        """Add them."""
        self.added_calls = tuple(rows)

    def words(self) -> Iterable[OperatorRow]:
        """The operator's newest word on each target."""
        return self._scan("operator", OperatorRow)

    def word(self, target: str) -> OperatorRow | None:
        """That on one of them."""
        return self._one(OperatorRow, "operator", target)

    def put_word(self, row: OperatorRow) -> None:
        """Add or replace it."""
        self._put(row, "operator", row.target)

    def add_makers(self, rows: Sequence[MakerRow]) -> None:
        """Add or replace them."""
        self.added_makers = tuple(rows)

    def members(self) -> Iterable[MemberRow]:
        """All processes that wrote a row of theirs."""
        return self._scan("member", MemberRow)

    def put_member(self, row: MemberRow, *, news: bool) -> None:
        """Add or replace it."""
        self._put(row, "member", row.holder, news=news)

    def drop_member(self, row: MemberRow) -> None:
        """Remove it."""
        self._put(None, "member", row.holder, news=False)

    def _one(self, kind: type[R], *name: str) -> R | None:
        key = row_id(*name)
        if key in self._written:
            row = self._written[key]
        else:
            kept = self._known.get(key)
            self._read[key] = kept.revision
            row = kept.row
        return row if isinstance(row, kind) else None

    def _scan(self, table: str, kind: type[R]) -> list[R]:
        rows = {name: kept.row for name, kept in self._known.all(table).items()}
        rows |= {name: row for name, row in self._written.items() if name.partition("\t")[0] == table}
        return [row for row in rows.values() if isinstance(row, kind)]

    def _put(self, row: object | None, *name: str, news: bool = True) -> None:
        key = row_id(*name)
        kept = self._known.get(key)
        self._read[key] = kept.revision
        if not kept.newer:
            self._written[key] = row
            self.tells |= news


def _keep(row: object | None, here: ClockReading) -> float | None:
    """The seconds after which the server removes a row. The mark that one is gone stays until all have seen it."""
    if row is None:
        return _GONE_SECONDS
    if isinstance(row, OperatorRow):
        return None
    until = getattr(row, "until", None)
    return KEPT_SECONDS + (remaining(until, here, math.inf) if isinstance(until, Deadline) else 0.0)
