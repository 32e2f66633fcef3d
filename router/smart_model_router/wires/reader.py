"""A provider's byte stream, read as events: frames, their meaning, and one running count of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, StreamEvent, Usage
from smart_model_router.wires.alike import Alike, alike
from smart_model_router.wires.dialects import read_event
from smart_model_router.wires.sse import SseParser

if TYPE_CHECKING:
    from smart_model_router.domain.request import Dialect


_LESSONS = 5
"""How often a stream's chunks are believed to be alike: those of some providers never are (OpenAI's obfuscation)."""


class StreamReader:
    """Reads one stream of one dialect. `usage` of an event is the count of the whole stream up to it.

    Messages sends the prompt's count at the head and the answer's at the end: the newest wins field by field.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._dialect: Dialect = dialect
        self._frames = SseParser()
        self._usage: Usage | None = None
        self._arrived = False
        self._alike: Alike | None = None
        self._lessons = _LESSONS if dialect == "chat" else 0

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        """Every event that `chunk` completes, in order."""
        # Between two frames, what begins and ends as one frame and has no line break in between is one.
        if self._alike is not None and self._frames.between and (known := self._alike.read(chunk)) is not None:
            return [known]
        self._arrived = self._arrived or bool(chunk)
        return [self._read(frame) for frame in self._frames.feed(chunk)]

    def end(self) -> list[StreamEvent]:
        """The transport ended cleanly: an event that only lacks its blank line counts, half of one is cut."""
        rest = self._frames.flush()
        if not rest:
            return []
        event = self._read(rest.rstrip(b"\r\n") + b"\n\n")
        if event.kind is EventKind.MALFORMED:
            return [self.cut("the stream ended inside an event")]
        return [event]

    def cut(self, message: str) -> StreamEvent:
        """The ERROR event of a transport that broke: TRUNCATED, or TRANSPORT when nothing had arrived."""
        found = FailureClass.TRUNCATED if self._arrived else FailureClass.TRANSPORT
        return StreamEvent(EventKind.ERROR, b"", failure=Failure(found, message))

    def _read(self, frame: bytes) -> StreamEvent:
        if self._alike is not None and (known := self._alike.read(frame)) is not None:
            return known
        event = read_event(self._dialect, frame)
        if event.usage is None:
            if self._lessons and (learned := alike(event)) is not None:
                self._alike = learned
                self._lessons -= 1
            return event
        if self._usage is None or self._usage == event.usage:
            self._usage = event.usage
            return event
        old, new = self._usage, event.usage
        self._usage = Usage(
            new.prompt_tokens or old.prompt_tokens,
            new.completion_tokens or old.completion_tokens,
            new.cached_prompt_tokens or old.cached_prompt_tokens,
        )
        return event._replace(usage=self._usage)
