"""The shared state in a file: state.db, a few tiny rows that every process of the host reads and writes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

from smart_model_router.domain.shared_state import Claim, Restored
from smart_model_router_stats import transactions
from smart_model_router_stats.open_db import GuardedConnection, StoreUnavailableError, filesystem_of
from smart_model_router_stats.shared_schema import STATE_MIGRATIONS, SqliteTables
from smart_model_router_stats.sqlite_file import SqliteFile, snapshot, transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from smart_model_router.domain.shared_state import (
        BreakerRow,
        BucketAsk,
        BucketGrant,
        BudgetAsk,
        Changes,
        ClockReading,
        MakerRow,
        SharedView,
        SlotAsk,
        SlotGrant,
    )

T = TypeVar("T")

_BLOCKING_SECONDS = 0.25


class SqliteSharedState:
    """One process's way to the file: every question is one transaction (see SqliteFile)."""

    def __init__(
        self, path: Path, here: Callable[[], ClockReading], *, filesystem: Callable[[Path], str] = filesystem_of
    ) -> None:
        self._file = SqliteFile(path, STATE_MIGRATIONS, filesystem=filesystem)
        self._here = here
        self._seen = (-1, -1)

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self._file.path

    def restore(self) -> Restored:
        """Return the whole state; a missing file stays missing."""
        if not self.path.exists():
            return Restored()
        return self._now(lambda tables: transactions.restore(tables, self._here()))

    def publish_now(self, changes: Changes) -> SharedView:
        """Publish on a connection of its own: the thread's needs a loop."""
        return self._now(lambda tables: transactions.publish(tables, changes, self._here()))

    async def poll(self) -> SharedView | None:
        """Everything, when something changed."""

        def look(connection: GuardedConnection) -> tuple[tuple[int, int], SharedView | None]:
            tables, opening = SqliteTables(connection), self._file.openings
            if (opening, tables.version()) == self._seen:
                return self._seen, None
            version, view = snapshot(connection, lambda _: (tables.version(), transactions.view(tables)))
            return (opening, version), view

        self._seen, view = await self._file.ask(look)  # a caller who is cancelled has seen nothing
        return view

    async def claim(self, rows: Sequence[BreakerRow]) -> Claim:
        """Take the probes of all these breakers, or of none. A late caller finds out without taking the lock."""

        def take(connection: GuardedConnection) -> Claim:
            tables = SqliteTables(connection)
            if not transactions.may_claim(tables, rows, self._here()):
                return Claim((), transactions.view(tables))
            return transaction(connection, lambda inside: transactions.claim(SqliteTables(inside), rows, self._here()))

        return await self._file.ask(take)

    async def renew(self, rows: Sequence[BreakerRow]) -> tuple[BreakerRow, ...]:
        """Extend leases."""
        return await self._write(lambda tables: transactions.renew(tables, rows))

    async def publish(self, changes: Changes) -> SharedView:
        """Write what may be written."""
        return await self._write(lambda tables: transactions.publish(tables, changes, self._here()))

    async def makers(self, things: Sequence[bytes]) -> tuple[MakerRow, ...]:
        """The makers of these things, as far as they are known."""
        return await self._file.ask(lambda connection: tuple(SqliteTables(connection).makers(things)))

    async def lease_slots(self, asks: Sequence[SlotAsk]) -> tuple[SlotGrant, ...]:
        """Lease slots."""
        return await self._write(lambda tables: transactions.slots(tables, asks, self._here()))

    async def lease(self, asks: Sequence[BucketAsk | BudgetAsk]) -> tuple[BucketGrant, ...]:
        """Lease tokens, and reserve in budgets."""
        return await self._write(lambda tables: transactions.lease(tables, asks, self._here()))

    async def aclose(self) -> None:
        """Close the file."""
        await self._file.aclose()

    def _now(self, work: Callable[[SqliteTables], T]) -> T:
        try:
            with closing(self._file.opened(_BLOCKING_SECONDS)) as connection:
                return transaction(connection, lambda inside: work(SqliteTables(inside)))
        except (sqlite3.Error, OSError, StoreUnavailableError) as error:
            raise self._file.failed(error) from error

    async def _write(self, work: Callable[[SqliteTables], T]) -> T:
        return await self._file.write(lambda connection: work(SqliteTables(connection)))
