"""Every shared state of ours keeps the promises of a SharedState."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from smart_model_router_stats.memory import MemorySharedState, MemoryTables
from smart_model_router_stats.shared_sqlite import SqliteSharedState
from tests.conformance.shared_states import SharedStateContract

if TYPE_CHECKING:
    from pathlib import Path

    from smart_model_router.domain.ports import SharedState


class TestMemorySharedState(SharedStateContract):
    """The verified fake."""

    @pytest.fixture(autouse=True)
    def _tables(self) -> None:
        self.tables = MemoryTables()

    def process(self) -> SharedState:
        """Another view of the same tables."""
        return MemorySharedState(self.tables, self.clock)


class TestSqliteSharedState(SharedStateContract):
    """The state in a file."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def process(self) -> SharedState:
        """Another handle of the same file."""
        return SqliteSharedState(self.folder / "state.db", self.clock)
