"""The log: one JSON line a request and one a transition, through structlog, redacted. It may block: see worker.py."""

from __future__ import annotations

import json
import os
import sys
import time
import zlib
from collections.abc import Callable, Mapping, MutableMapping
from datetime import UTC, datetime
from json.encoder import encode_basestring_ascii as _quoted
from operator import attrgetter
from pathlib import Path
from typing import Any, TextIO

import structlog
from pydantic_core import PydanticSerializationError, to_json
from structlog.typing import Processor

from smart_model_router.domain.events import (
    ALIKE,
    AttemptFinished,
    BreakerChanged,
    ContentSeen,
    Event,
    OfflineChanged,
    OperatorSpoke,
    RequestFinished,
    RestStarted,
    SheddingChanged,
    StoreChanged,
    TargetRefused,
)
from smart_model_router.domain.fork_hooks import in_children
from smart_model_router.domain.redaction import Scrubber
from smart_model_router.observability.worker import OpenRequests

_TEXT_LIMIT = 500
_WORDS = 2_000
_OUR_OWN = frozenset({"at", "event", "level", "request_id", "content"})
"""Fields with values of our own alone, and content, which the configuration permits as it is."""


class Redaction:
    """A structlog processor: no value keeps anything that looks like a secret, nor any of `known` secrets.

    `known` are the configuration's own: those are found even where they do not look like a key. Names recur in every
    line: the result for a text is remembered.
    """

    def __init__(self, known: tuple[str, ...] = ()) -> None:
        self._scrubber = Scrubber(known)
        self._seen: dict[str, str] = {}

    def __call__(self, _logger: object, _method: str, line: MutableMapping[str, Any]) -> Mapping[str, Any]:
        """The line without secrets."""
        seen = self._seen
        for key, value in line.items():
            if key in _OUR_OWN:
                continue
            if value.__class__ is str:
                known = seen.get(value)
                line[key] = self.clean(value) if known is None else known
            elif value and value.__class__ is not float and value.__class__ is not int:
                line[key] = self.clean(value)
        return line

    def clean(self, value: Any) -> Any:
        """A value without secrets, however deep."""
        if isinstance(value, str):
            known = self._seen.get(value)
            if known is None:
                if len(self._seen) >= _WORDS:
                    self._seen.clear()
                known = self._scrubber.text(value)[:_TEXT_LIMIT]
                if len(value) <= _TEXT_LIMIT:  # a longer one is no name, and the caller decides its length
                    self._seen[value] = known
            return known
        if isinstance(value, Mapping):
            return {key: self.clean(member) for key, member in value.items()}
        return [self.clean(member) for member in value] if isinstance(value, (list, tuple)) else value


class LogFile:
    """A file to which whole lines are appended: processes may share it. Only its owner can read it."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, text: str) -> int:
        """Append the text in one write if the system takes it whole, else in several. Raises OSError."""
        left = text.encode("utf-8", "replace")
        while left:
            left = left[os.write(self._descriptor, left) :]
        return len(text)

    def flush(self) -> None:
        """Do nothing: there is no buffer."""

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def opened(target: str) -> TextIO | LogFile:
    """Open the output of a log: `stderr`, `stdout`, or the path of a file. Raises OSError.

    A process that has no such stream (a service, a program without a console) writes into nothing, as `print` does.
    """
    streams: dict[str, TextIO | None] = {"stderr": sys.stderr, "stdout": sys.stdout}
    if target in streams:
        return streams[target] or LogFile(Path(os.devnull))
    return LogFile(Path(target).expanduser())


TRANSITIONS: dict[type, str] = {
    BreakerChanged: "breaker",
    OperatorSpoke: "operator",
    RestStarted: "rest",
    OfflineChanged: "offline",
    SheddingChanged: "shedding",
    StoreChanged: "store",
}
"""Events that are a line of their own, each with the name of the line."""
FINE = frozenset({"ok"})
"""Outcomes that are sampled; every other one always has its line."""

_SAMPLES = 1 << 32
_REST_LIMIT = 2_000
_LINES = 64
"""Lines of one write at most. A write releases the interpreter lock: one a line would cost more than the line."""
_same = attrgetter(*ALIKE)
_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode  # json.dumps would make one a line


def _encoded(line: Any, **_options: Any) -> str:
    """JSON, written by pydantic's encoder: a fourth of what the standard library's takes."""
    try:
        return to_json(line, fallback=str).decode()
    except PydanticSerializationError:  # a name with half a character in it: escaped, it is JSON all the same
        return _encode(line)


class LogSink:
    """Writes JSON lines to `stream`, gathered until `caught_up`.

    `fine_share` in (0, 1] is the share of requests without trouble that have a line. The request's id selects them:
    every process, and every run, selects the same ones. A provider's own text is never in a line (it may echo a
    prompt): a failure has its target, class and status. `clock` is that of the events' instants.
    """

    def __init__(
        self,
        stream: TextIO | LogFile,
        *,
        fine_share: float = 1.0,
        secrets: tuple[str, ...] = (),
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,  # noqa: TID251 - stamps for people
    ) -> None:
        # The processors themselves, without a logger: it would copy the line at each of its calls.
        self._chain: tuple[Processor, ...] = (
            structlog.processors.add_log_level,
            Redaction(secrets),
            structlog.processors.JSONRenderer(serializer=_encoded),
        )
        self._stream = stream
        self._sampled = fine_share < 1.0
        self._fine_below = fine_share * _SAMPLES
        self._clock = clock
        self._wall = wall
        self._second = (0, "")
        self._rests: dict[tuple[object, ...], str] = {}
        """The common part of the lines of requests, as it is written."""
        self._seen: ContentSeen | None = None
        """The newest content: it comes right before the end of its request."""
        self._begin_anew()
        in_children(self._begin_anew)
        self._handlers: dict[type, Callable[[Any], None]] = {
            RequestFinished: self._request,
            AttemptFinished: self._attempt,
            TargetRefused: self._refusal,
            ContentSeen: self._content,
            **dict.fromkeys(TRANSITIONS, self._transition),
        }

    def _begin_anew(self) -> None:
        """Begin with no lines: at the start, and in a forked process, whose parent writes the lines there were."""
        self._lines: list[str] = []
        self._offset: float | None = None
        """From the events' clock to seconds since the epoch, read once for lines that are written together."""
        self._open = OpenRequests[str]()
        """The failures so far of requests that are not over."""

    def wants(self, event: Event) -> bool:
        """Return True if `emit` uses the event; callable on any thread."""
        if isinstance(event, AttemptFinished):
            return event.failure_class is not None
        return type(event) in self._handlers

    def emit(self, event: Event) -> None:
        """Add the event's line, or remember the event for its request's line."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)

    def caught_up(self) -> None:
        """Write the gathered lines. Raises OSError; those lines are lost then."""
        self._offset = None
        if self._lines:
            text = "\n".join((*self._lines, ""))
            self._lines.clear()
            self._stream.write(text)
            self._stream.flush()

    def close(self) -> None:
        """Close the file; the process's own streams stay open."""
        if isinstance(self._stream, LogFile):
            self._stream.close()

    def _attempt(self, event: AttemptFinished) -> None:
        if event.failure_class is not None:
            status = "" if event.status is None else f" {event.status}"
            reason = f" ({event.reason})" if event.reason else ""
            self._open.note(event.request_id, f"{event.target} {event.failure_class.value}{status}{reason}")

    def _refusal(self, event: TargetRefused) -> None:
        self._open.note(event.request_id, f"{event.target} refused {event.reason}")

    def _content(self, event: ContentSeen) -> None:
        self._seen = event

    def _transition(self, event: Event) -> None:
        told = {key: _plain(getattr(event, key)) for key in event.__dataclass_fields__ if key != "at"}
        self._write(self._rendered("warning", {"event": TRANSITIONS[type(event)], "at": self._stamp(event.at), **told}))

    def _request(self, event: RequestFinished) -> None:
        request_id, fine = event.request_id, event.outcome in FINE and not event.notes
        trouble = self._open.take(request_id)
        if fine and self._sampled and zlib.crc32(request_id.encode()) >= self._fine_below:
            return
        ttft, seen = event.ttft_seconds, self._seen
        if trouble or (seen is not None and seen.request_id == request_id):
            rest = self._rest_of(event, trouble, seen)
        else:
            same = _same(event)
            known = self._rests.get(same)
            rest = known or self._rest_of(event, [], None)
            if known is None and len(rest) <= _REST_LIMIT:  # a longer one contains names that the caller chose
                if len(self._rests) >= _WORDS:
                    self._rests.clear()
                self._rests[same] = rest
        self._write(
            f'{{"event":"request","at":"{self._stamp(event.at)}","request_id":{_quoted(request_id)},'
            f'"seconds":{event.seconds:.6f},"waited_seconds":{event.waited_seconds:.6f},'
            f'"ttft_seconds":{"null" if ttft is None else f"{ttft:.6f}"},{rest}'
        )

    def _rest_of(self, event: RequestFinished, trouble: list[str], seen: ContentSeen | None) -> str:
        """The part of a line that most requests share with one before."""
        rest: dict[str, Any] = {**dict(zip(ALIKE, _same(event), strict=True)), "trouble": trouble}
        if seen is not None and seen.request_id == event.request_id:
            rest["content"] = {"mode": seen.mode, "prompt": seen.prompt, "answer": seen.answer}
        return self._rendered("info" if event.outcome in FINE else "warning", rest).removeprefix("{")

    def _rendered(self, level: str, line: dict[str, Any]) -> str:
        told: Any = line
        for step in self._chain:
            told = step(None, level, told)
        return str(told)

    def _write(self, line: str) -> None:
        self._lines.append(line)
        if len(self._lines) >= _LINES:
            self.caught_up()

    def _stamp(self, instant: float) -> str:
        if self._offset is None:
            self._offset = self._wall() - self._clock()
        milliseconds = int((instant + self._offset) * 1000)
        second = milliseconds // 1000
        if second != self._second[0]:  # most lines are of the same second
            self._second = (second, datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S"))
        return f"{self._second[1]}.{milliseconds % 1000:03d}+00:00"


def _plain(value: object) -> object:
    return round(value, 6) if isinstance(value, float) else value
