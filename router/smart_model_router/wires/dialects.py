"""The bytes of a provider read as its dialect: frames, their meaning, whole answers, and a running count of tokens.

A dialect is a module with a row in each table of this one.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, StreamEvent, Usage
from smart_model_router.wires import chat, messages, responses
from smart_model_router.wires.chat import read_usage
from smart_model_router.wires.outcomes import Answer
from smart_model_router.wires.responses_snapshots import ResponsesSnapshots
from smart_model_router.wires.values import decode_object, is_list, mapping

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from smart_model_router.domain.request import Dialect

MAX_FRAME_BYTES = 8 * 1024 * 1024
"""More than this without a blank line is not an event but an attack on memory."""

OVERSIZED_FRAME = b"data: event over the size cap, dropped\n\n"
"""Stands for a frame over the cap. It is not JSON, so every dialect reads it as MALFORMED."""

_NO_FIELD = b"a line of JSON outside of any field"
"""Stands for data that cannot be read, as it is not JSON."""

_BOM = b"\xef\xbb\xbf"
# A line ends with CRLF, LF or CR (WHATWG HTML, 9.2.5); a blank line ends a frame.
_BLANK_LINE = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)")
_NEWLINES = b"\r\n"


class SseParser:
    """Cuts a byte stream into frames. A frame is raw: fields and comments as they came, with its blank line.

    Memory is bounded by `max_frame_bytes` plus one chunk.
    """

    def __init__(self, *, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._cap = max_frame_bytes
        self._buffer = b""
        self._searched = 0
        self._plain = True  # no CR seen yet: bytes.find is many times faster than the pattern
        self._first = True
        self._skipping = False
        self.between = False
        """True between two frames: one has ended, and no other begun."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Every frame that `chunk` completes, in order."""
        if self._plain and b"\r" in chunk:
            self._plain = False
        if self.between and self._is_one_frame(chunk):
            return [chunk]
        buffer = self._buffer + chunk if self._buffer else chunk
        frames: list[bytes] = []
        start = 0
        search = self._searched
        while (end := self._end_of_frame(buffer, search)) >= 0:
            self._take(buffer[start:end], frames)
            start = search = end
        self._buffer = buffer[start:] if start else buffer
        # The blank line may be split: look again at the last bytes, CRLF CR being the longest unfinished one.
        self._searched = max(0, len(self._buffer) - 3)
        if len(self._buffer) > self._cap:
            self._drop_oversized(frames)
        self.between = not (self._buffer or self._first or self._skipping)
        return frames

    def _is_one_frame(self, chunk: bytes) -> bool:
        """Return whether a chunk is one whole frame, as most are, and nothing has to be done about it."""
        whole = self._plain and 2 < len(chunk) <= self._cap and chunk[:1] != b"\n"
        return whole and chunk.find(b"\n\n") == len(chunk) - 2

    def flush(self) -> bytes:
        """Return the rest when the stream ends: an unfinished frame, or nothing."""
        rest, self._buffer, self._searched = self._buffer, b"", 0
        if self._skipping:
            return b""
        rest = rest.removeprefix(_BOM) if self._first else rest
        return rest if rest.strip(_NEWLINES) else b""

    def _end_of_frame(self, buffer: bytes, start: int) -> int:
        if self._plain:
            found = buffer.find(b"\n\n", start)
            return found + 2 if found >= 0 else -1
        match = _BLANK_LINE.search(buffer, start)
        return match.end() if match else -1

    def _take(self, frame: bytes, frames: list[bytes]) -> None:
        if self._first:
            frame = frame.removeprefix(_BOM)
            self._first = False
        if frame[:1] in (b"\n", b"\r"):  # surplus blank lines, or the LF of a CRLF that was split
            frame = frame.lstrip(_NEWLINES)
        if self._skipping:
            self._skipping = False
        elif len(frame) > self._cap:
            frames.append(OVERSIZED_FRAME)
        elif frame:
            frames.append(frame)

    def _drop_oversized(self, frames: list[bytes]) -> None:
        self._buffer = self._buffer[-3:]
        self._searched = 0
        if not self._skipping:
            self._skipping = True
            frames.append(OVERSIZED_FRAME)


def fields(frame: bytes) -> tuple[bytes, bytes | None]:
    """The event type and the data of a frame; data is None when the frame has no data (a comment).

    The standard ignores lines of unknown fields (WHATWG HTML, 9.2.6). A line that looks like JSON is no such field: it
    may have carried text, so the frame's data is not readable.
    """
    if frame.startswith(b"data:") and frame.find(b"\n") >= len(frame) - 2 and b"\r" not in frame:
        return b"", frame[5:].strip() or None
    event = b""
    data: list[bytes] = []
    for line in frame.splitlines():
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
        elif name == b"event":
            event = value.strip()
        elif b"{" in name or b'"' in name:
            return event, _NO_FIELD
    return event, b"\n".join(data).strip() or None


def _read_embeddings(body: Mapping[str, Any]) -> Answer:
    """A whole answer: a list of vectors (or of base64 strings that hold them)."""
    if body.get("error"):
        return Answer(error=body["error"])
    data = body.get("data")
    if not is_list(data):
        return Answer(malformed="no list of embeddings")
    if any(not mapping(item).get("embedding") for item in data):
        return Answer(malformed="an item without an embedding")
    return Answer(read_usage(body.get("usage")), empty=not data)


EVENT_READERS: Mapping[Dialect, Callable[[bytes, dict[str, Any], bytes], StreamEvent]] = MappingProxyType(
    {"chat": chat.read_event, "messages": messages.read_event, "responses": responses.read_event}
)
"""Streaming dialects: (event type, decoded data, raw frame) -> StreamEvent."""

STREAMING = frozenset(EVENT_READERS)
"""The dialects that have streams."""

ANSWER_READERS: Mapping[Dialect, Callable[[Mapping[str, Any]], Answer]] = MappingProxyType(
    {
        "chat": chat.read_answer,
        "messages": messages.read_answer,
        "responses": responses.read_answer,
        "embeddings": _read_embeddings,
    }
)
"""The facts of a whole answer by its dialect. None of them raises, whatever was sent."""

TEXT_READERS: Mapping[Dialect, Callable[[Mapping[str, Any]], str]] = MappingProxyType(
    {"chat": chat.text_of, "messages": messages.text_of, "responses": responses.text_of}
)

PROSE_READERS: Mapping[Dialect, Callable[[Mapping[str, Any]], bool]] = MappingProxyType(
    {"chat": chat.is_prose, "messages": messages.is_prose, "responses": responses.is_prose}
)
"""Tell that an event holds nothing but text for people: a replaced byte in it changes no argument and no identifier."""

PROSE_ANSWERS: Mapping[Dialect, Callable[[Mapping[str, Any]], bool]] = MappingProxyType(
    {"chat": chat.is_prose_answer, "messages": messages.is_prose_answer, "responses": responses.is_prose_answer}
)
"""The same of whole answers."""

NOT_UTF8 = Failure(FailureClass.MALFORMED, "bytes that are not UTF-8 were replaced")

TERMINATORS: Mapping[Dialect, bytes] = MappingProxyType({"chat": b"[DONE]"})
"""Data that ends a stream and is not JSON."""


def read_event(dialect: Dialect, frame: bytes) -> StreamEvent:
    """Return the meaning of one frame of SseParser in a streaming dialect. Never raises on what was sent."""
    event, data = fields(frame)
    if data is None or event == b"ping":
        return StreamEvent(EventKind.PING, frame)
    if data == TERMINATORS.get(dialect):
        return StreamEvent(EventKind.END, frame)
    decoded = decode_object(data)
    if decoded is None:
        return _mended(dialect, event, data, frame) or StreamEvent(EventKind.MALFORMED, frame)
    return EVENT_READERS[dialect](event, decoded, frame)


def _mended(dialect: Dialect, event: bytes, data: bytes, frame: bytes) -> StreamEvent | None:
    """The event with the bytes of its prose replaced that are not UTF-8; None when that does not make it readable."""
    text = data.decode(errors="replace").encode()
    decoded = decode_object(text) if text != data else None
    if decoded is None or not PROSE_READERS[dialect](decoded):
        return None
    return EVENT_READERS[dialect](event, decoded, frame.decode(errors="replace").encode())._replace(failure=NOT_UTF8)


_WRITERS: Mapping[Dialect, Callable[[dict[str, Any]], StreamEvent]] = MappingProxyType(
    {"chat": chat.written, "messages": messages.written, "responses": responses.written}
)


def written(dialect: Dialect, data: Iterable[dict[str, Any]]) -> list[StreamEvent]:
    """The events with these data, in order: all dialects but Chat name their events."""
    write = _WRITERS[dialect]
    return [write(one) for one in data]


class FinishCheck(Protocol):
    """Follows one stream. `finished`: all of the answer has come, whatever becomes of the transport.

    Content after that belongs to no answer.
    """

    finished: bool

    def take(self, event: StreamEvent) -> bool:
        """Take an event with content or meaning; False when it is content that belongs to no part of the answer."""
        ...

    def missing(self) -> str:
        """Return the part that an answer lacks although its terminator came; "" for a whole one."""
        ...


FINISH_CHECKS: Mapping[Dialect, Callable[[int], FinishCheck]] = MappingProxyType(
    {
        "chat": chat.ChatFinishing,
        "messages": messages.MessagesFinishing,
        "responses": responses.ResponsesFinishing,
    }
)
"""For one stream of a streaming dialect, and the number of answers that were asked for: the rules of its end."""


class Snapshots(Protocol):
    """Follows one stream of a provider that may put into a snapshot what no delta carried.

    A caller who reads deltas, and every translation, would lose it while the answer ends well. So deltas are made of
    what a snapshot adds; one that contradicts the deltas before it is an event that cannot be read.
    """

    def read(self, events: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
        """The events, with deltas for what only a snapshot among them says; MALFORMED instead of a contradiction."""
        ...


SNAPSHOT_READERS: Mapping[Dialect, Callable[[], Snapshots]] = MappingProxyType(
    {"chat": chat.ChatSnapshots, "messages": messages.MessagesSnapshots, "responses": ResponsesSnapshots}
)
"""The reader of snapshots for one stream of a streaming dialect."""


_ID_PREFIXES = ("chatcmpl-", "msg_", "resp_")


def named_id(prefix: str, value: object) -> str:
    """An answer's id as its dialect begins it: the provider's own, whose beginning names another dialect or none."""
    found = value if isinstance(value, str) else ""
    other = next((known for known in _ID_PREFIXES if found.startswith(known)), "")
    return prefix + found.removeprefix(other)


def text_of(dialect: Dialect, data: Mapping[str, Any]) -> str:
    """The visible text an event's `data` adds to the answer ("" for tool calls, reasoning and all else)."""
    return TEXT_READERS[dialect](data)


def text_of_answer(body: Mapping[str, Any]) -> str:
    """The visible text of a whole Chat Completions answer, read as if it were its only chunk."""
    choice = body["choices"][0] if body.get("choices") else {}
    return text_of("chat", {"choices": [{"delta": choice.get("message")}]})


def mended_answer(dialect: Dialect, body: bytes) -> tuple[dict[str, Any], bytes] | None:
    """A whole answer and its bytes, with those of its prose replaced that are not UTF-8; None where that is no help."""
    text = body.decode(errors="replace").encode()
    decoded = decode_object(text) if text != body else None
    is_prose = PROSE_ANSWERS.get(dialect)
    return (decoded, text) if decoded is not None and is_prose is not None and is_prose(decoded) else None


_KEY = b'"content"'
_BETWEEN = (b':"', b': "')
_CONTENT: Final = EventKind.CONTENT
_MAX_TEXT_BYTES = 64 * 1024
"""More is nothing that comes in one piece: such a frame is read with all the care there is."""


class Alike:
    """One chunk with a hole where its text was. A frame that fits is read by filling the hole."""

    __slots__ = ("_choice", "_data", "_delta", "_end", "_head", "_start", "_tail")

    def __init__(self, head: bytes, tail: bytes, data: dict[str, Any]) -> None:
        self._head = head
        self._tail = tail
        self._start = len(head)
        self._end = -len(tail)
        self._data = data
        self._choice: dict[str, Any] = data["choices"][0]
        self._delta: dict[str, Any] = self._choice["delta"]

    def read(self, frame: bytes) -> StreamEvent | None:
        """The event that a frame is; None when it differs in more than its text."""
        if not (frame.startswith(self._head) and frame.endswith(self._tail)):
            return None
        text = frame[self._start : self._end]
        if not text or len(text) > _MAX_TEXT_BYTES:
            return None
        try:
            said = text.decode()
        except UnicodeDecodeError:
            return None
        # Printable, without quotes and escapes: a JSON string that reads as it is written (RFC 8259, section 7).
        if '"' in said or "\\" in said or not said.isprintable():
            return None
        data, choice, delta = self._data.copy(), self._choice.copy(), self._delta.copy()
        data["choices"], choice["delta"], delta["content"] = [choice], delta, said
        # What the class itself does, without the call in between: this is done for each chunk of each stream.
        return tuple.__new__(StreamEvent, (_CONTENT, frame, data, None, None, None, said))


def alike(event: StreamEvent) -> Alike | None:
    """Return the probable form of the next chunks; None for a chunk that says more than text, or says it otherwise."""
    data, raw = event.data, event.raw
    if not event.text or not isinstance(data, dict) or event.finish is not None or event.usage is not None:
        return None
    choice = data["choices"][0]
    inside = (*_but("choices", data), *_but("delta", choice), *choice["delta"].values())
    if any(isinstance(value, (dict, list)) for value in inside):  # two events are to have nothing in common
        return None
    before, key, behind = raw.partition(_KEY)
    between, quote, rest = behind.partition(b'"')
    said = event.text.encode(errors="replace")
    tail = rest[len(said) :]
    if between + quote not in _BETWEEN or not rest.startswith(said) or tail[:1] != b'"':
        return None
    if _KEY in tail or b"\\" in raw:
        return None
    return Alike(before + key + between + quote, tail, data)


def _but(key: str, holder: Mapping[str, Any]) -> list[Any]:
    return [value for name, value in holder.items() if name != key]


_LESSONS = 5
"""Failed guesses after which chunks are not taken for alike: those of some providers never are (OpenAI obfuscates)."""


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
