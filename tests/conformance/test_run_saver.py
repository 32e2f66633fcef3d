"""RunSaver keeps its promises on every store of runs of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from smart_model_router.domain.shared_state import ClockReading
from smart_model_router_research.engine import MemoryRunStore, SqliteRunStore
from tests.conformance.run_savers import RunSaverContract

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from smart_model_router_research.engine import SupportsGraphs


class TestRunSaverInMemory(RunSaverContract):
    """On the store in memory: its processes are one."""

    @pytest.fixture(autouse=True)
    def _store(self, _clock: None) -> None:
        self.store = self.fresh()

    def process(self) -> SupportsGraphs:
        """Return the same store."""
        return self.store

    def fresh(self) -> SupportsGraphs:
        """Return another one."""
        return MemoryRunStore(now=self.now, wall=self.now)


class TestRunSaverInAFile(RunSaverContract):
    """On the store in a file: each of its processes has a handle of its own."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> Iterator[None]:
        self.folder = tmp_path
        self.stores: list[SqliteRunStore] = []
        yield
        for store in self.stores:
            store.graph_threads.close()

    def process(self) -> SupportsGraphs:
        """Return another handle of the same file."""
        return self.store("runs.db")

    def fresh(self) -> SupportsGraphs:
        """Return a file of its own."""
        return self.store(f"{len(self.stores)}.db")

    def store(self, name: str) -> SqliteRunStore:
        """Return a handle of a file."""
        store = SqliteRunStore(self.folder / name, here=lambda: ClockReading("boot", self.now(), self.now()))
        self.stores.append(store)
        return store
