"""The parts of the promises of RunSaver: what a test gets, and checkpoints to keep."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, CheckpointTuple

from smart_model_router_research.engine import RunSaver, SupportsGraphs


def of(thread_id: object = "t", checkpoint: str | None = None, space: str = "") -> RunnableConfig:
    """Return the configuration of a thread, or of one of its checkpoints."""
    named = {} if checkpoint is None else {"checkpoint_id": checkpoint}
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": space, **named}}


def new(checkpoint: str, values: Mapping[str, Any] | None = None, version: int = 1, **more: Any) -> Checkpoint:
    """Make a checkpoint whose channels are all of one version."""
    made: dict[str, Any] = {"v": 4, "id": checkpoint, "ts": "2026-01-01", "versions_seen": {}, "updated_channels": None}
    made |= {"channel_values": dict(values or {}), "channel_versions": dict.fromkeys(values or {}, version)}
    return cast("Checkpoint", made | more)


def kept(
    saver: RunSaver, checkpoint: str, values: Mapping[str, Any] | None = None, parent: str | None = None, **more: Any
) -> RunnableConfig:
    """Keep a checkpoint of thread t, all of whose channels are new."""
    made, thread = new(checkpoint, values), of(more.pop("thread_id", "t"), parent, more.pop("space", ""))
    return saver.put(
        thread, made, cast("CheckpointMetadata", {"source": "loop", "step": 1, **more}), made["channel_versions"]
    )


def ids(found: Sequence[CheckpointTuple]) -> list[str]:
    """Return the ids of checkpoints."""
    return [each.checkpoint["id"] for each in found]


class SaverTests(ABC):
    """Tests of a saver on one kind of store."""

    @pytest.fixture(autouse=True)
    def _clock(self) -> None:
        self.time = 1_700_000_000.0

    def now(self) -> float:
        """Return the wall clock, moved by hand."""
        return self.time

    @abstractmethod
    def process(self) -> SupportsGraphs:
        """Return a store of one more process, that shares the threads of the others of this test."""

    @abstractmethod
    def fresh(self) -> SupportsGraphs:
        """Return a store that shares nothing."""

    def saver(self, **options: Any) -> RunSaver:
        """Return a saver of one more process."""
        return RunSaver(self.process(), **options)
