"""Snapshots in a stream: events that repeat a text, arguments or reasoning whole, beside the deltas that carry it.

Some providers put into a snapshot what no delta carried. A caller who reads deltas, and every translation, would lose
it while the answer ends well. So deltas are made of what a snapshot adds; one that contradicts the deltas before it is
an event that cannot be read.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from smart_model_router.wires.snapshots.chat import ChatSnapshots
from smart_model_router.wires.snapshots.messages import MessagesSnapshots
from smart_model_router.wires.snapshots.responses import ResponsesSnapshots

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from smart_model_router.domain.outcome import StreamEvent
    from smart_model_router.domain.request import Dialect


class Snapshots(Protocol):
    """Follows one stream of a provider."""

    def read(self, events: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
        """The events, with deltas for what only a snapshot among them says; MALFORMED instead of a contradiction."""
        ...


_READERS: Mapping[Dialect, Callable[[], Snapshots]] = MappingProxyType(
    {"chat": ChatSnapshots, "messages": MessagesSnapshots, "responses": ResponsesSnapshots}
)


def snapshots(dialect: Dialect) -> Snapshots:
    """The reader of snapshots for one stream of a streaming dialect."""
    return _READERS[dialect]()
