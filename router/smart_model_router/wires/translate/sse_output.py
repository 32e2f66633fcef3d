"""A stream event of our own making, as its dialect writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.dialects import EVENT_READERS
from smart_model_router.wires.translate.words import dumps

if TYPE_CHECKING:
    from smart_model_router.domain.outcome import StreamEvent
    from smart_model_router.domain.request import Dialect


def written(dialect: Dialect, data: dict[str, Any]) -> StreamEvent:
    """The event with this data: all dialects but Chat name their events."""
    name = "" if dialect == "chat" else f"event: {data['type']}\n"
    raw = f"{name}data: {dumps(data)}\n\n".encode(errors="backslashreplace")
    return EVENT_READERS[dialect](name.encode()[7:-1], data, raw)
