"""A router's stream as the frames a client gets: events as they came, our name of the model, never a silent end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from smart_model_router.edge.asking import Ask
from smart_model_router.edge.problems import Problem, error_body, problem_of
from smart_model_router.edge.relabel import Relabel, frame
from smart_model_router.errors import StreamInterrupted
from smart_model_router.outcome import EventKind, StreamEvent
from smart_model_router.report import RouteReport
from smart_model_router.request import Dialect
from smart_model_router.runtime.streaming import RouterStream

_CONTENT: Final = EventKind.CONTENT  # a global, as it is asked for each chunk: members are slow to find in their class

PINGS: Mapping[Dialect, bytes] = MappingProxyType(
    {
        "chat": b": ping\n\n",
        "messages": b'event: ping\ndata: {"type": "ping"}\n\n',
        "responses": b": ping\n\n",
    }
)
"""What keeps a silent connection alive without meaning anything."""

_TERMINATORS: Mapping[Dialect, bytes] = MappingProxyType(
    {"chat": b"data: [DONE]\n\n", "messages": b'event: message_stop\ndata: {"type":"message_stop"}\n\n'}
)


def error_frame(problem: Problem, dialect: Dialect) -> bytes | None:
    """The event that tells of a problem once the head is sent; None: the stream is to be cut instead.

    Clients of Responses ask again after a cut, and take `response.failed` for the last word.
    """
    if dialect == "responses":
        return None
    return frame(dialect, error_body(problem, "anthropic" if dialect == "messages" else "openai"))


class EdgeStream:
    """The frames of one stream. `start` waits for the first content; `next_frame` gives bytes until None.

    Both are awaited on one and the same loop.

    The last frames (usage, terminator) are held until the stream is known to be complete and its cost is known.
    """

    def __init__(self, stream: RouterStream, ask: Ask, *, real_model: bool = False) -> None:
        self._stream = stream
        self._dialect: Dialect = ask.dialect
        self._relabel = None if real_model else Relabel(ask.models[0], self._dialect)
        options = ask.body.get("stream_options")
        self._completion = ask.completion
        self._usage_wanted = isinstance(options, Mapping) and options.get("include_usage") is True
        self._next = stream.next_events
        self._first: Sequence[StreamEvent] = ()
        self._tail: list[StreamEvent] = []
        self._ended = False

    @property
    def dialect(self) -> Dialect:
        """The client's dialect."""
        return self._dialect

    @property
    def report(self) -> RouteReport:
        """What happened so far."""
        return self._stream.report

    async def start(self) -> None:
        """Wait until somebody has begun to answer. Raises SmartRouterError when nobody can."""
        self._first = await self._next()
        self._next = self._stream.reader()  # the way there may be shorter now that the router has a home
        if self._completion is not None:
            self._stream.report.losses[:0] = self._completion.losses

    async def next_frame(self) -> bytes | None:
        """The next bytes for the client, None after the last.

        A failure after content is told in a last frame, or, where the dialect has none, raised: StreamInterrupted.
        """
        while not self._ended:
            events, self._first = self._first, ()
            try:
                events = events or await self._next()
            except StreamInterrupted as cut:
                self._ended = True
                told = error_frame(problem_of(cut), self._dialect)
                if told is None:
                    raise
                return self._flushed() + told
            if not events:
                self._ended = True
                return self._ending()
            ready = self._take(events[0]) if len(events) == 1 else b"".join([self._take(event) for event in events])
            if ready:
                return ready
        return None

    async def aclose(self) -> None:
        """Stop: the provider's connection is closed when this returns."""
        await self._stream.aclose()

    def abandon(self) -> None:
        """Stop at once, without waiting for the connection to close."""
        self._stream.abandon()

    def _take(self, event: StreamEvent) -> bytes:
        if event.kind is _CONTENT and not self._tail:
            return self._written(event)
        if event.kind is EventKind.END or (event.usage is not None and event.kind is not _CONTENT):
            if self._is_head(event):
                return self._written(event)
            self._tail.append(event)
            return b""
        if self._tail and event.kind is not EventKind.PING:
            return self._flushed() + self._written(event)
        return self._written(event)

    def _is_head(self, event: StreamEvent) -> bool:
        """Messages counts the prompt in its very first event."""
        return event.data is not None and event.data.get("type") == "message_start"

    def _written(self, event: StreamEvent) -> bytes:
        data = event.data
        if data is None:
            return event.raw
        if self._completion is not None:
            data = self._completion.chunk(data)
            if data is None:
                return b""
            raw = frame(self._dialect, data)
        else:
            raw = event.raw
        return raw if self._relabel is None else self._relabel.frame(raw, data)

    def _flushed(self) -> bytes:
        held, self._tail = self._tail, []
        return b"".join(self._written(event) for event in held if not self._is_only_ours(event))

    def _ending(self) -> bytes:
        cost = self.report.cost_usd
        if cost is not None:
            self._tail = [self._priced(event, cost) for event in self._tail]
        closed = any(event.kind is EventKind.END for event in self._tail)
        return self._flushed() + (b"" if closed else _TERMINATORS.get(self._dialect, b""))

    def _priced(self, event: StreamEvent, cost: float) -> StreamEvent:
        """The event with what it cost beside its token counts: a stream's head could not know."""
        usage = event.data.get("usage") if event.data is not None else None
        if event.data is None or not isinstance(usage, Mapping) or self._is_only_ours(event):
            return event
        data: dict[str, Any] = {**event.data, "usage": {**usage, "cost_usd": cost}}
        return StreamEvent(event.kind, frame(self._dialect, data), data, event.finish, event.usage)

    def _is_only_ours(self, event: StreamEvent) -> bool:
        """The usage chunk that only the router asked for."""
        if self._dialect != "chat" or self._usage_wanted or event.usage is None or event.data is None:
            return False
        return not event.data.get("choices")
