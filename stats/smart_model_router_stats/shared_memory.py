"""The shared state that lives in one process: the verified fake of ports.SharedState."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from smart_model_router.domain.shared_state import SharedStateError
from smart_model_router_stats import transactions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from smart_model_router.domain.shared_state import (
        BreakerRow,
        BucketAsk,
        BucketGrant,
        BucketRow,
        BudgetAsk,
        BudgetRow,
        CallRow,
        Changes,
        Claim,
        ClockReading,
        MakerRow,
        OperatorRow,
        Restored,
        RestRow,
        SharedView,
        SlotAsk,
        SlotGrant,
        SlotRow,
    )
    from smart_model_router_stats.transactions import Key

CALLS_KEPT = 50
"""Of each target: as many as a window of outcomes holds."""
MAKERS_KEPT = 100_000
MAKER_SECONDS = 30 * 86_400.0
"""As long as OpenAI keeps an answer."""


class MemoryTables:
    """The rows. Several MemorySharedState over the same tables are what several processes over one file are."""

    def __init__(self) -> None:
        self.version = 0
        """Grows with everything that others are to hear."""
        self._breakers: dict[Key, BreakerRow] = {}
        self._rests: dict[Key, RestRow] = {}
        self._buckets: dict[str, BucketRow] = {}
        self._budgets: dict[str, BudgetRow] = {}
        self._slots: dict[Key, SlotRow] = {}
        self._calls: dict[str, deque[CallRow]] = {}
        self._successes: dict[str, CallRow] = {}
        self._words: dict[str, OperatorRow] = {}
        self._makers: dict[bytes, MakerRow] = {}

    def breakers(self) -> Iterable[BreakerRow]:
        """All of them."""
        return tuple(self._breakers.values())

    def breaker(self, key: Key) -> BreakerRow | None:
        """One of them."""
        return self._breakers.get(key)

    def put_breaker(self, row: BreakerRow) -> None:
        """Add or replace it."""
        self.version += 1
        self._breakers[row.key] = row

    def rests(self) -> Iterable[RestRow]:
        """All of them."""
        return tuple(self._rests.values())

    def rest(self, key: Key) -> RestRow | None:
        """One of them."""
        return self._rests.get(key)

    def put_rest(self, row: RestRow) -> None:
        """Add or replace it."""
        self.version += 1
        self._rests[row.key] = row

    def bucket(self, key: str) -> BucketRow | None:
        """One limit."""
        return self._buckets.get(key)

    def buckets(self) -> Iterable[BucketRow]:
        """All limits."""
        return tuple(self._buckets.values())

    def put_bucket(self, row: BucketRow, *, news: bool) -> None:
        """Add or replace it."""
        self.version += news
        self._buckets[row.key] = row

    def budget(self, key: str) -> BudgetRow | None:
        """One budget."""
        return self._budgets.get(key)

    def budgets(self) -> Iterable[BudgetRow]:
        """All budgets."""
        return tuple(self._budgets.values())

    def put_budget(self, row: BudgetRow) -> None:
        """Add or replace it."""
        self._budgets[row.key] = row

    def slots(self) -> Iterable[SlotRow]:
        """All slots that are leased or waited for."""
        return tuple(self._slots.values())

    def put_slots(self, row: SlotRow, *, news: bool) -> None:
        """Add or replace it."""
        self.version += news
        self._slots[row.key, row.holder] = row

    def drop_slots(self, row: SlotRow, *, news: bool) -> None:
        """Remove it."""
        self.version += news
        del self._slots[row.key, row.holder]

    def calls(self) -> Iterable[CallRow]:
        """Those kept, oldest first."""
        found: list[CallRow] = []
        for target, kept in self._calls.items():
            success = self._successes.get(target)
            found += [success, *kept] if success is not None and success not in kept else kept
        return found

    def add_calls(self, rows: Sequence[CallRow]) -> None:
        """Add them; of each target the newest 50 are kept, and its newest success."""
        for row in rows:
            self._calls.setdefault(row.target, deque(maxlen=CALLS_KEPT)).append(row)
            if row.failure is None:
                self._successes[row.target] = row

    def words(self) -> Iterable[OperatorRow]:
        """The operator's newest word on each target."""
        return tuple(self._words.values())

    def word(self, target: str) -> OperatorRow | None:
        """That on one of them."""
        return self._words.get(target)

    def put_word(self, row: OperatorRow) -> None:
        """Add or replace it."""
        self.version += 1
        self._words[row.target] = row

    def makers(self, things: Sequence[bytes]) -> Iterable[MakerRow]:
        """The makers of these things, as far as they are known."""
        return [row for thing in things if (row := self._makers.get(thing)) is not None]

    def add_makers(self, rows: Sequence[MakerRow]) -> None:
        """Add or replace them; the old ones go."""
        for row in rows:
            self._makers.pop(row.thing, None)
            self._makers[row.thing] = row
        oldest = max(row.at for row in rows) - MAKER_SECONDS
        kept = [row for row in self._makers.values() if row.at >= oldest][-MAKERS_KEPT:]
        self._makers = {row.thing: row for row in kept}


class MemorySharedState:
    """One process's way to the tables. It passes tests/conformance/shared_states.py.

    `failure`, when set, is what every question is answered with.
    """

    def __init__(self, tables: MemoryTables, here: Callable[[], ClockReading]) -> None:
        self._tables = tables
        self._here = here
        self._seen = -1
        self.failure = ""

    def restore(self) -> Restored:
        """Return the whole state."""
        return transactions.restore(self._asked(), self._here())

    def publish_now(self, changes: Changes) -> SharedView:
        """Write what may be written."""
        return transactions.publish(self._asked(), changes, self._here())

    async def poll(self) -> SharedView | None:
        """Everything, when something changed."""
        tables = self._asked()
        if self._seen == tables.version:
            return None
        self._seen = tables.version
        return transactions.view(tables)

    async def claim(self, rows: Sequence[BreakerRow]) -> Claim:
        """Take the probes of all these breakers, or of none."""
        return transactions.claim(self._asked(), rows, self._here())

    async def renew(self, rows: Sequence[BreakerRow]) -> tuple[BreakerRow, ...]:
        """Extend leases."""
        return transactions.renew(self._asked(), rows)

    async def publish(self, changes: Changes) -> SharedView:
        """Write what may be written."""
        return self.publish_now(changes)

    async def makers(self, things: Sequence[bytes]) -> tuple[MakerRow, ...]:
        """The makers of these things, as far as they are known."""
        return tuple(self._asked().makers(things))

    async def lease_slots(self, asks: Sequence[SlotAsk]) -> tuple[SlotGrant, ...]:
        """Lease slots."""
        return transactions.slots(self._asked(), asks, self._here())

    async def lease(self, asks: Sequence[BucketAsk | BudgetAsk]) -> tuple[BucketGrant, ...]:
        """Lease tokens, and reserve in budgets."""
        return transactions.lease(self._asked(), asks, self._here())

    async def aclose(self) -> None:
        """Nothing to let go of."""

    def _asked(self) -> MemoryTables:
        if self.failure:
            raise SharedStateError(self.failure)
        return self._tables
