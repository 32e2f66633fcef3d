"""Every store of ours keeps the promises of a StatsStore."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router_stats.memory import MemoryStore
from tests.conformance.stores import StatsStoreContract

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.outcome import FailureClass
    from smart_model_router.ports import StatsStore


class TestMemoryStore(StatsStoreContract):
    """The verified fake."""

    async def open(self) -> StatsStore:
        """A store in memory."""
        return MemoryStore()

    async def totals(self, store: StatsStore) -> Mapping[tuple[str, FailureClass | None], int]:
        """Read its own totals."""
        assert isinstance(store, MemoryStore)
        return store.totals
