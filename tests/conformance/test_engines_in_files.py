"""Every engine of ours keeps the promises of an ExecutionEngine also with its runs in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import TypeVar

import pytest

from smart_model_router.domain.shared_state import ClockReading
from smart_model_router.testing import LoopClock
from smart_model_router_research.engine import ExecutionEngine, KahnEngine, RunStore, SqliteRunStore, check_engine
from smart_model_router_research.engine.engine_selector import ENGINES
from smart_model_router_research.engine.run_schema import RUN_MIGRATIONS
from smart_model_router_stats.open_db import GuardedConnection
from smart_model_router_stats.sqlite_file import SqliteFile
from tests.conformance.engine_loops import LoopContract
from tests.conformance.engines import EngineContract

T = TypeVar("T")


class InlineFile(SqliteFile):
    """A file whose work is done at once: a thread would take real time, and virtual time has none to wait with."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, RUN_MIGRATIONS, pragmas=("synchronous = OFF", "foreign_keys = ON"))
        self.handle = self.opened()

    async def ask(self, work: Callable[[GuardedConnection], T]) -> T:
        """Do it now."""
        return work(self.handle)


class FileContract(EngineContract):
    """The promises, with runs in files."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> Iterator[None]:
        self.names = (tmp_path / f"{number}.db" for number in count())
        with ExitStack() as self.opened:
            yield

    def store(self) -> RunStore:
        """Return one in a new file, on the clock of the loop."""
        store = SqliteRunStore(
            path := next(self.names), here=lambda: ClockReading("virtual", LoopClock().now(), LoopClock().now())
        )
        store._file = file = InlineFile(path)
        self.opened.callback(file.handle.close)
        return store


class TestKahnEngineInFiles(FileContract):
    """The engine without extras."""

    def engine(self, store: RunStore) -> ExecutionEngine:
        """Return one."""
        return check_engine(KahnEngine(store))


class TestLangGraphEngineInFiles(FileContract, LoopContract):
    """The engine of the extra."""

    def engine(self, store: RunStore) -> ExecutionEngine:
        """Return one."""
        return check_engine(ENGINES["langgraph"](store))
