"""The log: one JSON line a request and one a transition, through structlog, redacted. It may block: see worker.py."""

from __future__ import annotations

import json
import os
import sys
import time
import zlib
from collections.abc import Callable, Mapping, MutableMapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO

import structlog
from pydantic_core import PydanticSerializationError, to_json
from structlog.typing import Processor

from smart_model_router.events import (
    AttemptFinished,
    BreakerChanged,
    ContentSeen,
    Event,
    OfflineChanged,
    RequestFinished,
    RestStarted,
    SheddingChanged,
    StoreChanged,
    TargetRefused,
)
from smart_model_router.redaction import Scrubber

TRANSITIONS: dict[type, str] = {
    BreakerChanged: "breaker",
    RestStarted: "rest",
    OfflineChanged: "offline",
    SheddingChanged: "shedding",
    StoreChanged: "store",
}
"""Events that are a line of their own, and what the line is called."""
FINE = frozenset({"ok"})
"""Outcomes that are sampled; every other one is always told."""

_OPEN_REQUESTS = 4096
_SAMPLES = 1 << 32
_TEXT_LIMIT = 500
_WORDS = 2_000
_LINES = 64
"""Lines of one write at most. A write gives the interpreter away: one for each line would cost more than the line."""
_OUR_OWN = frozenset({"at", "event", "level", "request_id", "content"})
"""Fields that nobody else has a word in, and content, which is told as the configuration lets it be."""
_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode  # json.dumps would make one a line


def _encoded(line: Any, **_options: Any) -> str:
    """JSON, written by pydantic's encoder: a fourth of what the standard library's takes."""
    try:
        return to_json(line, fallback=str).decode()
    except PydanticSerializationError:  # a name with half a character in it: escaped, it is JSON all the same
        return _encode(line)


class Redaction:
    """A structlog processor: no value keeps anything that looks like a secret, nor any of `known` secrets.

    `known` are the configuration's own: those are found even where nothing about them looks like a key. Names recur
    in every line: what was looked at before is not looked at again.
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
                if len(value) <= _TEXT_LIMIT:  # a longer one is no name, and may be as long as its caller likes
                    self._seen[value] = known
            return known
        if isinstance(value, Mapping):
            return {key: self.clean(member) for key, member in value.items()}
        return [self.clean(member) for member in value] if isinstance(value, (list, tuple)) else value


class LogSink:
    """Writes JSON lines to `stream`, gathered until `caught_up`.

    `fine_share` in (0, 1] is the share of requests without trouble that are told. Which of them is decided by the
    request's id: every process, and every run, tells the same ones. A provider's own words are never in a line (they
    may echo a prompt): of a failure it has target, class and status. `clock` is that of the events' instants.
    """

    def __init__(
        self,
        stream: TextIO | Lines,
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
        self._lines: list[str] = []
        self._stream = stream
        self._sampled = fine_share < 1.0
        self._fine_below = fine_share * _SAMPLES
        self._clock = clock
        self._wall = wall
        self._open: dict[str, list[str]] = {}
        """What went wrong so far in requests that go on."""
        self._seen: ContentSeen | None = None
        """The newest: it comes right before the request it belongs to has ended."""
        self._handlers: dict[type, Callable[[Any], None]] = {
            RequestFinished: self._request,
            AttemptFinished: self._attempt,
            TargetRefused: self._refusal,
            ContentSeen: self._content,
            **dict.fromkeys(TRANSITIONS, self._transition),
        }

    def emit(self, event: Event) -> None:
        """Write it, or remember it for its request's line."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)

    def caught_up(self) -> None:
        """Write what was gathered. Raises OSError; those lines are lost then."""
        if self._lines:
            text = "\n".join((*self._lines, ""))
            self._lines.clear()
            self._stream.write(text)
            self._stream.flush()

    def close(self) -> None:
        """Let go of the file; the process's own streams stay open."""
        if isinstance(self._stream, Lines):
            self._stream.close()

    def _attempt(self, event: AttemptFinished) -> None:
        if event.failure_class is not None:
            status = "" if event.status is None else f" {event.status}"
            self._remember(event.request_id, f"{event.target} {event.failure_class.value}{status}")

    def _refusal(self, event: TargetRefused) -> None:
        self._remember(event.request_id, f"{event.target} refused {event.reason}")

    def _content(self, event: ContentSeen) -> None:
        self._seen = event

    def _transition(self, event: Event) -> None:
        told = {key: _plain(getattr(event, key)) for key in event.__dataclass_fields__ if key != "at"}
        self._write("warning", {"event": TRANSITIONS[type(event)], "at": self._stamp(event.at), **told})

    def _request(self, event: RequestFinished) -> None:
        trouble, fine = self._open.pop(event.request_id, []), event.outcome in FINE
        if fine and self._sampled and zlib.crc32(event.request_id.encode()) >= self._fine_below:
            return
        ttft = event.ttft_seconds
        line: dict[str, Any] = {
            "event": "request",
            "at": self._stamp(event.at),
            "request_id": event.request_id,
            "dialect": event.dialect,
            "model": event.model,
            "outcome": event.outcome,
            "target": event.target,
            "requested_tier": event.requested_tier,
            "actual_tier": event.actual_tier,
            "degraded": event.degraded,
            "last_resort": event.last_resort,
            "attempts": event.attempts,
            "refusals": event.refusals,
            "seconds": round(event.seconds, 6),
            "waited_seconds": round(event.waited_seconds, 6),
            "ttft_seconds": None if ttft is None else round(ttft, 6),
            "trouble": trouble,
        }
        seen = self._seen
        if seen is not None and seen.request_id == event.request_id:
            line["content"] = {"mode": seen.mode, "prompt": seen.prompt, "answer": seen.answer}
        self._write("info" if fine else "warning", line)

    def _write(self, level: str, line: dict[str, Any]) -> None:
        told: Any = line
        for step in self._chain:
            told = step(None, level, told)
        self._lines.append(told)
        if len(self._lines) >= _LINES:
            self.caught_up()

    def _remember(self, request_id: str, what: str) -> None:
        self._open.setdefault(request_id, []).append(what)
        if len(self._open) > _OPEN_REQUESTS:
            del self._open[next(iter(self._open))]

    def _stamp(self, instant: float) -> str:
        milliseconds = int((self._wall() - (self._clock() - instant)) * 1000)
        return f"{_second(milliseconds // 1000)}.{milliseconds % 1000:03d}+00:00"


@lru_cache(maxsize=16)
def _second(seconds: int) -> str:
    """Most lines are of the same few seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


class Lines:
    """A file that is added to, whole lines at a time: processes may share it. For its owner's eyes only."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, text: str) -> int:
        """Add it at once."""
        return os.write(self._descriptor, text.encode("utf-8", "replace"))

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)


def opened(target: str) -> TextIO | Lines:
    """What a log is written to: `stderr`, `stdout`, or the path of a file. Raises OSError."""
    streams: dict[str, TextIO] = {"stderr": sys.stderr, "stdout": sys.stdout}
    return streams.get(target) or Lines(Path(target).expanduser())


def _plain(value: object) -> object:
    return round(value, 6) if isinstance(value, float) else value
