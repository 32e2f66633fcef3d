"""The operations on the shared state, each one transaction over its tables: the same for every store."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from smart_model_router.domain.shared_state import (
    BudgetAsk,
    Changes,
    Claim,
    Deadline,
    Restored,
    SharedView,
    accepts_breaker,
    accepts_rest,
    accepts_word,
    is_due,
    is_news,
    lease_slots,
    lease_tokens,
    remaining,
    spend,
)
from smart_model_router.domain.shared_state.members import is_forgotten

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from smart_model_router.domain.shared_state import (
        BreakerRow,
        BucketAsk,
        BucketGrant,
        BucketRow,
        BudgetRow,
        CallRow,
        ClockReading,
        MakerRow,
        MemberRow,
        OperatorRow,
        RestRow,
        SlotAsk,
        SlotGrant,
        SlotRow,
    )

Key = tuple[str, str]


class Tables(Protocol):
    """The rows, within one transaction."""

    def breakers(self) -> Iterable[BreakerRow]:
        """All of them."""
        ...

    def breaker(self, key: Key) -> BreakerRow | None:
        """One of them."""
        ...

    def put_breaker(self, row: BreakerRow) -> None:
        """Add or replace it."""
        ...

    def rests(self) -> Iterable[RestRow]:
        """All of them."""
        ...

    def rest(self, key: Key) -> RestRow | None:
        """One of them."""
        ...

    def put_rest(self, row: RestRow) -> None:
        """Add or replace it."""
        ...

    def bucket(self, key: str) -> BucketRow | None:
        """One limit."""
        ...

    def buckets(self) -> Iterable[BucketRow]:
        """All limits."""
        ...

    def put_bucket(self, row: BucketRow, *, news: bool) -> None:
        """Add or replace it; `news` is what others are to hear."""
        ...

    def budget(self, key: str) -> BudgetRow | None:
        """One budget."""
        ...

    def budgets(self) -> Iterable[BudgetRow]:
        """All budgets."""
        ...

    def put_budget(self, row: BudgetRow) -> None:
        """Add or replace it."""
        ...

    def slots(self, key: str) -> Iterable[SlotRow]:
        """The slots of a bulkhead that are leased or waited for."""
        ...

    def all_slots(self) -> Iterable[SlotRow]:
        """The slots of all bulkheads."""
        ...

    def put_slots(self, row: SlotRow, *, news: bool) -> None:
        """Add or replace it; `news` is what others are to hear."""
        ...

    def drop_slots(self, row: SlotRow, *, news: bool) -> None:
        """Remove it."""
        ...

    def calls(self) -> Iterable[CallRow]:
        """Those kept, oldest first."""
        ...

    def add_calls(self, rows: Sequence[CallRow]) -> None:
        """Add them; of each target the newest 50 are kept, and its newest success."""
        ...

    def words(self) -> Iterable[OperatorRow]:
        """The operator's newest word on each target."""
        ...

    def word(self, target: str) -> OperatorRow | None:
        """That on one of them."""
        ...

    def put_word(self, row: OperatorRow) -> None:
        """Add or replace it."""
        ...

    def add_makers(self, rows: Sequence[MakerRow]) -> None:
        """Add or replace them. Those of MAKER_SECONDS before the newest go, and the oldest beyond MAKERS_KEPT."""
        ...

    def members(self) -> Iterable[MemberRow]:
        """All processes that wrote a row of theirs, in no order."""
        ...

    def put_member(self, row: MemberRow, *, news: bool) -> None:
        """Add or replace it; a new one is news to the others. Each is told of all when it writes its own."""
        ...

    def drop_member(self, row: MemberRow) -> None:
        """Remove it."""
        ...


def view(tables: Tables) -> SharedView:
    """Everything there is about breakers, rests, limits and budgets, and the operator's words."""
    return SharedView(
        breakers=tuple(tables.breakers()),
        rests=tuple(tables.rests()),
        limits=tuple(tables.buckets()),
        words=tuple(tables.words()),
        budgets=tuple(tables.budgets()),
        slots=tuple(tables.all_slots()),
        members=tuple(tables.members()),
    )


def restore(tables: Tables, here: ClockReading) -> Restored:
    """Return the state for a new process. Deadlines of an earlier boot are converted to this boot's clock."""
    for breaker in tables.breakers():
        if breaker.until.boot != here.boot:
            tables.put_breaker(replace(breaker, until=_anew(breaker.until, here)))
    for rest in tables.rests():
        if rest.until.boot != here.boot:
            tables.put_rest(replace(rest, until=_anew(rest.until, here)))
    return Restored(view(tables), tuple(tables.calls()))


def may_claim(tables: Tables, rows: Sequence[BreakerRow], here: ClockReading) -> bool:
    """True when every one of these probes is free: due here, or not taken, and none of the provider under way."""
    for row in rows:
        known = tables.breaker(row.key)
        if known is not None and not is_due(known, here):
            return False
    providers = {row.provider for row in rows}
    return not any(
        other.provider in providers and other.state == "half_open" and not is_due(other, here)
        for other in tables.breakers()
    )


def claim(tables: Tables, rows: Sequence[BreakerRow], here: ClockReading) -> Claim:
    """Take the probes of all these breakers, or none. A refusal brings what is there instead."""
    if not may_claim(tables, rows, here):
        return Claim((), view(tables))
    granted = []
    for row in rows:
        known = tables.breaker(row.key)
        taken = replace(row, gen=1 if known is None else known.gen + 1)
        tables.put_breaker(taken)
        granted.append(taken)
    return Claim(tuple(granted), SharedView())


def renew(tables: Tables, rows: Sequence[BreakerRow]) -> tuple[BreakerRow, ...]:
    """Extend the leases that are still held; those rows."""
    held = [
        row
        for row in rows
        if (known := tables.breaker(row.key)) is not None and (known.gen, known.holder) == (row.gen, row.holder)
    ]
    for row in held:
        tables.put_breaker(row)
    return tuple(held)


def publish(tables: Tables, changes: Changes, here: ClockReading) -> SharedView:
    """Write what may be written; then the rows of all these keys as they are.

    A member is told of all members and of all limits and budgets, of which it takes its part when it is cut off.
    """
    for breaker in changes.breakers:
        known = tables.breaker(breaker.key)
        if accepts_breaker(known, breaker, here):
            tables.put_breaker(replace(breaker, gen=1 if known is None else known.gen + 1))
    for rest in changes.rests:
        before = tables.rest(rest.key)
        if accepts_rest(before, rest, here):
            tables.put_rest(replace(rest, gen=1 if before is None else before.gen + 1))
    for word in changes.words:
        said = tables.word(word.target)
        if accepts_word(said, word, here):
            tables.put_word(replace(word, gen=1 if said is None else said.gen + 1))
    if changes.calls:
        tables.add_calls(changes.calls)
    if changes.makers:
        tables.add_makers(changes.makers)
    for member in changes.members:
        _enrol(tables, member, here)
    breakers = [tables.breaker(row.key) for row in changes.breakers]
    rests = [tables.rest(row.key) for row in changes.rests]
    words = [tables.word(row.target) for row in changes.words]
    return SharedView(
        breakers=tuple(row for row in breakers if row),
        rests=tuple(row for row in rests if row),
        words=tuple(row for row in words if row),
        limits=tuple(tables.buckets()) if changes.members else (),
        budgets=tuple(tables.budgets()) if changes.members else (),
        members=tuple(tables.members()) if changes.members else (),
    )


def _enrol(tables: Tables, new: MemberRow, here: ClockReading) -> None:
    """Write a process's row, or remove that of one which ends; and remove those of processes long gone."""
    known = tuple(tables.members())
    for row in known:
        if row.holder != new.holder and is_forgotten(row, here):
            tables.drop_member(row)
    if new.over:
        tables.drop_member(new)
    else:
        tables.put_member(new, news=all(row.holder != new.holder for row in known))


def lease(tables: Tables, asks: Sequence[BucketAsk | BudgetAsk], here: ClockReading) -> tuple[BucketGrant, ...]:
    """Settle the account with each limit and budget, in this order."""
    return tuple(_spend(tables, ask, here) if isinstance(ask, BudgetAsk) else _lease(tables, ask, here) for ask in asks)


def _lease(tables: Tables, ask: BucketAsk, here: ClockReading) -> BucketGrant:
    before = tables.bucket(ask.key)
    row, grant = lease_tokens(before, ask, here)
    tables.put_bucket(row, news=not ask.ours and is_news(before, row))
    return grant


def slots(tables: Tables, asks: Sequence[SlotAsk], here: ClockReading) -> tuple[SlotGrant, ...]:
    """Give each process its slots; those of dead ones in the same bulkheads are removed.

    It is news that a process waits, or no longer does, that a slot is free while one waits, and that more are held than
    there are.
    """
    return tuple(_slots(tables, ask, here) for ask in asks)


def _slots(tables: Tables, ask: SlotAsk, here: ClockReading) -> SlotGrant:
    leased = []
    for one in tables.slots(ask.key):
        if one.alive(here):
            leased.append(one)
        else:
            tables.drop_slots(one, news=False)
    row, grant = lease_slots(leased, ask, here)
    there = next((one for one in leased if one.holder == ask.holder), None)
    before = there or replace(row, held=0, waits=0.0)
    over = row.held - before.held + sum(one.held for one in leased) > ask.slots
    news = row.waiting(here) != before.waiting(here)
    news |= over if row.held > before.held else row.held < before.held and grant.others_wait
    if row.held or row.waits:
        tables.put_slots(row, news=news)
    elif there is not None:
        tables.drop_slots(there, news=news)
    return grant


def _spend(tables: Tables, ask: BudgetAsk, here: ClockReading) -> BucketGrant:
    row, grant = spend(tables.budget(ask.key), ask, here)
    tables.put_budget(row)
    return grant


def _anew(deadline: Deadline, here: ClockReading) -> Deadline:
    return Deadline.after(remaining(deadline, here, math.inf), here)
