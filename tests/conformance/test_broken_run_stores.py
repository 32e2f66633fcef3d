"""The promises of a RunStore see what they are there for: each is shown a store that breaks it, and fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from smart_model_router.domain.errors import SmartRouterError
from smart_model_router.domain.shared_state import ClockReading
from smart_model_router_research.engine import SqliteRunStore, memory_store, run_tables
from smart_model_router_research.engine.memory_store import MemoryRunStore
from smart_model_router_research.engine.run_tables import RunTables
from tests.conformance.run_stores import RunStoreContract

STORES: tuple[ModuleType, ...] = (memory_store, run_tables)
Break = Callable[[pytest.MonkeyPatch], None]


def no_fence(patch: pytest.MonkeyPatch) -> None:
    """A write counts without the lease of the run."""
    patch.setattr(MemoryRunStore, "_held", lambda self, lease: self._found(lease.run_id))
    patch.setattr(RunTables, "_held", lambda self, lease: None)


def anybody_takes(patch: pytest.MonkeyPatch) -> None:
    """A lease that is held goes to the next one that asks."""
    for store in STORES:
        patch.setattr(store, "granted", lambda run_id, held_by, left, own, gone: not own)


def old_fence(patch: pytest.MonkeyPatch) -> None:
    """A new holder has the fence of the one before."""
    for store in STORES:
        granted = vars(store)["granted"]
        patch.setattr(store, "granted", lambda *args, granted=granted, **options: granted(*args, **options) and False)


def endless_lease(patch: pytest.MonkeyPatch) -> None:
    """A lease that is over is still held."""
    for store in STORES:
        granted = vars(store)["granted"]
        patch.setattr(
            store, "granted", lambda run, by, left, own, gone, real=granted: real(run, by, 1.0, own=own, gone=gone)
        )


def everybody_gone(patch: pytest.MonkeyPatch) -> None:
    """The process of every holder is taken for gone."""
    for store in STORES:
        granted = vars(store)["granted"]
        patch.setattr(
            store, "granted", lambda run, by, left, own, gone, real=granted: real(run, by, left, own=own, gone=True)
        )


def endless_state(patch: pytest.MonkeyPatch) -> None:
    """A run holds whatever it is given."""
    for store in STORES:
        patch.setattr(store, "check_state", lambda *_: None)


BROKEN: list[tuple[Break, Callable[..., Any]]] = [
    (no_fence, RunStoreContract.test_a_run_that_was_given_back_can_be_taken_at_once),
    (old_fence, RunStoreContract.test_a_holder_past_its_time_writes_nothing_once_another_took_over),
    (endless_lease, RunStoreContract.test_a_holder_past_its_time_writes_nothing_once_another_took_over),
    (anybody_takes, RunStoreContract.test_one_process_holds_a_run),
    (everybody_gone, RunStoreContract.test_one_process_holds_a_run),
    (endless_state, RunStoreContract.test_a_run_holds_a_mebibyte_and_no_more),
]


class Judged(RunStoreContract):
    """The promises for one kind of store."""

    def __init__(self, file: Path | None) -> None:
        self.time = 1_700_000_000.0
        self.file = file
        self.memory = MemoryRunStore(now=self.now, wall=self.now)

    def process(self) -> Any:
        """Return a store of one more process."""
        if self.file is None:
            return self.memory
        return SqliteRunStore(self.file, here=lambda: ClockReading("boot", self.now(), self.now()))


@pytest.mark.parametrize("kind", ["memory", "file"])
@pytest.mark.parametrize(
    ("spoil", "promise"), BROKEN, ids=[f"{each.__name__}-{n}" for n, (each, _) in enumerate(BROKEN)]
)
def test_a_broken_store_is_caught(
    tmp_path: Path, kind: str, spoil: Break, promise: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the break the promise holds."""
    asyncio.run(promise(Judged(tmp_path / "well.db" if kind == "file" else None)))
    spoil(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception, SmartRouterError)):
        asyncio.run(promise(Judged(tmp_path / "broken.db" if kind == "file" else None)))
