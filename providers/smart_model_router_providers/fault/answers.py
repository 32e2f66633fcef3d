"""A good answer in parts, and how its parts are written: what every dialect's module shares."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CREATED = 1_763_683_200  # one fixed stamp: the same seed gives the same bytes
EVENT_STREAM = "text/event-stream; charset=utf-8"
JSON = "application/json"
PING = b'event: ping\ndata: {"type": "ping"}\n\n'


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """A good answer in parts: what opens a stream, its pieces of content, and what closes it.

    A whole answer is content (the first half of the body) and closing (the second).
    """

    stream: bool
    opening: tuple[bytes, ...]
    content: tuple[bytes, ...]
    closing: tuple[bytes, ...]


def dumps(value: object) -> bytes:
    """JSON as it goes over the wire."""
    return json.dumps(value, separators=(",", ":")).encode()


def whole_answer(value: object) -> ScriptedAnswer:
    """An answer that is no stream."""
    body = dumps(value)
    half = len(body) // 2
    return ScriptedAnswer(stream=False, opening=(), content=(body[:half],), closing=(body[half:],))


def data_frame(value: object) -> bytes:
    """A server-sent event without a name."""
    return b"data: " + dumps(value) + b"\n\n"


def named_frame(value: Mapping[str, Any]) -> bytes:
    """A server-sent event named by its type."""
    return b"event: " + str(value["type"]).encode() + b"\n" + data_frame(value)
