"""Messages: a call's start may hold its whole input, which its deltas then repeat.

A text or thought that its block's start holds is a part of it, to which the deltas add: that is no snapshot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.snapshots.comparison import contradiction, is_same_json
from smart_model_router.wires.values import count, is_object, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from smart_model_router.domain.outcome import StreamEvent


class MessagesSnapshots:
    """One stream."""

    __slots__ = ("_given",)

    def __init__(self) -> None:
        self._given: dict[int, tuple[Mapping[str, Any], list[str]]] = {}
        """By the index of an open call: the input that its start holds, and the pieces of its deltas."""

    def read(self, events: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
        """The events; MALFORMED instead of the end of a call whose start holds another input than its deltas."""
        return [self._read(event) if event.text is None and event.data else event for event in events]

    def _read(self, event: StreamEvent) -> StreamEvent:
        data = mapping(event.data)
        kind, at = data.get("type"), count(data.get("index")) or 0
        if kind == "content_block_start":
            given = mapping(data.get("content_block")).get("input")
            if given and is_object(given):
                self._given[at] = given, []
        elif at in self._given and kind == "content_block_delta":
            self._given[at][1].append(text(mapping(data.get("delta")).get("partial_json")))
        elif at in self._given and kind == "content_block_stop":
            given, pieces = self._given.pop(at)
            told = "".join(pieces)
            if told and not is_same_json(told, given):
                return contradiction(event, "the input in a call's start")
        return event
