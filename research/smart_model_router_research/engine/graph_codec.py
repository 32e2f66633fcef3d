"""The form in which checkpoints of LangGraph are kept, and back: values by a serializer, and errors that name them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.engine.graph_threads import (
    VALUE_LIMIT,
    ChannelHistory,
    CheckpointTooNew,
    GraphValue,
    GraphWrite,
    NewCheckpoint,
    StoredCheckpoint,
    TypesNotAllowed,
    ValueTooLarge,
    shown_thread,
)
from smart_model_router_research.engine.store_port import StoreUnavailable
from smart_model_router_research.engine.store_rules import whole_characters

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

NEWEST_FORMAT = 4
"""The newest `v` of a checkpoint that the pinned releases of LangGraph write (`pregel/_checkpoint.py`)."""
_DELTAS = "counters_since_delta_snapshot"
"""The metadata that name the channels of which a checkpoint has no value of its own."""
Load = Callable[[str, GraphValue], Any]
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, NotImplementedError)


class GraphCodec:
    """Checkpoints and writes as rows, by a serializer. Errors of reading name the store as `place`."""

    def __init__(self, serde: SerializerProtocol, place: str) -> None:
        self._serde = serde
        self._place = place

    def new(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> NewCheckpoint:
        """Return a checkpoint to keep. Raises TypeError, ValueTooLarge, CheckpointTooNew, ConfigurationError."""
        thread_id, space, parent = key_of(config)
        checkpoint_id = _text("checkpoint id", checkpoint["id"])
        _check_format(thread_id, checkpoint_id, checkpoint["v"])
        values, kept = checkpoint["channel_values"], get_checkpoint_metadata(config, metadata)
        body = {key: value for key, value in checkpoint.items() if key not in {"channel_values", "channel_versions"}}
        what = f"checkpoint {checkpoint_id!r}"

        def value_of(name: str) -> GraphValue | None:
            return self.stored(thread_id, f"channel {name!r}", values[name]) if name in values else None

        encoded = {name: value_of(name) for name in new_versions}
        run = kept.get("run_id")
        return NewCheckpoint(
            thread_id=thread_id,
            space=space,
            id=checkpoint_id,
            parent=parent,
            run=None if run is None else str(run),
            format=checkpoint["v"],
            body=self.stored(thread_id, what, body),
            metadata=self.stored(thread_id, f"the metadata of {what}", kept),
            versions=checkpoint["channel_versions"],
            changed=new_versions.keys(),
            values={name: value for name, value in encoded.items() if value is not None},
            unchanged=value_of,
            deltas=list(cast("Mapping[str, Any]", kept).get(_DELTAS) or ()),
        )

    def new_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]]
    ) -> tuple[tuple[str, str, str], Sequence[GraphWrite]]:
        """Return the key of a checkpoint, and writes to keep. Raises TypeError, ValueTooLarge, ConfigurationError."""
        thread_id, space, checkpoint = key_of(config)
        if checkpoint is None:
            raise ConfigurationError("configurable.checkpoint_id", None, "writes belong to a checkpoint: its id")
        new = [
            GraphWrite(
                position=WRITES_IDX_MAP.get(name, position),
                channel=name,
                value=self.stored(thread_id, f"a write to {name!r}", value),
            )
            for position, (name, value) in enumerate(writes)
        ]
        return (thread_id, space, checkpoint), new

    def stored(self, thread_id: str, what: str, value: object) -> GraphValue:
        """Return a value as it is kept; errors name `what` it is. Raises TypeError, ValueTooLarge."""
        try:
            type_, content = self._serde.dumps_typed(value)
        except (TypeError, ValueError, AttributeError) as error:
            reason = f"{shown_thread(thread_id)}: {what}, a {type(value).__name__}, cannot be stored: {error}"
            raise TypeError(reason) from error
        if len(content) > VALUE_LIMIT:
            raise ValueTooLarge(thread_id, what, len(content))
        return GraphValue(type_, bytes(content))

    @contextmanager
    def loading(self, thread_id: str) -> Generator[Load]:
        """Give a function that loads values of a thread that were kept, and names what each is in its errors.

        It raises StoreUnavailable, and TypesNotAllowed when the serializer left an object as its data, which that only
        logs.
        """
        blocked, me = list[tuple[str, str]](), get_ident()

        def listen(event: SerdeEvent) -> None:
            if event["kind"] in {"msgpack_blocked", "msgpack_method_blocked"} and get_ident() == me:
                blocked.append((event["module"], event["name"]))

        def load(what: str, value: GraphValue) -> Any:
            try:
                loaded = self._serde.loads_typed((value.type, value.content))
            except _UNREADABLE as error:
                reason = f"{shown_thread(thread_id)}: its {what} cannot be read: {type(error).__name__}: {error}"
                raise StoreUnavailable(self._place, reason) from error
            if blocked:
                raise TypesNotAllowed(thread_id, what, blocked)
            return loaded

        unregister = register_serde_event_listener(listen)
        try:
            yield load
        finally:
            unregister()

    def tuple_of(self, found: StoredCheckpoint, metadata: Any = None) -> CheckpointTuple:
        """Return a checkpoint that was kept, with its metadata where they are loaded already. Raises as `loading`."""
        _check_format(found.thread_id, found.id, found.format)
        what = f"checkpoint {found.id!r}"
        with self.loading(found.thread_id) as load:
            body = load(what, found.body)
            metadata = load(f"metadata of {what}", found.metadata) if metadata is None else metadata
            values = {name: load(f"channel {name!r} of {what}", value) for name, value in found.values.items()}
            writes = [(task, name, load(f"write to {name!r} of {what}", value)) for task, name, value in found.writes]
        versions = {name: version for name, (version, _) in found.channels.items()}
        return CheckpointTuple(
            config=config_of(found.thread_id, found.space, found.id),
            checkpoint=cast("Checkpoint", {**body, "channel_values": values, "channel_versions": versions}),
            metadata=metadata,
            parent_config=None if found.parent is None else config_of(found.thread_id, found.space, found.parent),
            pending_writes=writes,
        )

    def histories(self, thread_id: str, found: Mapping[str, ChannelHistory]) -> dict[str, DeltaChannelHistory]:
        """Return the histories of channels. Raises as `loading`."""
        histories: dict[str, DeltaChannelHistory] = {}
        with self.loading(thread_id) as load:
            for name, history in found.items():
                what = f"history of channel {name!r}"
                histories[name] = {"writes": [(task, name, load(what, value)) for task, value in history.writes]}
                if history.seed is not None:
                    histories[name]["seed"] = load(what, history.seed)
        return histories


def _check_format(thread_id: str, checkpoint_id: str, found: int) -> None:
    if found > NEWEST_FORMAT:
        raise CheckpointTooNew(thread_id, checkpoint_id, found, NEWEST_FORMAT)


def key_of(config: RunnableConfig) -> tuple[str, str, str | None]:
    """Return thread, namespace and checkpoint that a configuration names."""
    given = config.get("configurable", {})
    checkpoint = given.get("checkpoint_id") or None
    return (
        thread_of(given.get("thread_id")),
        _text("configurable.checkpoint_ns", given.get("checkpoint_ns") or ""),
        None if checkpoint is None else _text("configurable.checkpoint_id", checkpoint),
    )


def thread_of(thread_id: object) -> str:
    """Return the id of a thread. An empty one, which an unset variable gives, would mix the threads of all users."""
    if isinstance(thread_id, UUID) or type(thread_id) is int:
        return str(thread_id)
    if thread_id is None or thread_id == "":
        raise ConfigurationError("configurable.thread_id", thread_id, "the name of a thread is needed")
    return _text("configurable.thread_id", thread_id)


def _text(name: str, value: object) -> str:
    """Return a text that a store can hold."""
    if not isinstance(value, str) or whole_characters(value) != value:
        raise ConfigurationError(name, value, "a text without halves of surrogate pairs is needed")
    return value


def config_of(thread_id: str, space: str, checkpoint: str) -> RunnableConfig:
    """Return the configuration that names a checkpoint."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": space, "checkpoint_id": checkpoint}}
