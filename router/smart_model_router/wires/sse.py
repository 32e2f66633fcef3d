"""Server-sent events: bytes in, complete frames out, whatever the chunking."""

from __future__ import annotations

import re

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
        """Whether a frame has just ended, and no other begun."""

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
        """Whether a chunk is one whole frame, as most are, and nothing has to be done about it."""
        whole = self._plain and 2 < len(chunk) <= self._cap and chunk[:1] != b"\n"
        return whole and chunk.find(b"\n\n") == len(chunk) - 2

    def flush(self) -> bytes:
        """What is left when the stream ends: an unfinished frame, or nothing."""
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
