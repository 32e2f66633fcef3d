"""A store of runs as LangGraph's checkpoint saver: for any graph, in the file of the runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

try:
    from langgraph.checkpoint.base import (
        BaseCheckpointSaver,
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        CheckpointTuple,
        DeltaChannelHistory,
    )
    from langgraph.checkpoint.serde.base import SerializerProtocol
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        'RunSaver needs langgraph-checkpoint: pip install "smart-model-router[langgraph]"', name=error.name
    ) from error

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.engine.graph_codec import GraphCodec, config_of, key_of, thread_of
from smart_model_router_research.engine.graph_threads import (
    GraphThreads,
    GraphTransaction,
    StoredCheckpoint,
    SupportsGraphs,
)

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

_PAGE = 20
_STRATEGIES = ("keep_latest", "delete")


class RunSaver(BaseCheckpointSaver[int]):
    """Checkpoints of LangGraph graphs in a store of runs: `SqliteRunStore`, `MemoryRunStore`, or one of your own.

    A checkpoint that was acknowledged is as durable as the store's runs. A value that did not change is not kept
    again. Any number of processes, threads and loops may use one thread of a graph: their checkpoints are kept side by
    side, and the one with the greatest id is the latest.

    `serde` is strict by default: only the types that LangGraph calls safe are loaded, and no pickles; others raise
    TypesNotAllowed, which says how to allow them. With `retention_days`, threads that did not change for so long and
    wait for no decision are deleted, ten with each new thread; by default they stay.

    Every method may raise StoreUnavailable. Those that write raise TypeError for values that cannot be stored,
    ValueTooLarge, and ConfigurationError for an unfit thread_id.
    """

    def __init__(
        self,
        store: SupportsGraphs,
        *,
        serde: SerializerProtocol | None = None,
        retention_days: float | None = None,
    ) -> None:
        super().__init__(serde=serde or JsonPlusSerializer(allowed_msgpack_modules=None))
        if not isinstance(store, SupportsGraphs):
            raise ConfigurationError("store", store, "a store of runs with threads of graphs, such as SqliteRunStore")
        if retention_days is not None and not retention_days > 0:
            raise ConfigurationError("retention_days", retention_days, "a number above 0, or None to keep all threads")
        self._threads: GraphThreads = store.graph_threads
        self._retention_days = retention_days

    @property
    def _codec(self) -> GraphCodec:
        return GraphCodec(self.serde, self._threads.place)  # `with_allowlist` gives a copy another serializer

    def close(self) -> None:
        """Close what it holds open of a file, the store's own handle aside; safe to call twice."""
        self._threads.close()

    # ------------------------------------------------------------------------------------------------ writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keep a checkpoint; returns its configuration. Raises CheckpointTooNew for a format that could not be read."""
        new = self._codec.new(config, checkpoint, metadata, new_versions)
        self._threads.write(lambda tables: tables.put(new, self._retention_days))
        return config_of(new.thread_id, new.space, new.id)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Do as `put` does."""
        new = self._codec.new(config, checkpoint, metadata, new_versions)
        await self._threads.awrite(lambda tables: tables.put(new, self._retention_days))
        return config_of(new.thread_id, new.space, new.id)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keep the writes of a task of a checkpoint."""
        key, new = self._codec.new_writes(config, writes)
        self._threads.write(lambda tables: tables.put_writes(*key, task_id, task_path, new))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Do as `put_writes` does."""
        key, new = self._codec.new_writes(config, writes)
        await self._threads.awrite(lambda tables: tables.put_writes(*key, task_id, task_path, new))

    # ------------------------------------------------------------------------------------------------ reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint, the latest one where none is named. Raises CheckpointTooNew, TypesNotAllowed."""
        key = key_of(config)
        found = self._threads.read(lambda tables: tables.find(*key))
        return None if found is None else self._codec.tuple_of(found)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Do as `get_tuple` does."""
        key = key_of(config)
        found = await self._threads.aread(lambda tables: tables.find(*key))
        return None if found is None else self._codec.tuple_of(found)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the library's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, the greatest id first: of a thread, of a namespace, with these metadata, before another.

        Those are left out that are deleted while it is read. Raises CheckpointTooNew, TypesNotAllowed.
        """
        listing = _Listing(self._codec, config, filter, before, limit)
        while not listing.over:
            for found, metadata in self._threads.read(listing.page):
                yield self._codec.tuple_of(found, metadata)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the library's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Do as `list` does."""
        listing = _Listing(self._codec, config, filter, before, limit)
        while not listing.over:
            for found, metadata in await self._threads.aread(listing.page):
                yield self._codec.tuple_of(found, metadata)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return the value that each channel began with at an ancestor of a checkpoint, and its writes since.

        Raises StoreUnavailable where an ancestor was deleted that a channel goes on at: it would be wrong, not empty.
        """
        key = key_of(config)
        return self._codec.histories(key[0], self._threads.read(lambda tables: tables.history(*key, channels)))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Do as `get_delta_channel_history` does."""
        key = key_of(config)
        return self._codec.histories(key[0], await self._threads.aread(lambda tables: tables.history(*key, channels)))

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Return the next version of a channel: a number, or a text where another saver began the thread with texts."""
        del channel
        if not isinstance(current, str):
            return 1 if current is None else int(current) + 1
        number, dot, rest = current.partition(".")
        return f"{int(number) + 1:032}{dot}{rest}"

    # ------------------------------------------------------------------------------------------------ deleting

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread with all that belongs to it."""
        self._threads.write(lambda tables: tables.delete_thread(thread_of(thread_id)))

    async def adelete_thread(self, thread_id: str) -> None:
        """Do as `delete_thread` does."""
        await self._threads.awrite(lambda tables: tables.delete_thread(thread_of(thread_id)))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that runs have written (`run_id` in their metadata), in every thread."""
        runs = [str(run) for run in run_ids]
        self._threads.write(lambda tables: tables.delete_runs(runs))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Do as `delete_for_runs` does."""
        runs = [str(run) for run in run_ids]
        await self._threads.awrite(lambda tables: tables.delete_runs(runs))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread with all that belongs to it; the target's checkpoints of the same ids are replaced."""
        both = thread_of(source_thread_id), thread_of(target_thread_id)
        self._threads.write(lambda tables: tables.copy_thread(*both))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Do as `copy_thread` does."""
        both = thread_of(source_thread_id), thread_of(target_thread_id)
        await self._threads.awrite(lambda tables: tables.copy_thread(*both))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete threads (`delete`), or all of them but the latest checkpoint of each namespace (`keep_latest`).

        Of a DeltaChannel, the ancestors stay in which its value begins.
        """
        work = _pruning(thread_ids, strategy)
        self._threads.write(work)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Do as `prune` does."""
        work = _pruning(thread_ids, strategy)
        await self._threads.awrite(work)


class _Listing:
    """The pages of a list of checkpoints; `over` once there is no further one."""

    def __init__(
        self,
        codec: GraphCodec,
        config: RunnableConfig | None,
        wanted: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> None:
        given = {} if config is None else config.get("configurable", {})
        thread_id = given.get("thread_id")
        self._where = (
            None if thread_id is None else thread_of(thread_id),
            given.get("checkpoint_ns"),
            given.get("checkpoint_id") or None,
            None if before is None else before.get("configurable", {}).get("checkpoint_id") or None,
        )
        self._codec = codec
        self._wanted = (wanted or {}).items()
        self._left = limit
        self._last: StoredCheckpoint | None = None
        self.over = limit is not None and limit <= 0

    def page(self, tables: GraphTransaction) -> list[tuple[StoredCheckpoint, Any]]:
        """Return the next checkpoints that are wanted, with their metadata, out of so many rows."""
        rows = tables.page(*self._where, self._last, _PAGE)
        self.over = len(rows) < _PAGE
        self._last = rows[-1] if rows else None
        found = []
        for row in rows:
            if self._left == 0:
                self.over = True
                break
            with self._codec.loading(row.thread_id) as load:
                metadata = load(f"metadata of checkpoint {row.id!r}", row.metadata)
            if all(metadata.get(key) == value for key, value in self._wanted):
                found.append((tables.filled(row), metadata))
                self._left = None if self._left is None else self._left - 1
        return found


def _pruning(thread_ids: Sequence[str], strategy: str) -> Callable[[GraphTransaction], None]:
    """Return the work of pruning threads."""
    if strategy not in _STRATEGIES:
        raise ConfigurationError("strategy", strategy, f"one of {', '.join(_STRATEGIES)}")
    threads = [thread_of(thread_id) for thread_id in thread_ids]

    def work(tables: GraphTransaction) -> None:
        for thread_id in threads:
            if strategy == "delete":
                tables.delete_thread(thread_id)
            else:
                tables.prune(thread_id)

    return work
