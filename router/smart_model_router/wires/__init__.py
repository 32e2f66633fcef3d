"""Pure: the dialects and server-sent events, as bytes and dicts.

A dialect is one module (chat.py, messages.py, responses.py) and one row in each table of dialects.py.
"""

from __future__ import annotations

from smart_model_router.wires.dialects import (
    ANSWER_READERS,
    STREAMING,
    SseParser,
    StreamReader,
    mended_answer,
    read_event,
    text_of,
    text_of_answer,
)
from smart_model_router.wires.outcomes import Answer

__all__ = [
    "ANSWER_READERS",
    "STREAMING",
    "Answer",
    "SseParser",
    "StreamReader",
    "mended_answer",
    "read_event",
    "text_of",
    "text_of_answer",
]
