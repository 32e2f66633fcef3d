"""Every store of ours keeps the promises of a StatsStore."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from smart_model_router.domain.outcome import FailureClass
from smart_model_router_stats.delta import SUCCESS
from smart_model_router_stats.memory import MemoryStore
from smart_model_router_stats.open_db import open_to_read
from smart_model_router_stats.schema import STATS_MIGRATIONS
from smart_model_router_stats.sqlite import SqliteStore
from tests.conformance.stores import StatsStoreContract

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from smart_model_router.domain.ports import StatsStore


class TestMemoryStore(StatsStoreContract):
    """The verified fake."""

    async def open(self) -> StatsStore:
        """A store in memory."""
        return MemoryStore()

    async def totals(self, store: StatsStore) -> Mapping[tuple[str, FailureClass | None], int]:
        """Read its own totals."""
        assert isinstance(store, MemoryStore)
        return store.totals


class TestSqliteStore(StatsStoreContract):
    """The store in a file, read by somebody else."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path
        self.opened = 0

    async def open(self) -> StatsStore:
        """A store in a file of its own."""
        self.opened += 1
        return SqliteStore(self.folder / f"{self.opened}.db")

    async def totals(self, store: StatsStore) -> Mapping[tuple[str, FailureClass | None], int]:
        """Read the file; one that nothing was written to is not there."""
        assert isinstance(store, SqliteStore)
        if not store.path.exists():
            return {}
        with closing(open_to_read(store.path, STATS_MIGRATIONS)) as connection:
            query = "SELECT t.name, o.class, o.count FROM outcome_total o JOIN target t ON t.id = o.target"
            rows = connection.execute(query).fetchall()
        return {(name, None if cause == SUCCESS else FailureClass(cause)): count for name, cause, count in rows}
