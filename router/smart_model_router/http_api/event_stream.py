"""A router's stream as the frames a client gets: events as they came, our name of the model, never a silent end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from smart_model_router.core.flow_config import ModelName
from smart_model_router.domain.outcome import EventKind, StreamEvent
from smart_model_router.domain.report import RouteReport
from smart_model_router.domain.request import Dialect
from smart_model_router.flow.router_stream import RouterStream
from smart_model_router.http_api.api_errors import Problem, error_body
from smart_model_router.http_api.api_request import ApiRequest
from smart_model_router.http_api.http_reply import encoded, model_of, router_object

_KEY = b'"model"'
_INSIDE: Mapping[Dialect, str] = MappingProxyType({"messages": "message", "responses": "response"})
"""Where an event holds the answer's head, `model` with it; elsewhere it is at the top."""


def name_for(mode: ModelName, asked: str, report: RouteReport) -> str:
    """The `model` of an answer to a request for `asked`, by `routing.model_name`."""
    if report.target is None or mode == "asked":
        return asked
    fallback = report.fallback or report.model != asked  # a stand-in of `models` is asked under its own name
    return model_of(report.target) if fallback or mode == "served" else asked


class Relabel:
    """Rewrites `model` in the answers to one request; bytes that need no rewriting stay as they came.

    A stream keeps the name it begins with, whichever target goes on with it.
    """

    __slots__ = ("_asked", "_dialect", "_inside", "_needle", "_new", "_of")

    def __init__(self, asked: str, dialect: Dialect) -> None:
        self._asked = asked
        self._dialect: Dialect = dialect
        self._inside = _INSIDE.get(dialect)
        self._new = _member(asked)
        self._of: str | None = None
        self._needle = b""

    def whole(self, raw: bytes, body: Mapping[str, Any]) -> bytes:
        """A whole answer, or the JSON of one event."""
        found = body.get("model")
        if found == self._asked or not isinstance(found, str):
            return raw
        quick = self._quick(raw, found)
        return quick if quick is not None else encoded({**body, "model": self._asked})

    def frame(self, raw: bytes, data: Mapping[str, Any]) -> bytes:
        """One server-sent event."""
        inside = self._inside
        holder: Any = data if inside is None else data.get(inside)
        # dict first: an abstract class is slow to ask.
        if inside is not None and not isinstance(holder, (dict, Mapping)):
            return raw
        found = holder.get("model")
        if found == self._asked or not isinstance(found, str):
            return raw
        quick = self._quick(raw, found)
        if quick is not None:
            return quick
        renamed = {**holder, "model": self._asked}
        return frame(self._dialect, renamed if inside is None else {**data, inside: renamed})

    def _quick(self, raw: bytes, found: str) -> bytes | None:
        """The bytes with one name replaced by another, where there is exactly one place that could be meant.

        Inside a JSON string every quote is escaped: the key with bare quotes is never part of a text.
        """
        if found != self._of:
            self._of = found
            self._needle = _member(found)
        # Not `in` and `count`: on bytes they take several times as long, and this is asked for each chunk of a stream.
        if raw.find(_KEY) != raw.rfind(_KEY) or raw.find(self._needle) < 0:
            return None
        return raw.replace(self._needle, self._new)


@lru_cache(maxsize=256)
def _member(name: str) -> bytes:
    """`"model":"name"`: there are few, and each comes with every request."""
    return _KEY + b":" + json.dumps(name).encode()


def frame(dialect: Dialect, data: Mapping[str, Any]) -> bytes:
    """A server-sent event with this data, as the dialect writes it: all but Chat name their events."""
    head = f"event: {data.get('type')}\n".encode() if dialect in _INSIDE else b""
    return head + b"data: " + encoded(data) + b"\n\n"


_CONTENT: Final = EventKind.CONTENT  # a global, as it is asked for each chunk: members are slow to find in their class

PINGS: Mapping[Dialect, bytes] = MappingProxyType(
    {
        "chat": b": ping\n\n",
        "messages": b'event: ping\ndata: {"type": "ping"}\n\n',
        "responses": b": ping\n\n",
    }
)
"""The frames that keep a silent connection alive and mean nothing."""

_TERMINATORS: Mapping[Dialect, bytes] = MappingProxyType(
    {"chat": b"data: [DONE]\n\n", "messages": b'event: message_stop\ndata: {"type":"message_stop"}\n\n'}
)


def error_frame(problem: Problem, dialect: Dialect) -> bytes | None:
    """The event that tells of a problem once the head is sent, before the connection is aborted; None: there is none.

    Clients of Responses ask again after an abort, and take an error event for the last word: they get one only for a
    verdict on the request itself, which no other attempt would change.
    """
    if dialect == "responses":
        if not problem.final:
            return None
        body = {"type": "error", "code": problem.kind.code, "message": problem.message, "param": None}
        return problem.event or frame(dialect, body)
    return frame(dialect, error_body(problem, "anthropic" if dialect == "messages" else "openai"))


class EdgeStream:
    """The frames of one stream. `start` waits for the first content; `next_frame` gives bytes until None.

    Both are awaited on one and the same loop.

    The last frames (finish reason, usage, terminator) are held until the stream is known to be complete: a stream that
    fails after all has none of them. With `reported` the finish reason has the `router` object beside it.
    """

    def __init__(
        self, stream: RouterStream, ask: ApiRequest, *, named: ModelName = "served_on_fallback", reported: bool = True
    ) -> None:
        self._stream = stream
        self._dialect: Dialect = ask.dialect
        self._asked = ask.models[0] if ask.models else ""
        self._named: ModelName = named
        self._relabel = Relabel(self._asked, self._dialect)
        options = ask.body.get("stream_options")
        self._completion = ask.completion
        self._usage_wanted = isinstance(options, Mapping) and options.get("include_usage") is True
        self._reported = reported
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
        """The report of the request so far."""
        return self._stream.report

    async def start(self) -> None:
        """Wait until a target has begun to answer. Raises SmartRouterError when none can."""
        self._first = await self._next()
        self._relabel = Relabel(name_for(self._named, self._asked, self._stream.report), self._dialect)
        self._next = self._stream.reader()  # the way there may be shorter now that the router has a home
        if self._completion is not None:
            self._stream.report.losses[:0] = self._completion.losses

    async def next_frame(self) -> bytes | None:
        """The next bytes for the client, None after the last. Raises StreamInterrupted for a failure after content.

        The reader then sends what `error_frame` makes of that, and aborts the connection.
        """
        while not self._ended:
            events, self._first = self._first, ()
            events = events or await self._next()
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
        if event.kind is _CONTENT and event.finish is None:
            if not self._tail:
                return self._written(event)
            return self._flushed() + self._written(event)  # of another choice, or of a block that was still open
        if event.kind is EventKind.PING or not (self._tail or self._is_last(event)):
            return self._written(event)
        self._tail.append(event)
        return b""

    def _is_last(self, event: StreamEvent) -> bool:
        """Return whether an event is one of the last: Messages counts the prompt in its very first."""
        if event.finish is not None or event.kind is EventKind.END:
            return True
        return event.usage is not None and not (event.data and event.data.get("type") == "message_start")

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
        return self._relabel.frame(raw, data)

    def _flushed(self) -> bytes:
        held, self._tail = self._tail, []
        return b"".join(self._written(event) for event in held if not self._is_only_ours(event))

    def _ending(self) -> bytes:
        places = [at for at, event in enumerate(self._tail) if event.finish is not None]
        if places and self._reported:
            self._tail[places[-1]] = self._with_report(self._tail[places[-1]])
        closed = any(event.kind is EventKind.END for event in self._tail)
        return self._flushed() + (b"" if closed else _TERMINATORS.get(self._dialect, b""))

    def _with_report(self, event: StreamEvent) -> StreamEvent:
        """The event with what a client may want to know of the routing: a stream's head could not know."""
        if event.data is None:
            return event
        data: dict[str, Any] = {**event.data, "router": router_object(self.report)}
        return event._replace(raw=frame(self._dialect, data), data=data)

    def _is_only_ours(self, event: StreamEvent) -> bool:
        """The usage chunk that only the router asked for."""
        if self._dialect != "chat" or self._usage_wanted or event.usage is None or event.data is None:
            return False
        return not event.data.get("choices")
