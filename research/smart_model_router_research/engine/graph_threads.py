"""The port by which a store of runs keeps threads of LangGraph graphs: their checkpoints, values and writes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, runtime_checkable

from smart_model_router.domain.errors import SmartRouterError

T = TypeVar("T")
Version = int | float | str
VALUE_LIMIT = 64 * 1024 * 1024
"""Bytes that one value of a channel may have."""
_SHOWN = 100


class CheckpointTooNew(SmartRouterError):
    """A newer LangGraph wrote the checkpoint: its `format` is above the `newest` that is known here."""

    def __init__(self, thread_id: str, checkpoint_id: str, found: int, newest: int) -> None:
        super().__init__(
            f"{shown_thread(thread_id)}: checkpoint {checkpoint_id!r} has format {found}, and this release reads "
            f"formats up to {newest}: update smart-model-router"
        )
        self.thread_id = thread_id
        self.checkpoint_id = checkpoint_id
        self.format = found
        self.newest = newest


class ValueTooLarge(SmartRouterError):
    """`what` has `size` bytes, above `limit`: nothing was written."""

    def __init__(self, thread_id: str, what: str, size: int, limit: int = VALUE_LIMIT) -> None:
        super().__init__(
            f"{shown_thread(thread_id)}: {what} has {size} bytes, above {limit}: keep it elsewhere, and its name here"
        )
        self.thread_id = thread_id
        self.what = what
        self.size = size
        self.limit = limit


class TypesNotAllowed(SmartRouterError):
    """`what` holds objects whose types may not be loaded: `types`, each its module and its name. It stays stored."""

    def __init__(self, thread_id: str, what: str, types: Sequence[tuple[str, str]]) -> None:
        super().__init__(
            f"{shown_thread(thread_id)}: {what} holds types that may not be loaded; if you trust them: "
            f"RunSaver(store, serde=JsonPlusSerializer(allowed_msgpack_modules={list(types)}))"
        )
        self.thread_id = thread_id
        self.what = what
        self.types = tuple(types)


@dataclass(frozen=True, slots=True)
class GraphValue:
    """A value as a serializer made it: the name of its form, and its bytes."""

    type: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphWrite:
    """A write of a task. A special one has a position below 0, and replaces the one before it."""

    position: int
    channel: str
    value: GraphValue


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCheckpoint:
    """A checkpoint to keep. `values` are those of the channels that changed.

    `unchanged` returns the value of another channel, None for none: it is asked where the parent has not the same
    version. `deltas` are the channels whose value begins at an earlier checkpoint.
    """

    thread_id: str
    space: str
    id: str
    parent: str | None
    run: str | None
    format: int
    body: GraphValue
    metadata: GraphValue
    versions: Mapping[str, Version]
    changed: Collection[str]
    values: Mapping[str, GraphValue]
    unchanged: Callable[[str], GraphValue | None]
    deltas: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCheckpoint:
    """A checkpoint as it is kept. `values` by channel, `writes` in LangGraph's order: task, channel, value."""

    thread_id: str
    space: str
    id: str
    parent: str | None
    format: int
    body: GraphValue
    metadata: GraphValue
    channels: Mapping[str, tuple[Version, int | None]]
    values: Mapping[str, GraphValue] = field(default_factory=dict)
    writes: Sequence[tuple[str, str, GraphValue]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelHistory:
    """The value that a channel began with at an earlier checkpoint, None for none, and its writes since, in order."""

    seed: GraphValue | None
    writes: Sequence[tuple[str, GraphValue]]


class GraphTransaction(Protocol):
    """All reads and writes within one transaction. Raises StoreUnavailable, which names what cannot be read."""

    def put(self, new: NewCheckpoint, retention_days: float | None) -> None:
        """Keep a checkpoint; one of the same id is replaced. A value that the thread has is not kept again.

        With a new thread, ten are deleted that did not change for `retention_days` and wait for no decision.
        """
        ...

    def put_writes(
        self, thread_id: str, space: str, checkpoint: str, task: str, path: str, writes: Sequence[GraphWrite]
    ) -> None:
        """Keep writes of a task. One that is there stays, but for special ones."""
        ...

    def find(self, thread_id: str, space: str, checkpoint: str | None) -> StoredCheckpoint | None:
        """Return a checkpoint, by default the one with the greatest id; None when it is not there."""
        ...

    def page(
        self,
        thread_id: str | None,
        space: str | None,
        checkpoint: str | None,
        before: str | None,
        after: StoredCheckpoint | None,
        limit: int,
    ) -> list[StoredCheckpoint]:
        """Return checkpoints, without values and writes, the greatest id first; those that follow `after`."""
        ...

    def filled(self, found: StoredCheckpoint) -> StoredCheckpoint:
        """Return a checkpoint with its values and writes."""
        ...

    def history(
        self, thread_id: str, space: str, checkpoint: str | None, channels: Sequence[str]
    ) -> Mapping[str, ChannelHistory]:
        """Return the values of channels as they follow from the ancestors of a checkpoint, in their order."""
        ...

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread, if there is one."""
        ...

    def delete_runs(self, runs: Sequence[str]) -> None:
        """Delete the checkpoints that runs have written, in every thread."""
        ...

    def copy_thread(self, source: str, target: str) -> None:
        """Copy a thread; checkpoints of the target that have an id of the source are replaced."""
        ...

    def prune(self, thread_id: str) -> None:
        """Delete all checkpoints of a thread but the latest of each namespace, and those that its channels begin at."""
        ...


class GraphThreads(Protocol):
    """Threads of graphs for any number of OS threads and loops. Every method may raise StoreUnavailable."""

    place: str
    """The store, as errors name it."""

    def read(self, work: Callable[[GraphTransaction], T]) -> T:
        """Let `work` read at one instant; blocks."""
        ...

    def write(self, work: Callable[[GraphTransaction], T]) -> T:
        """Do `work` as one transaction, which is durable when this returns; blocks."""
        ...

    async def aread(self, work: Callable[[GraphTransaction], T]) -> T:
        """Do the same without blocking the loop."""
        ...

    async def awrite(self, work: Callable[[GraphTransaction], T]) -> T:
        """Do the same without blocking the loop; cancelled, it has done all or nothing."""
        ...

    def close(self) -> None:
        """Let go of what it holds open; safe to call twice, and to use it again."""
        ...


@runtime_checkable
class SupportsGraphs(Protocol):
    """A store of runs that keeps threads of graphs, too."""

    @property
    def graph_threads(self) -> GraphThreads:
        """Their place."""
        ...


def shown_thread(thread_id: str) -> str:
    """Return a thread's name for an error: an id may have kilobytes."""
    return f"thread {thread_id!r}" if len(thread_id) <= _SHOWN else f"thread {thread_id[:_SHOWN]!r}..."
