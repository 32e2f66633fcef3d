"""Every store of kept responses of ours keeps the promises of a ResponseStore."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from smart_model_router.domain.shared_state import LONGEST_CHAIN
from smart_model_router_stats.memory import MemoryResponses
from smart_model_router_stats.responses_sqlite import SqliteResponses
from tests.conformance.response_stores import MOST, TTL, ResponseStoreContract, kept

if TYPE_CHECKING:
    from pathlib import Path

    from smart_model_router.domain.ports import ResponseStore


class TestMemoryResponses(ResponseStoreContract):
    """Those of a router without a store: its processes are one."""

    @pytest.fixture(autouse=True)
    def _store(self, _clock: None) -> None:
        self.store = MemoryResponses(ttl=TTL, most=MOST, wall=self.wall)

    def process(self, *, ttl: float = TTL, most: int = MOST) -> ResponseStore:
        """The same store."""
        del ttl, most
        return self.store


class TestSqliteResponses(ResponseStoreContract):
    """Those in a file."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def process(self, *, ttl: float = TTL, most: int = MOST) -> ResponseStore:
        """Another handle of the same file."""
        return SqliteResponses(self.folder / "responses.db", ttl=ttl, most=most, wall=self.wall)

    @pytest.mark.asyncio
    async def test_a_chain_is_read_no_further_than_its_bound(self) -> None:
        """What is small in the file may be very large: the answer that exceeds the bound is the last one read."""
        store, text = self.process(most=100 * LONGEST_CHAIN), b" " * (LONGEST_CHAIN // 2)
        for number in range(1, 6):
            await store.add((kept(number, parent=number - 1 or None, text=text),))
        assert [row.id for row in await store.chain("resp_5", "one")] == ["resp_5", "resp_4"]
        assert [row.id for row in await store.chain("resp_5", "one", 1)] == ["resp_5"]
        await store.aclose()
