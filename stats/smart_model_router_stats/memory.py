"""The stores that keep everything in memory, verified fakes of their ports: statistics, responses, shared state."""

from __future__ import annotations

import secrets
from collections import Counter, deque
from types import MappingProxyType
from typing import TYPE_CHECKING

from smart_model_router.domain.shared_state import SharedStateError
from smart_model_router_stats import transactions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from smart_model_router.domain.events import AttemptFinished
    from smart_model_router.domain.outcome import FailureClass
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
        KeptResponse,
        MakerRow,
        MemberRow,
        OperatorRow,
        Restored,
        RestRow,
        SharedView,
        SlotAsk,
        SlotGrant,
        SlotRow,
    )
    from smart_model_router_stats.transactions import Key

SECRET_BYTES = 32


class MemoryStore:
    """Keeps totals by target and class (None is a success), and the newest `limit` (> 0) observations.

    It passes tests/conformance/stores.py, as every store must.
    """

    def __init__(self, *, limit: int = 10_000) -> None:
        self._totals: Counter[tuple[str, FailureClass | None]] = Counter()
        self._observations: deque[AttemptFinished] = deque(maxlen=limit)
        self._closed = False

    @property
    def totals(self) -> Mapping[tuple[str, FailureClass | None], int]:
        """The number of observations by (target id, class), a live view."""
        return MappingProxyType(self._totals)

    @property
    def observations(self) -> tuple[AttemptFinished, ...]:
        """The newest observations, oldest first."""
        return tuple(self._observations)

    def observe(self, observation: AttemptFinished) -> None:
        """Take one observation; after `aclose` it is dropped."""
        if not self._closed:
            self._totals[observation.target, observation.failure_class] += 1
            self._observations.append(observation)

    async def aclose(self) -> None:
        """Take no more. What was observed can still be read."""
        self._closed = True


class MemoryResponses:
    """It passes tests/conformance/response_stores.py. `failure`, when set, is what every question is answered with."""

    in_memory = True

    def __init__(self, *, ttl: float, most: int, wall: Callable[[], float]) -> None:
        self._ttl = ttl
        self._most = most
        self._wall = wall
        self._secret = secrets.token_bytes(SECRET_BYTES)
        self._rows: dict[str, tuple[KeptResponse, float]] = {}
        self._size = 0
        self.failure = ""

    async def secret(self) -> bytes:
        """The secret under which the ids of these answers are made."""
        self._ask()
        return self._secret

    async def add(self, rows: Sequence[KeptResponse]) -> None:
        """Keep these."""
        now = self._ask()
        for row in rows:
            if row.id not in self._rows and row.size <= self._most:
                self._size += row.size
                for kept in (*self._chain(row.parent, row.owner)[::-1], row):
                    self._rows.pop(kept.id, None)
                    self._rows[kept.id] = kept, now + self._ttl
        for oldest, (_, until) in tuple(self._rows.items()):
            if now < until <= now + self._ttl and self._size <= self._most:
                break
            self._forget(oldest)

    async def chain(self, response: str, owner: str, generations: int | None = None) -> tuple[KeptResponse, ...]:
        """An answer and those it goes on from, the newest first; () when it is not there."""
        now = self._ask()
        found = self._chain(response, owner)[:generations]
        return found if found and self._rows[response][1] > now else ()

    async def remove(self, response: str, owner: str) -> bool:
        """Forget an answer. False when it is not there."""
        self._ask()
        row = self._rows.get(response)
        if row is None or row[0].owner != owner:
            return False
        self._forget(response)
        return True

    async def aclose(self) -> None:
        """Nothing to let go of."""

    def _chain(self, response: str | None, owner: str) -> tuple[KeptResponse, ...]:
        found: list[KeptResponse] = []
        while response is not None and response in self._rows and self._rows[response][0].owner == owner:
            found.append(self._rows[response][0])
            response = found[-1].parent
        return tuple(found)

    def _forget(self, response: str) -> None:
        row, _ = self._rows.pop(response)
        self._size -= row.size

    def _ask(self) -> float:
        if self.failure:
            raise SharedStateError(self.failure)
        return self._wall()


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
        self._members: dict[str, MemberRow] = {}

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

    def slots(self, key: str) -> Iterable[SlotRow]:
        """The slots of a bulkhead that are leased or waited for."""
        return [row for row in self._slots.values() if row.key == key]

    def all_slots(self) -> Iterable[SlotRow]:
        """The slots of all bulkheads."""
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

    def members(self) -> Iterable[MemberRow]:
        """All processes that wrote a row of theirs."""
        return tuple(self._members.values())

    def put_member(self, row: MemberRow, *, news: bool) -> None:
        """Add or replace it."""
        self.version += news
        self._members[row.holder] = row

    def drop_member(self, row: MemberRow) -> None:
        """Remove it."""
        self._members.pop(row.holder, None)


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

    async def lease_slots(self, asks: Sequence[SlotAsk]) -> tuple[SlotGrant | None, ...]:
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
