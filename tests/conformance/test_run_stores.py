"""Every store of runs of ours keeps the promises of a RunStore."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from smart_model_router_research.engine import MemoryRunStore, SupportsDocuments
from tests.conformance.run_stores import RunStoreContract

if TYPE_CHECKING:
    from smart_model_router_research.engine import RunStore


class TestMemoryRunStore(RunStoreContract):
    """The one in memory: its processes are one."""

    @pytest.fixture(autouse=True)
    def _store(self, _clock: None) -> None:
        self.store = MemoryRunStore(now=self.now, wall=self.now)

    def process(self) -> RunStore:
        """Return the same store."""
        return self.store

    @pytest.mark.asyncio
    async def test_documents_go_by_their_content(self) -> None:
        """The id is the SHA-256; an unknown one is a KeyError."""
        store: SupportsDocuments = self.store
        name = await store.put_document(b"text")
        assert name == hashlib.sha256(b"text").hexdigest()
        assert await store.get_document(name) == b"text"
        with pytest.raises(KeyError):
            await store.get_document("0" * 64)
