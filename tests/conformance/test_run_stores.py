"""Every store of runs of ours keeps the promises of a RunStore."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from smart_model_router.domain.shared_state import ClockReading
from smart_model_router_research.engine import MemoryRunStore, SqliteRunStore, SupportsDocuments
from tests.conformance.run_stores import RunStoreContract

if TYPE_CHECKING:
    from pathlib import Path

    from smart_model_router_research.engine import RunStore


class TestMemoryRunStore(RunStoreContract):
    """The one in memory: its processes are one."""

    @pytest.fixture(autouse=True)
    def _store(self, _clock: None) -> None:
        self.store = MemoryRunStore(now=self.now, wall=self.now)

    def process(self) -> RunStore:
        """Return the same store."""
        return self.store


class TestSqliteRunStore(RunStoreContract):
    """The one in a file: each of its processes has a handle of its own."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def process(self) -> RunStore:
        """Return another handle of the same file."""
        return SqliteRunStore(self.folder / "runs.db", here=lambda: ClockReading("boot", self.now(), self.now()))


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", ["memory", "file"])
async def test_documents_go_by_their_content(tmp_path: Path, kind: str) -> None:
    """The id is the SHA-256; an unknown one is a KeyError, and so is what is none. Twice is once."""
    store: SupportsDocuments = MemoryRunStore() if kind == "memory" else SqliteRunStore(tmp_path / "runs.db")
    for _ in range(2):
        name = await store.put_document(b"text")
        assert name == hashlib.sha256(b"text").hexdigest()
        assert await store.get_document(name) == b"text"
    for unknown in ("0" * 64, "../runs.db", ""):
        with pytest.raises(KeyError):
            await store.get_document(unknown)
